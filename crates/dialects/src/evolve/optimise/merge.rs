//! One tool of several (V-08, V-09): of those that are there, or of a coder's; whichever it is has to repeat what is recorded of all.

use super::Merging;
use super::operations as op;
use crate::agent::Lowering;
use crate::agent::build::{
    Graphs, Step, call, compute, done, fault, flow, give, set, step, when, while_holds, why,
};
use crate::agent::coding::{ATTEMPTS, CODING};
use crate::agent::prompts::MERGE;
use selvedge_engine::GraphIx;
use serde_json::json;
use std::sync::Arc;

/// Versions of a cluster that are tried before anything is written.
const READY: u32 = 4;

impl Lowering<'_> {
    /// A path that makes one tool of `cluster`, `depth` frames below the optimisation: it gives `{"version": … | null, "why", "replayed"}`.
    pub(super) fn merging(&self, graphs: &mut Graphs, how: Merging, depth: u32) -> Option<GraphIx> {
        let trial = self.trial(graphs, depth + 1)?;
        let written = self.written(graphs, depth + 1)?;
        let begin = vec![
            set("ok", json!(false))?,
            set("over", json!(false))?,
            set("tries", json!(0))?,
            set("errors", json!(""))?,
            set("version", json!(null))?,
            set("replayed", json!(null))?,
            set("name", json!("{{cluster.name}}"))?,
        ];
        let most = match how {
            Merging::Smart => ATTEMPTS,
            Merging::Naive => 0,
        };
        let trials = while_holds("!ok && !over && tries < size(cluster.ready)", READY, trial)?;
        let attempts =
            while_holds(&format!("!ok && !over && tries < size(cluster.ready) + {most}"), ATTEMPTS, written)?;
        let members = json!({"depth": depth, "cluster": "{{cluster}}", "merge": how.name()});
        let merged = json!({"version": "{{version}}", "why": "{{errors}}", "replayed": "{{replayed}}"});
        let apart = json!({"version": null, "why": "{{errors}}", "replayed": "{{replayed}}"});
        let graph = flow(
            &[CODING],
            vec![
                step("begin", None, begin, vec![done("members")]),
                step(
                    "members",
                    None,
                    vec![call(&op::members(), members)?],
                    vec![when("members.output.apart != null", "unfit"), done("trials"), fault("failed")],
                ),
                step(
                    "unfit",
                    None,
                    vec![set("errors", json!("{{members.output.apart}}"))?],
                    vec![done("apart")],
                ),
                step("trials", None, vec![trials], vec![done("told"), fault("failed")]),
                step(
                    "told",
                    None,
                    vec![set("brief", json!("{{members.output.brief}}"))?],
                    vec![done("attempts")],
                ),
                step(
                    "attempts",
                    None,
                    vec![attempts],
                    vec![when("ok", "merged"), done("apart"), fault("failed")],
                ),
                step("merged", None, vec![give(merged)?], vec![]),
                why("failed", "errors", &["members", "trials", "attempts"], Vec::new(), vec![done("apart")])?,
                step("apart", None, vec![give(apart)?], vec![]),
            ],
        )?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// A version that is there is tried.
    fn trial(&self, graphs: &mut Graphs, depth: u32) -> Option<GraphIx> {
        let mut steps =
            vec![step("take", None, vec![compute("version", "cluster.ready[tries]")?], vec![done("replay")])];
        steps.extend(self.tried(graphs, depth)?);
        steps.push(why("failed", "errors", &["replay", "equal", "accept"], Vec::new(), vec![done("count")])?);
        steps.push(step("count", None, vec![compute("tries", "tries + 1")?], vec![]));
        Some(graphs.push(Arc::new(flow(&[CODING], steps)?)))
    }

    /// A coder writes a version, and it is tried.
    fn written(&self, graphs: &mut Graphs, depth: u32) -> Option<GraphIx> {
        let drafted = vec![when("draft.output.ok", "drafted"), done("wrong"), fault("failed")];
        let mut rest = vec![step(
            "drafted",
            None,
            vec![set("version", json!("{{draft.output.version}}"))?],
            vec![done("replay")],
        )];
        rest.extend(self.tried(graphs, depth)?);
        let more = json!({"request": {"merges": "{{cluster.versions}}"}, "members": "{{cluster.versions}}"});
        let graph = self.attempt(MERGE, "{{cluster.name}}", depth, more, drafted, rest)?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// What is recorded of all members is repeated with `version`; outputs that are others are compared by a judge.
    fn tried(&self, graphs: &mut Graphs, depth: u32) -> Option<Vec<Step>> {
        let replay = json!({"depth": depth, "cluster": "{{cluster}}", "version": "{{version}}"});
        let weigh = json!({"replayed": "{{replay.output}}", "equal": "{{equal.output}}"});
        let mut steps = vec![
            step(
                "replay",
                None,
                vec![call(&op::regress(), replay)?],
                vec![when("replay.output.over != null", "hopeless"), done("equal"), fault("failed")],
            ),
            step(
                "hopeless",
                None,
                vec![set("errors", json!("{{replay.output.over}}"))?, set("over", json!(true))?],
                vec![done("count")],
            ),
        ];
        steps.extend(self.judged(graphs, call(&op::weigh(), weigh)?)?);
        steps.push(step(
            "good",
            None,
            vec![set("ok", json!(true))?, set("replayed", json!("{{accept.output.replayed}}"))?],
            vec![done("count")],
        ));
        Some(steps)
    }
}
