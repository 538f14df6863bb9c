//! What a run had recorded, by the nodes of its forks that may take it (E-29). It is laid out once for all forks that go on with the same
//! graph, and they share it: a fork looks up what concerns a node when it comes to that node.

use super::lineage::Saved;
use super::outcome::RecordedOutcome;
use super::recording::{Elements, NodePlace, Recording};
use super::said::Key;
use super::spot::{Numbers, Spot, number};
use super::unknown::UnknownWrite;
use crate::effect::EffectId;
use crate::graph::Graph;
use crate::ids::{Ix, NodeIx};
use crate::machine::frame::Frames;
use crate::machine::stands::Stands;
use crate::place::FramePath;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Which node of a new document stands for one of the old, by id.
pub(in crate::machine) type Places = BTreeMap<Arc<str>, NodeIx>;

/// What a run had recorded.
#[derive(Default)]
pub(crate) struct Laid {
    /// The graph that it is laid out for.
    graph: Arc<Graph>,
    /// Numbers of frames, by their paths without visits; the root is 0.
    pub(super) numbers: Arc<Numbers>,
    /// By spot, what was asked, and turn.
    rows: Vec<Row>,
    by_effect: HashMap<EffectId, usize>,
    /// Writes that succeeded, whatever their tools' versions, in the order of their spots and effects.
    writes: BTreeMap<Key, Vec<(Spot, usize)>>,
    /// Rows of writes about which nobody knows whether they happened, and further such writes that have no row.
    unknown_rows: Vec<usize>,
    pub(super) unknown: Vec<(Spot, NodePlace, bool, UnknownWrite)>,
    /// How often nodes of frames were started, and which nodes were begun at all.
    started: HashMap<Spot, u32>,
    /// What forks and loops went over.
    elements: BTreeMap<NodePlace, Elements>,
    begun: HashSet<Spot>,
    pub(super) in_flight: Vec<Spot>,
    /// How often each node of the run's own dataflow was started, and those that it has no more.
    pub(super) seen: Vec<u32>,
    pub(super) gone: Vec<(Arc<str>, u32)>,
    /// Writes of nodes in frames that are not there, and all that nodes of the run's own dataflow recorded that are not.
    pub(super) elsewhere: Vec<Key>,
    pub(super) unmatched: Vec<(Arc<str>, RecordedOutcome)>,
    pub(super) unmatched_unknown: Vec<(Arc<str>, UnknownWrite)>,
    pub(super) unknown_elsewhere: Vec<UnknownWrite>,
}

/// One outcome, and where it was recorded.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) spot: Spot,
    pub(super) site: NodePlace,
    /// Recorded by a node of the run's own dataflow, and not of a flow or a frame.
    pub(super) own: bool,
    pub(super) kept: RecordedOutcome,
}

impl fmt::Debug for Laid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Laid({} outcomes)", self.rows.len())
    }
}

/// The layout of a recording for the graph that its run has. A cache only: nothing of what was recorded is in it.
#[derive(Default)]
pub(crate) struct Once(OnceLock<Arc<Laid>>);

impl Clone for Once {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Once {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

impl Recording {
    /// What it has, for the forks of a run with these frames; `places` if they have another graph.
    pub(in crate::machine) fn laid(&self, frames: &Frames, places: Option<&Places>) -> Arc<Laid> {
        let new = || Arc::new(Laid::of(self, frames, places));
        if places.is_some() {
            return new();
        }
        let known = self.laid.0.get_or_init(new);
        if Arc::ptr_eq(&known.graph, &frames.root().graph) { Arc::clone(known) } else { new() }
    }
}

impl Laid {
    fn of(past: &Recording, frames: &Frames, places: Option<&Places>) -> Self {
        let mut laid = Self { graph: Arc::clone(&frames.root().graph), ..Self::default() };
        let mut numbers = Numbers::default();
        if places.is_some() || frames.root().flow.is_none() {
            laid.own(past, frames, places);
        }
        laid.inner(past, frames, places, &mut numbers);
        laid.numbers = Arc::new(numbers);
        let order = |row: &Row| (row.spot, row.kept.key, row.kept.turn);
        laid.rows.sort_by(|a, b| (order(a), &a.kept.effect).cmp(&(order(b), &b.kept.effect)));
        for (at, row) in laid.rows.iter().enumerate() {
            laid.by_effect.insert(row.kept.effect.clone(), at);
            if row.kept.unknown().is_some() {
                laid.unknown_rows.push(at);
            }
            if let Some(write) = row.kept.written_with_success() {
                laid.writes.entry(write).or_default().push((row.spot, at));
            }
        }
        let rows = &laid.rows;
        let effect = |at: usize| rows.get(at).map(|row| &row.kept.effect);
        for calls in laid.writes.values_mut() {
            calls.sort_by(|a, b| (a.0, effect(a.1)).cmp(&(b.0, effect(b.1))));
        }
        laid
    }

