//! A run that is driven by hand, and graphs to run.

use selvedge_engine::ThreadView;
pub(crate) use selvedge_engine::{
    Event, Failure, Fault, FaultKind, Graph, Input, ModelReply, Outcome, Request, RunStatus, Start, State,
};
pub(crate) use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
pub(crate) use std::sync::Arc;

/// A flow of these nodes, and the graphs that they open.
pub(crate) fn graph(nodes: Value, graphs: Value) -> Arc<Graph> {
    let graph = json!({
        "threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "graphs": graphs,
        "tools": {"note": {"name": "note", "description": "", "input_schema": {}, "effects": "pure", "version": "1", "source": "test"},
                  "write": {"name": "write", "description": "", "input_schema": {}, "effects": "write", "version": "1", "source": "test"}}
    });
    Arc::new(serde_json::from_value(graph).unwrap())
}

/// An inner flow.
pub(crate) fn flow(nodes: Value) -> Value {
    json!({"threads": [{"name": "main"}], "control": "flow", "nodes": nodes, "tools": {}})
}

/// A node that says something on `main` and takes the model's answer; then goes on to these.
pub(crate) fn ask(id: &str, text: &str, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"thread": 0, "leaves": [
        {"name": "say", "act": {"say": text}, "next": [{"when": "always", "to": 1}]},
        {"name": "model", "act": {"infer": {}}}]}})
}

/// A node with one leaf and no thread.
pub(crate) fn node(id: &str, act: Value, ways: Value) -> Value {
    json!({"id": id, "name": id, "ways": ways, "body": {"leaves": [{"name": "do", "act": act}]}})
}

pub(crate) fn to(node: u32) -> Value {
    json!([{"when": "done", "to": node}])
}

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) journal: Vec<Event>,
}

impl World {
    fn new(graph: &Arc<Graph>) -> Self {
        Self { state: State::new(Arc::clone(graph)), journal: Vec::new() }
    }
    /// A run without a first data layer.
    pub(crate) fn begin(graph: &Arc<Graph>) -> Self {
        Self::begin_with(graph, Value::Object(Map::new()), 0)
    }
    /// A run with that first data layer, which begins at that time.
    pub(crate) fn begin_with(graph: &Arc<Graph>, initial: Value, now: i64) -> Self {
        let mut world = Self::new(graph);
        world.state.tick(now);
        let Value::Object(initial) = initial else { panic!("the first data layer is an object") };
        world.input(Input::Start(Box::new(Start { initial, ..Start::default() })));
        world
    }
    /// What an earlier process had recorded, up to some event.
    pub(crate) fn again(graph: &Arc<Graph>, journal: &[Event]) -> Self {
        Self::again_at(graph, journal, 0)
    }
    /// The same of a run that began at that time.
    pub(crate) fn again_at(graph: &Arc<Graph>, journal: &[Event], now: i64) -> Self {
        let mut world = Self::read(graph, journal, now);
        world.settle();
        world
    }
    /// The same, before anything follows from it.
    pub(crate) fn read(graph: &Arc<Graph>, journal: &[Event], now: i64) -> Self {
        let mut world = Self::new(graph);
        world.state.tick(now);
        journal.iter().for_each(|event| world.keep(event.clone()));
        world
    }
    pub(crate) fn input(&mut self, input: Input) {
        self.inputs([input]);
    }
    /// Inputs that come together: what follows from them is derived after the last.
    pub(crate) fn inputs(&mut self, inputs: impl IntoIterator<Item = Input>) {
        for input in inputs {
            if let Some(event) = self.state.accept(input) {
                self.keep(event);
            }
        }
        self.settle();
    }
    fn keep(&mut self, event: Event) {
        self.state.apply(&event);
        self.journal.push(event);
    }
    fn settle(&mut self) {
        while let Some(event) = self.state.step() {
            self.keep(event);
            assert!(self.journal.len() < 100_000, "it goes on for ever");
        }
    }
    /// A failed run goes on; how many events that takes until its first request is asked for.
    pub(crate) fn resume(&mut self) -> usize {
        let before = self.journal.len();
        self.input(Input::Resume(Vec::new()));
        self.journal.len() - before
    }
    pub(crate) fn complete(&mut self, effect: &str, outcome: Outcome) {
        let input = self.completion(effect, outcome);
        self.input(input);
    }
    /// The input that says what came of an effect that is under way.
    pub(crate) fn completion(&self, effect: &str, outcome: Outcome) -> Input {
        let effect = selvedge_engine::EffectId(effect.into());
        assert!(self.state.pending().contains_key(&effect), "{effect} of {:?}", self.pending());
        Input::Complete(effect, outcome, 0, None, None)
    }
    pub(crate) fn pending(&self) -> Vec<String> {
        self.state.pending().keys().map(|effect| effect.to_string()).collect()
    }
    /// Answers everything that is asked, the last or the first first, until nothing is.
    pub(crate) fn run(&mut self, last: bool, answer: impl Fn(&Request) -> Outcome) {
        loop {
            let mut pending = self.state.pending().keys();
            let Some(effect) = (if last { pending.next_back() } else { pending.next() }).cloned() else {
                return;
            };
            let outcome = answer(&self.state.request(&effect).unwrap());
            self.input(Input::Complete(effect, outcome, 0, None, None));
        }
    }
    pub(crate) fn texts(&self) -> Vec<String> {
        let main = self.state.view().thread("main");
        main.map(|main| main.iter().map(|m| m.content.to_string()).collect()).unwrap_or_default()
    }
}

