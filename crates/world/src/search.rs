//! The search through seeds: what many runs show together, and the smallest run that still shows it.

use crate::findings::{Eye, How, Raised, Seen, counts, requests};
use crate::kind::Kind;
use crate::luck::{Hit, Luck};
use crate::map::{Coverage, Spot, Unreached};
use crate::trial::{Stop, Trial, World};
use selvedge_engine::{End, FaultKind, Record, RunStatus, State};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Seeds after which those that search wait for each other: what is decided by all of them so far is the same on every machine.
const BLOCK: u64 = 64;
/// Runs without an end after which there is nothing more to learn.
const ENDLESS: u64 = 16;
/// How often a join has to be decided before it is said that it is never met.
const DECIDED: u64 = 16;
/// Runs that making a finding smaller takes at most, and events of all of them.
const TRIES: usize = 400;
const TRIED: usize = 1_000_000;

/// What is wrong with a document, with a run that shows it.
pub struct Finding {
    /// The seed that shows it.
    pub seed: u64,
    /// What it is.
    pub kind: Kind,
    /// The node that it is about, by its name in reports; may be empty.
    pub node: String,
    /// What was seen.
    pub message: String,
    /// The bad luck that it takes.
    pub hits: Vec<Hit>,
    /// The run that shows it.
    pub records: Vec<Record>,
    /// What that run came to.
    pub state: State,
}

/// What was searched, and what was found.
pub struct Report {
    /// Seeds that were looked at.
    pub seeds: u64,
    /// Runs that this took.
    pub runs: u64,
    /// Events of all of them.
    pub events: u64,
    /// Runs of the seeds themselves that completed, failed and waited.
    pub completed: u64,
    /// See there.
    pub failed: u64,
    /// See there.
    pub waiting: u64,
    /// Failures of runs in which no call failed and everybody answered: the node and the kind of the fault, how many, and the first
    /// seed.
    pub calm: BTreeMap<(String, &'static str), (u64, u64)>,
    /// What no run came by.
    pub unreached: Unreached,
    /// What was found, by seed.
    pub findings: Vec<Finding>,
    /// Whether runs without an end ended the search.
    pub endless: bool,
    /// Whether it was ended before it had looked at all seeds.
    pub interrupted: bool,
}

/// A run that shows something, with what is compared to find the plainest.
#[derive(Clone)]
struct Candidate {
    hits: usize,
    seed: u64,
    how: How,
    raised: Raised,
}

#[derive(Default)]
struct Join {
    decided: u64,
    met: u64,
    /// The plainest run in which it was not met.
    unmet: Option<(usize, u64)>,
}

#[derive(Default)]
struct Tally {
    seeds: u64,
    runs: u64,
    events: u64,
    completed: u64,
    failed: u64,
    waiting: u64,
    long: u64,
    calm: BTreeMap<(String, &'static str), (u64, u64)>,
    coverage: Coverage,
    joins: BTreeMap<Spot, Join>,
    found: BTreeMap<(Kind, Option<Spot>), Candidate>,
    bugs: BTreeMap<u64, String>,
}

/// How a search is made.
pub struct Search<'s> {
    /// Seeds from 1 to this.
    pub seeds: u64,
    /// Threads.
    pub threads: usize,
    /// Set when it is to end.
    pub stop: &'s AtomicBool,
    /// Told now and then how many seeds were looked at.
    pub progress: &'s (dyn Fn(u64) + Sync),
}

/// Searches through seeds for what is wrong with a document.
pub fn search(world: &World, how: &Search<'_>) -> Report {
    let eye = Eye::of(world);
    let (tally, endless) = tallied(&eye, how);
    let found = candidates(&eye, &tally);
    let mut findings: Vec<Finding> =
        found.into_iter().filter_map(|candidate| smallest(&eye, &candidate, &tally)).collect();
    findings.extend(tally.bugs.iter().take(1).map(|(seed, message)| bug(world, *seed, message)));
    findings.sort_by(|a, b| (a.seed, a.kind, &a.node).cmp(&(b.seed, b.kind, &b.node)));
    let Tally { seeds, runs, events, completed, failed, waiting, calm, coverage, .. } = tally;
    let unreached = coverage.unreached(&eye.map);
    let interrupted = seeds < how.seeds && !endless;
    Report {
        seeds,
        runs,
        events,
        completed,
        failed,
        waiting,
        calm,
        unreached,
        findings,
        endless,
        interrupted,
    }
}

/// The run of one seed, and what it finds by itself. That a join which is not met in it is never met, the seeds of `how` say.
pub fn one(world: &World, seed: u64, how: &Search<'_>) -> (Trial, Vec<Finding>) {
    let eye = Eye::of(world);
    let (Seen { mut trials, raised }, done) = eye.look(&Luck::of(seed), |first| how_of(seed, first));
    let mut found: Vec<Candidate> =
        raised.into_iter().map(|raised| Candidate { hits: 0, seed, how: done.clone(), raised }).collect();
    let first = trials.swap_remove(0);
    let unmet = |trial: &Trial| eye.joins(trial).iter().any(|(_, fault)| fault.is_some());
    let tally = if unmet(&first) { tallied(&eye, how).0 } else { Tally::default() };
    for spot in tally.never_met() {
        let raised = eye.never_met(&first, spot, tally.decided(spot));
        found.extend(raised.map(|raised| Candidate { hits: 0, seed, how: How::Once, raised }));
    }
    let mut findings: Vec<Finding> =
        found.iter().filter_map(|candidate| smallest(&eye, candidate, &tally)).collect();
    findings.dedup_by(|a, b| (a.kind, &a.node) == (b.kind, &b.node));
    (first, findings)
}

/// Goes through all seeds, a block at a time; and whether runs without an end ended it.
fn tallied(eye: &Eye<'_>, how: &Search<'_>) -> (Tally, bool) {
    let mut all = Tally::default();
    let done = AtomicU64::new(0);
    let mut from = 1;
    while from <= how.seeds && !how.stop.load(Ordering::Relaxed) {
        let to = from.saturating_add(BLOCK).min(how.seeds.saturating_add(1));
        let next = AtomicU64::new(from);
        let merged = Mutex::new(&mut all);
        let work = || {
            let mut own = Tally::default();
            while !how.stop.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= to {
                    break;
                }
                own.seed(eye, seed);
                (how.progress)(done.fetch_add(1, Ordering::Relaxed) + 1);
            }
            merged.lock().unwrap_or_else(PoisonError::into_inner).and(own);
        };
        std::thread::scope(|scope| {
            for _ in 1..how.threads.max(1) {
                scope.spawn(work);
            }
            work();
        });
        if all.long >= ENDLESS {
            return (all, true);
        }
        from = to;
    }
    (all, false)
}