    /// What nodes of the run's own dataflow recorded.
    fn own(&mut self, past: &Recording, frames: &Frames, places: Option<&Places>) {
        let root = frames.root();
        // Nodes that came and went with splices are found by their ids, unless others stand for those (D-20).
        let taken: BTreeSet<NodeIx> = places.into_iter().flat_map(BTreeMap::values).copied().collect();
        let place = |id: &Arc<str>| {
            let same = || root.of_id(id).filter(|node| !taken.contains(node));
            places.and_then(|places| places.get(id).copied()).or_else(same)
        };
        let spot = |node: NodeIx| Spot { frame: 0, node };
        let site = |id: &Arc<str>| NodePlace { frame: FramePath::default(), node: id.clone() };
        let begun = past.visits.iter().filter(|(_, visits)| **visits > 0);
        self.begun.extend(begun.filter_map(|(id, _)| place(id)).map(spot));
        for (id, kept) in &past.kept {
            // What stands beside a failure of the source is judged like anything else in a fork.
            let kept = RecordedOutcome { beside: false, ..kept.clone() };
            match place(id) {
                Some(node) => self.rows.push(Row { spot: spot(node), site: site(id), own: true, kept }),
                None => self.unmatched.push((id.clone(), kept)),
            }
        }
        for (id, write) in &past.unknown {
            match place(id) {
                Some(node) => self.unknown.push((spot(node), site(id), true, write.clone())),
                None => {
                    self.elsewhere.push(write.key);
                    self.unmatched_unknown.push((id.clone(), write.clone()));
                }
            }
        }
        if root.dataflow.is_some() {
            let seen = |id: &Arc<str>| past.visits.get(id).copied().unwrap_or(0);
            self.seen = root.graph.nodes.values().map(|node| seen(&node.id)).collect();
            let gone = past.visits.iter().filter(|(id, _)| root.of_id(id).is_none());
            self.gone = gone.map(|(id, seen)| (id.clone(), *seen)).collect();
        }
    }