pub(crate) fn reply(text: &str) -> Outcome {
    Outcome::Reply(Arc::new(ModelReply { text: text.into(), ..ModelReply::default() }))
}

pub(crate) fn fails(message: &str) -> Outcome {
    Failure::permanent(FaultKind::ProviderError, message).into()
}

/// Two paths that argue, between a node before and one after.
pub(crate) fn fork(strategy: Value, main: Value, serial: bool) -> Arc<Graph> {
    let paths = json!({"of": {"listed": [["pro", 0], ["con", 1]]}, "serial": serial,
                       "join": {"strategy": strategy, "main": main}});
    let nodes = json!([
        ask("before", "topic", to(1)),
        node("debate", json!({"fork": paths}), to(2)),
        ask("after", "so: {{debate.pro}} {{before}}", json!([])),
    ]);
    graph(
        nodes,
        json!([
            flow(json!([ask("argue", "for {{before}}", json!([]))])),
            flow(json!([ask("argue", "against", json!([]))]))
        ]),
    )
}

/// The last message of a request, answered.
pub(crate) fn echo(request: &Request) -> Outcome {
    match request {
        Request::Model(request) => reply(&format!("re: {}", request.messages.last().unwrap().content)),
        Request::Tool(request) | Request::Operation(request) => {
            Outcome::Output(Arc::new(json!({"got": request.args})))
        }
    }
}

/// The journal folded is the state, and its inputs give all of it again (E-03, E-18).
pub(crate) fn replays(world: &World, graph: &Arc<Graph>) {
    replays_from(world, graph, 0);
}

/// The same of a run that began at that time. Who follows it and looks only at threads that an event can have changed has all of them.
pub(crate) fn replays_from(world: &World, graph: &Arc<Graph>, now: i64) {
    let mut state = State::new(Arc::clone(graph));
    state.tick(now);
    let mut threads = BTreeMap::new();
    for (at, event) in world.journal.iter().enumerate() {
        let text = serde_json::to_string(event).unwrap();
        let event: Event = serde_json::from_str(&text).unwrap();
        let derived = match Input::from_event(event.clone()) {
            Some(input) => state.accept(input).unwrap(),
            None => state.step().unwrap_or_else(|| panic!("nothing at {at} in place of {text}")),
        };
        assert_eq!(serde_json::to_string(&derived).unwrap(), text, "at {at}");
        let status = state.status();
        state.apply(&event);
        let (view, lengths) = (state.view(), |(name, thread): (Cow<'_, str>, ThreadView<'_>)| {
            (name.into_owned(), thread.len())
        });
        let all: BTreeMap<String, usize> = view.threads().map(lengths).collect();
        // These graphs may have a name several times, which no document has.
        let unique = view.threads().count() == all.len();
        match view.touched(&event, status).filter(|_| unique) {
            Some(touched) => threads.extend(touched.map(lengths)),
            None => threads.clone_from(&all),
        }
        assert_eq!(threads, all, "at {at}: {text} changes threads that it can't touch (S-31)");
    }
    assert_eq!(state.step(), None);
    assert_eq!(state.status(), world.state.status());
}

/// From any event on, the same inputs lead to the same journal: nothing but the fold is remembered (E-05). Of a run whose inputs
/// came one by one.
pub(crate) fn goes_on(world: &World, graph: &Arc<Graph>, now: i64) {
    replays_from(world, graph, now);
    for cut in 1..world.journal.len() {
        let mut again = World::again_at(graph, &world.journal[..cut], now);
        while again.journal.len() < world.journal.len() {
            let next = world.journal[again.journal.len()].clone();
            let before = again.journal.len();
            again.input(Input::from_event(next).unwrap());
            assert!(again.journal.len() > before, "cut at {cut}");
        }
        assert_eq!(again.journal, world.journal, "cut at {cut}");
        assert_eq!(again.state.view().output(), world.state.view().output());
    }
}
