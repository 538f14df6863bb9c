//! A world that answers what steps ask of it, and runs in it.

use selvedge_engine::{
    Event, Failure, FaultKind, Graph, Input, ModelReply, Outcome, Record, Recording, Recovered, Request,
    RunStatus, State, StepResult, ToolCall,
};
use serde_json::{Value, json};
use std::sync::Arc;

mod steps;
use steps::compiled;
pub(crate) use steps::{Step, graph, graph_of, planned, step};

/// What the world does about a call: a function of the call alone, whenever and however often it is made.
pub(crate) type World = fn(&Asked) -> Outcome;

/// A request, as a world sees it.
pub(crate) struct Asked {
    pub(crate) node: String,
    /// The tool, or the name of the schema.
    pub(crate) what: String,
    pub(crate) args: Value,
    /// Of a model: the text of the last message.
    pub(crate) said: String,
    /// Which attempt of its leaf, and which visit of the leaf.
    pub(crate) attempt: u32,
    pub(crate) visit: u32,
}

pub(crate) fn gives(value: Value) -> Outcome {
    Outcome::Output(Arc::new(value))
}
pub(crate) fn says(value: &Value) -> Outcome {
    Outcome::Reply(Arc::new(ModelReply { text: value.to_string(), ..ModelReply::default() }))
}
pub(crate) fn speaks(text: &str) -> Outcome {
    Outcome::Reply(Arc::new(ModelReply { text: text.into(), ..ModelReply::default() }))
}
/// A reply that calls a tool and says nothing.
pub(crate) fn calls(tool: &str) -> Outcome {
    let call = ToolCall { id: "c1".into(), name: tool.into(), arguments: json!({}) };
    Outcome::Reply(Arc::new(ModelReply { calls: vec![call], ..ModelReply::default() }))
}
pub(crate) fn fails(message: &str) -> Outcome {
    Outcome::from(Failure::permanent(FaultKind::ExecutionFailure, message))
}
pub(crate) fn times_out() -> Outcome {
    Outcome::from(Failure::transient(FaultKind::Timeout, "too slow"))
}

/// A run, with its journal.
pub(crate) struct Run {
    pub(crate) first: Arc<Graph>,
    pub(crate) state: State,
    pub(crate) events: Vec<Event>,
    pub(crate) world: World,
    /// Which of several pending effects is answered next.
    pub(crate) last_first: bool,
}

impl Run {
    /// Begins a run and goes on until it ends or waits for a person.
    pub(crate) fn of(graph: &Arc<Graph>, world: World) -> Self {
        Self::ordered(graph, world, false)
    }

    pub(crate) fn ordered(graph: &Arc<Graph>, world: World, last_first: bool) -> Self {
        let mut run = Self { last_first, ..Self::begun(graph, world) };
        run.go_on();
        run
    }

    /// Begins a run; nothing is answered yet.
    pub(crate) fn begun(graph: &Arc<Graph>, world: World) -> Self {
        let state = State::new(Arc::clone(graph));
        let mut run = Self { first: Arc::clone(graph), state, events: Vec::new(), world, last_first: false };
        run.give(Input::Start(Box::default()));
        run
    }

    pub(crate) fn give(&mut self, input: Input) {
        let mut next = self.state.accept(input);
        assert!(next.is_some(), "an input that changes something");
        while let Some(event) = next {
            self.state.apply(&event);
            self.events.push(event);
            assert!(self.events.len() < 5000, "it never ends: {:?}", &self.events[self.events.len() - 10..]);
            next = self.state.step();
        }
    }

    /// Answers everything until the run ends or waits.
    pub(crate) fn go_on(&mut self) {
        while self.answer_next() {}
    }

    /// Answers one effect, if one is asked for.
    pub(crate) fn answer_next(&mut self) -> bool {
        let Some(effect) = self.next_effect() else { return false };
        let asked = self.asked(&effect);
        let outcome = match asked.what.as_str() {
            "selvedge__compile" => gives(compiled(&asked.args)),
            _ => (self.world)(&asked),
        };
        self.give(Input::Complete(effect, outcome, 0, None, None));
        true
    }

