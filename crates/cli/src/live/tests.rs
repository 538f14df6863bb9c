//! Runs made by hand, and a small terminal that shows what was painted.

mod frames;
mod paths;
mod screens;
mod steps;
mod terminal;
mod texts;

use super::Now;
use super::frame::{Line, frame};
use super::text::width;
use super::view::View;
use selvedge_engine::{EffectId, Fault, FaultKind, Input, ModelReply, Outcome, Record, Start, State, Tokens};
use selvedge_host::timeline::Timeline;
use selvedge_runtime::Delta;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// When each of these runs begins.
const BEGUN: i64 = 1_000_000;

/// A run whose model answers when a test says so.
pub(super) struct Made {
    pub(super) state: State,
    pub(super) view: View,
    pub(super) now: i64,
    /// How far the clock of journals was set back.
    pub(super) set_back: i64,
    /// Its journal.
    pub(super) records: Vec<Record>,
}

impl Made {
    /// A run of these nodes: (id, name, thread).
    pub(super) fn new(nodes: &[(&str, &str, &str)]) -> Self {
        Self::with(nodes, |_| json!("Go"))
    }

    /// The same; `prompt` says what a node is told.
    pub(super) fn with(nodes: &[(&str, &str, &str)], prompt: impl Fn(&str) -> Value) -> Self {
        let mut threads: Vec<&str> = Vec::new();
        let nodes: Vec<Value> = nodes
            .iter()
            .map(|(id, name, thread)| {
                let known = threads.iter().position(|known| known == thread);
                let at = known.unwrap_or_else(|| {
                    threads.push(thread);
                    threads.len() - 1
                });
                json!({"id": id, "name": name, "body": {"thread": at, "leaves": [
                    {"name": "say", "act": {"say": prompt(id)}, "next": [{"when": "always", "to": 1}]},
                    {"name": "model", "act": {"infer": {}}}]}})
            })
            .collect();
        let threads: Vec<Value> = threads.iter().map(|name| json!({"name": name, "first": "task"})).collect();
        Self::of(json!({"threads": threads, "nodes": nodes, "tools": {}}))
    }

    /// A run of this graph.
    pub(super) fn of(graph: Value) -> Self {
        let mut state = State::new(Arc::new(serde_json::from_value(graph).unwrap()));
        let timeline = Timeline::so_far(&state, BEGUN);
        let view = View::new("made", &state, timeline, Some("week"), Now { running: BEGUN, journal: BEGUN });
        state.tick(BEGUN);
        let mut made = Self { state, view, now: BEGUN, set_back: 0, records: Vec::new() };
        made.input(Input::Start(Box::<Start>::default()));
        made
    }

    pub(super) fn input(&mut self, input: Input) {
        let mut records = Vec::new();
        let mut next = self.state.accept(input);
        let at = self.state.tick(self.now - self.set_back);
        while let Some(event) = next {
            self.state.apply(&event);
            records.push(Record { at, event });
            next = self.state.step();
        }
        let now = Now { running: self.now, journal: self.now - self.set_back };
        let news = self.view.timeline.events(&self.state, &records);
        self.view.events(&self.state, &records, &news, now);
        self.records.extend(records);
    }

    /// The effect in flight of a node.
    pub(super) fn effect(&self, node: &str) -> EffectId {
        let mut pending = self.state.pending().keys();
        let of_node = |effect: &&EffectId| effect.place().is_some_and(|effect| effect.place.node == node);
        pending.find(of_node).unwrap_or_else(|| panic!("{node}")).clone()
    }

    pub(super) fn began(&mut self, nodes: &[&str]) {
        for node in nodes {
            self.view.began(&self.effect(node), self.now);
        }
    }

    pub(super) fn later(&mut self, ms: i64) -> &mut Self {
        self.now += ms;
        self.view.tick(self.now);
        self
    }

    pub(super) fn says(&mut self, node: &str, text: &str) {
        self.view.delta(&self.effect(node), Delta::Text(text.to_owned()), self.now);
    }

    pub(super) fn replies(&mut self, node: &str) {
        let tokens = Tokens { input: 1200, output: 34, cost: 0.0025, ..Tokens::default() };
        let reply = ModelReply { text: "reply".into(), tokens, ..ModelReply::default() };
        self.input(Input::Complete(self.effect(node), Outcome::Reply(Arc::new(reply)), 0, None, None));
    }

    pub(super) fn returns(&mut self, node: &str) {
        self.input(Input::Complete(
            self.effect(node),
            Outcome::Output(Arc::new(json!("done"))),
            0,
            None,
            None,
        ));
    }

    pub(super) fn fails(&mut self, node: &str, transient: bool, message: &str) {
        let fault = Fault::new(FaultKind::ProviderError, message);
        let failure = selvedge_engine::Failure {
            transient,
            retry_after_ms: Some(3_000),
            ..selvedge_engine::Failure::of(fault)
        };
        self.input(Input::Complete(self.effect(node), failure.into(), 0, None, None));
    }

    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<Line> {
        frame(&self.view, self.now, width, height, &|text| Cow::Borrowed(text))
    }

    /// The picture as text, checked against what holds of every picture.
    #[track_caller]
    pub(super) fn shown(&self, columns: usize, height: usize) -> String {
        let lines = self.lines(columns, height);
        self.view.counts_as_recounted(self.now);
        assert!(lines.len() < height.max(1), "{} lines in {height} rows", lines.len());
        let mut text = String::new();
        for line in lines {
            let plain: String = line.0.iter().map(|(_, piece)| piece.as_str()).collect();
            assert!(width(&plain) < columns, "{} columns in {columns}: {plain:?}", width(&plain));
            assert!(!plain.chars().any(selvedge_dialects::diagnostic::is_hidden), "{plain:?}");
            text.push_str(plain.trim_end());
            text.push('\n');
        }
        text
    }
}

/// As many nodes on as many threads, named by number.
pub(super) fn many(nodes: usize, threads: usize) -> Vec<(String, String, String)> {
    (0..nodes).map(|n| (format!("n{n}"), format!("Node {n}"), format!("thread{:02}", n % threads))).collect()
}

pub(super) fn named(nodes: &[(String, String, String)]) -> Vec<(&str, &str, &str)> {
    nodes.iter().map(|(id, name, thread)| (id.as_str(), name.as_str(), thread.as_str())).collect()
}
