//! Nodes of a workflow as nodes of a graph.

use super::super::doc::{
    Ask, Cut, Does, Fork, ForkOf, Join, Json, Llm, Own, Repeat, Rounds, Sub, WorkNode, Worth,
};
use super::super::regions::Vertex;
use super::Flows;
use crate::agent;
use crate::leaves::{self, MAX_ROUNDS, OUT, Talk};
use selvedge_engine::expression::Condition;
use selvedge_engine::graph::{
    Act, Call, Draft, Edit, Expects, Flow, Guard, Infer, Join as GraphJoin, Loop, Node, Paths, PathsOf,
    Sub as GraphSub, Times, Told,
};
use selvedge_engine::template::{JsonTemplate, OnMissing, Template};
use selvedge_engine::{AskKind, ReplySchema, ThreadIx};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a model is told that sums up a conversation.
const SUMMARISE: &str = "Sum up our conversation so far, for whoever goes on with it: what was asked for, what was found out and decided, and \
                         what is still open. Keep names, figures and quotations that may be needed. Write the summary only.";

impl Flows<'_, '_> {
    pub(super) fn vertex(&mut self, vertex: &Vertex<'_>) -> Option<Node> {
        let (doc, end) = (self.doc, vertex.end);
        let node = doc.nodes.get(vertex.node)?;
        let closer = doc.nodes.get(end).filter(|_| end != vertex.node);
        let mut flow = Flow::default();
        let mut drafts: Vec<Draft> = Vec::new();
        let mut passes = false;
        let thread = node.thread().and_then(|thread| self.thread(&thread.value));
        match &node.does {
            Does::Start | Does::Join(_) | Does::LoopEnd(_) | Does::Route { .. } | Does::End(None) => {
                passes = true
            }
            Does::End(Some(output)) => drafts.push(("give", Act::Give(template(output)?), Vec::new())),
            Does::Llm(llm) => {
                drafts = self.talk(node, llm)?;
                flow = llm_flow(llm, thread);
            }
            Does::Tool { tool, args, .. } => {
                let args = args.as_ref().map_or_else(|| Value::Object(Map::new()), Json::to_value);
                let call = Call {
                    tool: tool.value.clone(),
                    args: JsonTemplate::from_value(args).ok()?,
                    retry: leaves::retry(node.retry.as_ref()),
                    timeout_s: leaves::seconds(node.timeout.as_ref()),
                    told: Told::Nothing,
                };
                drafts.push(("call", Act::Call(call), Vec::new()));
                flow.thread = thread;
            }
            Does::Fork(fork) => {
                let Does::Join(join) = &closer?.does else { return None };
                drafts.push(("paths", self.fork(fork, join, vertex)?, Vec::new()));
            }
            Does::LoopStart(repeat) => drafts.push(("loop", self.repeat(node, repeat, vertex)?, Vec::new())),
            Does::Variable(name, worth) => {
                let name = name.value.clone();
                let act = match worth {
                    Worth::Value(value) => Act::Set(name, template(value)?),
                    Worth::Of(formula) => Act::Compute(name, formula.expression.clone()),
                };
                drafts.push(("set", act, Vec::new()));
                passes = true;
            }
            Does::Context { cut, .. } => {
                drafts = context(node, cut);
                flow.thread = thread;
                passes = true;
            }
            Does::Ask(ask) => {
                drafts.push(("ask", question(node, ask)?, Vec::new()));
                flow.thread = thread;
                passes = ask.kind == AskKind::Approve;
            }
            Does::Sub(sub) => drafts.push(("sub", self.sub(node, sub, vertex.node)?, Vec::new())),
        }
        flow.leaves = leaves::table(drafts, OUT);
        let tool = match &node.does {
            Does::Tool { tool, .. } => Some(tool.value.clone()),
            _ => None,
        };
        Some(Node {
            id: node.id.value.clone(),
            name: node.name.clone(),
            end: closer.map(|closer| closer.id.value.clone()),
            end_name: closer
                .filter(|closer| closer.name != closer.id.value)
                .map(|closer| closer.name.clone()),
            body: flow,
            effects: node.effects.as_ref().map(|effects| leaves::effects_of(effects.value)),
            on_missing: OnMissing::Fault,
            tool,
            passes,
            budget: node.budget.as_ref().map(|budget| Arc::new(leaves::budget_of(budget))),
            ..Node::default()
        })
    }

    /// P-10, P-11, P-14, A-09.
    fn talk(&mut self, node: &WorkNode, llm: &Llm) -> Option<Vec<Draft>> {
        let mut talk = talk(node, llm)?;
        let Some(own) = llm.agent else { return Some(talk.leaves()) };
        let compiler = &mut *self.compiler;
        let between = agent::between(
            &compiler.capabilities.agent,
            &mut compiler.graphs,
            (&llm.thread.value, &llm.prompt.value),
        )?;
        compiler.defs.extend(agent::operations::all().into_iter().map(|tool| (tool.name.clone(), tool)));
        talk.model.on_empty = agent::ON_EMPTY;
        talk.between = Some(between);
        let mut drafts = talk.leaves();
        if own == Own::Thread {
            drafts.insert(0, ("clear", Act::Edit(Edit::Clear), vec![(Guard::Always, "prompt")]));
        }
        Some(drafts)
    }

