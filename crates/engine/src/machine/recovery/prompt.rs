//! What a model is told when it has to decide or to plan (D-17, D-20, D-21): facts of the run as one JSON object, in
//! a stable order and of bounded size.

use crate::effect::ToolDef;
use crate::event::{Body, Event};
use crate::graph::{Alternative, Fact};
use crate::ids::NodeRef;
use crate::machine::node::Visit;
use crate::machine::state::State;
use crate::message::Role;
use crate::template::{JsonTemplate, Template};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of one fact, as JSON.
const FACT_BYTES: usize = 64 << 10;
/// The catalogue of tools may take more: without their schemas nobody can call them.
const TOOLS_BYTES: usize = 1 << 20;
/// How much of a long text and of a long list is shown: at first, and where that is still too much.
const SHOWN: [(usize, usize); 2] = [(4000, 100), (200, 5)];

impl State {
    /// The event of a `Brief` leaf.
    pub(crate) fn brief(&self, node: NodeRef, visit: &Visit, text: &Template, facts: &[Fact]) -> Event {
        let mut text = match self.text(node, text) {
            Ok(text) => text,
            Err(fault) => return self.failed(node, fault),
        };
        if !facts.is_empty() {
            let facts: Map<String, Value> = facts.iter().map(|fact| self.fact(node, visit, fact)).collect();
            text = format!("{text}\n\n{}", Value::Object(facts));
        }
        if text.len() as u64 > self.start.limits.message_bytes {
            return self.failed(node, self.too_long("a message"));
        }
        Event::Appended {
            node: self.name(node),
            thread: self.own_thread(node),
            body: Body::Text(Role::User, text.into()),
        }
    }

    fn fact(&self, node: NodeRef, visit: &Visit, fact: &Fact) -> (String, Value) {
        let recovery = visit.recovery();
        let failed = recovery.and_then(|recovery| recovery.failed.as_ref());
        let (name, value) = match fact {
            Fact::Task(text) => ("task", Value::from(text.as_ref())),
            Fact::Step => ("step", self.definition(node)),
            Fact::Parameters => (
                "parameters",
                match failed {
                    Some((_, parameters)) => parameters.clone(),
                    None => {
                        let written = self.args_to_try(node, visit).and_then(Result::ok);
                        written.map(JsonTemplate::source).cloned().unwrap_or_default()
                    }
                },
            ),
            Fact::Fault => (
                "fault",
                match visit.fault() {
                    Some(fault) => {
                        json!({"kind": fault.kind, "message": fault.message, "cause": fault.cause})
                    }
                    None => Value::Null,
                },
            ),
            Fact::Tool => {
                let name = failed.map(|(tool, _)| tool.clone()).or_else(|| self.tool_to_try(node, visit));
                let tool = name.and_then(|name| self.tool(node, &name)).map(|tool| told(tool));
                ("tool", tool.unwrap_or_default())
            }
            Fact::Tools => ("tools", self.of(node).graph.offered().map(|tool| told(tool)).collect()),
            Fact::ToolNames => {
                let brief = |tool: &Arc<ToolDef>| json!({"name": tool.name, "description": tool.description});
                ("tools", self.of(node).graph.offered().map(brief).collect())
            }
            Fact::Chosen => ("tools", self.chosen_tools(node, visit)),
            Fact::Metadata => ("metadata", self.merged_metadata(node)),
            Fact::Results => ("results", self.earlier_results(node)),
            Fact::Diagnostics => {
                ("diagnostics", recovery.and_then(|m| m.diagnostics.clone()).unwrap_or_default())
            }
            Fact::Left => ("left", self.limits_left(node, visit)),
        };
        let most = match fact {
            Fact::Tools | Fact::Chosen | Fact::ToolNames => TOOLS_BYTES,
            _ => FACT_BYTES,
        };
        (name.to_owned(), bounded(value, most))
    }

