//! A workflow as a document.

use super::block::{Block, Cut, Kind, Paths, Rounds, SimWorkflow, Strategy};
use super::generate::LIST;
use serde_json::{Map, Value, json};

/// The list that forks and loops go over the beginning of.
pub fn list(length: usize) -> Vec<i64> {
    (10_i64..).step_by(10).take(length).collect()
}

/// What every workflow is given: its variables to begin with, and its lists.
pub fn metadata() -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.extend([("x".into(), json!(1)), ("y".into(), json!(2)), ("e".into(), json!(""))]);
    metadata.extend((0..=LIST).map(|length| (format!("list{length}"), json!(list(length)))));
    metadata
}

/// The document.
pub fn document(workflow: &SimWorkflow) -> Value {
    let mut written = Written::default();
    let mut document = written.whole(&workflow.blocks, workflow.output);
    if let Some(object) = document.as_object_mut() {
        object.insert("metadata".into(), Value::Object(metadata()));
        if workflow.task {
            object.insert("task".into(), json!("the task"));
        }
    }
    document
}

/// Its nodes and edges so far.
#[derive(Default)]
struct Written {
    nodes: Vec<Value>,
    edges: Vec<Value>,
    /// Ids are unique in all documents of a workflow, to tell them apart.
    ids: usize,
}

/// An edge that has no target yet: where it begins, and its `when`.
type Open = (String, Option<String>);

fn placeholder(name: &str) -> String {
    format!("{{{{{name}}}}}")
}

impl Written {
    fn whole(&mut self, blocks: &[Block], output: bool) -> Value {
        let before = (std::mem::take(&mut self.nodes), std::mem::take(&mut self.edges));
        let start = self.node("START", json!({}));
        let (_, ends) = self.blocks(blocks, vec![(start, None)]);
        let config = if output { json!({"output": {"x": "{{x}}", "e": "{{e}}"}}) } else { json!({}) };
        let end = self.node("END", config);
        self.close(&ends, &end);
        let (nodes, edges) =
            (std::mem::replace(&mut self.nodes, before.0), std::mem::replace(&mut self.edges, before.1));
        json!({"nodes": nodes, "edges": edges})
    }

    fn node(&mut self, kind: &str, config: Value) -> String {
        self.ids += 1;
        let id = format!("n{}", self.ids);
        self.nodes.push(json!({"id": id, "type": kind, "config": config}));
        id
    }

    fn configure(&mut self, id: &str, config: Value) {
        if let Some(node) =
            self.nodes.iter_mut().find(|node| node.get("id").and_then(Value::as_str) == Some(id))
            && let Some(known) = node.get_mut("config")
        {
            *known = config;
        }
    }

    fn close(&mut self, open: &[Open], to: &str) {
        self.edges.extend(open.iter().map(|(from, when)| json!({"from": from, "to": to, "when": when})));
    }

    /// The blocks behind these ends; the first of their nodes is what it returns.
    fn blocks(&mut self, blocks: &[Block], mut open: Vec<Open>) -> (String, Vec<Open>) {
        let mut first = None;
        for block in blocks {
            let (entry, ends) = self.block(block);
            self.close(&open, &entry);
            first.get_or_insert(entry);
            open = ends;
        }
        (first.unwrap_or_default(), open)
    }

    fn block(&mut self, block: &Block) -> (String, Vec<Open>) {
        match block {
            Block::Set { name, of, more } => {
                let id = self.node("VARIABLE", json!({"name": name, "expression": format!("{of} + {more}")}));
                (id.clone(), vec![(id, None)])
            }
            Block::Ask { thread, about, number, handled } => {
                let prompt = format!("question {number} of {}", placeholder(about));
                let id = self.node("LLM", json!({"prompt": prompt, "thread": thread}));
                self.handled(id.clone(), id, *handled)
            }
            Block::Call { thread, about, number, handled } => {
                let mut config = json!({"tool": "look", "args": {"v": placeholder(about), "n": number}});
                put(&mut config, "thread", thread.map(Value::from));
                let id = self.node("TOOL", config);
                self.handled(id.clone(), id, *handled)
            }
            Block::Cut { thread, cut } => {
                let config = match cut {
                    Cut::Trim(keep) => json!({"op": "trim", "keep": keep, "thread": thread}),
                    Cut::Users { and_models: true } => {
                        json!({"op": "filter", "roles": ["user", "assistant"], "thread": thread})
                    }
                    Cut::Users { .. } => json!({"op": "filter", "roles": ["user"], "thread": thread}),
                    Cut::Clear => json!({"op": "clear", "thread": thread}),
                    Cut::Summarise(keep) => json!({"op": "summarise", "keep": keep, "thread": thread}),
                };
                let id = self.node("CONTEXT", config);
                (id.clone(), vec![(id, None)])
            }
            Block::Person { kind, thread, about, number, handled } => {
                let prompt = format!("person {number} of {}", placeholder(about));
                let mut config = match kind {
                    Kind::Approve => json!({"kind": "approve", "prompt": prompt}),
                    Kind::Answer => json!({"kind": "answer", "prompt": prompt}),
                    Kind::Edit => json!({"kind": "edit", "prompt": prompt, "value": placeholder(about)}),
                };
                put(&mut config, "thread", thread.map(Value::from));
                let id = self.node("USER_INTERACTION", config);
                self.handled(id.clone(), id, *handled)
            }
            Block::Choose { of, route, even, odd } => self.choose(of, *route, even, odd),
            Block::Repeat { rounds, body, handled } => {
                let start = self.node(
                    "LOOP_START",
                    match rounds {
                        Rounds::Count(count) => json!({"count": count, "limit": 9}),
                        Rounds::Over(length) => {
                            json!({"over": placeholder(&format!("list{length}")), "limit": 9})
                        }
                        Rounds::While { below, limit } => {
                            json!({"while": format!("x < {below}"), "limit": limit})
                        }
                    },
                );
                let (_, ends) = self.blocks(body, vec![(start.clone(), None)]);
                let end = self.node("LOOP_END", json!({"loop": start}));
                self.close(&ends, &end);
                self.handled(start, end, *handled)
            }
            Block::Fork { .. } => self.fork(block),
            Block::Sub { body, out, handled } => {
                let inner = self.whole(body, false);
                let mut config = json!({"workflow": inner, "inputs": {"x": "{{x}}"}});
                put(&mut config, "outputs", out.then(|| json!({"y": "{{x}}"})));
                let id = self.node("SUBGRAPH", config);
                self.handled(id.clone(), id, *handled)
            }
            Block::Plan { about, number, handled } => {
                let plan = json!({"task": "planned", "nodes": [
                    {"node_type": "tool-first", "node_name": "look", "thread_id": "main", "initial_tool_name": "look",
                     "initial_tool_args": {"v": "{{given}}", "n": number}},
                    {"node_type": "llm-first", "node_name": "say", "thread_id": "main", "task_prompt": "so {{given}}"}]});
                let id = self.node("PLAN", json!({"plan": plan, "inputs": {"given": placeholder(about)}}));
                self.handled(id.clone(), id, *handled)
            }
        }
    }

