//! What a run recorded, for forks of it (E-19, E-29).

use crate::effect::{EffectId, ModelReply, Outcome};
use crate::graph::{Act, Graph, Node, Tail, hex};
use crate::ids::{NodeIx, Table, TailIx};
use crate::machine::reuse::laid::Once;
use crate::machine::reuse::outcome::RecordedOutcome;
use crate::machine::reuse::said::Key;
use crate::machine::reuse::unknown::UnknownWrite;
use crate::place::FramePath;
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
    pub(crate) unknown: BTreeSet<(Arc<str>, UnknownWrite)>,
    /// What nodes of flows and of inner frames recorded.
    pub(crate) inner: Inner,
    /// Nodes with a request under way where it ends.
    pub(crate) in_flight: BTreeSet<NodePlace>,
    /// How often each node was started, so that no effect id comes twice.
    pub(crate) visits: BTreeMap<Arc<str>, u32>,
    /// Effects whose outcome was reused, and under which id.
    pub(crate) renamed: BTreeMap<EffectId, EffectId>,
    /// Whether any write may have been made that is not recorded (E-44).
    pub(crate) doubtful: bool,
    pub(super) laid: Once,
}

impl Recording {
    /// The id under which an effect's outcome was reused last.
    pub(super) fn current<'p>(&'p self, mut effect: &'p EffectId) -> &'p EffectId {
        for _ in 0..self.renamed.len() {
            match self.renamed.get(effect) {
                Some(later) => effect = later,
                None => break,
            }
        }
        effect
    }

    /// These outcomes with edited texts in their places, as a fork sees them. What the source asked of the same
    /// node again, in later visits, is what the edit takes the place of.
    pub(crate) fn edited_of<'p, Of: PartialEq>(
        &'p self,
        kept: impl Iterator<Item = (&'p Of, &'p RecordedOutcome)> + Clone,
        texts: &BTreeMap<EffectId, Arc<str>>,
    ) -> Vec<(&'p Of, RecordedOutcome)> {
        let texts: BTreeMap<&EffectId, &Arc<str>> =
            texts.iter().map(|(effect, text)| (self.current(effect), text)).collect();
        let edits: Vec<(&Of, &RecordedOutcome)> =
            kept.clone().filter(|(_, kept)| texts.contains_key(&kept.effect)).collect();
        let later = |node: &Of, kept: &RecordedOutcome| {
            // Turns of later visits come first.
            edits.iter().any(|(of, edit)| *of == node && edit.key == kept.key && kept.turn.0 < edit.turn.0)
        };
        let rest = kept.filter(|(node, kept)| !later(node, kept));
        rest.map(|(node, kept)| {
            let mut kept = kept.clone();
            if let Some(text) = texts.get(&kept.effect) {
                kept.outcome = with_text(&kept.outcome, text);
                kept.edited = true;
            }
            (node, kept)
        })
        .collect()
    }
}

/// A node of a flow, or of a frame within another, whatever its visit and those of the nodes around it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodePlace {
    pub(super) frame: FramePath,
    pub(super) node: Arc<str>,
}

/// What a fork or a loop went over: the slot of each element, and a digest of it.
pub(super) type Elements = Vec<(u32, Key)>;

/// What such nodes have recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inner {
    pub(crate) kept: BTreeMap<EffectId, (NodePlace, RecordedOutcome)>,
    /// Writes of unknown outcome (E-55).
    pub(super) unknown: BTreeSet<(NodePlace, UnknownWrite)>,
    /// How often each was started, so that no effect id comes twice.
    pub(super) visits: BTreeMap<NodePlace, u32>,
    /// What forks and loops went over.
    pub(super) elements: BTreeMap<NodePlace, Elements>,
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

/// Which node of a new document stands for which one of the old: the same id and definition; the same definition,
/// the i-th for the i-th (ids that count positions move when a node is put in); the same id; the same name and
/// thread. All of it is read off the two documents, so that no turn depends on who is faster (E-07).
pub(crate) fn places(old: &Graph, new: &Graph) -> BTreeMap<Arc<str>, NodeIx> {
    matched(&told(old), &told(new))
}

/// The nodes of the new one that stand for none of the old, or for one with another definition.
pub(super) fn changed(old: &Graph, new: &Graph) -> BTreeSet<NodeIx> {
    let (old, new) = (told(old), told(new));
    let mut changed: BTreeSet<NodeIx> = (0..new.len()).map(crate::ids::Ix::new).collect();
    let places = matched(&old, &new);
    for node in old {
        let Some(at) = places.get(&node.id) else { continue };
        if new.get(crate::ids::Ix::get(*at)).is_some_and(|now| now.definition == node.definition) {
            changed.remove(at);
        }
    }
    changed
}

fn matched(old: &[Told], new: &[Told]) -> BTreeMap<Arc<str>, NodeIx> {
    let ids: BTreeSet<&Arc<str>> = new.iter().map(|node| &node.id).collect();
    let mut matched = Matched::default();
    matched.pair(old, new, |node| (Some(node.id.to_string()), node.definition.clone()));
    // Nodes whose id is gone come first: the others may still be found by their ids.
    let gone: Vec<Told> = old.iter().filter(|node| !ids.contains(&node.id)).cloned().collect();
    matched.pair(&gone, new, |node| (None, node.definition.clone()));
    matched.pair(old, new, |node| (None, node.definition.clone()));
    matched.pair(old, new, |node| (None, node.id.to_string()));
    matched.pair(old, new, |node| (node.thread.clone(), node.name.to_string()));
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
