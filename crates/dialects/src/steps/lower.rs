//! Lowering a checked step task to the engine's graph (D-14 … D-21).
//!
//! A step is a node whose flow is its call and, behind the call's fault, the whole way of recovery, which all steps of
//! a task share (`Lowering::tail`):
//!
//! ```text
//! call ─fault→ turn → brief → reflect → decide ─┬ retry, other tool, repair → try ─fault→ turn
//!                └ rounds used up ──────→ decide ├ replan with steps → compile ─refused→ ask → plan → compile
//!                                                ├ replan without → ask            └ → splice
//!                                                └ give up: the fault is the node's
//! ```
//!
//! Without a model `turn` leads to `decide` at once, which climbs the ladder of alternatives; without those either,
//! the node is its call alone.

use super::doc::{Recovery, Siblings, Step};
use super::prompts;
use super::replan::{Context, compiler};
use crate::leaves::{self, OUT};
use selvedge_engine::graph::{
    Act, Action, Alternative, Call, Draft, Edge, Fact, Flow, Guard, Infer, Leaf, Node, OnError,
    Recovery as Limits, Tail, Told,
};
use selvedge_engine::template::{JsonTemplate, Template};
use selvedge_engine::{LeafIx, ReplySchema, Table, TailIx};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The role that reflects (A-26).
pub(super) const REFLECTION: &str = "reflection";
/// The role that plans (A-26).
pub(super) const PLANNER: &str = "planner";
/// The name of the schema of lists of steps (D-23).
const STEPS: &str = "steps";
/// How many plans a model may hand in: the first, and three more, for which the diagnostics of the one before go back
/// to it (D-21).
const TRIES: u32 = 1 + 3;
/// From so many tools on, besides the built-in ones, a plan is made in two stages (D-21).
const MANY_TOOLS: usize = 10;
/// The id of the node that plans; no step can have it, as no placeholder can say it.
const PLAN_NODE: &str = "(plan)";

/// What all steps of a task are lowered with.
pub(super) struct Lowering<'a> {
    /// The task's text, a template.
    pub(super) task: &'a str,
    /// Settings in force.
    pub(super) recovery: Recovery,
    /// Whether a model may decide.
    pub(super) model: bool,
    /// What replans are compiled with.
    pub(super) context: &'a Context,
}

