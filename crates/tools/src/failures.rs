//! Failures of tool calls: the fault's kind (E-16) with the finer name in the cause (A-21, E-24).

use crate::diag::{ToolError, one_line};
use crate::limits::ToolLimits;
use selvedge_engine::{Failure, Fault, FaultKind};
use selvedge_sandbox::policy::Policy;
use selvedge_sandbox::process::{End, Finished, MOST_ENTRIES, Made};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How many places of a kind a message names.
const MADE: usize = 5;
/// How much of a tool's own words goes into a message.
const TEXT: usize = 2000;

/// A failure of kind `kind` with A-21's `{error: {type, message, …}}` as its cause.
pub(crate) fn failure(kind: FaultKind, class: &str, message: String, more: Map<String, Value>) -> Failure {
    let mut error = Map::new();
    error.insert("type".into(), class.into());
    error.insert("message".into(), message.as_str().into());
    error.extend(more);
    let fault = Fault::new(kind, message).because(json!({ "error": error }));
    Failure::of(fault)
}

/// The tool ran, or should have run, and failed.
pub(crate) fn tool_failure(class: &str, message: impl Into<String>) -> Failure {
    failure(FaultKind::ExecutionFailure, class, message.into(), Map::new())
}

/// Arguments that the tool refuses.
pub(crate) fn input_error(message: impl Into<String>) -> Failure {
    failure(FaultKind::InputError, "input_error", message.into(), Map::new())
}

/// A missing permission said no.
pub(crate) fn denied(message: impl Into<String>) -> Failure {
    Failure::permanent(FaultKind::Denied, message)
}

/// What a tool declares is not allowed, or not there: nothing of it has run.
pub(crate) fn not_allowed(error: ToolError) -> Failure {
    denied(format!("{} ({})", error.message, error.help)).unsent()
}

/// Where the time that a call may take is set (E-12).
pub(crate) const TIMEOUT_SETTING: &str =
    "`timeout` of the step, the node or the tool, else `tool_timeout_s` in [limits]";

/// The call has made what Selvedge would read as its own configuration or state, or what other programs run unasked.
pub(crate) fn made_ours(tool: &str, made: &Made) -> Failure {
    denied(one_line(&made_words(&format!("the tool `{tool}`"), made)))
}

pub(crate) fn made_words(whose: &str, made: &Made) -> String {
    let aside = listed(made.aside.iter().map(|path| path.display().to_string()));
    let left = listed(made.left.iter().map(|(path, why)| format!("{} ({why})", path.display())));
    let mut said = Vec::new();
    if !aside.is_empty() {
        said.push(format!(
            "while {whose} ran, {aside} was made, which Selvedge reads for itself, or other programs run unasked, and \
             tools do not write, whatever is allowed around it, unless it is granted by its own name with `--allow-write` \
             (A-20): it was set aside, its name now ends with `.set-aside`"
        ));
    }
    if !left.is_empty() {
        said.push(format!(
            "what {whose} left could NOT be looked through or set aside: {left}; what lies there may name programs that \
             Selvedge or others start (A-20): look before you work in these folders"
        ));
    }
    said.join(". ")
}

/// The first of some places, and how many more there are.
fn listed(places: impl ExactSizeIterator<Item = String>) -> String {
    let more = places.len().saturating_sub(MADE);
    let mut said = places.take(MADE).collect::<Vec<_>>().join(", ");
    if more > 0 {
        said.push_str(&format!(" and {more} more"));
    }
    said
}

/// A sandbox, or a program in it, that could not be started: the tool did not run.
pub(crate) fn not_started(what: &str, error: &std::io::Error) -> Failure {
    tool_failure("subprocess_execution_error", one_line(&format!("{what} cannot be started: {error}")))
        .unsent()
}

/// The time limit was reached and the process group killed; transient (D-17).
pub(crate) fn timed_out(tool: &str, timeout: Duration) -> Failure {
    let seconds = timeout.as_secs_f64();
    let message =
        format!("the tool `{tool}` took longer than its {seconds} s and was ended ({TIMEOUT_SETTING})");
    let mut failed = failure(FaultKind::Timeout, "tool_execution_timeout", message, Map::new());
    failed.transient = true;
    failed
}

/// More output than `limits.tool_output_bytes` (E-28).
pub(crate) fn over_limit(tool: &str, limits: &ToolLimits) -> Failure {
    Failure::permanent(
        FaultKind::LimitExceeded,
        format!(
            "the output of the tool `{tool}` is over the limit of {} bytes (`tool_output_bytes` in [limits])",
            limits.tool_output_bytes
        ),
    )
}

/// More in its scratch folder than it may have there.
pub(crate) fn overfull(tool: &str, policy: &Policy) -> Failure {
    let bytes = policy.scratch_bytes().unwrap_or(u64::MAX);
    let message = format!(
        "the tool `{tool}` was ended: there was more in its scratch folder than the {bytes} bytes, or the {MOST_ENTRIES} files \
         and folders, that it may have there"
    );
    Failure::permanent(FaultKind::LimitExceeded, message)
}

/// A process that ended in another way than by saying how it went: killed by a signal is transient (D-17).
pub(crate) fn crashed(tool: &str, finished: &Finished, timeout: Duration) -> Failure {
    let mut more = Map::new();
    let ended = match finished.end {
        End::TimedOut => return timed_out(tool, timeout),
        End::Signalled(signal) => {
            more.insert("signal".into(), signal.into());
            format!("was killed by signal {signal}")
        }
        End::Exited(code) => {
            more.insert("exit_code".into(), code.into());
            format!("ended with exit code {code}")
        }
        End::Dismissed | End::TooMuchOutput | End::TooMuchScratch => "ended early".to_owned(),
    };
    let stderr = finished.stderr_end(TEXT);
    let message = if stderr.is_empty() {
        format!("the tool `{tool}` {ended} and wrote nothing to stderr")
    } else {
        format!("the tool `{tool}` {ended}: {stderr}")
    };
    let mut failed = failure(FaultKind::ExecutionFailure, "subprocess_execution_error", message, more);
    failed.transient = matches!(finished.end, End::Signalled(_));
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-04: a list that is cut says so.
    #[test]
    fn what_is_left_out_of_a_list_is_counted() {
        let paths = (0..7).map(|n| std::path::PathBuf::from(format!("/d/{n}/selvedge.toml")));
        let made =
            Made { aside: paths.clone().collect(), left: paths.map(|path| (path, "busy".into())).collect() };
        let said = made_ours("t", &made).fault.message;
        assert!(said.contains("/d/4/selvedge.toml and 2 more was made") && !said.contains("/d/5/"), "{said}");
        assert!(said.contains("/d/4/selvedge.toml (busy) and 2 more"), "{said}");
        let made = Made { aside: vec!["/d/selvedge.toml".into()], ..Made::default() };
        assert!(!made_ours("t", &made).fault.message.contains(" more"));
    }
}
