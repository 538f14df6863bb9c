//! Whose messages the model requests of node instances showed, across paths, iterations and subgraphs: the engine knows who said what.

use super::story::{At, Story};
use crate::timeline::{CallKind, Timeline};
use selvedge_engine::{EffectId, Event, Ix, MessageIx, Record, State, Thread};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The threads that models were shown, by their requests: until the events that were taken in, and until any of them.
#[derive(Default)]
pub struct Shown {
    /// Each from the event on with which it was asked for, or taken from a recording.
    threads: HashMap<EffectId, Vec<(u64, Thread)>>,
    /// The events with which nothing that was shown before counts any more.
    anew: Vec<u64>,
}

impl Shown {
    /// Takes the next record in; `state` is that after it.
    pub fn take(&mut self, state: &State, record: &Record) {
        match &record.event {
            // A fork that begins another document knows nothing of what was said before.
            Event::Forked(fork) if fork.graph.is_some() => self.anew.push(state.events()),
            Event::Requested { effect, .. } if state.pending().get(effect).is_some_and(|call| call.model) => {
                self.keep(state, effect);
            }
            Event::Reused { effect, .. } => self.keep(state, effect),
            _ => {}
        }
    }

    fn keep(&mut self, state: &State, effect: &EffectId) {
        if let Some(thread) = state.thread_behind(effect) {
            self.threads.entry(effect.clone()).or_default().push((state.events(), thread.clone()));
        }
    }

    /// What a request showed, as of an event.
    fn of(&self, effect: &EffectId, at: u64) -> Option<&Thread> {
        let kept = self.threads.get(effect)?;
        let (since, thread) = kept.iter().rev().find(|(since, _)| *since <= at)?;
        let forgotten = self.anew.iter().any(|anew| (*since..=at).contains(anew));
        (!forgotten).then_some(thread)
    }
}

/// The call of a model that is this effect, with how many messages it was shown and who, other than the node itself, said them, each once.
pub struct Saw<'s> {
    /// The request.
    pub effect: &'s EffectId,
    /// How many messages it was shown.
    pub messages: usize,
    /// Who said them.
    pub from: Vec<String>,
    /// Which they are: the first and the last of each row of numbers in the run (S-23).
    pub shown: Vec<(usize, usize)>,
}

/// Names of nodes that are said of a message.
const READERS: usize = 8;

/// The nodes whose models were shown a message.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Readers {
    /// The first of them.
    pub nodes: Vec<String>,
    /// How many there are.
    pub of: usize,
}

/// Whether a thread is the beginning of another one: messages are only added behind others, so the first and the last say so.
fn is_beginning(short: &Thread, long: &Thread) -> bool {
    let last = short.len().checked_sub(1);
    last.is_none_or(|last| short.at(0) == long.at(0) && short.at(last) == long.at(last))
}

/// Numbers as rows of neighbours, first and last.
fn rows(thread: &Thread) -> Vec<(usize, usize)> {
    let mut numbers: Vec<usize> = thread.iter().map(Ix::get).collect();
    numbers.sort_unstable();
    let mut rows: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match rows.last_mut() {
            Some((_, last)) if *last + 1 >= number => *last = number,
            _ => rows.push((number, number)),
        }
    }
    rows
}

/// Looks at threads; those that grow are walked once.
pub struct Seen<'s> {
    story: &'s Story<'s>,
    shown: &'s Shown,
    state: &'s State,
    walked: HashMap<(usize, Option<MessageIx>), Walked<'s>>,
}

#[derive(Default)]
struct Walked<'s> {
    last: Option<(usize, MessageIx)>,
    speakers: Vec<&'s Arc<str>>,
    known: HashSet<&'s Arc<str>>,
}

impl<'s> Seen<'s> {
    /// Of a story, its run as it is at the end of it, and what models were shown until then.
    pub fn new(story: &'s Story<'s>, state: &'s State, shown: &'s Shown) -> Self {
        Self { story, shown, state, walked: HashMap::new() }
    }

