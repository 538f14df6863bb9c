//! What is done between the rounds of an executor: calls of unproven tools are classed, failing tools mended, and a conversation
//! that has become too large is shortened (A-11, A-12, A-14 … A-16).

use super::build::{
    Graphs, ask, call, call_told, compute, done, each, fault, flow, for_each, give, leaf, set, step, when,
};
use super::operations as op;
use super::prompts::{LONG_OUTPUT, SUMMARY, TOOL_CLASS};
use super::schemas;
use super::{JUDGING, Lowering};
use selvedge_engine::GraphIx;
use selvedge_engine::graph::{Act, Between, Edit, Over, Told};
use selvedge_engine::template::{JsonTemplate, Template};
use serde_json::json;
use std::sync::Arc;

/// Messages at the end of a conversation that are not summarised.
const KEPT: u32 = 4;
/// Where no call says anything about a tool, which is so nearly always.
const NOTHING: &str = "size(look.output.ask) + size(look.output.failed) + size(look.output.misused) + size(look.output.keep) == 0";
/// Tools that one look at the calls may find to be mended.
const MOST: u32 = 1_000;

impl Lowering<'_> {
    /// When and what is done between the rounds of an executor. `query`: its task, where that is in no variable.
    pub(super) fn between(
        &self,
        graphs: &mut Graphs,
        thread: &str,
        depth: u32,
        query: Option<&str>,
    ) -> Option<Between> {
        let graph = self.enhancing(graphs, thread, depth, query)?;
        Some(Between { every: self.interval, over: Some(self.over()), graph })
    }

    /// The graph between rounds, on the thread of the executor, `depth` frames below the agent.
    fn enhancing(
        &self,
        graphs: &mut Graphs,
        thread: &str,
        depth: u32,
        query: Option<&str>,
    ) -> Option<GraphIx> {
        let class = self.class(graphs)?;
        let mending = self.mending(graphs, depth + 1)?;
        let dropping = self.dropping(graphs, thread)?;
        let (Over { tokens, new }, context) = (self.over(), self.settings.context_tokens);
        let larger = format!("!last && (tokens > {tokens} || new > {new})");
        let settled = || vec![when("size(settle.output.mend) == 0", "size"), done("mend")];
        let mut told = vec![when("settle.output.say != '' && !last", "tell")];
        told.extend(settled());
        told.push(fault("size"));
        let say = leaf("say", Act::AppendText(Template::parse("{{settle.output.say}}").ok()?));
        let names = compute("names", "settle.output.mend.map(m, m.name)")?;
        let bindings = call(&op::bindings(), json!({"depth": depth, "names": "{{names}}"}))?;
        let bind = leaf("bind", Act::Bind(JsonTemplate::from_value(json!("{{rebind.output.tools}}")).ok()?));
        let outputs = self.long_output(graphs, query)?;
        let shortening = self.shortening(graphs, thread)?;
        let compact = || when(&format!("measure.output.tokens > {context}"), "compact");
        let mut summary = vec![set("history", json!("what has been said in this conversation until now"))?];
        if let Some(query) = query {
            summary.push(set("query", json!(query))?);
        }
        summary.extend(ask(self.settings.prompt(SUMMARY), "summarize", None)?);
        summary.push(leaf("edit", Act::Edit(Edit::Compact { first: 1, keep: KEPT, asked: 2 })));
        let graph = flow(
            &[thread],
            vec![
                step(
                    "look",
                    None,
                    vec![call_told(&op::calls(), json!({"depth": depth}), Told::Calls)?],
                    vec![
                        when(&format!("{NOTHING} && {larger}"), "measure"),
                        when(NOTHING, "end"),
                        done("classes"),
                        fault("size"),
                    ],
                ),
                step(
                    "classes",
                    None,
                    vec![each("{{look.output.ask}}", "asked", class)?],
                    vec![done("settle"), fault("size")],
                ),
                step(
                    "settle",
                    None,
                    vec![
                        compute("asked", "look.output.ask.map(a, a.id)")?,
                        call_told(
                            &op::settle(),
                            json!({
                                "depth": depth, "classes": "{{classes.output}}",
                                "looked": {"ask": "{{asked}}", "failed": "{{look.output.failed}}", "misused": "{{look.output.misused}}"},
                            }),
                            Told::Calls,
                        )?,
                    ],
                    told,
                ),
                step("tell", Some(0), vec![say], settled()),
                step(
                    "mend",
                    None,
                    vec![each("{{settle.output.mend}}", "broken", mending)?],
                    vec![done("rebind"), fault("size")],
                ),
                step("rebind", None, vec![names, bindings], vec![done("equip"), fault("size")]),
                step("equip", None, vec![bind], vec![done("drop"), fault("size")]),
                step(
                    "drop",
                    None,
                    vec![for_each("{{settle.output.mend}}", "one", MOST, dropping)?],
                    vec![done("size"), fault("size")],
                ),
                step("size", None, vec![], vec![when(&larger, "measure"), done("end")]),
                step(
                    "measure",
                    None,
                    vec![call_told(
                        &op::measure(),
                        json!({
                            "used": "{{used}}", "tool_output_tokens": self.settings.tool_output_tokens,
                            "context_tokens": context, "encoding": self.settings.encoding,
                        }),
                        Told::Conversation,
                    )?],
                    vec![
                        when("size(measure.output.long) > 0", "outputs"),
                        compact(),
                        done("end"),
                        fault("end"),
                    ],
                ),
                step(
                    "outputs",
                    None,
                    vec![each("{{measure.output.long}}", "long", outputs)?],
                    vec![done("shorten"), fault("end")],
                ),
                step(
                    "shorten",
                    None,
                    vec![for_each("{{measure.output.long}}", "one", MOST, shortening)?],
                    vec![compact(), done("end"), fault("end")],
                ),
                step("compact", Some(0), summary, vec![done("end"), fault("end")]),
            ],
        )?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// From when on something has to be counted: the conversation may be too long, or what has come may have an output that is.
    fn over(&self) -> Over {
        let limit = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
        Over { tokens: limit(self.settings.context_tokens), new: limit(self.settings.tool_output_tokens) }
    }

    /// A path that classes the call `asked`.
    fn class(&self, graphs: &mut Graphs) -> Option<GraphIx> {
        let mut leaves = vec![set("question", json!("{{asked.question}}"))?];
        leaves.extend(ask(self.settings.prompt(TOOL_CLASS), "tool_analyze", Some(schemas::tool_class()))?);
        let graph = flow(&[JUDGING], vec![step("class", Some(0), leaves, vec![])])?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// A path that says what stands for the output `long`: what a model makes of it for the task, which is no longer than its
    /// beginning and its end, else these.
    fn long_output(&self, graphs: &mut Graphs, query: Option<&str>) -> Option<GraphIx> {
        let mut leaves = vec![set("output", json!("{{long.text}}"))?];
        if let Some(query) = query {
            leaves.push(set("query", json!(query))?);
        }
        leaves.extend(ask(self.settings.prompt(LONG_OUTPUT), "summarize", None)?);
        let note = "[… a summary for the task stands for this output of {{long.tokens}} tokens …]\n{{summary.output}}";
        let graph = flow(
            &[JUDGING],
            vec![
                step(
                    "summary",
                    Some(0),
                    leaves,
                    vec![
                        when("size(string(summary.output)) <= size(long.cut)", "said"),
                        done("cut"),
                        fault("cut"),
                    ],
                ),
                step("said", None, vec![give(json!(note))?], vec![]),
                step("cut", None, vec![give(json!("{{long.cut}}"))?], vec![]),
            ],
        )?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// Puts what was said of the output `one` in its place.
    fn shortening(&self, graphs: &mut Graphs, thread: &str) -> Option<GraphIx> {
        let said = compute("said", "outputs.output[string(index)]")?;
        let edit = JsonTemplate::from_value(json!({"{{one.id}}": "{{said}}"})).ok()?;
        let edit = leaf("edit", Act::Edit(Edit::Shorten(edit)));
        let graph = flow(&[thread], vec![step("shortened", Some(0), vec![said, edit], vec![])])?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// Takes the failed calls of the tool `one` from the thread, if it was mended; else the tool is offered no more.
    fn dropping(&self, graphs: &mut Graphs, thread: &str) -> Option<GraphIx> {
        let calls = JsonTemplate::from_value(json!("{{one.calls}}")).ok()?;
        let nothing = JsonTemplate::from_value(json!({"{{one.name}}": null})).ok()?;
        let graph = flow(
            &[thread],
            vec![
                step(
                    "was_mended",
                    None,
                    vec![],
                    vec![when("mend.output[string(index)].ok", "calls_gone"), done("unbound")],
                ),
                step("unbound", None, vec![leaf("bind", Act::Bind(nothing))], vec![done("end")]),
                step(
                    "calls_gone",
                    Some(0),
                    vec![leaf("edit", Act::Edit(Edit::Drop(calls)))],
                    vec![done("end")],
                ),
            ],
        )?;
        Some(graphs.push(Arc::new(graph)))
    }
}