/// What is done besides running once: by turns another order, and a crash, more often than not while something was in flight that may
/// not be done twice.
fn how_of(seed: u64, first: &Trial) -> How {
    let mut dice = Luck::of(seed).dice("how", "");
    let others = first.stop == Stop::Ended && dice.chance(50);
    if others {
        return How::Order(dice.bits());
    }
    if !first.writes.is_empty() && dice.chance(70) {
        return dice.pick(&first.writes).cloned().map_or(How::Once, How::During);
    }
    match first.records.len() {
        0 | 1 => How::Once,
        events => How::After(1 + dice.below(events - 1)),
    }
}

impl Tally {
    /// Looks at a seed.
    fn seed(&mut self, eye: &Eye<'_>, seed: u64) {
        self.seeds += 1;
        let looked =
            catch_unwind(AssertUnwindSafe(|| eye.look(&Luck::of(seed), |first| how_of(seed, first))));
        let (seen, how) = match looked {
            Ok(looked) => looked,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                self.bugs.insert(seed, text.to_owned());
                return;
            }
        };
        let Seen { trials, raised } = seen;
        self.runs += trials.len() as u64;
        self.events += trials.iter().map(|trial| trial.records.len() as u64).sum::<u64>();
        let Some(first) = trials.first() else { return };
        self.stood(first, seed);
        for trial in &trials {
            self.coverage.run(&eye.map, &trial.records);
        }
        for (name, fault) in eye.joins(first) {
            let Some((spot, _)) = eye.map.spot(name) else { continue };
            let join = self.joins.entry(spot).or_default();
            join.decided += 1;
            join.met += u64::from(fault.is_none());
            if fault.is_some() {
                let this = (first.hits.len(), seed);
                join.unmet = Some(join.unmet.map_or(this, |known| known.min(this)));
            }
        }
        for raised in raised {
            let hits = first.hits.len();
            self.candidate(Candidate { hits, seed, how: how.clone(), raised });
        }
    }

    /// Where a run stood in the end.
    fn stood(&mut self, first: &Trial, seed: u64) {
        self.long += u64::from(first.stop == Stop::Long);
        match first.state.status() {
            RunStatus::Completed => self.completed += 1,
            RunStatus::Waiting => self.waiting += 1,
            RunStatus::Failed => self.failed += 1,
            RunStatus::Cancelled | RunStatus::Running => {}
        }
        // A person's no is an answer like any other.
        let failed = first.state.ended().filter(|(end, _)| *end == End::Failed && first.hits.is_empty());
        let fault = failed.and_then(|(_, fault)| fault).filter(|fault| fault.kind != FaultKind::Denied);
        if let Some(fault) = fault {
            let node = fault.node.as_deref().map(|node| first.state.report_name(node).into_owned());
            let key = (node.unwrap_or_default(), fault.kind.name());
            let count = self.calm.entry(key).or_insert((0, seed));
            *count = (count.0 + 1, count.1.min(seed));
        }
    }

    /// The joins that were decided often and never met.
    fn never_met(&self) -> impl Iterator<Item = Spot> {
        let never = self.joins.iter().filter(|(_, join)| join.met == 0 && join.decided >= DECIDED);
        never.map(|(spot, _)| *spot)
    }

    fn decided(&self, join: Spot) -> u64 {
        self.joins.get(&join).map_or(0, |join| join.decided)
    }

    /// Keeps the plainest run of those that show the same.
    fn candidate(&mut self, candidate: Candidate) {
        let key = (candidate.raised.kind, candidate.raised.spot);
        let plainer = self.found.get(&key).is_none_or(|known| candidate.rank() < known.rank());
        if plainer {
            self.found.insert(key, candidate);
        }
    }

    /// Takes in what others looked at.
    fn and(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.runs += other.runs;
        self.events += other.events;
        self.completed += other.completed;
        self.failed += other.failed;
        self.waiting += other.waiting;
        self.long += other.long;
        for (key, (count, seed)) in other.calm {
            let known = self.calm.entry(key).or_insert((0, seed));
            *known = (known.0 + count, known.1.min(seed));
        }
        self.coverage.and(other.coverage);
        for (spot, join) in other.joins {
            let known = self.joins.entry(spot).or_default();
            known.decided += join.decided;
            known.met += join.met;
            known.unmet = [known.unmet, join.unmet].into_iter().flatten().min();
        }
        other.found.into_values().for_each(|candidate| self.candidate(candidate));
        self.bugs.extend(other.bugs);
    }
}

