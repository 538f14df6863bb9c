//! Random workflows come to what a naive reading of them comes to (W-04, W-06, W-08, W-09, E-34): one that runs block after block,
//! paths included, and knows no frames, ways or regions.

use super::*;
use selvedge_engine::{Failure, FaultKind, Input, Outcome, Request, RunStatus, State};

/// What a workflow is made of. There is one variable, `x`.
#[derive(Clone, Debug)]
enum Block {
    /// `x + k`.
    Add(i64),
    /// Calls the tool with `x` and `k`; with `true`, a fault makes `x` 7 and is handled by that.
    Call(i64, bool),
    /// On whether `x` is even.
    Choose(Vec<Block>, Vec<Block>),
    /// So often.
    Repeat(usize, Vec<Block>, bool),
    Fork {
        serial: bool,
        strategy: &'static str,
        threshold: usize,
        paths: Vec<Vec<Block>>,
        handled: bool,
    },
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
    fn often(&mut self) -> bool {
        self.below(3) > 0
    }
    fn blocks(&mut self, depth: u32) -> Vec<Block> {
        (0..=self.below(3)).map(|_| self.block(depth)).collect()
    }
    fn block(&mut self, depth: u32) -> Block {
        let leaf = depth == 0;
        match self.below(if leaf { 4 } else { 8 }) {
            0 => Block::Add(self.below(5) as i64),
            1..=3 => Block::Call(self.below(5) as i64, self.often()),
            4 => Block::Choose(self.blocks(depth - 1), self.blocks(depth - 1)),
            5 => Block::Repeat(self.below(4) as usize, self.blocks(depth - 1), self.often()),
            _ => {
                let serial = self.below(2) == 0;
                let paths: Vec<Vec<Block>> = (0..=self.below(3)).map(|_| self.blocks(depth - 1)).collect();
                // At the same time, others depend on who is first.
                let strategy = match self.below(if serial { 5 } else { 2 }) {
                    0 => "ALL_COMPLETED",
                    1 => "ALL_FAILED",
                    2 => "ANY_COMPLETED",
                    3 => "ANY_FAILED",
                    _ => "SUCCESS_COUNT_THRESHOLD",
                };
                let threshold = 1 + self.below(paths.len() as u64) as usize;
                Block::Fork { serial, strategy, threshold, paths, handled: self.often() }
            }
        }
    }
}

fn tool(x: i64, k: i64) -> Option<i64> {
    ((x + k) % 5 != 3).then_some((x * 3 + k) % 100)
}

/// What was made last, or that it failed.
type Made = Result<(), ()>;

/// The naive reading.
fn run(blocks: &[Block], x: &mut i64, last: &mut Value) -> Made {
    for block in blocks {
        match block {
            Block::Add(k) => *x += k,
            Block::Call(k, handled) => match tool(*x, *k) {
                Some(output) => *last = json!(output),
                None if *handled => *x = 7,
                None => return Err(()),
            },
            Block::Choose(even, odd) => run(if *x % 2 == 0 { even } else { odd }, x, last)?,
            Block::Repeat(times, body, handled) => {
                let before = last.clone();
                let mut made = Value::Null;
                let mut failed = false;
                for _ in 0..*times {
                    let mut own = *x;
                    made = Value::Null;
                    failed = run(body, &mut own, &mut made).is_err();
                    if failed {
                        break;
                    }
                    *x = own;
                }
                match (failed, handled) {
                    (false, _) => *last = if *times == 0 { before } else { made },
                    (true, true) => {}
                    (true, false) => return Err(()),
                }
            }
            Block::Fork { serial, strategy, threshold, paths, handled } => {
                let judged = |done: usize, failed: usize| match *strategy {
                    "ALL_COMPLETED" => (done == paths.len(), failed > 0),
                    "ALL_FAILED" => (failed == paths.len(), done > 0),
                    "ANY_COMPLETED" => (done > 0, failed == paths.len()),
                    "ANY_FAILED" => (failed > 0, done == paths.len()),
                    _ => (done >= *threshold, paths.len() - failed < *threshold),
                };
                let (mut done, mut failed, mut results) = (0, 0, Map::new());
                for (at, path) in paths.iter().enumerate() {
                    if *serial && matches!(judged(done, failed), (true, _) | (_, true)) {
                        break;
                    }
                    let (mut own, mut made) = (*x, Value::Null);
                    match run(path, &mut own, &mut made) {
                        Ok(()) => {
                            done += 1;
                            results.insert(at.to_string(), made);
                        }
                        Err(()) => failed += 1,
                    }
                }
                match (judged(done, failed).0, handled) {
                    (true, _) => *last = Value::Object(results),
                    (false, true) => {}
                    (false, false) => return Err(()),
                }
            }
        }
    }
    Ok(())
}

