//! What a run recorded, for forks of it (E-19, E-29).

use super::cache::{Key, RecordedOutcome, Spot};
use super::frames::Inner;
use crate::effect::{EffectId, ModelReply, Outcome};
use crate::graph::{Act, Graph, Node, Tail, hex};
use crate::ids::{NodeIx, NodeRef, Table, TailIx};
use crate::machine::state::State;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The outcomes that a run has recorded up to some event, each with what was asked for it and by which node:
/// what a fork may reuse. It is folded from the run's journal and stored nowhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    pub(crate) graph: Arc<Graph>,
    pub(crate) kept: Vec<(Arc<str>, RecordedOutcome)>,
    pub(crate) unknown: BTreeSet<(Arc<str>, Key)>,
    /// What nodes of flows and of inner frames recorded.
    pub(crate) inner: Inner,
    /// How often each node was started, so that no effect id comes twice.
    pub(crate) visits: BTreeMap<Arc<str>, u32>,
    /// Effects whose outcome was reused, and under which id.
    pub(crate) renamed: BTreeMap<EffectId, EffectId>,
    /// Whether any write may have been made that is not recorded (E-44).
    pub(crate) doubtful: bool,
}

impl Recording {
    /// The id under which an effect's outcome was reused last.
    fn current<'p>(&'p self, mut effect: &'p EffectId) -> &'p EffectId {
        for _ in 0..self.renamed.len() {
            match self.renamed.get(effect) {
                Some(later) => effect = later,
                None => break,
            }
        }
        effect
    }

    /// The outcomes with edited texts in their places, as the fork sees them. What the source asked of the same
    /// node again, in later visits, is what the edit takes the place of.
    pub(crate) fn edited(&self, texts: &BTreeMap<EffectId, Arc<str>>) -> Vec<(Arc<str>, RecordedOutcome)> {
        self.edited_of(&self.kept, texts)
    }

    /// The same of these.
    pub(crate) fn edited_of<Of: PartialEq + Clone>(
        &self,
        kept: &[(Of, RecordedOutcome)],
        texts: &BTreeMap<EffectId, Arc<str>>,
    ) -> Vec<(Of, RecordedOutcome)> {
        let texts: BTreeMap<&EffectId, &Arc<str>> =
            texts.iter().map(|(effect, text)| (self.current(effect), text)).collect();
        let edits: Vec<&(Of, RecordedOutcome)> =
            kept.iter().filter(|(_, kept)| texts.contains_key(&kept.effect)).collect();
        let later = |node: &Of, kept: &RecordedOutcome| {
            // Turns of later visits come first.
            edits.iter().any(|(of, edit)| of == node && edit.key == kept.key && kept.turn.0 < edit.turn.0)
        };
        let rest = kept.iter().filter(|(node, kept)| !later(node, kept)).cloned();
        rest.map(|(node, mut kept)| {
            // What stands beside a failure of the source is judged like anything else in a fork.
            kept.beside = false;
            if let Some(text) = texts.get(&kept.effect) {
                kept.outcome = with_text(&kept.outcome, text);
            }
            (node, kept)
        })
        .collect()
    }
}

/// An outcome that says something else: a reply keeps its calls, a tool's output becomes the text.
fn with_text(outcome: &Outcome, text: &Arc<str>) -> Outcome {
    match outcome {
        Outcome::Reply(reply) => Outcome::Reply(Arc::new(ModelReply {
            text: text.to_string(),
            cut: None,
            ..ModelReply::clone(reply)
        })),
        Outcome::Output(_) | Outcome::Operated(_) | Outcome::Failed(_) => {
            Outcome::Output(Arc::new(Value::from(&**text)))
        }
    }
}

impl State {
    /// A state that also remembers what its run recorded, for [`State::past`]. Everything else is as in
    /// [`State::new`].
    pub fn recording(graph: Arc<Graph>) -> State {
        State { recorder: Some(Box::default()), ..State::new(graph) }
    }

