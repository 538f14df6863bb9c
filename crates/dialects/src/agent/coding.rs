//! Tools that are written and mended: attempts of a coder, each told what was wrong with the last one.

use super::build::{
    Graphs, On, Step, ask, call, compute, done, each, fault, flow, give, leaf, set, step, when, while_holds,
    why,
};
use super::operations as op;
use super::prompts::{CODER, EQUIVALENCE, MEND, Prompt};
use super::schemas;
use super::settings::Coder;
use super::{JUDGING, Lowering};
use selvedge_engine::graph::{Act, Draft, Edit};
use selvedge_engine::template::OnMissing;
use selvedge_engine::{Graph, GraphIx};
use serde_json::json;
use std::sync::Arc;

/// The threads of coders.
pub(crate) const CODING: &str = "coder";
/// Attempts at one tool (A-06, A-15, V-09).
pub(crate) const ATTEMPTS: u32 = 3;

impl Lowering<'_> {
    /// A path that builds the tool `request`, `depth` frames below the agent.
    pub(super) fn building(&self, graphs: &mut Graphs, depth: u32) -> Option<GraphIx> {
        let drafted = vec![when("draft.output.ok", "good"), done("wrong"), fault("failed")];
        let good = step(
            "good",
            None,
            vec![set("ok", json!(true))?, set("version", json!("{{draft.output.version}}"))?],
            vec![done("count")],
        );
        let attempt = self.attempt(
            CODER,
            "{{request.name}}",
            depth + 1,
            json!({"request": "{{request}}"}),
            drafted,
            vec![good],
        )?;
        let attempt = graphs.push(Arc::new(attempt));
        let mut begin = vec![
            set("ok", json!(false))?,
            set("tries", json!(0))?,
            set("errors", json!(""))?,
            set("version", json!(null))?,
        ];
        for (name, value) in [
            ("name", "{{request.name}}"),
            ("description", "{{request.description}}"),
            ("input_schema", "{{request.input_schema}}"),
            ("output_schema", "{{request.output_schema}}"),
        ] {
            begin.push(set(name, json!(value))?);
        }
        let rounds = while_holds(&format!("!ok && tries < {ATTEMPTS}"), ATTEMPTS, attempt)?;
        let built = give(
            json!({"name": "{{request.name}}", "ok": "{{ok}}", "version": "{{version}}", "errors": "{{errors}}"}),
        )?;
        let graph = flow(
            &[CODING],
            vec![
                step("begin", None, begin, vec![done("attempts")]),
                step("attempts", None, vec![rounds], vec![done("built")]),
                step("built", None, vec![built], vec![]),
            ],
        )?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// Behind `replay`: outputs that are others are compared by a judge, and `accept` says whether all of it will do.
    pub(crate) fn judged(&self, graphs: &mut Graphs, accept: Draft) -> Option<[Step; 3]> {
        let equal = each("{{replay.output.unsure}}", "pair", self.equivalence(graphs)?)?;
        let refused = set("errors", json!("{{accept.output.errors}}"))?;
        let accepted = vec![when("accept.output.accepted", "good"), done("refused"), fault("failed")];
        Some([
            step("equal", None, vec![equal], vec![done("accept"), fault("failed")]),
            step("accept", None, vec![accept], accepted),
            step("refused", None, vec![refused], vec![done("count")]),
        ])
    }

    /// A path that mends the tool `broken`.
    pub(super) fn mending(&self, graphs: &mut Graphs, depth: u32) -> Option<GraphIx> {
        let below = depth + 1;
        let drafted = vec![when("draft.output.ok", "replay"), done("wrong"), fault("failed")];
        let of = json!({"depth": below, "name": "{{broken.name}}", "version": "{{draft.output.version}}", "replaces": "{{broken.version}}"});
        let mut accept = of.clone();
        if let Some(members) = accept.as_object_mut() {
            members.insert("replayed".to_owned(), json!("{{replay.output}}"));
            members.insert("equal".to_owned(), json!("{{equal.output}}"));
        }
        let mut rest =
            vec![step("replay", None, vec![call(&op::replay(), of)?], vec![done("equal"), fault("failed")])];
        rest.extend(self.judged(graphs, call(&op::accept(), accept)?)?);
        rest.push(step("good", None, vec![set("ok", json!(true))?], vec![done("count")]));
        let more = json!({"request": {"mends": "{{broken.version}}"}, "replaces": "{{broken.version}}"});
        let attempt = self.attempt(MEND, "{{broken.name}}", below, more, drafted, rest)?;
        let attempt = graphs.push(Arc::new(attempt));
        let begin = vec![
            set("ok", json!(false))?,
            set("tries", json!(0))?,
            set("errors", json!(""))?,
            set("brief", json!("{{broken.brief}}"))?,
        ];
        let rounds = while_holds(&format!("!ok && tries < {ATTEMPTS}"), ATTEMPTS, attempt)?;
        let reason = "it failed, and no version that was written instead did better: {{errors}}";
        let retire = json!({"depth": depth, "name": "{{broken.name}}", "version": "{{broken.version}}", "reason": reason});
        let graph = flow(
            &[CODING],
            vec![
                step("begin", None, begin, vec![done("attempts")]),
                step(
                    "attempts",
                    None,
                    vec![rounds],
                    vec![when("ok", "mended"), done("retire"), fault("retire")],
                ),
                step("mended", None, vec![give(json!({"name": "{{broken.name}}", "ok": true}))?], vec![]),
                step(
                    "retire",
                    None,
                    vec![call(&op::retire(), retire)?],
                    vec![done("given_up"), fault("given_up")],
                ),
                step(
                    "given_up",
                    None,
                    vec![give(json!({"name": "{{broken.name}}", "ok": false, "errors": "{{errors}}"}))?],
                    vec![],
                ),
            ],
        )?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// One attempt: the coder writes, its file is taken in, and what is wrong with it is kept for the next one.
    pub(crate) fn attempt(
        &self,
        prompt: Prompt,
        name: &str,
        depth: u32,
        more: serde_json::Value,
        drafted: Vec<(On, &'static str)>,
        rest: Vec<Step>,
    ) -> Option<Graph> {
        let text = self.settings.prompt(prompt);
        let (thread, write, file) = match self.coder {
            Coder::Model => (Some(0), ask(text, "coder", None)?.to_vec(), ("reply", "{{write.output}}")),
            Coder::Codex => {
                let args = json!({"name": name, "prompt": text});
                (None, vec![call(&op::codex(), args)?], ("file", "{{write.output.file}}"))
            }
        };
        let mut args = json!({"depth": depth, "name": name, "coder": self.coder.name()});
        if let (Some(args), Some(more)) = (args.as_object_mut(), more.as_object()) {
            args.insert(file.0.to_owned(), json!(file.1));
            args.extend(more.clone());
        }
        let all = ["write", "draft", "replay", "equal", "accept"];
        let mut steps = vec![
            step("again", None, vec![], vec![when("tries > 0 && long == true", "anew"), done("write")]),
            step("anew", Some(0), vec![leaf("clear", Act::Edit(Edit::Clear))], vec![done("write")]),
            step("write", thread, write, vec![done("draft"), fault("failed")]),
            step("draft", None, vec![call(&op::draft(), args)?], drafted),
            step("wrong", None, vec![set("errors", json!("{{draft.output.errors}}"))?], vec![done("count")]),
            why("failed", "errors", &all, Vec::new(), vec![done("count")])?,
        ];
        steps.extend(rest);
        // What is too long does not stand before its author again; where nothing was written, nothing is.
        let long = set("long", json!("{{draft.output.long}}"))?;
        let mut count = step("count", None, vec![long, compute("tries", "tries + 1")?], vec![]);
        count.node_mut().on_missing = OnMissing::Null;
        steps.push(count);
        flow(&[CODING], steps)
    }

    /// A path that asks whether the outputs of `pair` are as good as each other.
    pub(crate) fn equivalence(&self, graphs: &mut Graphs) -> Option<GraphIx> {
        let mut leaves = vec![set("question", json!("{{pair.question}}"))?];
        leaves.extend(ask(self.settings.prompt(EQUIVALENCE), "judge", Some(schemas::equivalence()))?);
        let graph = flow(&[JUDGING], vec![step("equivalence", Some(0), leaves, vec![])])?;
        Some(graphs.push(Arc::new(graph)))
    }
}
