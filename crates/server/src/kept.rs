//! Runs as they were at any of their events: folded once, and kept at some of them, so that looking at another moment costs the
//! events between (S-05).

use crate::problem::Problem;
use selvedge_host::Error;
use selvedge_host::explain::Shown;
use selvedge_host::text::counted;
use selvedge_host::timeline::Followed;
use selvedge_runtime::Reading;
use selvedge_store::Store;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Runs that are kept.
const RUNS: usize = 16;
/// Events between two moments that are kept of a run, at first.
const STRIDE: u64 = 512;
/// Moments at most that are kept of events that are read at once: to keep one costs what is in the run.
const AT_ONCE: u64 = 16;
/// Node instances in all moments that are kept of a run: from then on every second one goes.
const NODES: usize = 20_000;

/// The runs that somebody has looked at lately.
pub(crate) struct Kept {
    store: Arc<Store>,
    /// The one that was looked at last comes first.
    runs: Mutex<VecDeque<Named>>,
}

/// A run with its id; nothing yet until it has been opened, which those who look at others do not wait for.
type Named = (String, Arc<Mutex<Option<Run>>>);

/// A run that is kept.
struct Run {
    reading: Reading,
    /// As far as it has been read.
    tip: Followed,
    /// What its models were shown so far.
    shown: Shown,
    /// As it was after some of its events, by their numbers.
    marks: BTreeMap<u64, Followed>,
    /// Events between two of them.
    stride: u64,
    /// What was looked at last: the next step of a scrubber is not far.
    last: Option<Followed>,
}

/// What there is of a run that is looked at, beyond the moment that is.
pub(crate) struct Journal<'k> {
    /// The number of its last event.
    pub(crate) events: u64,
    /// What its models were shown, until that moment or longer.
    pub(crate) shown: &'k Shown,
}

impl Kept {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, runs: Mutex::default() }
    }

    /// Looks at a run as it was after event `at`, or as it is.
    ///
    /// # Errors
    /// There is no such run or event, or it can't be read.
    pub(crate) fn look<T>(
        &self,
        id: &str,
        at: Option<u64>,
        look: impl FnOnce(&Followed, Journal<'_>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let (at, events) = moment(&self.store, id, at)?;
        let run = self.run(id);
        let mut run = locked(&run);
        let run = match &mut *run {
            Some(run) => run,
            none => none.insert(Run::open(&self.store, id)?),
        };
        let (followed, shown) = run.at(at)?;
        look(followed, Journal { events, shown })
    }

    fn run(&self, id: &str) -> Arc<Mutex<Option<Run>>> {
        let mut runs = locked(&self.runs);
        let known = runs.iter().position(|(known, _)| known == id).and_then(|at| runs.remove(at));
        let named = known.unwrap_or_else(|| (id.to_owned(), Arc::default()));
        let run = Arc::clone(&named.1);
        runs.push_front(named);
        runs.truncate(RUNS);
        run
    }
}

/// The event after which a run is looked at, `at` or its last one, and the number of the last one.
///
/// # Errors
/// There is no such run or event.
fn moment(store: &Store, id: &str, at: Option<u64>) -> Result<(u64, u64), Problem> {
    let of = store.last_event(id)?;
    if let Some(at) = at.filter(|at| *at == 0 || *at > of) {
        let message = format!("run {id} has {}: there is no event {at}", counted(of, "event"));
        return Err(Error::usage("C-15", "unknown-event", &message)
            .help(&format!("at takes 1 to {of}"))
            .into());
    }
    Ok((at.unwrap_or(of), of))
}

impl Run {
    fn open(store: &Store, id: &str) -> Result<Self, Problem> {
        let reading = Reading::open(store, id)?;
        let tip = Followed::new(reading.graph());
        Ok(Self { reading, tip, shown: Shown::default(), marks: BTreeMap::new(), stride: STRIDE, last: None })
    }

    /// The run after that event, which is there, and what models were shown until then or longer.
    fn at(&mut self, at: u64) -> Result<(&Followed, &Shown), Problem> {
        if at >= self.tip.state.events() {
            self.read_on(at)?;
            if self.tip.state.events() == at {
                return Ok((&self.tip, &self.shown));
            }
        }
        let known = |followed: &Followed| followed.state.events();
        let mark = self.marks.range(..=at).next_back().map(|(_, mark)| mark);
        let last = self.last.take().filter(|last| known(last) <= at);
        let mut near = match (last, mark) {
            (Some(last), mark) if mark.is_none_or(|mark| known(mark) <= known(&last)) => last,
            (_, Some(mark)) => mark.clone(),
            (_, None) => Followed::new(self.reading.graph()),
        };
        let next = known(&near) + 1;
        if next <= at {
            self.reading.records(next, at, |record| near.take(record))?;
        }
        Ok((self.last.insert(near), &self.shown))
    }

    /// Reads on up to an event, and keeps moments on the way.
    fn read_on(&mut self, until: u64) -> Result<(), Problem> {
        let Self { reading, tip, shown, marks, stride, .. } = self;
        let next = tip.state.events() + 1;
        if next > until {
            return Ok(());
        }
        while *stride * AT_ONCE < until - next {
            *stride *= 2;
        }
        let read = reading.records(next, until, |record| {
            tip.take(record);
            shown.take(&tip.state, record);
            if !tip.state.events().is_multiple_of(*stride) {
                return;
            }
            // What has no room is not copied first.
            while !marks.is_empty() && weight(marks) + nodes(tip) > NODES {
                *stride *= 2;
                marks.retain(|at, _| at.is_multiple_of(*stride));
            }
            if tip.state.events().is_multiple_of(*stride) {
                marks.insert(tip.state.events(), tip.clone());
            }
        });
        read.map_err(Problem::from)
    }
}

/// Node instances in what is kept: what they take is most of it.
fn weight(marks: &BTreeMap<u64, Followed>) -> usize {
    marks.values().map(nodes).sum()
}

fn nodes(run: &Followed) -> usize {
    run.timeline.nodes().len()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
