//! The library after a batch (V-05 … V-10): what its tasks have proved and what is public is grouped by what it does, each group
//! becomes one tool if that loses nothing, and all of it is published in one commit.

mod merge;
pub mod operations;

use crate::agent::build::{
    Graphs, ask, call, compute, done, each, fault, flow, give, set, step, warn, when, while_holds,
};
use crate::agent::prompts::TOOL_CLUSTER;
use crate::agent::{Lowering, Settings, schemas};
use operations as op;
use selvedge_engine::{Graph, GraphIx};
use serde_json::json;
use std::sync::Arc;

/// How often it is decided anew because others have changed what it was decided on.
const ROUNDS: u32 = 3;
/// The thread on which a model groups tools.
const GROUPING: &str = "cluster";

/// How tools are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clustering {
    /// A model of the role `cluster` says what does the same (V-06).
    #[default]
    Smart,
    /// By their names without the numbers at the end (V-07).
    Naive,
}

impl Clustering {
    /// Their names in options.
    pub const NAMES: [(&'static str, Self); 2] = [("smart", Self::Smart), ("naive", Self::Naive)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smart => "smart",
            Self::Naive => "naive",
        }
    }
}

/// How one tool is made of several (V-08).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merging {
    /// A coder writes it.
    #[default]
    Smart,
    /// It is the smallest of them that does all their work.
    Naive,
}

impl Merging {
    /// Their names in options.
    pub const NAMES: [(&'static str, Self); 2] = [("smart", Self::Smart), ("naive", Self::Naive)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smart => "smart",
            Self::Naive => "naive",
        }
    }
}

/// How a library is optimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optimise {
    /// How tools are grouped.
    pub cluster: Clustering,
    /// How one is made of several.
    pub merge: Merging,
}

/// The graph that optimises the library. Its variable `runs` has the ids of the runs whose proven tools are taken in; it gives
/// `{"changes": […], "separate": […]}`, as [`operations::publish`] has them. Whoever has it as an inner graph has its graphs in `graphs`; by
/// itself it has them of its own.
pub fn optimise(settings: &Settings, how: Optimise, graphs: &mut Graphs) -> Option<Graph> {
    let round = round(&Lowering::by(settings), how, graphs)?;
    let begin = vec![
        set("turn", json!(0))?,
        set("published", json!(null))?,
        set("before", json!(null))?,
        set("kept", json!({}))?,
    ];
    let rounds = while_holds(&format!("published == null && turn < {ROUNDS}"), ROUNDS, round)?;
    let mut graph = flow(
        &[],
        vec![
            step("begin", None, begin, vec![done("optimise")]),
            step("optimise", None, vec![rounds], vec![done("optimised")]),
            step("optimised", None, vec![give(json!("{{published}}"))?], vec![]),
        ],
    )?;
    graph.tools.extend(op::all().into_iter().map(|tool| (tool.name.clone(), tool)));
    let shared = crate::agent::operations::all();
    graph.tools.extend(shared.into_iter().map(|tool| (tool.name.clone(), tool)));
    Some(graph)
}

/// One round: which tools there are, which of them do the same, what becomes of those, and all of it at once.
fn round(by: &Lowering<'_>, how: Optimise, graphs: &mut Graphs) -> Option<GraphIx> {
    let grouping = grouping(by, graphs)?;
    let merging = by.merging(graphs, how.merge, 2)?;
    let collect =
        json!({"depth": 1, "runs": "{{runs}}", "cluster": how.cluster.name(), "before": "{{before}}"});
    let clusters = json!({
        "depth": 1, "candidates": "{{collect.output.candidates}}", "parts": "{{collect.output.parts}}",
        "answers": "{{groups.output}}", "cluster": how.cluster.name(), "merge": how.merge.name(), "before": "{{before}}", "kept": "{{kept}}",
    });
    let publish = json!({
        "depth": 1, "clusters": "{{clusters.output.merge}}", "single": "{{clusters.output.single}}",
        "merged": "{{merge.output}}", "last": "{{last}}",
    });
    let graph = flow(
        &[],
        vec![
            step("collect", None, vec![call(&op::collect(), collect)?], vec![done("groups")]),
            step(
                "groups",
                None,
                vec![each("{{collect.output.parts}}", "part", grouping)?],
                vec![done("clusters")],
            ),
            step("clusters", None, vec![call(&op::clusters(), clusters)?], vec![done("merge")]),
            step(
                "merge",
                None,
                vec![each("{{clusters.output.merge}}", "cluster", merging)?],
                vec![done("publish")],
            ),
            step(
                "publish",
                None,
                vec![compute("last", &format!("turn >= {}", ROUNDS - 1))?, call(&op::publish(), publish)?],
                vec![when("publish.output.again", "again"), done("published_all")],
            ),
            // Others have changed what it was decided on: what was written is tried again with what is there now.
            step(
                "again",
                None,
                vec![
                    set("before", json!("{{clusters.output}}"))?,
                    set("kept", json!("{{publish.output.kept}}"))?,
                    compute("turn", "turn + 1")?,
                ],
                vec![done("end")],
            ),
            step(
                "published_all",
                None,
                vec![set(
                    "published",
                    json!({"changes": "{{publish.output.changes}}", "separate": "{{publish.output.separate}}"}),
                )?],
                vec![done("end")],
            ),
        ],
    )?;
    Some(graphs.push(Arc::new(graph)))
}

/// A path that has a model group the tools of `part` (V-06); where none can, they are grouped by name.
fn grouping(by: &Lowering<'_>, graphs: &mut Graphs) -> Option<GraphIx> {
    let mut leaves = vec![set("tools", json!("{{part.tools}}"))?];
    leaves.extend(ask(by.prompt(TOOL_CLUSTER), "cluster", Some(schemas::clusters()))?);
    let unsaid = "no model could say which tools do the same ({{group.error.message}}): they are grouped by their names";
    let graph = flow(
        &[GROUPING],
        vec![
            step("group", Some(0), leaves, vec![done("grouped"), fault("by_name")]),
            step("grouped", None, vec![give(json!("{{group.output}}"))?], vec![]),
            step("by_name", None, vec![warn("clustered-by-name", unsaid)?, give(json!(null))?], vec![]),
        ],
    )?;
    Some(graphs.push(Arc::new(graph)))
}