/// The same as a document: its nodes and edges so far, and the ends that lead to whatever comes next.
#[derive(Default)]
struct Written {
    nodes: Vec<Value>,
    edges: Vec<Value>,
    paths: usize,
}

/// An edge that has no target yet: where it begins, and its `when`.
type Open = (String, Option<&'static str>);

impl Written {
    fn node(&mut self, kind: &str, config: Value) -> String {
        let id = format!("n{}", self.nodes.len());
        self.nodes.push(node(&id, kind, config));
        id
    }
    fn close(&mut self, open: &[Open], to: &str) {
        for (from, when) in open {
            self.edges.push(json!({"from": from, "to": to, "when": when}));
        }
    }
    /// The blocks behind these ends; the first of their nodes is what it returns.
    fn blocks(&mut self, blocks: &[Block], mut open: Vec<Open>) -> (Option<String>, Vec<Open>) {
        let mut first = None;
        for block in blocks {
            let (entry, ends) = self.block(block);
            self.close(&open, &entry);
            first = first.or(Some(entry));
            open = ends;
        }
        (first, open)
    }
    fn block(&mut self, block: &Block) -> (String, Vec<Open>) {
        match block {
            Block::Add(k) => {
                let id = self.node("VARIABLE", json!({"name": "x", "expression": format!("x + {k}")}));
                (id.clone(), vec![(id, None)])
            }
            Block::Call(k, handled) => {
                let id = self.node("TOOL", json!({"tool": "read", "args": {"x": "{{x}}", "k": k}}));
                (id.clone(), self.handled(&id, *handled, "7"))
            }
            Block::Choose(even, odd) => {
                let way = self.node("ROUTE", json!({}));
                let (even, mut ends) = self.blocks(even, Vec::new());
                let (odd, others) = self.blocks(odd, Vec::new());
                ends.extend(others);
                let at: usize = way[1..].parse().unwrap();
                self.nodes[at]["config"] =
                    json!({"branches": [{"when": "x % 2 == 0", "to": even}], "default": odd});
                (way, ends)
            }
            Block::Repeat(times, body, handled) => {
                let start = self.node("LOOP_START", json!({"count": times, "limit": 10}));
                let (_, ends) = self.blocks(body, vec![(start.clone(), None)]);
                let end = self.node("LOOP_END", json!({"loop": start}));
                self.close(&ends, &end);
                (start, self.handled(&end, *handled, "x"))
            }
            Block::Fork { serial, strategy, threshold, paths, handled } => {
                let fork = self.node("FORK", json!({}));
                let ids: Vec<String> = paths
                    .iter()
                    .map(|_| {
                        self.paths += 1;
                        format!("p{}", self.paths)
                    })
                    .collect();
                let (mut children, mut ends) = (Vec::new(), Vec::new());
                for path in paths {
                    let (first, open) = self.blocks(path, Vec::new());
                    children.push(first);
                    ends.extend(open);
                }
                let at: usize = fork[1..].parse().unwrap();
                let order = if *serial { "serial" } else { "parallel" };
                self.nodes[at]["config"] =
                    json!({"forkStrategy": order, "forkPathIds": ids, "childNodeIds": children});
                let mut config = json!({"forkPathIds": ids, "joinStrategy": strategy});
                if *strategy == "SUCCESS_COUNT_THRESHOLD" {
                    config["threshold"] = json!(threshold);
                }
                let join = self.node("JOIN", config);
                self.close(&ends, &join);
                (fork, self.handled(&join, *handled, "x"))
            }
        }
    }
    /// The ends of a node; with an edge for errors to one that sets `x`.
    fn handled(&mut self, id: &str, handled: bool, to: &str) -> Vec<Open> {
        let mut ends = vec![(id.to_owned(), None)];
        if handled {
            let mend = self.node("VARIABLE", json!({"name": "x", "expression": to}));
            self.close(&[(id.to_owned(), Some("error"))], &mend);
            ends.push((mend, None));
        }
        ends
    }
}

/// The keys of joins are path ids; the naive reading has numbers.
fn renamed(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Array(members.values().map(renamed).collect()),
        other => other.clone(),
    }
}

