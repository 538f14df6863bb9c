//! How to go on with a run that has failed: the commands that help with what it failed of, and no others (C-04).

use crate::words::command;
use selvedge_engine::{Fault, FaultKind, State};
use selvedge_host::options::RunOptions;
use selvedge_store::Store;
use std::path::Path;

/// A command that helps, and when or how.
#[derive(Debug, PartialEq)]
pub(crate) struct Way {
    /// In one line, so that it can be copied.
    pub(crate) command: String,
    /// In a few words.
    pub(crate) when: &'static str,
}

/// What stands before them: they cost nothing twice.
pub(crate) const KEPT: &str = "finished work is kept";

/// The ways on from a run's fault, what helps most likely first; never none.
pub(crate) fn ways(store: &Store, run: &str, state: &State) -> Vec<Way> {
    let file = document(store, run);
    match state.ended().and_then(|(_, fault)| fault) {
        Some(fault) if fault.kind == FaultKind::BudgetExceeded => {
            let caps = caps(state);
            vec![way(&["resume", run, "--budget", &caps], "with a larger budget")]
        }
        Some(fault) => {
            let node = fault.node.as_deref().map(|node| state.told_name(node).into());
            of_fault(&Fault { node, ..fault.clone() }, run, &file)
        }
        None => vec![resume(run)],
    }
}

fn way(words: &[&str], when: &'static str) -> Way {
    Way { command: command(words), when }
}

fn resume(run: &str) -> Way {
    way(&["resume", run], "once the cause is gone")
}

fn of_fault(fault: &Fault, run: &str, file: &str) -> Vec<Way> {
    let fork = |when| way(&["fork", run, "--document", file], when);
    match fault.kind {
        // The run keeps the document that it began with: a resume would come to the same end.
        FaultKind::UnresolvedPlaceholder => vec![fork("with a corrected document")],
        FaultKind::InputError => vec![
            fork("with other values in the document"),
            way(&["resume", run], "once a tool gives or takes other values"),
        ],
        FaultKind::ExecutionFailure | FaultKind::LimitExceeded => {
            vec![resume(run), fork("with another document")]
        }
        FaultKind::Timeout if fault.node.is_some() => vec![resume(run), fork("with another document")],
        FaultKind::Timeout => vec![way(&["resume", run], "for as long again (--timeout for longer)")],
        FaultKind::EmptyResponse | FaultKind::MalformedResponse => {
            let node = fault.node.as_deref().filter(|_| fault.kind == FaultKind::MalformedResponse);
            let show = node.map(|node| way(&["show", run, "--node", node], "to see the whole reply"));
            let again = [
                way(&["resume", run], "to ask the model once more"),
                fork("with another prompt in the document"),
            ];
            show.into_iter().chain(again).collect()
        }
        FaultKind::Denied if said_no(fault) => vec![way(&["resume", run], "to be asked again")],
        FaultKind::Denied => {
            vec![way(&["resume", run], "once it is allowed, with options as those of `run`")]
        }
        _ => vec![resume(run)],
    }
}

/// Whether a person said no, and nothing else forbade it.
pub(crate) fn said_no(fault: &Fault) -> bool {
    fault.message.starts_with("a person said no")
}

/// Twice the caps that are used up, as `--budget` takes them.
fn caps(state: &State) -> String {
    let (budget, used) = (state.start().budget, state.usage());
    let tokens = used.tokens.input.saturating_add(used.tokens.output);
    let twice = |cap: u64, used: u64| cap.max(used).saturating_mul(2).max(1);
    let (calls, cost) = (budget.calls, budget.cost);
    let all = [
        calls
            .filter(|cap| used.model_calls >= *cap)
            .map(|cap| format!("calls={}", twice(cap, used.model_calls))),
        budget.tokens.filter(|cap| tokens >= *cap).map(|cap| format!("tokens={}", twice(cap, tokens))),
        cost.filter(|cap| used.tokens.cost >= *cap)
            .map(|cap| format!("cost={}", cap.max(used.tokens.shown_cost()) * 2.0)),
    ];
    let used_up: Vec<String> = all.into_iter().flatten().collect();
    match (used_up.is_empty(), calls) {
        // Calls under way count, too.
        (true, Some(cap)) => format!("calls={}", twice(cap, 0)),
        _ => used_up.join(","),
    }
}

/// The document that a run began with, as it is typed here.
fn document(store: &Store, run: &str) -> String {
    let file = store.run(run).map(|info| RunOptions::stored(&info.options).document).unwrap_or_default();
    let here = std::env::current_dir().ok();
    let short = here.and_then(|here| file.strip_prefix(here).map(Path::to_path_buf).ok()).unwrap_or(file);
    short.to_str().filter(|name| !name.is_empty()).unwrap_or("FILE").to_owned()
}

/// Ways line by line: what to type with what it does behind it, or below each other where one of the lines would be wider.
pub(crate) fn listed(ways: &[Way], indent: usize, columns: usize) -> Vec<String> {
    let begin = " ".repeat(indent);
    let width = ways.iter().map(|way| way.command.chars().count()).max().unwrap_or(0);
    let beside = |way: &Way| format!("{begin}{:width$}  {}", way.command, way.when);
    if ways.iter().all(|way| beside(way).chars().count() <= columns) {
        return ways.iter().map(beside).collect();
    }
    ways.iter()
        .flat_map(|way| [format!("{begin}{}:", way.when), format!("{begin}  {}", way.command)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: FaultKind, node: bool, message: &str) -> Vec<String> {
        let mut fault = Fault::new(kind, message);
        fault.node = node.then(|| "n".into());
        of_fault(&fault, "r", "my plan.json").into_iter().map(|way| way.command).collect()
    }

    /// Where a resume would come to the same end, it is not said.
    #[test]
    fn what_is_said_helps() {
        let (resume, fork) = ("selvedge resume r", "selvedge fork r --document 'my plan.json'");
        assert_eq!(told(FaultKind::UnresolvedPlaceholder, true, "m"), [fork]);
        assert_eq!(told(FaultKind::InputError, true, "m"), [fork, resume]);
        assert_eq!(told(FaultKind::ExecutionFailure, true, "m"), [resume, fork]);
        assert_eq!(told(FaultKind::ProviderError, true, "m"), [resume]);
        assert_eq!(told(FaultKind::Timeout, false, "m"), [resume]);
        assert_eq!(told(FaultKind::Denied, true, "a person said no"), [resume]);
    }

    #[test]
    fn what_helps_stands_beside_or_above_the_command() {
        let ways = [
            Way { command: "selvedge resume r".into(), when: "once the cause is gone" },
            Way { command: "selvedge fork r --document p".into(), when: "with another document" },
        ];
        assert_eq!(
            listed(&ways, 2, 80),
            [
                "  selvedge resume r             once the cause is gone",
                "  selvedge fork r --document p  with another document"
            ]
        );
        assert_eq!(
            listed(&ways, 2, 40),
            [
                "  once the cause is gone:",
                "    selvedge resume r",
                "  with another document:",
                "    selvedge fork r --document p"
            ]
        );
    }
}