    fn next_effect(&self) -> Option<selvedge_engine::EffectId> {
        let mut pending = self.state.pending().keys();
        if self.last_first { pending.next_back() } else { pending.next() }.cloned()
    }

    fn asked(&self, effect: &selvedge_engine::EffectId) -> Asked {
        let place = effect.place().unwrap();
        let (visit, attempt) = (place.leaf_visit, place.attempt);
        match self.state.request(effect).unwrap() {
            Request::Model(request) => Asked {
                node: request.node.to_string(),
                what: request.schema.as_ref().map(|schema| schema.name.to_string()).unwrap_or_default(),
                args: Value::Null,
                said: request.messages.last().map(|message| message.content.to_string()).unwrap_or_default(),
                attempt,
                visit,
            },
            Request::Tool(request) | Request::Operation(request) => Asked {
                node: request.node.to_string(),
                what: request.tool.name.to_string(),
                args: request.args,
                said: String::new(),
                attempt,
                visit,
            },
        }
    }

    pub(crate) fn resume(&mut self) {
        self.give(Input::Resume(Vec::new()));
        self.go_on();
    }

    pub(crate) fn status(&self) -> RunStatus {
        self.state.status()
    }

    pub(crate) fn row(&self, id: &str) -> Option<StepResult<'_>> {
        self.state.view().result(id)
    }

    /// Ids, whether they succeeded, and attempts.
    pub(crate) fn rows(&self) -> Vec<(String, bool, u32)> {
        let rows = self.state.view().results();
        rows.map(|row| (row.step_id.to_string(), row.is_success, row.attempts)).collect()
    }

    pub(crate) fn output(&self, id: &str) -> Value {
        self.row(id).unwrap_or_else(|| panic!("no result of {id}")).output.clone()
    }

    /// Effects that were sent.
    pub(crate) fn sent(&self, from: usize) -> Vec<String> {
        let sent = self.events.iter().skip(from).filter_map(|event| match event {
            Event::Requested { effect, .. } | Event::Retried { effect, .. } => Some(effect.to_string()),
            _ => None,
        });
        sent.collect()
    }

    /// Actions, who chose them, and tools.
    pub(crate) fn ladder(&self) -> Vec<(String, &'static str, String)> {
        let rows = self.events.iter().filter_map(|event| match event {
            Event::Recovered(recovered) => {
                let Recovered { node, action, by, tool, .. } = &**recovered;
                let by = serde_json::to_value(by).unwrap().as_str().unwrap().to_owned();
                let tool = tool.as_deref().unwrap_or_default();
                Some((node.to_string(), action.name(), format!("{by} {tool}").trim_end().to_owned()))
            }
            _ => None,
        });
        rows.collect()
    }

    /// Codes of warnings, with their nodes.
    pub(crate) fn warnings(&self) -> Vec<(String, String)> {
        let rows = self.state.warnings().iter();
        rows.map(|row| (row.code.to_string(), row.node.as_deref().unwrap_or_default().to_owned())).collect()
    }

    pub(crate) fn fault(&self) -> selvedge_engine::Fault {
        self.state.view().fault().cloned().expect("the run failed")
    }

    pub(crate) fn place(&self, find: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().position(find).expect("such an event")
    }

    /// The texts of the messages that were written for models.
    pub(crate) fn briefs(&self) -> Vec<String> {
        let rows = self.events.iter().filter_map(|event| match event {
            Event::Appended { body: selvedge_engine::Body::Text(_, text), .. } => Some(text.to_string()),
            _ => None,
        });
        rows.collect()
    }

    pub(crate) fn past(&self) -> Arc<Recording> {
        let mut state = State::recording(Arc::clone(&self.first));
        for event in &self.events {
            state.apply_record(&Record { at: 0, event: event.clone() });
        }
        Arc::new(state.past())
    }

    /// What can be seen of the end.
    pub(crate) fn seen(&self) -> String {
        seen(&self.state)
    }
}

pub(crate) fn seen(state: &State) -> String {
    format!("{:#?}", state.view())
}