    /// What the run has recorded so far. Only a state that began with [`State::recording`] knows of nodes that
    /// have retired.
    pub fn past(mut self) -> Recording {
        self.keep_all_unknown();
        let mut past = self.recorder.take().map(|past| *past).unwrap_or_default();
        past.graph = Arc::clone(self.graph());
        // Of all others it was kept as it came.
        let stays = self.frames.root().flow.is_none();
        for node in self.frames.root().nodes_from(NodeIx(0)).map(NodeRef::root).filter(|_| stays) {
            self.note_unknown(node);
            let id = self.def(node).id.clone();
            past.kept.extend(self.collect(node).into_iter().map(|kept| (id.clone(), kept)));
            let visits = past.visits.entry(id).or_insert(0);
            *visits = self.frames[node].visit.max(*visits);
        }
        past.doubtful |= self.reuse.is_doubtful();
        self.reuse.age(|_| false);
        let (unmatched, unmatched_unknown) = self.reuse.take_unmatched();
        let (entries, unknown) = std::mem::take(&mut self.reuse).into_parts();
        let id = |node: Spot| self.frames.root().graph.nodes[node.node].id.clone();
        let here = |node: Spot| stays && node.frame == 0;
        let entries = entries.filter(|entry| here(entry.node));
        past.kept.extend(entries.map(|entry| (id(entry.node), entry.kept)));
        let unknown = unknown.into_iter().filter(|(node, _)| here(*node));
        past.unknown.extend(unknown.map(|(node, write)| (id(node), write)));
        past.kept.extend(unmatched);
        past.unknown.extend(unmatched_unknown);
        let prior_visits =
            self.frames.root_mut().dataflow.as_mut().map(|dataflow| &mut dataflow.prior_visits);
        for (id, (visit, ..)) in prior_visits.map(std::mem::take).unwrap_or_default() {
            let visits = past.visits.entry(id).or_insert(0);
            *visits = visit.max(*visits);
        }
        past
    }

    /// Fills the pool with what the source recorded, for the nodes from `first` on. A recording state keeps the
    /// rest for its own forks.
    pub(crate) fn inherit(
        &mut self,
        past: &Recording,
        texts: &BTreeMap<EffectId, Arc<str>>,
        places: &BTreeMap<Arc<str>, NodeIx>,
        first: NodeIx,
    ) {
        let mut rest = Recording { renamed: past.renamed.clone(), ..Recording::default() };
        self.reuse.doubt(past.doubtful);
        // Nodes that came and went with splices are found by their ids, unless others stand for those (D-20).
        let taken: BTreeSet<NodeIx> = places.values().copied().collect();
        let place = |id: &Arc<str>| {
            let same = || self.frames.root().by_id(id).filter(|node| !taken.contains(node));
            places.get(id).copied().or_else(same)
        };
        let spots: BTreeMap<Arc<str>, NodeIx> = past
            .kept
            .iter()
            .map(|(id, _)| id)
            .chain(past.unknown.iter().map(|(id, _)| id))
            .filter_map(|id| Some((id.clone(), place(id)?)))
            .collect();
        for (id, kept) in past.edited(texts) {
            match spots.get(&id) {
                Some(&node) if node >= first && (kept.is_success() || kept.unknown().is_some()) => {
                    self.reuse.add(Spot { frame: 0, node }, kept, true);
                }
                place => {
                    if place.is_none()
                        && let Some(write) = kept.write.filter(|_| kept.is_success())
                    {
                        self.reuse.add_elsewhere(write);
                    }
                    if place.is_none() {
                        self.reuse.add_unmatched(id, kept);
                    } else {
                        rest.kept.push((id, kept));
                    }
                }
            }
        }
        for (id, write) in &past.unknown {
            match spots.get(id) {
                Some(&node) if node >= first => self.reuse.add_unknown(Spot { frame: 0, node }, *write),
                place => {
                    if place.is_none() {
                        self.reuse.add_elsewhere(*write);
                        self.reuse.add_unmatched_unknown(id.clone(), *write);
                    } else {
                        rest.unknown.insert((id.clone(), *write));
                    }
                }
            }
        }
        rest.visits.clone_from(&past.visits);
        let frame = self.frames.root_mut();
        for node in frame.nodes_from(NodeIx(0)) {
            let seen = past.visits.get(&frame.graph.nodes[node].id).copied().unwrap_or(0);
            let Some(row) = frame.nodes.get_mut(node) else { break };
            row.visit = row.visit.max(seen);
            row.tries = 0;
        }
        for (id, seen) in &past.visits {
            let Some(dataflow) = &mut frame.dataflow else { break };
            let prior_visits = dataflow.prior_visits.entry(id.clone()).or_default();
            *prior_visits = (prior_visits.0.max(*seen), 0, 0);
        }
        if self.recorder.is_some() {
            self.recorder = Some(Box::new(rest));
        }
    }
}

