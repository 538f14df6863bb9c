//! What a person can do about a fault (C-04).

use crate::ways::said_no;
use selvedge_engine::{Fault, FaultKind};

/// What to do before a run is resumed, or instead.
pub(super) fn advice(fault: &Fault) -> &'static str {
    match fault.kind {
        FaultKind::InputError => {
            "correct the values that the tool was given: in the document, or in what an earlier tool gave"
        }
        FaultKind::ExecutionFailure => "see what the tool said, and correct the tool or what it needs",
        FaultKind::Timeout => {
            "find out what it waited for, or give it more time: `timeout` of the node, the time limits in \
             [limits], --timeout"
        }
        FaultKind::EmptyResponse | FaultKind::MalformedResponse => {
            "try again, or choose another model (--model)"
        }
        FaultKind::ProviderError if of_script(fault) => {
            "write a rule for this request into the script, or correct the one that was meant for it"
        }
        FaultKind::ProviderError => {
            "check the endpoint, the model's name and the key: selvedge doctor --online"
        }
        FaultKind::LimitExceeded => "raise the limit that is named in [limits], if that much is meant",
        FaultKind::ToolBuildFailure => "correct the tool's code or its dependencies",
        FaultKind::UnresolvedPlaceholder => "correct the placeholder in the document",
        FaultKind::UnknownTool => "name the folder that has the tool (--tools DIR)",
        FaultKind::JoinUnmet => "see below which paths failed, and why",
        FaultKind::UnknownOutcome => "find out whether the call had happened before it is made again",
        FaultKind::Cancelled => {
            "a cancelled run can't be resumed: fork it to keep what it did, or run the document again"
        }
        FaultKind::BudgetExceeded => "allow the run more, if that much is meant",
        // Nothing else forbade it.
        FaultKind::Denied if said_no(fault) => "answer yes the next time it asks, if it is wanted after all",
        FaultKind::Denied => "allow it (--allow-write, --allow-network), or answer yes the next time",
        FaultKind::DefinitionChanged => "look at what changed; a resume takes the tool as it is now",
    }
}

/// Whether a scripted model had no reply (C-07): no endpoint is there to be looked at.
fn of_script(fault: &Fault) -> bool {
    fault.cause.as_ref().is_some_and(|cause| cause.get("script").is_some())
}
