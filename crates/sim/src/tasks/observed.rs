//! What of a run of a step task can be seen, from the engine or from the reference.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is observable of a run of a step task, in a form in which two can be compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// `completed` or `failed`.
    pub status: String,
    /// The kind of the run's fault, and the step.
    pub fault: Option<(String, String)>,
    /// Step, tool, output, kind of the fault, attempts; in list order.
    pub results: Vec<(String, String, Value, Option<String>, u32)>,
    /// `runtime_metadata` with the step that each value came from.
    pub runtime: BTreeMap<String, (Value, String)>,
    /// What was written to the world.
    pub writes: Vec<u64>,
    /// Actions of recovery, by step.
    pub ladder: Vec<(String, String)>,
    /// Codes of warnings.
    pub warnings: Vec<String>,
}

impl Observed {
    /// What differs, in words.
    ///
    /// # Errors
    /// The differences.
    pub fn same(&self, found: &Self, what: &str) -> Result<(), String> {
        let rows = |observed: &Self| {
            [
                ("status", json!(observed.status)),
                ("fault", json!(observed.fault)),
                ("results", json!(observed.results)),
                ("runtime", json!(observed.runtime)),
                ("ladder", json!(observed.ladder)),
                ("warnings", json!(observed.warnings)),
                ("writes", json!(observed.writes)),
            ]
        };
        let pairs = rows(self).into_iter().zip(rows(found)).filter(|(expected, found)| expected != found);
        let lines: Vec<String> = pairs
            .map(|((name, expected), (_, found))| {
                format!("{name}\n  expected {expected}\n  found    {found}")
            })
            .collect();
        if lines.is_empty() { Ok(()) } else { Err(format!("{what} differs: {}", lines.join("\n"))) }
    }
}