    fn fork(&mut self, fork: &Fork, join: &Join, vertex: &Vertex<'_>) -> Option<Act> {
        let of = match &fork.of {
            ForkOf::Listed(paths) => {
                let mut listed = Vec::with_capacity(paths.len());
                for ((id, _), region) in paths.iter().zip(&vertex.inner) {
                    listed.push((id.value.clone(), self.inner(*region)?));
                }
                PathsOf::Listed(listed)
            }
            ForkOf::Each { over, item, .. } => PathsOf::Each {
                over: template(over)?,
                item: item.clone(),
                graph: self.inner(*vertex.inner.first()?)?,
            },
        };
        let first = match &of {
            PathsOf::Listed(paths) => paths.first().map(|(id, _)| id.clone()),
            PathsOf::Each { .. } => None,
        };
        let join = GraphJoin {
            strategy: join.strategy.value,
            timeout_s: join.timeout.map(|time| time.as_secs_f64()),
            main: join.main.as_ref().map(|main| main.value.clone()).or(first),
            exports: join
                .exports
                .iter()
                .map(|(name, path)| (name.value.clone(), path.value.clone()))
                .collect(),
        };
        Some(Act::Fork(Box::new(Paths { of, serial: fork.serial, join })))
    }

    fn repeat(&mut self, node: &WorkNode, repeat: &Repeat, vertex: &Vertex<'_>) -> Option<Act> {
        let graph = self.inner(*vertex.inner.first()?)?;
        let times = match &repeat.times {
            Rounds::Over(list) => Times::Over(template(list)?, repeat.item.clone()),
            Rounds::Count(count) => Times::Count(template(count)?),
            Rounds::While(formula) => Times::While(Condition::Expression(formula.expression.clone())),
        };
        let timeout_s = leaves::seconds(node.timeout.as_ref());
        let until = repeat.until.as_ref().map(|formula| Condition::Expression(formula.expression.clone()));
        Some(Act::Loop(Box::new(Loop { graph, times, limit: repeat.limit.value, timeout_s, until })))
    }

    fn sub(&mut self, node: &WorkNode, sub: &Sub, at: usize) -> Option<Act> {
        let opened = self.opened.get(&at)?;
        let mut outputs = Vec::with_capacity(sub.outputs.len());
        for (name, value) in &sub.outputs {
            outputs.push((name.value.clone(), template(value)?));
        }
        let timeout_s = leaves::seconds(node.timeout.as_ref());
        Some(Act::Sub(Box::new(GraphSub {
            graph: opened.graph,
            inputs: opened.inputs.clone(),
            outputs,
            timeout_s,
        })))
    }
}

fn template(value: &Json) -> Option<JsonTemplate> {
    JsonTemplate::from_value(value.to_value()).ok()
}

/// P-10, P-11, P-14.
fn talk(node: &WorkNode, llm: &Llm) -> Option<Talk> {
    let system = match &llm.system {
        Some(system) => Some(Template::parse(&system.value).ok()?),
        None => None,
    };
    let schema = llm.output_schema.as_ref();
    let timeout_s = leaves::seconds(node.timeout.as_ref());
    let model = Infer {
        model: node.model.as_ref().map(|model| model.value.clone()),
        offer_tools: !llm.tools.is_empty() || llm.agent.is_some(),
        system,
        schema: schema
            .map(|schema| ReplySchema { name: node.id.value.clone(), schema: Value::clone(&schema.value) }),
        settings: node.settings.lowered(),
        timeout_s,
        ..Infer::default()
    };
    let prompt = Template::parse(&llm.prompt.value).ok()?;
    let retry = leaves::retry(node.retry.as_ref());
    Some(Talk { prompt, model, in_rounds: llm.enable_tool_loop, retry, timeout_s, between: None })
}

fn llm_flow(llm: &Llm, thread: Option<ThreadIx>) -> Flow {
    let usual = if llm.agent.is_some() { agent::MAX_STEPS } else { MAX_ROUNDS };
    Flow {
        thread,
        tools: llm.tools.iter().map(|tool| tool.value.clone()).collect(),
        call_limits: leaves::call_limits(llm.tools_limit.iter()),
        max_rounds: llm.max_rounds.as_ref().map_or(usual, |rounds| rounds.value),
        offers_bound: llm.agent.is_some(),
        ..Flow::default()
    }
}

/// E-09.
fn context(node: &WorkNode, cut: &Cut) -> Vec<Draft> {
    let edit = match cut {
        Cut::Trim(keep) => Edit::Trim { keep: *keep },
        Cut::Filter(roles) => Edit::Filter { roles: roles.clone() },
        Cut::Clear => Edit::Clear,
        Cut::Summarise(keep) => {
            let model = Infer {
                model: node.model.as_ref().map(|model| model.value.clone()),
                only_words: true,
                settings: node.settings.lowered(),
                timeout_s: leaves::seconds(node.timeout.as_ref()),
                ..Infer::default()
            };
            let then = |to| vec![(Guard::Always, to)];
            return vec![
                ("prompt", Act::AppendText(Template::exactly(SUMMARISE)), then("model")),
                ("model", Act::Infer(Box::new(model)), then("edit")),
                ("edit", Act::Edit(Edit::Compact { first: 0, keep: *keep, asked: 2 }), Vec::new()),
            ];
        }
    };
    vec![("edit", Act::Edit(edit), Vec::new())]
}

/// E-21.
fn question(node: &WorkNode, ask: &Ask) -> Option<Act> {
    let value = match &ask.value {
        Some(value) => Some(template(value)?),
        None => None,
    };
    let expects = Expects {
        value,
        schema: ask.schema.as_ref().map(|schema| Value::clone(&schema.value)),
        timeout_s: leaves::seconds(node.timeout.as_ref()),
    };
    let expects = (expects != Expects::default()).then(|| Box::new(expects));
    Some(Act::Ask(ask.kind, Template::parse(&ask.prompt.value).ok()?, expects))
}
