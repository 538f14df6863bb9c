//! Random trees of frames against a reference that runs them one after the other (E-07, E-34, E-36): forks in loops in
//! subgraphs, dataflow in flow in dataflow. `FRAMES_TREES` says how many.

use super::forks::{fork_of, ids_are_new};
use super::world::*;
use selvedge_engine::Fork;
use std::collections::BTreeMap;

/// Numbers that look random, from a seed (SplitMix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// What a node does.
#[derive(Debug)]
enum Op {
    /// Says a text, with the value of a variable if it names one, and takes the model's answer.
    Ask(String, Option<&'static str>),
    Set(&'static str, u64),
    /// Calls a tool of these effects with the value of a variable; what it gives is the result.
    Call(&'static str, &'static str),
    /// Calls a tool that always fails, and goes on all the same.
    Try,
    Fork(Vec<Vec<Op>>, Option<usize>),
    /// A path for each number below that, which is a variable of it.
    Each(u32, &'static str, Vec<Op>),
    Loop(u32, Vec<Op>),
    /// Over the numbers below that.
    Over(u32, &'static str, Vec<Op>),
    /// With a graph of its own; in it, list order if that is a dataflow.
    Sub(Vec<Op>, bool),
}

const NAMES: [&str; 3] = ["u", "v", "w"];

/// A list of at least one node. Of a dataflow, without variables.
fn ops(rng: &mut Rng, depth: u32, flows: bool) -> Vec<Op> {
    let count = 1 + rng.below(3);
    (0..count).map(|_| op(rng, depth, flows)).collect()
}

fn op(rng: &mut Rng, depth: u32, flows: bool) -> Op {
    let name = NAMES[usize::try_from(rng.below(3)).unwrap()];
    let small = |rng: &mut Rng| u32::try_from(rng.below(4)).unwrap();
    match if depth == 0 { rng.below(4) } else { rng.below(10) } {
        1 if flows => Op::Set(name, rng.below(100)),
        2 if flows => Op::Call(["note", "look", "write"][usize::try_from(rng.below(3)).unwrap()], name),
        3 if flows => Op::Try,
        4 => Op::Each(small(rng), name, ops(rng, depth - 1, true)),
        5 => Op::Over(small(rng), name, ops(rng, depth - 1, true)),
        6 => {
            let paths: Vec<Vec<Op>> = (0..1 + rng.below(3)).map(|_| ops(rng, depth - 1, true)).collect();
            let main = (rng.below(3) > 0).then(|| usize::try_from(rng.below(paths.len() as u64)).unwrap());
            Op::Fork(paths, main)
        }
        7 => Op::Loop(1 + u32::try_from(rng.below(3)).unwrap(), ops(rng, depth - 1, true)),
        8 | 9 => {
            let flows = rng.below(2) == 0;
            Op::Sub(ops(rng, depth - 1, flows), flows)
        }
        _ => Op::Ask(format!("t{}", rng.below(4)), (flows && rng.below(2) == 0).then_some(name)),
    }
}

/// What a frame is given, and what is set in it.
#[derive(Clone, Default)]
struct Names {
    given: Option<(&'static str, u64)>,
    set: BTreeMap<&'static str, u64>,
}

/// The reference: a conversation, variables from the outside in, and what was made last.
#[derive(Clone, Default)]
struct Seen {
    thread: Vec<String>,
    scopes: Vec<Names>,
    /// Whether the frame is a flow: a dataflow has no variables.
    flows: bool,
    result: Value,
}

fn answer(thread: &[String]) -> String {
    let sum = thread.iter().fold(7u64, |sum, text| {
        text.bytes()
            .fold(sum.wrapping_mul(31), |sum, byte| sum.wrapping_mul(131).wrapping_add(u64::from(byte)))
    });
    format!("r{}", sum % 1_000_003)
}

impl Seen {
    fn value(&self, name: &str) -> u64 {
        let given = |names: &Names| names.given.filter(|(known, _)| *known == name).map(|(_, value)| value);
        let own = |names: &Names| names.set.get(name).copied().or_else(|| given(names));
        self.scopes.iter().rev().find_map(own).unwrap_or(0)
    }
    fn run(&mut self, ops: &[Op]) {
        for op in ops {
            self.step(op);
        }
    }
    fn step(&mut self, op: &Op) {
        match op {
            Op::Ask(text, name) => {
                let said = name.map_or(text.clone(), |name| format!("{text} {}", self.value(name)));
                self.thread.push(said);
                let said = answer(&self.thread);
                self.thread.push(said.clone());
                self.result = Value::from(said);
            }
            Op::Set(name, value) => {
                self.scopes.last_mut().unwrap().set.insert(name, *value);
            }
            Op::Call(_, name) => self.result = json!({"got": {"x": self.value(name)}}),
            Op::Try => {}
            Op::Each(count, name, path) => {
                let ends =
                    (0..*count).map(|at| (at.to_string(), self.path(Some((name, at.into())), path).result));
                self.result = Value::Object(ends.collect());
            }
            Op::Fork(paths, main) => {
                let ends: Vec<Seen> = paths.iter().map(|path| self.path(None, path)).collect();
                let results = ends.iter().enumerate().map(|(at, end)| (format!("p{at}"), end.result.clone()));
                self.result = Value::Object(results.collect());
                if let Some(main) = main {
                    self.thread = ends[*main].thread.clone();
                }
            }
            Op::Loop(count, body) => self.go_round(*count, None, body),
            Op::Over(count, name, body) => self.go_round(*count, Some(name), body),
            Op::Sub(body, flows) => {
                let mut own = Seen { scopes: self.scopes.clone(), flows: *flows, ..Seen::default() };
                own.scopes.push(Names::default());
                own.run(body);
                self.result = own.result;
            }
        }
    }
}

impl Seen {
    /// A path of a fork, at its end.
    fn path(&self, given: Option<(&'static str, u64)>, path: &[Op]) -> Seen {
        let mut own = Seen { result: Value::Null, flows: true, ..self.clone() };
        own.scopes.push(Names { given, set: BTreeMap::new() });
        own.run(path);
        own
    }
    /// What an iteration sets is that of the frame around it, or, where that has no variables, of the iterations.
    fn go_round(&mut self, count: u32, name: Option<&'static str>, body: &[Op]) {
        let flows = std::mem::replace(&mut self.flows, true);
        if !flows {
            self.scopes.push(Names::default());
        }
        // One that does not go round has the result of the node before it, where one can be told.
        if !flows {
            self.result = Value::Null;
        }
        for at in 0..count {
            self.result = Value::Null;
            self.scopes.push(Names { given: name.map(|name| (name, at.into())), set: BTreeMap::new() });
            self.run(body);
            let own = self.scopes.pop().unwrap();
            self.scopes.last_mut().unwrap().set.extend(own.set);
        }
        if !flows {
            self.scopes.pop();
        }
        self.flows = flows;
    }
}

/// The graph of a list of nodes; the graphs that they open go to `graphs`.
fn graph(ops: &[Op], flows: bool, graphs: &mut Vec<Value>) -> Value {
    let last = ops.len() - 1;
    let nodes: Vec<Value> = ops
        .iter()
        .enumerate()
        .map(|(at, op)| {
            let id = format!("n{at}");
            let ways = if flows && at < last { json!([{"when": "done", "to": at + 1}]) } else { json!([]) };
            let mut inner = |ops: &[Op], flows| {
                let graph = graph(ops, flows, graphs);
                graphs.push(graph);
                graphs.len() - 1
            };
            let (act, passes) = match op {
                Op::Ask(text, name) => {
                    let said = name.map_or(text.clone(), |name| format!("{text} {{{{{name}}}}}"));
                    return json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "leaves": [
                        {"name": "say", "act": {"say": said}, "next": [{"when": "always", "to": 1}]},
                        {"name": "model", "act": {"infer": {}}}]}});
                }
                Op::Set(name, value) => (json!({"set": [name, value]}), true),
                Op::Call(tool, name) => {
                    (json!({"call": {"tool": tool, "args": {"x": format!("{{{{{name}}}}}")}}}), false)
                }
                Op::Try => {
                    let ways = if at < last {
                        json!([{"when": "done", "to": at + 1}, {"when": "fault", "to": at + 1}])
                    } else {
                        json!([])
                    };
                    return json!({"id": id, "name": id, "ways": ways, "on_error": "continue",
                        "body": {"leaves": [{"name": "do", "act": {"call": {"tool": "break", "args": {}}}}]}});
                }
                Op::Each(count, name, path) => {
                    let each = json!({"over": (0..*count).collect::<Vec<_>>(), "item": name, "graph": inner(path, true)});
                    (json!({"fork": {"of": {"each": each}, "join": {"strategy": "all_completed"}}}), false)
                }
                Op::Over(count, name, body) => {
                    let over = json!([(0..*count).collect::<Vec<_>>(), name]);
                    (json!({"loop": {"graph": inner(body, true), "times": {"over": over}, "limit": 9}}), false)
                }
                Op::Fork(paths, main) => {
                    let rows = paths.iter().enumerate();
                    let listed: Vec<Value> =
                        rows.map(|(at, path)| json!([format!("p{at}"), inner(path, true)])).collect();
                    let main = main.map(|main| format!("p{main}"));
                    let join = json!({"strategy": "all_completed", "main": main});
                    (
                        json!({"fork": {"of": {"listed": listed}, "join": join, "serial": paths.len() == 2}}),
                        false,
                    )
                }
                Op::Loop(count, body) => (
                    json!({"loop": {"graph": inner(body, true), "times": {"count": count}, "limit": 9}}),
                    false,
                ),
                Op::Sub(body, flows) => (json!({"sub": {"graph": inner(body, *flows)}}), false),
            };
            let mut body = json!({"leaves": [{"name": "do", "act": act}]});
            if !flows {
                body["thread"] = json!(0);
            }
            json!({"id": id, "name": id, "ways": ways, "passes": passes, "body": body})
        })
        .collect();
    let control = if flows { "flow" } else { "dataflow" };
    json!({"threads": [{"name": "main"}], "control": control, "nodes": nodes, "tools": {}})
}

fn whole(ops: &[Op], flows: bool) -> Arc<Graph> {
    let mut graphs = Vec::new();
    let mut root = graph(ops, flows, &mut graphs);
    root["graphs"] = json!(graphs);
    let tool = |effects: &str, name: &str| json!({"name": name, "description": "", "input_schema": {}, "effects": effects, "version": "1", "source": "test"});
    root["tools"] = json!({"note": tool("pure", "note"), "look": tool("read", "look"), "write": tool("write", "write"),
                           "break": tool("read", "break")});
    Arc::new(serde_json::from_value(root).unwrap())
}

impl World {
    /// Answers in any order, with a failure now and then, until the run has completed.
    fn answer(&mut self, rng: &mut Rng, failures: u64) {
        for _ in 0..100_000 {
            match self.state.status() {
                RunStatus::Completed => return,
                RunStatus::Failed => {
                    let before = self.journal.len();
                    self.input(Input::Resume(Vec::new()));
                    assert!(self.journal.len() > before, "{:?}", self.state.view().fault());
                    continue;
                }
                // What nobody knows of is to run again.
                RunStatus::Waiting => {
                    let asks: Vec<Arc<str>> = self.state.asks().keys().cloned().collect();
                    self.inputs(asks.into_iter().map(|ask| Input::Answer(ask, json!("yes"))));
                    continue;
                }
                RunStatus::Running | RunStatus::Cancelled => {}
            }
            if failures > 0 && rng.below(20) == 0 {
                self.input(Input::Expire(1));
                continue;
            }
            let mut pending: Vec<_> = self.state.pending().keys().cloned().collect();
            assert!(!pending.is_empty(), "it stands still");
            // Some come together.
            let inputs = (0..=rng.below(3)).map_while(|_| {
                let at = rng.below(pending.len().max(1) as u64);
                let effect = (!pending.is_empty()).then(|| pending.remove(usize::try_from(at).unwrap()))?;
                let outcome = match failures > 0 && rng.below(failures) == 0 {
                    true => fails("no"),
                    false => self.reply(&effect),
                };
                Some(Input::Complete(effect, outcome, 0, None, None))
            });
            let inputs: Vec<Input> = inputs.collect();
            self.inputs(inputs);
        }
        panic!("it goes on for ever");
    }
    /// What the reference would say to that thread.
    fn reply(&self, effect: &selvedge_engine::EffectId) -> Outcome {
        let request = match self.state.request(effect) {
            Some(Request::Model(request)) => request,
            Some(Request::Tool(request)) if &*request.tool.name == "break" => {
                return Failure::permanent(FaultKind::ExecutionFailure, "broken").into();
            }
            Some(Request::Tool(request)) => return Outcome::Output(Arc::new(json!({"got": request.args}))),
            _ => panic!("somebody is asked"),
        };
        let thread: Vec<String> =
            request.messages.iter().map(|message| message.content.to_string()).collect();
        reply(&answer(&thread))
    }
    fn end(&self) -> (Vec<String>, Value) {
        (self.texts(), self.state.view().output().clone())
    }
}

fn trees() -> u64 {
    std::env::var("FRAMES_TREES").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000)
}

/// A process that dies at some event, and the next one somewhere further on; and a fork there. What is known then is the journal so
/// far, and the run comes to the same end.
fn crashes(
    world: &World,
    graph: &Arc<Graph>,
    rng: &mut Rng,
    failures: u64,
    cuts: usize,
    expected: &(Vec<String>, Value),
) {
    let step = (world.journal.len() / cuts).max(1);
    let first = usize::try_from(rng.below(step as u64)).unwrap();
    for cut in (1 + first..world.journal.len()).step_by(step) {
        let mut again = World::again(graph, &world.journal[..cut]);
        again.answer(rng, failures);
        assert_eq!(again.end(), *expected, "cut at {cut}");
        let left = (again.journal.len() - cut) as u64;
        let second = cut + usize::try_from(rng.below(left + 1)).unwrap();
        let mut third = World::again(graph, &again.journal[..second]);
        third.answer(rng, failures);
        assert_eq!(third.end(), *expected, "cut at {cut}, and at {second} of what followed");
        let mut fork = World::read(graph, &world.journal[..cut], 0);
        fork.input(Input::Fork(Box::new(Fork {
            source: "source".into(),
            events: cut as u64,
            ..Fork::default()
        })));
        fork.answer(rng, failures);
        assert_eq!(fork.end(), *expected, "forked at {cut}");
    }
}

/// Every tree comes to what the reference comes to, in every order of completion, with failures and resumes, and from
/// any prefix of its journal; and a fork of it asks nobody what was answered.
#[test]
fn trees_of_frames_are_what_the_reference_says() {
    for seed in 0..trees() {
        let mut rng = Rng(seed);
        let flows = rng.below(4) > 0;
        let ops = ops(&mut rng, 1 + u32::try_from(seed % 4).unwrap(), flows);
        // The variables that all texts can name.
        let graph = whole(&ops, flows);
        let initial: Map<String, Value> = NAMES.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
        let mut expected = Seen { scopes: vec![Names::default()], flows, ..Seen::default() };
        expected.run(&ops);
        let expected = (expected.thread, expected.result);
        for failures in [0, 0, 6] {
            let mut world = World::begin_with(&graph, Value::Object(initial.clone()), 0);
            world.answer(&mut rng, failures);
            assert_eq!(world.end(), expected, "seed {seed}: {ops:#?}");
            if seed % 50 == 5 {
                for at in (1..world.journal.len()).step_by(1 + world.journal.len() / 4) {
                    let mut fork = World::forked(&graph, &world.journal, at, fork_of(&graph, &world.journal));
                    fork.answer(&mut rng, 0);
                    assert_eq!(fork.end(), expected, "seed {seed}, fork at {at}: {ops:#?}");
                    assert!(failures > 0 || fork.models_asked() == 0, "seed {seed}, fork at {at}: {ops:#?}");
                    ids_are_new(&fork, &world.journal, at);
                }
            }
            if seed % 10 == 0 {
                replays(&world, &graph);
                let cuts = if seed % 1_000 == 0 { usize::MAX } else { 4 };
                crashes(&world, &graph, &mut rng, failures, cuts, &expected);
            }
        }
    }
}