    /// What each call of a model by the node's last visit was shown.
    pub fn calls(&mut self, at: At) -> Vec<Saw<'s>> {
        let (story, shown, events) = (self.story, self.shown, self.state.events());
        let calls = story.visit(at).into_iter().flat_map(|visit| &visit.calls);
        let models = calls.filter(|call| call.kind == CallKind::Model);
        let saw = models.filter_map(|call| {
            let effect = &call.attempts.first()?.effect;
            let thread = shown.of(effect, events)?;
            Some(Saw { effect, messages: thread.len(), from: self.from(at, thread), shown: rows(thread) })
        });
        saw.collect()
    }

    /// Which nodes' models were shown the messages `from` to `to` of a thread (S-23): for each message the nodes other than `speakers`, who said
    /// them. Looks at the last visit of every node, and at the messages of a request only where its thread is no beginning of this one.
    pub fn readers(
        &self,
        thread: &Thread,
        (from, to): (usize, usize),
        speakers: &[Option<&Arc<str>>],
    ) -> Vec<Readers> {
        let page = to.saturating_sub(from).min(speakers.len());
        let mut readers = vec![Readers::default(); page];
        let numbers = (from..to).filter_map(|at| Some((thread.at(at)?, at - from)));
        let places: HashMap<MessageIx, usize> = numbers.collect();
        let events = self.state.events();
        for at in self.story.all() {
            let Some((node, visit)) = self.story.node(at).zip(self.story.visit(at)) else { continue };
            let models = visit.calls.iter().filter(|call| call.kind == CallKind::Model);
            let threads = models.filter_map(|call| self.shown.of(&call.attempts.first()?.effect, events));
            let mut was_shown = vec![false; page];
            for shown in threads {
                if is_beginning(shown, thread) {
                    was_shown.iter_mut().take(shown.len().saturating_sub(from)).for_each(|was| *was = true);
                    continue;
                }
                for place in shown.iter().filter_map(|number| places.get(&number)) {
                    was_shown.get_mut(*place).into_iter().for_each(|was| *was = true);
                }
            }
            let own = self.story.timeline.event_name(node);
            let rows = readers.iter_mut().zip(was_shown).zip(speakers);
            for ((row, _), _) in
                rows.filter(|((_, was), speaker)| *was && speaker.is_none_or(|speaker| **speaker != *own))
            {
                row.of += 1;
                if row.nodes.len() < READERS {
                    row.nodes.push(self.story.name(at).to_owned());
                }
            }
        }
        readers
    }

    /// The nodes, others than itself, whose messages they showed in all; `None` if it has asked no model.
    pub fn messages_from(&mut self, at: At) -> Option<Vec<String>> {
        let (story, shown, events) = (self.story, self.shown, self.state.events());
        let mut calls = story.visit(at)?.calls.iter().filter(|call| call.kind == CallKind::Model).peekable();
        calls.peek()?;
        let mut all: Vec<String> = Vec::new();
        // Mostly the last one was shown what the others were, and more.
        let last = calls.last().and_then(|call| shown.of(&call.attempts.first()?.effect, events));
        all.extend(last.map(|thread| self.from(at, thread)).unwrap_or_default());
        Some(all)
    }

    fn from(&mut self, at: At, thread: &Thread) -> Vec<String> {
        let Some(own) = self.story.node(at).map(|node| self.story.timeline.event_name(node)) else {
            return Vec::new();
        };
        let frame = self.story.node(at).map_or(0, |node| node.within);
        let walked = self.walked.entry((frame, thread.at(0))).or_default();
        let grown = walked.last.filter(|(at, last)| thread.at(*at) == Some(*last));
        if grown.is_none() {
            *walked = Walked::default();
        }
        for speaker in self.state.speakers(thread, grown.map_or(0, |(at, _)| at + 1)).flatten() {
            if walked.known.insert(speaker) {
                walked.speakers.push(speaker);
            }
        }
        walked.last = thread.len().checked_sub(1).zip(thread.last());
        let others = walked.speakers.iter().filter(|speaker| ****speaker != *own);
        let timeline = &self.story.timeline;
        others.map(|speaker| told(timeline, speaker)).collect()
    }
}

/// What people are told that a node is which events call so.
fn told(timeline: &Timeline, name: &str) -> String {
    let node = timeline.named(name).and_then(|row| timeline.nodes().get(row));
    node.map_or_else(|| name.to_owned(), |node| timeline.told(node).into_owned())
}