    /// The node as a document has it (D-23).
    fn definition(&self, node: NodeRef) -> Value {
        let def = self.def(node);
        let args = self.own_call(node).map(|call| call.args.source());
        let mut definition = Map::from_iter([
            ("step_id".to_owned(), json!(def.id)),
            ("step_name".to_owned(), json!(def.name)),
            ("tool_id".to_owned(), json!(def.tool)),
            ("parameters".to_owned(), args.cloned().unwrap_or_default()),
        ]);
        if !def.after.is_empty() {
            definition.insert("depends_on".to_owned(), json!(def.after));
        }
        let others = def.recovery.iter().flat_map(|recovery| &recovery.alternatives);
        let others: Vec<Value> = others
            .map(|Alternative { tool, args }| match args {
                None => json!(tool),
                Some(args) => json!({"tool_id": tool, "parameters": args.source()}),
            })
            .collect();
        if !others.is_empty() {
            definition.insert("alternatives".to_owned(), Value::Array(others));
        }
        Value::Object(definition)
    }

    /// The tools that the latest reply with a list `tools` names.
    fn chosen_tools(&self, node: NodeRef, visit: &Visit) -> Value {
        let messages: Vec<_> = visit.thread.iter().map(|ix| &self.messages[ix]).collect();
        let replies = messages.into_iter().rev().filter(|message| message.role == Role::Assistant);
        let lists = replies.filter_map(|message| {
            let reply = self.reply_json(&message.content).ok()?;
            let names = reply.get("tools")?.as_array()?;
            Some(
                names
                    .iter()
                    .filter_map(|name| name.as_str().map(str::to_owned))
                    .collect::<BTreeSet<String>>(),
            )
        });
        let named = lists.take(1).next().unwrap_or_default();
        let known: Vec<Value> =
            self.of(node).graph.offered().filter(|t| named.contains(&*t.name)).map(|t| told(t)).collect();
        match known.is_empty() {
            true => self.of(node).graph.offered().map(|tool| told(tool)).collect(),
            false => Value::Array(known),
        }
    }

    /// D-04's merged view, as the node sees it.
    fn merged_metadata(&self, node: NodeRef) -> Value {
        let mut merged = self.start.initial.clone();
        for (name, known) in self.of(node).runtime_values(node.node) {
            merged.insert(name.to_string(), known.value.clone());
        }
        Value::Object(merged)
    }

    fn earlier_results(&self, node: NodeRef) -> Value {
        let frame = self.of(node);
        let earlier = frame.graph.nodes.iter().take_while(|(ix, _)| *ix < node.node);
        let ran = earlier.filter_map(|(ix, def)| {
            let done = frame.done(ix).filter(|done| !done.skipped)?;
            Some(json!({"id": def.id, "name": def.name, "success": done.fault.is_none()}))
        });
        ran.collect()
    }
}

/// A tool as a model that plans sees it.
fn told(tool: &ToolDef) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "outputs": tool.output_params,
        "effects": tool.effects.unwrap_or_default(),
    })
}

/// A value within `most` bytes of JSON: long texts and lists are cut, with a note; what is still too long is left out.
fn bounded(value: Value, most: usize) -> Value {
    let mut size = value.to_string().len();
    if size <= most {
        return value;
    }
    for (text, list) in SHOWN {
        let cut = cut(&value, text, list);
        let now = cut.to_string().len();
        if now <= most {
            return cut;
        }
        size = size.max(now);
    }
    Value::from(format!("({size} bytes, left out)"))
}

fn cut(value: &Value, text: usize, list: usize) -> Value {
    match value {
        Value::String(whole) => match whole.char_indices().nth(text) {
            Some((end, _)) => {
                let (shown, rest) = whole.split_at(end);
                Value::from(format!("{shown}… ({} bytes more)", rest.len()))
            }
            None => value.clone(),
        },
        Value::Array(items) => {
            let mut shown: Vec<Value> = items.iter().take(list).map(|item| cut(item, text, list)).collect();
            if items.len() > list {
                shown.push(Value::from(format!("… ({} more)", items.len() - list)));
            }
            Value::Array(shown)
        }
        Value::Object(members) => {
            members.iter().map(|(key, item)| (key.clone(), cut(item, text, list))).collect()
        }
        value => value.clone(),
    }
}
