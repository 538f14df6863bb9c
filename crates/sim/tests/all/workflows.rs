//! Workflows over many seeds: agreement with the reference, and crashes.

use selvedge_sim::workflows::block::{Block, Kind, Paths, Rounds};
use selvedge_sim::workflows::properties::{agreement, crashes};
use selvedge_sim::workflows::{forks, generate, reference};
use std::collections::BTreeMap;
use support::{holds, holds_in_forks};

#[cfg(test)]
mod support {
    use selvedge_sim::workflows::forks::POINTS;
    use selvedge_sim::workflows::properties::{Property, smallest};
    use selvedge_sim::workflows::{document, generate};

    fn number(name: &str) -> Option<u64> {
        std::env::var(name).ok()?.parse().ok()
    }

    pub(super) fn holds(name: &str, property: Property, workflows: u64) {
        holds_for(name, property, number("SELVEDGE_SIM_WORKFLOWS").unwrap_or(workflows));
    }

    /// The same of forks, of which each workflow has several.
    pub(super) fn holds_in_forks(name: &str, property: Property, workflows: u64) {
        let forks = number("SELVEDGE_SIM_FORKS").map(|forks| forks.div_ceil(POINTS as u64));
        holds_for(name, property, forks.or(number("SELVEDGE_SIM_WORKFLOWS")).unwrap_or(workflows));
    }

    fn holds_for(name: &str, property: Property, workflows: u64) {
        let seeds = match number("SELVEDGE_SIM_SEED") {
            Some(seed) => seed..seed + 1,
            None => 0..workflows,
        };
        if let Some((seed, error)) = smallest(property, seeds) {
            let workflow = generate::workflow(seed);
            let document = serde_json::to_string_pretty(&document::document(&workflow)).unwrap();
            panic!("{name}: seed {seed}: {error}\n{document}\nfaults: {}", workflow.faults);
        }
    }
}

#[test]
fn w06_workflows_agree() {
    holds("workflows_agree", agreement, 1_500);
}

#[test]
fn workflows_crash() {
    holds("workflows_crash", crashes, 100);
}

#[test]
fn e19_workflows_fork() {
    holds_in_forks("workflows_fork", forks::unedited, 200);
}

#[test]
fn e29_workflows_fork_with_another_document() {
    holds_in_forks("workflows_fork_with_another_document", forks::edited, 200);
}

/// What the properties are about happens in the workflows that they are held against.
#[test]
fn the_generator_of_workflows_reaches_what_matters() {
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..1_500 {
        let workflow = generate::workflow(seed);
        let end = match reference::run(&workflow).end {
            Ok(_) => "completed".to_owned(),
            Err(kind) => kind,
        };
        *met.entry(end).or_default() += 1;
        count(&workflow.blocks, "", &mut met);
    }
    let wanted = [
        "completed",
        "execution_failure",
        "provider_error",
        "denied",
        "join_unmet",
        "input_error",
        "limit_exceeded",
        " approve",
        " answer",
        " edit",
        " plan",
        " sub",
        " while",
        " over",
        " count",
        " cut",
        " route",
        " edges",
        " parallel",
        " serial",
        " each",
        "fork fork",
        "loop fork",
        "sub fork",
        "fork loop",
        "fork sub",
        "fork person",
    ];
    let missed: Vec<&str> =
        wanted.into_iter().filter(|wanted| met.get(*wanted).is_none_or(|times| *times < 5)).collect();
    assert!(missed.is_empty(), "too seldom: {missed:?} in {met:?}");
}

/// What the blocks are, by what they are in.
fn count(blocks: &[Block], within: &str, met: &mut BTreeMap<String, usize>) {
    for block in blocks {
        let (kinds, inner): (Vec<&str>, Vec<(&str, &[Block])>) = match block {
            Block::Person { kind: Kind::Approve, .. } => (vec!["person", "approve"], Vec::new()),
            Block::Person { kind: Kind::Answer, .. } => (vec!["person", "answer"], Vec::new()),
            Block::Person { kind: Kind::Edit, .. } => (vec!["person", "edit"], Vec::new()),
            Block::Plan { .. } => (vec!["plan"], Vec::new()),
            Block::Cut { .. } => (vec!["cut"], Vec::new()),
            Block::Choose { route, even, odd, .. } => {
                (vec![if *route { "route" } else { "edges" }], vec![(within, even), (within, odd)])
            }
            Block::Repeat { rounds, body, .. } => {
                let kind = match rounds {
                    Rounds::Count(_) => "count",
                    Rounds::Over(_) => "over",
                    Rounds::While { .. } => "while",
                };
                (vec!["loop", kind], vec![("loop", body)])
            }
            Block::Fork { paths, serial, .. } => {
                let order = if *serial { "serial" } else { "parallel" };
                match paths {
                    Paths::Listed(paths) => {
                        (vec!["fork", order], paths.iter().map(|path| ("fork", path.as_slice())).collect())
                    }
                    Paths::Each(_, body) => (vec!["fork", "each", order], vec![("fork", body.as_slice())]),
                }
            }
            Block::Sub { body, .. } => (vec!["sub"], vec![("sub", body)]),
            Block::Set { .. } | Block::Ask { .. } | Block::Call { .. } => (Vec::new(), Vec::new()),
        };
        for kind in kinds {
            *met.entry(format!("{within} {kind}")).or_default() += 1;
        }
        inner.into_iter().for_each(|(within, blocks)| count(blocks, within, met));
    }
}
