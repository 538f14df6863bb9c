//! Whose messages a node's model requests showed (P-20).

use super::story::Story;
use selvedge_engine::schedule::Schedule;
use selvedge_engine::{Graph, Ix, NodeIx, ThreadIx};
use selvedge_host::timeline::Visit;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl Story {
    /// Walks the threads, node by node in list order.
    pub(super) fn seen<'s>(&'s self, graph: &Graph, schedule: &'s Schedule) -> Seen<'s> {
        let threads = graph.threads.values().map(|thread| {
            let base = usize::from(thread.first.is_some());
            Talk { base, said: vec![None; base], ..Talk::default() }
        });
        let own = graph.nodes.values().map(|node| node.body.thread).collect();
        let by_name = &schedule.thread_by_name;
        Seen { story: self, schedule, own, by_name, threads: threads.collect() }
    }
}

/// Who said what on each thread, as far as the walk has come.
pub(super) struct Seen<'s> {
    story: &'s Story,
    schedule: &'s Schedule,
    own: Vec<Option<ThreadIx>>,
    by_name: &'s HashMap<Arc<str>, ThreadIx>,
    /// By the position of the thread.
    threads: Vec<Talk>,
}

/// A thread: it only grows, in list order.
#[derive(Default)]
struct Talk {
    /// Messages that it holds before any node writes to it.
    base: usize,
    /// For each message, the node that said it; `None` is the document.
    said: Vec<Option<NodeIx>>,
    /// The number of messages after each writer.
    after: Vec<usize>,
    /// Everybody who said something, in order.
    speakers: Vec<NodeIx>,
    known: HashSet<NodeIx>,
}

impl Talk {
    fn say(&mut self, node: Option<NodeIx>) {
        self.said.push(node);
        if let Some(node) = node.filter(|node| self.known.insert(*node)) {
            self.speakers.push(node);
        }
    }
}

impl Seen<'_> {
    /// The nodes whose messages stood on the thread of `node` when it started, in order, if it showed them to a
    /// model. To be asked of all nodes, in list order.
    pub(super) fn next(&mut self, node: NodeIx) -> Vec<NodeIx> {
        let visit = self.story.of_root(node).and_then(|at| self.story.visit(at));
        let opened = visit.and_then(|visit| visit.thread.opened.as_ref());
        let taken = opened.and_then(|opened| {
            let from = *self.by_name.get(&opened.from)?;
            Some(self.slice(node, from, opened.start as usize, opened.end as usize))
        });
        let own = self.own.get(node.get()).copied().flatten();
        let mut seen = Vec::new();
        if let Some(talk) = own.and_then(|thread| self.threads.get_mut(thread.get())) {
            taken.into_iter().flatten().for_each(|speaker| talk.say(speaker));
            if visit.is_some_and(Visit::asked_model) {
                seen = talk.speakers.clone();
            }
            (0..visit.map_or(0, |visit| visit.thread.appended)).for_each(|_| talk.say(Some(node)));
        }
        let to = visit.and_then(|visit| self.by_name.get(visit.thread.published.as_ref()?)).copied();
        if let Some(talk) = to.filter(|to| own != Some(*to)).and_then(|to| self.threads.get_mut(to.get())) {
            talk.say(Some(node));
        }
        for (order, _) in self.schedule.member.get(node).into_iter().flatten() {
            // The first orders are those of the threads.
            if let Some(talk) = self.threads.get_mut(order.get()) {
                talk.after.push(talk.said.len());
            }
        }
        seen
    }

    /// What a node took of another thread, of which it observes the first writers only.
    fn slice(&self, node: NodeIx, from: ThreadIx, start: usize, end: usize) -> Vec<Option<NodeIx>> {
        let Some(talk) = self.threads.get(from.get()) else { return Vec::new() };
        let writers = self.schedule.open_at.get(node).copied().unwrap_or_default();
        let length = match (writers as usize).checked_sub(1) {
            None => talk.base,
            Some(last) => talk.after.get(last).copied().unwrap_or(talk.said.len()),
        };
        talk.said.get(start..end.min(length)).unwrap_or_default().to_vec()
    }
}
