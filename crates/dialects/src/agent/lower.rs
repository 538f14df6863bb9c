//! An agent as flows: rounds of manager, builders, executor and judge, then the integrator (A-01 … ).

use super::build::{
    END, Graphs, ask, call, compute, done, each, fault, flow, give, leaf, set, step, warn, when, while_holds,
    why,
};
use super::doc::AgentDoc;
use super::operations as op;
use super::prompts::{EXECUTOR, FAILURE_REPORT, FINAL_ANSWER, HAND_OVER, JUDGE, MANAGER, Prompt};
use super::schemas;
use super::settings::{Coder, Settings};
use super::{MAX_STEPS, MAX_TASK_EXECUTIONS, TOOL_ENHANCE_INTERVAL};
use crate::leaves::OUT;
use selvedge_engine::graph::{Act, AtLimit, Between, Draft, Edit, Guard, Infer, Retry, Rounds};
use selvedge_engine::template::{JsonTemplate, Template};
use selvedge_engine::{Budget, Graph, GraphIx, ModelSettings};
use serde_json::json;
use std::sync::Arc;

/// What a prompt quotes that is about the thread it stands on.
const HISTORY: &str = "what has been said in this conversation until now";

/// What stands before a response in an answer that no model has given.
const FOUND: &str = "\n\nWhat was found until then:\n";

/// What the graphs of an agent are made with.
pub(crate) struct Lowering<'a> {
    pub(super) settings: &'a Settings,
    pub(super) coder: Coder,
    pub(super) max_task_executions: u32,
    pub(super) max_steps: u32,
    pub(super) interval: u16,
    /// Settings of the executor's model.
    pub(super) model_settings: ModelSettings,
}

impl<'a> Lowering<'a> {
    /// As it is where no document says otherwise.
    pub(crate) fn by(settings: &'a Settings) -> Self {
        Self {
            settings,
            coder: settings.coder,
            max_task_executions: MAX_TASK_EXECUTIONS,
            max_steps: MAX_STEPS,
            interval: TOOL_ENHANCE_INTERVAL,
            model_settings: ModelSettings::default(),
        }
    }

    /// With what a document says over it.
    pub(super) fn of(self, doc: &AgentDoc) -> Self {
        let interval = doc.tool_enhance_interval.map(|every| u16::try_from(every).unwrap_or(u16::MAX));
        Self {
            coder: doc.coder.unwrap_or(self.coder),
            max_task_executions: doc.max_task_executions.unwrap_or(self.max_task_executions),
            max_steps: doc.max_steps.unwrap_or(self.max_steps),
            interval: interval.unwrap_or(self.interval),
            model_settings: doc.model_settings.lowered(),
            ..self
        }
    }
}