fn document(blocks: &[Block]) -> Value {
    let mut written = Written::default();
    let start = written.node("START", json!({}));
    let set = written.node("VARIABLE", json!({"name": "x", "value": 1}));
    written.close(&[(start, None)], &set);
    let (_, ends) = written.blocks(blocks, vec![(set, None)]);
    let last = written.node("VARIABLE", json!({"name": "done", "value": true}));
    written.close(&ends, &last);
    let end = written.node("END", json!({}));
    written.close(&[(last, None)], &end);
    json!({"nodes": written.nodes, "edges": written.edges})
}

/// Runs a graph, whose calls end in any order.
fn driven(graph: &Arc<Graph>, rng: &mut Rng) -> (RunStatus, Value) {
    let mut state = State::new(Arc::clone(graph));
    let mut next = Some(Input::Start(Box::default()));
    while let Some(input) = next.take() {
        let event = state.accept(input).unwrap();
        state.apply(&event);
        while let Some(event) = state.step() {
            state.apply(&event);
        }
        let pending: Vec<_> = state.pending().keys().cloned().collect();
        if pending.is_empty() {
            break;
        }
        let effect = pending[rng.below(pending.len() as u64) as usize].clone();
        let Some(Request::Tool(request)) = state.request(&effect) else { panic!("no tool") };
        let number = |name: &str| request.args[name].as_i64().unwrap();
        let outcome = match tool(number("x"), number("k")) {
            Some(output) => Outcome::Output(Arc::new(json!(output))),
            None => Failure::permanent(FaultKind::ExecutionFailure, "broken").into(),
        };
        next = Some(Input::Complete(effect, outcome, 0, None, None));
    }
    (state.status(), state.view().output().clone())
}

#[test]
fn w06_random_workflows_come_to_what_a_naive_reading_comes_to() {
    let rounds: u64 =
        std::env::var("SELVEDGE_SIM_WORKFLOWS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let (mut completed, mut failed) = (0, 0);
    for seed in 0..rounds {
        let mut rng = Rng(seed);
        let blocks = rng.blocks(3);
        let (mut x, mut last) = (1, Value::Null);
        let expected = run(&blocks, &mut x, &mut last);
        let document = document(&blocks);
        let (graph, found) = compiled(&document);
        let graph = Arc::new(graph.unwrap_or_else(|| panic!("seed {seed}: {found:?}\n{document}")));
        let (status, output) = driven(&graph, &mut rng);
        match expected {
            Ok(()) => {
                completed += 1;
                assert_eq!(status, RunStatus::Completed, "seed {seed}: {blocks:?}\n{document}");
                assert_eq!(renamed(&output), renamed(&last), "seed {seed}: {blocks:?}\n{document}");
            }
            Err(()) => {
                failed += 1;
                assert_eq!(status, RunStatus::Failed, "seed {seed}: {blocks:?}\n{document}");
            }
        }
    }
    assert!(completed > rounds / 5 && failed > rounds / 20, "{completed} {failed}");
}