impl Candidate {
    fn rank(&self) -> (usize, u64, &How) {
        (self.hits, self.seed, &self.how)
    }
}

/// The plainest run of each thing that is wrong.
fn candidates(eye: &Eye<'_>, tally: &Tally) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = tally.found.values().cloned().collect();
    for spot in tally.never_met() {
        let Some((hits, seed)) = tally.joins.get(&spot).and_then(|join| join.unmet) else { continue };
        let trial = eye.world.run(&Luck::of(seed), None);
        if let Some(raised) = eye.never_met(&trial, spot, tally.decided(spot)) {
            found.push(Candidate { hits, seed, how: How::Once, raised });
        }
    }
    found
}

/// A run that shows the same with as little bad luck as that takes; nothing if that much does not count.
fn smallest(eye: &Eye<'_>, candidate: &Candidate, tally: &Tally) -> Option<Finding> {
    let (luck, mut spared) = (Luck::of(candidate.seed), Vec::new());
    let (mut trial, mut raised) = shows(eye, &luck, candidate, tally)?;
    let most = (TRIED / trial.records.len().max(1)).clamp(8, TRIES);
    let (mut tries, mut size) = (0, trial.hits.len().max(1));
    loop {
        let (before, mut at) = (spared.len(), 0);
        let hits: Vec<Hit> = bad_luck(&trial);
        while at < hits.len() && tries < most {
            tries += 1;
            let part = hits.iter().skip(at).take(size).cloned();
            let fewer: Vec<Hit> = spared.iter().cloned().chain(part).collect();
            if let Some((smaller, said)) = shows(eye, &luck.sparing(&fewer), candidate, tally)
                && bad_luck(&smaller).len() < bad_luck(&trial).len()
            {
                (trial, raised, spared) = (smaller, said, fewer);
            }
            at += size;
        }
        match size {
            1 if spared.len() == before || tries >= most => break,
            1 => {}
            _ => size /= 2,
        }
    }
    let hits = trial.hits.clone();
    counts(candidate.raised.kind, &bad_luck(&trial)).then_some(())?;
    let Trial { records, state, .. } = trial;
    let Raised { kind, node, message, .. } = raised;
    Some(Finding { seed: candidate.seed, kind, node, message, hits, records, state })
}

/// What luck can spare a run.
fn bad_luck(trial: &Trial) -> Vec<Hit> {
    trial.hits.iter().filter(|hit| !matches!(hit, Hit::Crash(_))).cloned().collect()
}

/// The run that shows what a candidate does, with this luck, if one does.
fn shows(eye: &Eye<'_>, luck: &Luck, candidate: &Candidate, tally: &Tally) -> Option<(Trial, Raised)> {
    let Candidate { how, raised, .. } = candidate;
    if raised.kind == Kind::JoinNeverMet {
        let trial = eye.world.run(luck, None);
        let spot = raised.spot?;
        let raised = eye.never_met(&trial, spot, tally.decided(spot))?;
        return Some((trial, raised));
    }
    let (seen, _) = eye.look(luck, |first| match how {
        How::After(events) => How::After((*events).min(first.records.len())),
        // A call that is not made any more is none to die at.
        How::During(effect) if !first.records.iter().any(|it| requests(&it.event) == Some(effect)) => {
            How::Once
        }
        how => how.clone(),
    });
    let Seen { mut trials, raised: all } = seen;
    let same = all.into_iter().find(|it| (it.kind, it.spot) == (raised.kind, raised.spot))?;
    // What a crash or another order shows, the second run does; all else the first.
    let second = matches!(raised.kind, Kind::OrderDependent | Kind::ResumeDiffers | Kind::WriteInDoubt);
    let trial = if second { trials.pop() } else { trials.drain(..1).next() }?;
    Some((trial, same))
}

fn bug(world: &World, seed: u64, message: &str) -> Finding {
    let message = format!("a failed assertion: {message}");
    let state = State::new(Arc::clone(world.graph()));
    let (kind, node) = (Kind::InternalError, String::new());
    Finding { seed, kind, node, message, hits: Vec::new(), records: Vec::new(), state }
}
