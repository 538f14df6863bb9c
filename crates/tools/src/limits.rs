//! Limits of tool calls, with their defaults and the keys that set them (E-12, E-28, A-20).

use selvedge_sandbox::policy::Policy;
use std::time::Duration;

/// What one tool call may use.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolLimits {
    /// `tool_timeout_s`: seconds a call may take when neither node nor tool says.
    pub tool_timeout_s: f64,
    /// `tool_output_bytes`: bytes of one output, also the largest file that `read_file` reads.
    pub tool_output_bytes: u64,
    /// `json_nesting`: the most objects and arrays of an output inside each other; no more than 1,000, which can be
    /// walked.
    pub json_nesting: usize,
    /// `schema_steps`: steps of reading a schema, and of holding a value against it (E-45).
    pub schema_steps: u64,
    /// Address space of a tool's process in bytes; `None` leaves it alone.
    pub memory_bytes: Option<u64>,
    /// Processes and threads that a tool may have at a time, where it is isolated; `None` leaves it alone.
    pub processes: Option<u64>,
    /// The largest file a tool may write, in bytes; `None` leaves it alone.
    pub file_bytes: Option<u64>,
    /// Files a tool may have open; `None` leaves it alone.
    pub open_files: Option<u64>,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            tool_timeout_s: 120.0,
            tool_output_bytes: 16 << 20,
            json_nesting: 128,
            schema_steps: selvedge_engine::schema::STEPS,
            memory_bytes: Some(8 << 30),
            processes: Some(512),
            file_bytes: Some(1 << 30),
            open_files: Some(1024),
        }
    }
}

impl ToolLimits {
    /// No access beyond scratch, with these limits.
    pub fn closed(&self) -> Policy {
        Policy {
            processes: self.processes,
            memory_bytes: self.memory_bytes,
            total_bytes: self.memory_bytes,
            file_bytes: self.file_bytes,
            open_files: self.open_files,
            ..Policy::default()
        }
    }

    /// The time limit of one call: the node's, else the tool's, else the default.
    pub fn timeout(&self, node: Option<f64>, tool: Option<f64>) -> Duration {
        let seconds = node.or(tool).unwrap_or(self.tool_timeout_s);
        // A year stands for "none": a Duration takes neither infinities nor negative numbers.
        Duration::try_from_secs_f64(seconds.clamp(0.0, 31_536_000.0)).unwrap_or(Duration::from_secs(120))
    }
}
