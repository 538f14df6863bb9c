//! What must hold for forks (E-19, E-29): without edits a fork comes to its source's end and asks nobody; with an edit
//! it comes to the end of a run in the edited world, and asks only what nobody has answered.

mod ahead;

pub use ahead::stands;

use crate::canon::is_worded;
use crate::driver::{Schedule, Sim, first_attempt};
use crate::journal::Journal;
use crate::lower;
use crate::observed::Observed;
use crate::plan::{Part, SimPlan};
use crate::reference::{self, Mistake};
use crate::replay::replay;
use crate::rng::Rng;
use crate::world::World;
use selvedge_engine::{
    Body, EffectId, Effects, Event, Fork, Graph, Outcome, Record, Recording, RunStatus, State,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a run has recorded: each effect with an answer, what was asked, and whether the node took the answer. One that
/// came when the run was about to end may be reused, and need not.
type Recorded = BTreeMap<EffectId, (String, bool)>;

/// A run and what its forks need of it.
struct Source<'p> {
    plan: &'p SimPlan,
    /// The graph of its first event.
    graph: Arc<Graph>,
    sim: Sim<'p>,
    recorded: Recorded,
}

/// What a fork asked, as far as its own events say.
#[derive(Default)]
struct Asked {
    /// By content: sent, and taken from the source.
    counts: BTreeMap<String, (usize, usize)>,
    /// Whether a call that looks at the world or changes it was sent.
    impure: bool,
}

impl<'p> Source<'p> {
    fn new(plan: &'p SimPlan, seed: u64) -> Result<Self, String> {
        let graph = Arc::new(lower::graph(plan)?);
        let world = World::new(plan.seed, plan.faults);
        let mut sim = Sim::new(plan, &graph, world, Schedule { seed, ..Schedule::default() });
        sim.run(None)?;
        let recorded = recorded(&sim, Recorded::new(), 0)?;
        Ok(Self { plan, graph, sim, recorded })
    }

    fn len(&self) -> usize {
        self.sim.journal.len()
    }

    /// What the run recorded in its first events.
    fn past(&self, events: usize) -> Result<Arc<Recording>, String> {
        let mut state = State::recording(Arc::clone(&self.graph));
        for record in self.sim.journal.cut(events).records()? {
            state.apply_record(&record);
        }
        Ok(Arc::new(state.past()))
    }

    /// A fork of the whole run that shares `shared` events, driven to its end.
    fn fork(&self, shared: usize, seed: u64, fork: Fork) -> Result<Sim<'p>, String> {
        self.fork_in(&self.sim.world.edits.clone(), shared, seed, fork)
    }

    /// The same in a world that says some things in another way.
    fn fork_in(
        &self,
        edits: &BTreeMap<(String, String), String>,
        shared: usize,
        seed: u64,
        fork: Fork,
    ) -> Result<Sim<'p>, String> {
        self.fork_of(&self.sim.journal.cut(shared), edits, seed, fork)
    }

    /// The same of what of the run is in `prefix`.
    fn fork_of(
        &self,
        prefix: &Journal,
        edits: &BTreeMap<(String, String), String>,
        seed: u64,
        fork: Fork,
    ) -> Result<Sim<'p>, String> {
        let fork = self.filled(fork)?;
        let schedule = Schedule { seed, ..Schedule::default() };
        let mut sim = Sim::forked(&self.sim, &self.graph, schedule, prefix, fork)?;
        sim.world.edits.clone_from(edits);
        sim.run(None)?;
        Ok(sim)
    }

    fn filled(&self, mut fork: Fork) -> Result<Fork, String> {
        fork.source = "source".into();
        fork.events = self.len() as u64;
        fork.past = Some(self.past(self.len())?);
        Ok(fork)
    }

    /// The fork as the source of others.
    fn next(&self, sim: Sim<'p>, shared: usize) -> Result<Self, String> {
        let recorded = recorded(&sim, self.recorded.clone(), shared)?;
        Ok(Self { plan: self.plan, graph: Arc::clone(&self.graph), sim, recorded })
    }

    /// E-29: whoever asks what was recorded takes it, the k-th the k-th; and the order of what is not `pure`. Where something was `edited`,
    /// the words of a fault may quote it.
    fn reuses(&self, fork: &Sim<'_>, shared: usize, edited: bool) -> Result<Asked, String> {
        let mut known: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (content, sure) in self.recorded.values() {
            let known = known.entry(content.as_str()).or_insert((0, 0));
            known.0 += usize::from(*sure);
            known.1 += 1;
        }
        let asked = asked(self.plan, fork, shared)?;
        for (content, (sent, reused)) in &asked.counts {
            let (sure, known) = known.get(content.as_str()).copied().unwrap_or((0, 0));
            if *reused > known {
                return Err(format!("E-29: {known} outcomes were recorded and {reused} reused of {content}"));
            }
            let reworded = edited && is_worded(content);
            if *sent > 0 && *reused < sure && !asked.impure && !reworded {
                return Err(format!("E-29: sent again though it was recorded: {content}"));
            }
        }
        Ok(asked)
    }
}