    /// What nodes of flows and of inner frames recorded.
    fn inner(&mut self, past: &Recording, frames: &Frames, places: Option<&Places>, numbers: &mut Numbers) {
        let mut spot = |site: &NodePlace| {
            let node = frames.find(site.frame.frames(), &site.node)?;
            let frame = if site.frame.is_root() { 0 } else { number(numbers.give(&site.frame)) };
            Some(Spot { frame, node })
        };
        for (site, kept) in past.inner.kept.values() {
            let kept = RecordedOutcome { beside: false, ..kept.clone() };
            let moved = moved(site, frames, places);
            match moved.as_ref().and_then(&mut spot).zip(moved) {
                Some((spot, site)) => self.rows.push(Row { spot, site, own: false, kept }),
                None => self.elsewhere.extend(kept.written_with_success()),
            }
        }
        for (site, write) in &past.inner.unknown {
            let moved = moved(site, frames, places);
            match moved.as_ref().and_then(&mut spot).zip(moved) {
                Some((spot, site)) => self.unknown.push((spot, site, false, write.clone())),
                None => self.unknown_elsewhere.push(write.clone()),
            }
        }
        for (site, visits) in &past.inner.visits {
            if let Some(spot) = moved(site, frames, places).as_ref().and_then(&mut spot) {
                self.started.insert(spot, *visits);
                self.begun.insert(spot);
            }
        }
        let elements = past.inner.elements.iter();
        self.elements =
            elements.filter_map(|(site, all)| Some((moved(site, frames, places)?, all.clone()))).collect();
        let in_flight = past.in_flight.iter().filter_map(|site| moved(site, frames, places));
        self.in_flight = in_flight.filter_map(|site| spot(&site)).collect();
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What a node recorded, in its turn.
    pub(super) fn at(&self, spot: Spot) -> &[Row] {
        let first = self.rows.partition_point(|row| row.spot < spot);
        let rows = self.rows.get(first..).unwrap_or_default();
        rows.get(..rows.partition_point(|row| row.spot == spot)).unwrap_or_default()
    }

    pub(super) fn of_effect(&self, effect: &EffectId) -> Option<&Row> {
        self.rows.get(*self.by_effect.get(effect)?)
    }

    pub(super) fn unknown_rows(&self) -> impl Iterator<Item = &Row> {
        self.unknown_rows.iter().filter_map(|at| self.rows.get(*at))
    }

    /// What was recorded where one of these outcomes was, which have another text now.
    pub(super) fn edited(&self, past: &Recording, texts: &BTreeMap<EffectId, Arc<str>>) -> Vec<Row> {
        let mut spots: Vec<Spot> =
            texts.keys().filter_map(|of| Some(self.of_effect(past.current(of))?.spot)).collect();
        spots.sort_unstable();
        spots.dedup();
        let rows: Vec<&Row> = spots.iter().flat_map(|spot| self.at(*spot)).collect();
        let kept = past.edited_of(rows.iter().map(|row| (*row, &row.kept)), texts);
        kept.into_iter().map(|(row, kept)| Row { kept, ..row.clone() }).collect()
    }
}

impl PartialEq for Row {
    /// Whether the same node recorded both.
    fn eq(&self, other: &Self) -> bool {
        self.site == other.site
    }
}

/// The site in a fork with another graph.
pub(super) fn moved(site: &NodePlace, frames: &Frames, places: Option<&Places>) -> Option<NodePlace> {
    let Some(places) = places else { return Some(site.clone()) };
    let graph = &frames.root().graph;
    let id = |old: &str| Some(graph.nodes.get(*places.get(old)?)?.id.clone());
    let mut steps = site.frame.frames().steps();
    let Some(mut first) = steps.next() else {
        return Some(NodePlace { node: id(&site.node)?, ..site.clone() });
    };
    let node = id(&first.node)?;
    first.node = (&*node).into();
    let frame = steps.fold(FramePath::default().with(&first), |path, step| path.with(&step));
    Some(NodePlace { frame, node: site.node.clone() })
}

/// What of it stands where a fork leaves its source: it is not begun anew.
#[derive(Debug)]
pub(crate) struct Standing {
    laid: Arc<Laid>,
    /// Nodes of the run's own dataflow.
    nodes: Stands,
    /// Frames as they were there.
    frames: Option<Frames>,
    saved: OnceLock<Saved>,
}

impl Standing {
    pub(super) fn new(laid: Arc<Laid>, nodes: Stands, frames: &Frames) -> Self {
        let others = laid.rows.iter().any(|row| !row.own) || laid.unknown.iter().any(|(_, _, own, _)| !own);
        let frames = others.then(|| frames.clone());
        Self { laid, nodes, frames, saved: OnceLock::new() }
    }

    pub(super) fn has(&self, row: &Row) -> bool {
        self.stands(row.own, row.spot, &row.site)
    }

    pub(super) fn stands(&self, own: bool, spot: Spot, site: &NodePlace) -> bool {
        match own {
            true => self.nodes.has(spot.node),
            false => self.frames.as_ref().is_some_and(|frames| frames.is_final(site, &self.nodes)),
        }
    }

    /// Whether a node of the run's own dataflow stands ahead of its turn: what it recorded is still with it.
    pub(super) fn is_ahead(&self, row: &Row) -> bool {
        row.own && self.nodes.is_ahead(row.spot.node)
    }