impl Lowering<'_> {
    /// The text of a prompt.
    pub(crate) fn prompt(&self, prompt: Prompt) -> &str {
        self.settings.prompt(prompt)
    }

    /// The whole agent.
    pub(super) fn agent(&self, doc: &AgentDoc, budget: Budget, graphs: &mut Graphs) -> Option<Graph> {
        let round = self.round(graphs, doc)?;
        let begin = vec![
            set("query", json!(&*doc.head.task.value))?,
            set("count", json!(0))?,
            set("finished", json!(false))?,
            set("limited", json!(false))?,
            set("guidance", json!(""))?,
            set("response", json!(""))?,
            set("heading", json!(""))?,
            set("report", json!(""))?,
            set("stopped", json!(""))?,
        ];
        let most = self.max_task_executions;
        let rounds = while_holds(&format!("!finished && count < {most}"), most, round)?;
        let used_up = format!(
            "the task was not done within {most} rounds (max_task_executions); the answer is from what there is"
        );
        let last =
            "The last response was:\n{{response}}\n\nWhat was found out about it:\n{{report}}\n\n{{stopped}}";
        let mut integrate = vec![set("findings", json!(last))?];
        integrate.extend(ask(self.settings.prompt(FINAL_ANSWER), "basic", Some(schemas::final_answer()))?);
        let plain = self.plain()?;
        let mut work = step(
            "rounds",
            None,
            vec![rounds],
            vec![when("!finished", "used_up"), done("integrate"), fault("broken")],
        );
        // Who asks for more than that fails, so that what it has found is still told.
        work.node_mut().budget = reserved(budget).map(Arc::new);
        work.node_mut().fails_within = work.node_mut().budget.is_some();
        let mut graph = flow(
            &["manager", "executor", "judge", "integrator"],
            vec![
                step("begin", None, begin, vec![done("rounds")]),
                work,
                step(
                    "used_up",
                    None,
                    vec![warn("agent-rounds-used-up", &used_up)?, set("stopped", json!(used_up))?],
                    vec![done("integrate")],
                ),
                step(
                    "broken",
                    None,
                    vec![
                        warn("agent-stopped", "the work ended early: {{rounds.error.message}}")?,
                        set("stopped", json!("The work ended early: {{rounds.error.message}}"))?,
                    ],
                    vec![done("integrate")],
                ),
                step("integrate", Some(3), integrate, vec![done("taken"), fault("plain")]),
                step(
                    "taken",
                    None,
                    vec![set("final", json!("{{integrate.output}}"))?],
                    vec![done("integrator")],
                ),
                step("plain", None, plain, vec![done("integrator")]),
                step("integrator", None, vec![give(json!("{{final}}"))?], vec![done("tools")]),
                step(
                    "tools",
                    None,
                    vec![call(&op::end(), json!({"depth": 0, "publish": doc.publish}))?],
                    vec![done("answer"), fault("answer")],
                ),
                step("answer", None, vec![give(json!("{{final.final_answer}}"))?], vec![]),
            ],
        )?;
        graph.name = doc.head.name.as_ref().map(|name| name.value.clone());
        Some(graph)
    }

    /// One round: which tools, building them, working with them, and whether that was enough.
    fn round(&self, graphs: &mut Graphs, doc: &AgentDoc) -> Option<GraphIx> {
        let building = self.building(graphs, 2)?;
        let between = self.between(graphs, "executor", 2, None)?;
        let most = self.max_task_executions;
        let mut manager = vec![leaf("clear", Act::Edit(Edit::Clear))];
        manager.extend(ask(self.settings.prompt(MANAGER), "tool_analyze", Some(schemas::manager()))?);
        let mut judge = vec![leaf("clear", Act::Edit(Edit::Clear))];
        judge.extend(ask(self.settings.prompt(JUDGE), "judge", Some(schemas::judge()))?);
        let mut report =
            vec![set("reason", json!("{{judge.output.reason}}"))?, leaf("clear", Act::Edit(Edit::Clear))];
        report.extend(ask(self.settings.prompt(FAILURE_REPORT), "basic", Some(schemas::failure_report()))?);
        let bind =
            leaf("bind", Act::Bind(JsonTemplate::from_value(json!("{{bindings.output.tools}}")).ok()?));
        let mut executor =
            step("executor", Some(1), self.executor(between)?, vec![done("look"), fault("recall")]);
        // What it had found is not lost where it fails itself, nor where no model is left to say it.
        let recall = vec![leaf("recall", Act::Recall("said".into()))];
        let recalled = vec![set("response", json!("{{said}}"))?, set("heading", json!(FOUND))?];
        let mut findings = vec![set("history", json!(HISTORY))?];
        findings.extend(ask(self.settings.prompt(HAND_OVER), "summarize", None)?);
        let body = &mut executor.node_mut().body;
        body.tools = doc.tools.iter().map(|tool| tool.value.clone()).collect();
        body.offers_bound = true;
        body.max_rounds = self.max_steps;
        let nodes = [
            "list",
            "manager",
            "requests",
            "build",
            "bindings",
            "equip",
            "executor",
            "judge",
            "failure_report",
        ];
        let unbuilt = "These tools are needed and could not be built: {{unbuilt}}. What came of the attempts: {{build.output}}";
        let unknown = "no tool is called {{bindings.output.missing}}, which the manager asked for";
        let refused = "not built, of what the manager asked for: {{requests.output.refused}}";
        let graph = flow(
            &["manager", "executor", "judge"],
            vec![
                step(
                    "list",
                    None,
                    vec![call(&op::tools(), json!({"depth": 1}))?],
                    vec![done("listed"), fault("stop")],
                ),
                step(
                    "listed",
                    None,
                    vec![
                        set("tools", json!("{{list.output.tools}}"))?,
                        set("allowed", json!("{{list.output.allowed}}"))?,
                    ],
                    vec![done("manager")],
                ),
                step("manager", Some(0), manager, vec![done("requests"), fault("stop")]),
                step(
                    "requests",
                    None,
                    vec![call(
                        &op::requests(),
                        json!({"requests": "{{manager.output.tool_requests}}", "required": "{{manager.output.required_tool_names}}"}),
                    )?],
                    vec![
                        when("size(requests.output.refused) > 0", "refused_requests"),
                        done("build"),
                        fault("stop"),
                    ],
                ),
                step(
                    "refused_requests",
                    None,
                    vec![warn("tool-request-refused", refused)?],
                    vec![done("build")],
                ),
                step(
                    "build",
                    None,
                    vec![each("{{requests.output.build}}", "request", building)?],
                    vec![done("bindings"), fault("stop")],
                ),
                step(
                    "bindings",
                    None,
                    vec![
                        compute("names", "requests.output.required + requests.output.build.map(b, b.name)")?,
                        call(&op::bindings(), json!({"depth": 1, "names": "{{names}}"}))?,
                    ],
                    vec![done("equip"), fault("stop")],
                ),
                step(
                    "equip",
                    None,
                    vec![
                        compute(
                            "unbuilt",
                            "requests.output.build.map(b, b.name).filter(n, n in bindings.output.missing)",
                        )?,
                        bind,
                        set("guidance", json!("{{manager.output.tool_usage_guidance}}"))?,
                    ],
                    vec![
                        when("size(unbuilt) > 0", "unbuilt_tools"),
                        when("size(bindings.output.missing) > 0", "unknown_tools"),
                        done("executor"),
                        fault("stop"),
                    ],
                ),
                step(
                    "unbuilt_tools",
                    None,
                    vec![
                        warn("tool-not-built", "tools could not be built: {{unbuilt}}")?,
                        set("stopped", json!(unbuilt))?,
                        set("finished", json!(true))?,
                    ],
                    vec![done(END)],
                ),
                step(
                    "unknown_tools",
                    None,
                    vec![warn("unknown-tool-required", unknown)?],
                    vec![done("executor")],
                ),
                executor,
                step("recall", Some(1), recall, vec![when("said != ''", "recalled"), done("findings")]),
                step("recalled", None, recalled, vec![done("findings")]),
                step("findings", Some(1), findings, vec![done("found"), fault("stop")]),
                step(
                    "found",
                    None,
                    vec![set("response", json!("{{findings.output}}"))?, set("heading", json!(FOUND))?],
                    vec![done("stop")],
                ),
                step(
                    "look",
                    None,
                    vec![
                        set("response", json!("{{executor.output}}"))?,
                        set("heading", json!(FOUND))?,
                        set("report", json!(""))?,
                        compute("count", "count + 1")?,
                    ],
                    vec![when("limited", "again"), done("judge")],
                ),
                step("again", None, vec![set("limited", json!(false))?], vec![done(END)]),
                step(
                    "judge",
                    Some(2),
                    judge,
                    vec![
                        when("judge.output.status == 'FINISH'", "finish"),
                        when(&format!("count >= {most}"), "last"),
                        done("failure_report"),
                        fault("stop"),
                    ],
                ),
                step("finish", None, vec![set("finished", json!(true))?], vec![done(END)]),
                step("last", None, vec![set("report", json!("{{judge.output.reason}}"))?], vec![done(END)]),
                step("failure_report", Some(2), report, vec![done("reported"), fault("stop")]),
                step(
                    "reported",
                    None,
                    vec![set("report", json!("{{failure_report.output}}"))?],
                    vec![done(END)],
                ),
                why(
                    "stop",
                    "why",
                    &nodes,
                    vec![
                        warn("agent-stopped", "the work ended early: {{why}}")?,
                        set("stopped", json!("The work ended early: {{why}}"))?,
                        set("finished", json!(true))?,
                    ],
                    vec![done(END)],
                )?,
            ],
        )?;
        Some(graphs.push(Arc::new(graph)))
    }

    /// What stands for an answer where no model gives one.
    fn plain(&self) -> Option<Vec<Draft>> {
        let answer = "The task was not finished, and no model has given this answer: {{integrate.error.message}}. {{stopped}}{{heading}}{{response}}";
        // Who scores answers needs what was found without the words around it (V-04).
        let plain = json!({"final_answer": answer, "reasoning_summary": "Put together without a model.", "last_response": "{{response}}"});
        let unanswered = "no model has given the answer: {{integrate.error.message}}";
        Some(vec![warn("agent-stopped", unanswered)?, set("final", plain)?])
    }

    /// The leaves of the executor: ReAct with a look between its rounds.
    fn executor(&self, between: Between) -> Option<Vec<Draft>> {
        let yes = JsonTemplate::from_value(json!(true)).ok()?;
        let summary = Infer { model: Some("summarize".into()), ..Infer::default() };
        let rounds = Rounds {
            model: Infer {
                offer_tools: true,
                on_empty: super::ON_EMPTY,
                settings: self.model_settings.clone(),
                ..Infer::default()
            },
            retry: Retry::default(),
            timeout_s: None,
            at_limit: AtLimit::HandOver {
                ask: Template::parse(self.settings.prompt(HAND_OVER)).ok()?,
                model: Box::new(summary),
                note: Some(("limited".into(), yes)),
            },
            between: Some(between),
            takes_messages: true,
        };
        let prompt = Act::AppendText(Template::parse(self.settings.prompt(EXECUTOR)).ok()?);
        let mut drafts = vec![
            set("history", json!(HISTORY))?,
            leaf("clear", Act::Edit(Edit::Clear)),
            ("prompt", prompt, rounds.entry()),
        ];
        if let Some(first) = drafts.first_mut() {
            first.2 = vec![(Guard::Always, "clear")];
        }
        drafts.extend(rounds.leaves(OUT));
        Some(drafts)
    }
}

/// What is left to the rounds of a budget: one call of a model is the integrator's.
fn reserved(budget: Budget) -> Option<Budget> {
    let calls = budget.calls?;
    Some(Budget { calls: Some(calls.saturating_sub(1)), ..Budget::default() })
}