/// The question of an effect: what its first attempt asked.
fn question(sim: &Sim<'_>, effect: &EffectId) -> Option<String> {
    let known = sim.contents.get(&first_attempt(effect)).or_else(|| sim.contents.get(effect))?;
    Some(known.1.clone())
}

/// Adds what a run records from event `from` on.
fn recorded(sim: &Sim<'_>, mut recorded: Recorded, from: usize) -> Result<Recorded, String> {
    for record in sim.journal.records()?.iter().skip(from) {
        match &record.event {
            Event::Completed { effect, outcome: Outcome::Output(_), .. } => {
                recorded.extend(question(sim, effect).map(|content| (effect.clone(), (content, true))));
            }
            Event::Completed { effect, outcome: Outcome::Reply(_), .. } => {
                recorded.extend(question(sim, effect).map(|content| (effect.clone(), (content, false))));
            }
            Event::Appended { body: Body::Reply(effect), .. } => {
                recorded.extend(question(sim, effect).map(|content| (effect.clone(), (content, true))));
            }
            Event::Reused { effect, from, .. } => {
                if let Some(content) = recorded.remove(from) {
                    recorded.insert(effect.clone(), content);
                }
            }
            _ => {}
        }
    }
    Ok(recorded)
}

fn asked(plan: &SimPlan, sim: &Sim<'_>, shared: usize) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut afresh: Option<usize> = None;
    let mut declined = BTreeSet::new();
    for record in sim.journal.records()?.iter().skip(shared) {
        let (effect, sent) = match &record.event {
            Event::Requested { effect, .. } => (effect, true),
            // A person's no keeps what a call came to (C-13).
            Event::Reused { effect, .. } if declined.contains(&*effect.0) => continue,
            Event::Reused { effect, .. } => (effect, false),
            Event::Answered { ask, value } if **value != "yes" && **value != serde_json::json!(true) => {
                declined.insert(ask.to_string());
                continue;
            }
            _ => continue,
        };
        let Some((node, content)) = sim.contents.get(effect) else {
            return Err(format!("nobody knows what {effect} asked"));
        };
        let count = asked.counts.entry(question(sim, effect).unwrap_or_default()).or_insert((0, 0));
        let first = first_attempt(effect) == *effect;
        count.0 += usize::from(sent && first);
        count.1 += usize::from(!sent);
        if !is_impure(plan, *node, content) {
            continue;
        }
        if sent {
            asked.impure = true;
            afresh = Some(afresh.map_or(*node, |known| known.min(*node)));
        } else if afresh.is_some_and(|first| first <= *node) {
            return Err(format!("E-29: {effect} takes an outcome from before what ran afresh"));
        }
    }
    Ok(asked)
}

/// Whether a content (`NODE tool ["NAME", …]`) is that of a call that is not `pure`.
fn is_impure(plan: &SimPlan, node: usize, content: &str) -> bool {
    let Some(def) = plan.nodes.get(node) else { return false };
    let call = content.strip_prefix(&format!("{} tool ", def.id));
    let name = call.and_then(|call| serde_json::from_str::<serde_json::Value>(call).ok());
    let name = name.as_ref().and_then(|call| call.get(0)?.as_str());
    name.is_some_and(|name| plan.effects(def, name) != Effects::Pure)
}