/// Which node of a new document stands for which one of the old: the same id and definition; the same definition,
/// the i-th for the i-th (ids that count positions move when a node is put in); the same id; the same name and
/// thread. All of it is read off the two documents, so that no turn depends on who is faster (E-07).
pub(crate) fn places(old: &Graph, new: &Graph) -> BTreeMap<Arc<str>, NodeIx> {
    let (old, new) = (told(old), told(new));
    let ids: BTreeSet<&Arc<str>> = new.iter().map(|node| &node.id).collect();
    let mut matched = Matched::default();
    matched.pair(&old, &new, |node| (Some(node.id.to_string()), node.definition.clone()));
    // Nodes whose id is gone come first: the others may still be found by their ids.
    let gone: Vec<Told> = old.iter().filter(|node| !ids.contains(&node.id)).cloned().collect();
    matched.pair(&gone, &new, |node| (None, node.definition.clone()));
    matched.pair(&old, &new, |node| (None, node.definition.clone()));
    matched.pair(&old, &new, |node| (None, node.id.to_string()));
    matched.pair(&old, &new, |node| (node.thread.clone(), node.name.to_string()));
    matched.places
}

/// What nodes are told apart by.
#[derive(Clone)]
struct Told {
    id: Arc<str>,
    name: Arc<str>,
    thread: Option<String>,
    definition: String,
}

fn told(graph: &Graph) -> Vec<Told> {
    let thread = |node: &Node| Some(graph.threads.get(node.body.thread?)?.name.to_string());
    let digest = |tail: &Arc<Tail>| hex(&Sha256::digest(serde_json::json!(tail).to_string()));
    let tails: Table<TailIx, String> = graph.tails.values().map(digest).collect();
    let row = |node: &Node| Told {
        id: Arc::clone(&node.id),
        name: Arc::clone(&node.name),
        thread: thread(node),
        definition: definition(graph, node, &tails),
    };
    graph.nodes.values().map(row).collect()
}

type Mark = (Option<String>, String);

#[derive(Default)]
struct Matched {
    places: BTreeMap<Arc<str>, NodeIx>,
    taken: BTreeSet<usize>,
}

impl Matched {
    /// Pairs what is not paired yet: among those with the same mark the i-th old with the i-th new.
    fn pair(&mut self, old: &[Told], new: &[Told], mark: impl Fn(&Told) -> Mark) {
        let mut free: BTreeMap<Mark, VecDeque<usize>> = BTreeMap::new();
        for (at, node) in new.iter().enumerate().filter(|(at, _)| !self.taken.contains(at)) {
            free.entry(mark(node)).or_default().push_back(at);
        }
        for node in old {
            if self.places.contains_key(&node.id) {
                continue;
            }
            if let Some(at) = free.get_mut(&mark(node)).and_then(VecDeque::pop_front) {
                self.taken.insert(at);
                self.places.insert(Arc::clone(&node.id), crate::ids::Ix::new(at));
            }
        }
    }
}

/// All of a node but its id, with threads by name and what it shares by content.
fn definition(graph: &Graph, node: &Node, tails: &Table<TailIx, String>) -> String {
    let mut node = node.clone();
    let thread = |ix: crate::ids::ThreadIx| graph.threads.get(ix).map(|def| def.name.to_string());
    let mut threads = vec![node.body.thread.and_then(thread)];
    node.id = Arc::from("");
    node.body.thread = None;
    for leaf in node.body.leaves.values_mut() {
        match &mut leaf.act {
            Act::Open { from, .. } => {
                threads.push(thread(*from));
                *from = crate::ids::ThreadIx(0);
            }
            Act::Publish { to, .. } => {
                threads.push(thread(*to));
                *to = crate::ids::ThreadIx(0);
            }
            Act::Infer(infer) => {
                // Named after the node (E-33).
                if let Some(schema) = &mut infer.schema {
                    schema.name = Arc::from("");
                }
            }
            _ => {}
        }
    }
    let tail = node.body.tail.take().and_then(|tail| tails.get(tail));
    serde_json::json!([threads, node, tail]).to_string()
}