    /// What an effect need not ask for again, if its outcome stands.
    pub(super) fn kept(&self, effect: &EffectId) -> Option<Saved> {
        self.laid.of_effect(effect).filter(|row| self.has(row)).map(|row| row.kept.saved().0)
    }

    /// What all of them need not.
    pub(super) fn saved(&self) -> Saved {
        *self.saved.get_or_init(|| {
            let mut all = Saved::default();
            let standing = self.laid.rows.iter().filter(|row| self.has(row));
            standing.for_each(|row| all.add(&row.kept.saved().0));
            all
        })
    }
}

/// What a fork may take at nodes that it has not come to.
#[derive(Debug)]
pub(crate) struct Ahead {
    laid: Arc<Laid>,
    standing: Arc<Standing>,
    come_to: HashSet<Spot>,
    /// Of the first so many rows none is left.
    drained: AtomicUsize,
}

impl Clone for Ahead {
    fn clone(&self) -> Self {
        let (laid, standing) = (Arc::clone(&self.laid), Arc::clone(&self.standing));
        let drained = AtomicUsize::new(self.drained.load(Ordering::Relaxed));
        Self { laid, standing, come_to: self.come_to.clone(), drained }
    }
}

impl Ahead {
    pub(super) fn new(laid: Arc<Laid>, standing: Arc<Standing>) -> Self {
        Self { laid, standing, come_to: HashSet::new(), drained: AtomicUsize::new(0) }
    }

    fn is_left(&self, row: &Row) -> bool {
        row.kept.is_success() && !self.come_to.contains(&row.spot) && !self.standing.has(row)
    }

    pub(super) fn is_empty(&self) -> bool {
        let rows = &self.laid.rows;
        let from = self.drained.load(Ordering::Relaxed);
        let next = rows.iter().skip(from).position(|row| self.is_left(row)).map(|at| from + at);
        self.drained.store(next.unwrap_or(rows.len()), Ordering::Relaxed);
        next.is_none()
    }

    /// What a fork or a loop went over.
    pub(super) fn elements(&self, site: &NodePlace) -> Option<&Elements> {
        self.laid.elements.get(site)
    }

    /// What is left at a node, in its turn.
    pub(super) fn at(&self, spot: Spot) -> impl Iterator<Item = &RecordedOutcome> {
        self.laid.at(spot).iter().filter(|row| self.is_left(row)).map(|row| &row.kept)
    }

    /// The node that an effect is left at.
    pub(super) fn spot_of(&self, effect: &EffectId) -> Option<Spot> {
        self.laid.of_effect(effect).filter(|row| self.is_left(row)).map(|row| row.spot)
    }

    /// The nodes at which a write is left, with its effects.
    pub(super) fn writes(&self, write: Key) -> impl Iterator<Item = (Spot, &EffectId)> {
        let rows = self.laid.writes.get(&write).into_iter().flatten();
        let rows = rows.filter_map(|(_, at)| self.laid.rows.get(*at));
        rows.filter(|row| self.is_left(row)).map(|row| (row.spot, &row.kept.effect))
    }

    /// The fork has come to a node: what is left there for it to take.
    pub(super) fn come_to(&mut self, spot: Spot) -> Vec<RecordedOutcome> {
        if self.laid.at(spot).is_empty() || self.come_to.contains(&spot) {
            return Vec::new();
        }
        let left = self.at(spot).cloned().collect();
        self.come_to.insert(spot);
        left
    }

    /// All nodes at which something was recorded.
    pub(super) fn spots(&self) -> Vec<Spot> {
        let mut spots: Vec<Spot> = self.laid.rows.iter().map(|row| row.spot).collect();
        spots.dedup();
        spots
    }

    pub(super) fn was_begun(&self, spot: Spot) -> bool {
        self.laid.begun.contains(&spot)
    }

    pub(super) fn visits(&self, spot: Spot) -> Option<u32> {
        self.laid.started.get(&spot).copied()
    }
}

impl Laid {
    /// How often a node of the run's own dataflow was started.
    pub(in crate::machine) fn seen(&self, node: NodeIx) -> u32 {
        self.seen.get(node.get()).copied().unwrap_or(0)
    }
}