fn completed(sim: &Sim<'_>) -> bool {
    sim.state.status() == RunStatus::Completed
}

/// A fork anywhere, and forks of it, without edits: the same end, and nobody is asked what was answered.
///
/// # Errors
/// What differs, and where the run was forked.
pub fn unedited(plan: &SimPlan, seed: u64) -> Result<(), String> {
    unedited_at(plan, seed, Some(5))
}

/// [`unedited`] at every event.
///
/// # Errors
/// What differs, and where the run was forked.
pub fn unedited_everywhere(plan: &SimPlan, seed: u64) -> Result<(), String> {
    unedited_at(plan, seed, None)
}

fn unedited_at(plan: &SimPlan, seed: u64, points: Option<usize>) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let source = Source::new(plan, rng.bits())?;
    let len = source.len();
    for point in 0..points.unwrap_or(len).min(len) {
        let at = if points.is_some() { 1 + rng.below(len) } else { point + 1 };
        same_end(&source, at, &mut rng, 3)
            .map_err(|error| format!("forked at event {at} of {len}: {error}"))?;
    }
    Ok(())
}

fn same_end(source: &Source<'_>, at: usize, rng: &mut Rng, depth: usize) -> Result<(), String> {
    let sim = source.fork(at, rng.bits(), Fork::default())?;
    replay(&source.graph, &sim.journal)?;
    let asked = source.reuses(&sim, at, false)?;
    // The world has moved on since; who looks at it again may see something else.
    if asked.impure {
        return Ok(());
    }
    let expected = source.sim.observed().without_requests();
    if completed(&source.sim) {
        expected.same(&sim.observed().without_requests(), "forked")?;
        if source.sim.world.changes() != sim.world.changes() {
            return Err("the fork changed the world".into());
        }
    }
    if depth == 0 {
        return Ok(());
    }
    let fork = source.next(sim, at)?;
    let again = 1 + rng.below(fork.len());
    same_end(&fork, again, rng, depth - 1).map_err(|error| format!("and again at event {again}: {error}"))
}

/// A fork whose process dies anywhere goes on like one whose did not.
///
/// # Errors
/// What differs.
pub fn crashing(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let source = Source::new(plan, rng.bits())?;
    for _ in 0..3 {
        let at = 1 + rng.below(source.len());
        let sim = source.fork(at, rng.bits(), Fork::default())?;
        if source.reuses(&sim, at, false)?.impure {
            continue;
        }
        let expected = sim.observed().without_requests();
        for events in at + 1..=sim.journal.len() {
            let journal = sim.journal.cut(events);
            let schedule = Schedule { seed: rng.bits(), ..Schedule::default() };
            let what = |error: String| format!("forked at {at}, died after event {events}: {error}");
            let again = again(source.plan, &source.graph, &sim, schedule, &journal).map_err(what)?;
            let asked = asked(source.plan, &again, at)?;
            if !asked.impure {
                expected.same(&again.observed().without_requests(), "recovered").map_err(what)?;
            }
            replay(&source.graph, &again.journal).map_err(what)?;
        }
    }
    Ok(())
}

fn again<'p>(
    plan: &'p SimPlan,
    graph: &Arc<Graph>,
    sim: &Sim<'p>,
    schedule: Schedule,
    journal: &Journal,
) -> Result<Sim<'p>, String> {
    let mut again = Sim::recover(plan, graph, sim.world.clone(), schedule, journal)?;
    for (effect, content) in &sim.contents {
        again.contents.entry(effect.clone()).or_insert_with(|| content.clone());
    }
    again.run(None)?;
    Ok(again)
}