impl Lowering<'_> {
    /// The settings as the engine has them, defaults filled in (D-19).
    fn limits(&self, alternatives: Vec<Alternative>) -> Limits {
        let (says, usual) = (self.recovery, Limits::default());
        Limits {
            model: self.model,
            retries: says.retries.unwrap_or(usual.retries),
            repairs: says.repairs.unwrap_or(usual.repairs),
            replans: says.replans.unwrap_or(usual.replans),
            consecutive_failures: says.consecutive_failures.unwrap_or(usual.consecutive_failures),
            reflections: says.reflections.unwrap_or(usual.reflections),
            alternatives,
        }
    }

    /// The node of a step, which recovers by `tail` where it can; `None` if a template does not parse, which the
    /// checker has said.
    pub(super) fn step(&self, step: &Step, tail: Option<TailIx>) -> Option<Node> {
        let mut alternatives = Vec::with_capacity(step.alternatives.len());
        for alternative in &step.alternatives {
            let args = match &alternative.parameters {
                Some(parameters) => Some(parameters.template()?.clone()),
                None => None,
            };
            alternatives.push(Alternative { tool: alternative.tool.value.clone(), args });
        }
        let recovers = self.recovers(step);
        let body = self.flow_of(step, tail.filter(|_| recovers))?;
        let limits = self.limits(alternatives);
        Some(Node {
            id: step.id.value.clone(),
            name: step.name.clone(),
            body,
            on_error: match self.recovery.siblings.unwrap_or_default() {
                Siblings::Finish => OnError::Finish,
                Siblings::Hold => OnError::Fail,
            },
            effects: step.effects.as_ref().map(|effects| leaves::effects_of(effects.value)),
            on_missing: step.on_missing,
            tool: Some(step.tool.value.clone()),
            after: step.depends_on.iter().map(|id| id.value.clone()).collect(),
            recovery: Some(Arc::new(limits)),
            ..Node::default()
        })
    }

    /// Whether anything is done about a fault of a step: a model decides, or it has alternatives (D-18).
    fn recovers(&self, step: &Step) -> bool {
        self.model || !step.alternatives.is_empty()
    }

    fn flow_of(&self, step: &Step, tail: Option<TailIx>) -> Option<Flow> {
        let args = match &step.parameters {
            Some(parameters) => parameters.template()?.clone(),
            None => JsonTemplate::from_value(empty()).ok()?,
        };
        let (retry, timeout_s) = (leaves::retry(step.retry.as_ref()), leaves::seconds(step.timeout.as_ref()));
        let call =
            Act::Call(Call { tool: step.tool.value.clone(), args, retry, timeout_s, told: Told::Nothing });
        let mut leaves = Table::with_capacity(1);
        // The first leaf of the tail is next after the only one of its own.
        let edges = [(Guard::Fault, Some(LeafIx(1))), (Guard::Always, None)];
        let next = edges.into_iter().filter(|_| tail.is_some()).map(|(when, to)| Edge { when, to }).collect();
        leaves.push(Leaf { name: "call".into(), act: call, next });
        let compiler = tail.filter(|_| self.replans()).map(|_| compiler().name.clone());
        Some(Flow { leaves, tail, compiler, ..Flow::default() })
    }

    /// Whether the steps behind a failed one may become others (D-19, D-20).
    fn replans(&self) -> bool {
        self.model && self.recovery.replans.unwrap_or(Limits::default().replans) > 0
    }

    /// What happens to a step whose call has failed: the same for all `steps`, of which it holds nothing. `None` if none
    /// of them recovers.
    pub(super) fn tail(&self, steps: &[Step]) -> Option<Arc<Tail>> {
        if !steps.iter().any(|step| self.recovers(step)) {
            return None;
        }
        let mut drafts: Vec<Draft> = vec![("turn", Act::AwaitRetirement, self.after_turn())];
        if self.model {
            // A model that can't be told can't decide.
            drafts.push(("brief", brief(), both_to("decide", "reflect")));
            let reflect = infer(REFLECTION, "reflection", reflection_schema());
            drafts.push(("reflect", reflect, both("decide")));
        }
        drafts.push(("decide", Act::Decide, self.after_decision()));
        drafts.push(("try", Act::Retry, vec![(Guard::Fault, "turn"), (Guard::Always, OUT)]));
        if self.replans() {
            self.replan(&mut drafts)?;
        }
        Some(Arc::new(Tail { leaves: leaves::table(drafts, OUT) }))
    }

    fn after_turn(&self) -> Vec<(Guard, &'static str)> {
        match self.model {
            true => vec![(Guard::Exhausted, "decide"), (Guard::Always, "brief")],
            false => vec![(Guard::Always, "decide")],
        }
    }

    fn after_decision(&self) -> Vec<(Guard, &'static str)> {
        let tries = [Action::RetryWithParams, Action::RetryWithTool, Action::RepairStep];
        let mut edges: Vec<(Guard, &'static str)> =
            tries.into_iter().map(|action| (Guard::Act(action), "try")).collect();
        if self.replans() {
            edges.extend([(Guard::Steps, "compile"), (Guard::Act(Action::Replan), "ask")]);
        }
        edges.push((Guard::Always, OUT));
        edges
    }

    /// Other steps from here on: those of the decision, else those that the model is asked for (D-20).
    fn replan(&self, drafts: &mut Vec<Draft>) -> Option<()> {
        let facts = vec![Fact::Results, Fact::Metadata, Fact::Tools, Fact::Diagnostics];
        let text = self.with_task(prompts::REPLAN)?;
        drafts.push(("ask", Act::AppendFacts { text, facts }, both_to("decide", "plan")));
        drafts.push(("plan", infer(PLANNER, STEPS, steps_schema()), both_to("decide", "compile")));
        // Steps that can't be put in the place of this one go back to who decided on them, within his limits.
        self.compile(drafts, "decide", "ask", vec![(Guard::Fault, "decide")]);
        Some(())
    }

    /// Steps of the last reply as nodes, in the place of this one and of what follows it.
    fn compile(
        &self,
        drafts: &mut Vec<Draft>,
        exhausted: &'static str,
        refused: &'static str,
        unfit: Vec<(Guard, &'static str)>,
    ) {
        let compile = Act::Compile { context: self.context.to_map(), tries: TRIES };
        let edges = vec![(Guard::Exhausted, exhausted), (Guard::Fault, refused), (Guard::Always, "splice")];
        drafts.push(("compile", compile, edges));
        drafts.push(("splice", Act::Splice, unfit));
    }

    /// Instructions, how steps are written, and the task, which is a template.
    fn with_task(&self, instructions: &str) -> Option<Template> {
        let fixed = format!("{instructions}\n\n{}\n\n{}\n", prompts::STEPS, prompts::TASK);
        let fixed = Template::exactly(&fixed);
        Template::parse(&format!("{}{}", fixed.source(), self.task)).ok()
    }

    /// A task that a model plans (D-21): one node that makes way for what it has planned. `tools` is how many there are
    /// besides the built-in ones.
    pub(super) fn planned(&self, tools: usize) -> Option<Node> {
        let mut drafts: Vec<Draft> = Vec::new();
        let many = tools >= MANY_TOOLS;
        if many {
            let text = format!("{}\n\n{}\n", prompts::CHOOSE, prompts::TASK);
            let text =
                Template::parse(&format!("{}{}", Template::exactly(&text).source(), self.task)).ok()?;
            let facts = vec![Fact::ToolNames, Fact::Metadata];
            drafts.push(("survey", Act::AppendFacts { text, facts }, vec![(Guard::Always, "choose")]));
            // Whoever can't choose plans with all of them.
            drafts.push(("choose", infer(PLANNER, "tool_choice", choice_schema()), both("brief")));
        }
        let tools = if many { Fact::Chosen } else { Fact::Tools };
        let facts = vec![tools, Fact::Metadata, Fact::Diagnostics];
        let text = self.with_task(prompts::PLAN)?;
        drafts.push(("brief", Act::AppendFacts { text, facts }, vec![(Guard::Always, "plan")]));
        let plan = infer(PLANNER, STEPS, steps_schema());
        drafts.push(("plan", plan, vec![(Guard::Always, "compile")]));
        self.compile(&mut drafts, OUT, "brief", Vec::new());
        Some(Node {
            id: PLAN_NODE.into(),
            name: "plans the task".into(),
            body: Flow {
                leaves: leaves::table(drafts, OUT),
                compiler: Some(compiler().name.clone()),
                ..Flow::default()
            },
            ..Node::default()
        })
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// What a model is told of a fault (D-17).
fn brief() -> Act {
    let facts =
        vec![Fact::Step, Fact::Parameters, Fact::Fault, Fact::Tool, Fact::Tools, Fact::Metadata, Fact::Left];
    Act::AppendFacts { text: Template::exactly(prompts::REFLECT), facts }
}

/// The same way on after a fault and after a success.
fn both(to: &'static str) -> Vec<(Guard, &'static str)> {
    both_to(to, to)
}

fn both_to(fault: &'static str, success: &'static str) -> Vec<(Guard, &'static str)> {
    vec![(Guard::Fault, fault), (Guard::Always, success)]
}

fn infer(role: &str, name: &str, schema: Value) -> Act {
    Act::Infer(Box::new(Infer {
        model: Some(role.into()),
        // D-20, D-21: a list of steps that is none goes back like one that can't be used, with the same limit.
        judged: name == STEPS,
        schema: Some(ReplySchema { name: name.into(), schema }),
        ..Infer::default()
    }))
}

/// The schema `reflection` (D-17). What an action needs is checked when it is taken.
fn reflection_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["retry_with_params", "retry_with_tool", "repair_step", "replan", "give_up"],
            },
            "parameters": {"type": ["object", "string", "null"]},
            "tool_id": {"type": ["string", "null"]},
            "step": {"type": ["object", "null"]},
            "strategy": {"type": ["string", "null"]},
            "steps": {"type": ["array", "null"], "items": {"type": "object"}},
            "reason": {"type": ["string", "null"]},
        },
        "required": ["action"],
    })
}

/// The schema `steps` (D-23). What is wrong inside a step goes back as diagnostics.
fn steps_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "step_id": {"type": ["string", "integer"]},
                        "step_name": {"type": ["string", "null"]},
                        "tool_id": {"type": "string"},
                        "parameters": {"type": ["object", "string", "null"]},
                        "depends_on": {"type": ["array", "null"], "items": {"type": ["string", "integer"]}},
                        "alternatives": {"type": ["array", "null"], "items": {"type": ["string", "object"]}},
                    },
                },
            },
        },
        "required": ["steps"],
    })
}

/// The schema `tool_choice` (D-21).
fn choice_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"tools": {"type": "array", "items": {"type": "string"}}},
        "required": ["tools"],
    })
}