    fn choose(&mut self, of: &str, route: bool, even: &[Block], odd: &[Block]) -> (String, Vec<Open>) {
        let condition = format!("{of} % 2 == 0");
        // A node that goes on by its edges has to do something.
        let way = if route {
            self.node("ROUTE", json!({}))
        } else {
            self.node("VARIABLE", json!({"name": "seen", "value": true}))
        };
        let open = |when: Option<String>| if route { Vec::new() } else { vec![(way.clone(), when)] };
        let (even, mut ends) = self.blocks(even, open(Some(condition.clone())));
        let (odd, others) = self.blocks(odd, open(None));
        ends.extend(others);
        if route {
            let config = json!({"branches": [{"when": condition, "to": even}], "default": odd});
            self.configure(&way, config);
        }
        (way, ends)
    }

    fn fork(&mut self, block: &Block) -> (String, Vec<Open>) {
        let Block::Fork { paths, serial, strategy, main, export, handled } = block else {
            return (String::new(), Vec::new());
        };
        let order = if *serial { "serial" } else { "parallel" };
        let fork = self.node("FORK", json!({}));
        let mut joined = json!({"joinStrategy": strategy.name()});
        if let Strategy::Threshold(threshold) = strategy {
            put(&mut joined, "threshold", Some(json!(threshold)));
        }
        let (config, ends) = match paths {
            Paths::Each(length, body) => {
                let (child, ends) = self.blocks(body, Vec::new());
                put(&mut joined, "mainPathId", main.map(|main| json!(main.to_string())));
                let over = placeholder(&format!("list{length}"));
                (json!({"forkStrategy": order, "forEach": over, "childNodeIds": [child]}), ends)
            }
            Paths::Listed(paths) => {
                let id = |at: usize| format!("{fork}-{at}");
                let ids: Vec<String> = (0..paths.len()).map(id).collect();
                let (mut children, mut ends) = (Vec::new(), Vec::new());
                for path in paths {
                    let (first, open) = self.blocks(path, Vec::new());
                    children.push(first);
                    ends.extend(open);
                }
                put(&mut joined, "mainPathId", main.map(|main| json!(id(main))));
                put(&mut joined, "exports", export.map(|export| json!({"y": id(export)})));
                put(&mut joined, "forkPathIds", Some(json!(ids)));
                (json!({"forkStrategy": order, "forkPathIds": ids, "childNodeIds": children}), ends)
            }
        };
        self.configure(&fork, config);
        let join = self.node("JOIN", joined);
        self.close(&ends, &join);
        self.handled(fork, join, *handled)
    }

    /// The way into a block, and the ends of its last node; with an edge for errors to one that keeps the fault's kind.
    fn handled(&mut self, entry: String, id: String, handled: bool) -> (String, Vec<Open>) {
        let mut ends = vec![(id.clone(), None)];
        if handled {
            let kind = placeholder(&format!("{id}.error.kind"));
            let keep = self.node("VARIABLE", json!({"name": "e", "value": kind}));
            self.close(&[(id, Some("error".into()))], &keep);
            ends.push((keep, None));
        }
        (entry, ends)
    }
}

fn put(config: &mut Value, name: &str, value: Option<Value>) {
    if let (Some(object), Some(value)) = (config.as_object_mut(), value) {
        object.insert(name.into(), value);
    }
}