/// A message of a model or a tool is edited: the end is that of a world in which it was said so, and only what
/// depends on it is asked again.
///
/// # Errors
/// What differs.
pub fn edited_messages(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let source = Source::new(plan, rng.bits())?;
    let records = source.sim.journal.records()?;
    let edits: Vec<(usize, EffectId)> = editable(&source, &records);
    for _ in 0..edits.len().min(4) {
        let Some((came, effect)) = rng.pick(&edits).cloned() else { break };
        let Some((at, content)) = source.sim.contents.get(&effect).cloned() else { continue };
        let node = plan.nodes.get(at).map(|def| def.id.clone()).unwrap_or_default();
        let text = format!("edited {}", rng.below(9));
        let bare = content.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
        let world: BTreeMap<(String, String), String> = [((node, bare), text.clone())].into();
        let fork = Fork { texts: [(effect.clone(), text.into())].into(), ..Fork::default() };
        let shared = 1 + rng.below(came.min(source.len()));
        let what = |error: String| format!("{effect} edited, forked at event {shared}: {error}");
        let sim = source.fork_in(&world, shared, rng.bits(), fork).map_err(what)?;
        let asked = source.reuses(&sim, shared, true).map_err(what)?;
        replay(&source.graph, &sim.journal).map_err(what)?;
        let mut outside = World::new(plan.seed, plan.faults);
        outside.edits = world;
        let expected = reference::run(plan, &mut outside, Mistake::None).without_requests();
        // A call that is left out after an edit leaves no mark that what follows it should be asked again.
        if !asked.impure && plan.is_pure() {
            expected.same(&sim.observed().without_requests(), "edited").map_err(what)?;
        }
    }
    Ok(())
}

/// Outcomes that may be edited, each with the number of events before it: what was asked once, and answered at once.
fn editable(source: &Source<'_>, records: &[Record]) -> Vec<(usize, EffectId)> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        if let Event::Requested { effect, .. } = &record.event
            && let Some((_, content)) = source.sim.contents.get(effect)
        {
            *times.entry(content.as_str()).or_insert(0) += 1;
        }
    }
    let appended = |effect: &EffectId| {
        records.iter().any(|record| match &record.event {
            Event::Appended { body: Body::Reply(of) | Body::Output(of), .. } => of == effect,
            _ => false,
        })
    };
    let mut found = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let Event::Completed { effect, outcome, .. } = &record.event else { continue };
        let once = source.sim.contents.get(effect).is_some_and(|(_, content)| {
            times.get(content.as_str()) == Some(&1) && !content.contains(crate::canon::ASKED_AGAIN)
        });
        let failed = matches!(outcome, Outcome::Failed(_));
        if once && !failed && appended(effect) {
            found.push((at, effect.clone()));
        }
    }
    found
}

/// The document is edited: the end is that of a run of the edited one. For plans whose tools are all `pure` the
/// whole result is compared.
///
/// # Errors
/// What differs.
pub fn edited_documents(plan: &SimPlan, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let source = Source::new(plan, rng.bits())?;
    let mut edited = plan.clone();
    let at = rng.below(edited.nodes.len().max(1));
    if let Some(def) = edited.nodes.get_mut(at) {
        def.prompt.get_or_insert_default().push(Part::Text(" edited".into()));
    }
    // Not every edit is a document.
    let Ok(graph) = lower::graph(&edited) else { return Ok(()) };
    let graph = Arc::new(graph);
    let hash = graph.hash().map_err(|error| error.to_string())?;
    let shared = 1 + rng.below(source.len());
    let fork = Fork { graph: Some(hash.into()), compiled: Some(Arc::clone(&graph)), ..Fork::default() };
    let fork = source.filled(fork)?;
    let schedule = Schedule { seed: rng.bits(), ..Schedule::default() };
    let prefix = source.sim.journal.cut(shared);
    let what = |error: String| format!("node {at} edited, forked at event {shared}: {error}");
    let mut sim = Sim::forked(&source.sim, &source.graph, schedule, &prefix, fork).map_err(what)?.of(&edited);
    sim.run(None).map_err(what)?;
    replay(&source.graph, &sim.journal).map_err(what)?;
    let asked = source.reuses(&sim, shared, true).map_err(what)?;
    let mut outside = World::new(plan.seed, plan.faults);
    let expected: Observed = reference::run(&edited, &mut outside, Mistake::None).without_requests();
    if asked.impure || !plan.is_pure() {
        return Ok(());
    }
    expected.same(&sim.observed().without_requests(), "edited").map_err(what)
}
