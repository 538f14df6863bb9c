//! What a run was where later ones leave it: a fork of a fork of it is proved from there on.

use selvedge_store::archive::ArchivedRun;

/// States that are held at a time. Each may be large; where more places than that are wanted, what is between them is derived once more.
const KEPT: usize = 8;

/// States on the way of the run that is proved, each after the events that a later run shares with it.
pub(super) struct Moments<S> {
    /// With their numbers of events, in order.
    kept: Vec<(u64, S)>,
    /// After how many events more are to be kept, the last number first.
    wanted: Vec<u64>,
}

impl<S: Clone> Moments<S> {
    pub(super) fn none() -> Self {
        Self { kept: Vec::new(), wanted: Vec::new() }
    }

    /// The nearest state before the events of a run that are its own, where `later` are the forks behind it. What none of them has need of is
    /// let go.
    pub(super) fn take(&mut self, run: &ArchivedRun, later: &[ArchivedRun]) -> Option<S> {
        let shared = run.first() - 1;
        self.kept.retain(|(events, _)| *events <= shared);
        let places = places(later);
        let begun = match self.kept.pop_if(|(events, _)| !places.contains(events)) {
            Some(moment) => Some(moment),
            None => self.kept.last().cloned(),
        };
        let from = begun.as_ref().map_or(0, |(events, _)| *events);
        let ahead: Vec<u64> = places.into_iter().filter(|place| *place > from).collect();
        // Evenly, and the last of them for sure: it is the next one that is needed.
        let apart = ahead.len().div_ceil(KEPT).max(1);
        self.wanted = ahead.into_iter().step_by(apart).collect();
        begun.map(|(_, state)| state)
    }

    /// Looks at the next state on the way, which has so many events.
    pub(super) fn see(&mut self, events: u64, state: &S) {
        if self.wanted.pop_if(|place| *place == events).is_none() {
            return;
        }
        self.kept.push((events, state.clone()));
        if self.kept.len() > KEPT {
            let mut left = self.kept.len();
            self.kept.retain(|_| {
                left -= 1;
                left.is_multiple_of(2)
            });
        }
    }
}

/// After which events of a run others leave it that come behind it in a chain of forks, the last one first. A fork that leaves later than one
/// before it in the chain leaves what is that one's own, or was of its source.
fn places(later: &[ArchivedRun]) -> Vec<u64> {
    let mut places: Vec<u64> = Vec::new();
    for shared in later.iter().map(|run| run.first() - 1) {
        if places.last().is_none_or(|least| shared < *least) {
            places.push(shared);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_store::archive::ArchivedFork;
    use serde_json::Value;

    /// A chain of forks: after how many events each leaves the one before, and how many it has itself.
    fn chain(runs: &[(u64, u64)]) -> Vec<ArchivedRun> {
        let run = |(nth, (shared, events)): (usize, &(u64, u64))| ArchivedRun {
            id: nth.to_string(),
            name: String::new(),
            dialect: String::new(),
            started_ms: 0,
            graph: None,
            scripted: false,
            options: Value::Null,
            fork: (nth > 0).then(|| ArchivedFork { run: (nth - 1).to_string(), events: *shared }),
            events: *events,
        };
        runs.iter().enumerate().map(run).collect()
    }

    /// Goes through a chain with states that know who made which of their events: how many events are looked at in all, and how many
    /// states are held at most.
    fn through(runs: &[ArchivedRun]) -> (u64, usize) {
        let (mut moments, mut before) = (Moments::<Vec<usize>>::none(), Vec::new());
        let (mut looked_at, mut held) = (0, 0);
        for (nth, run) in runs.iter().enumerate() {
            let shared = usize::try_from(run.first() - 1).unwrap();
            let mut state = moments.take(run, &runs[nth + 1..]).unwrap_or_default();
            assert_eq!(state, before[..state.len()], "run {nth} begins with what it shares");
            assert!(state.len() <= shared);
            while (state.len() as u64) < run.events {
                state.push(before.get(state.len()).filter(|_| state.len() < shared).copied().unwrap_or(nth));
                looked_at += 1;
                moments.see(state.len() as u64, &state);
                held = held.max(moments.kept.len());
            }
            before = state;
        }
        (looked_at, held)
    }

    #[test]
    fn a_chain_of_forks_is_gone_through_once() {
        let own = 10;
        let ends: Vec<(u64, u64)> = (0..1_000).map(|nth| (nth * own, (nth + 1) * own)).collect();
        assert_eq!(through(&chain(&ends)), (1_000 * own, 1), "each leaves the end of the one before");
        let middle: Vec<(u64, u64)> = (0..1_000).map(|nth| (if nth == 0 { 0 } else { 500 }, 510)).collect();
        assert_eq!(through(&chain(&middle)), (510 + 999 * own, 1), "each leaves the same event");
    }

    #[test]
    fn places_that_are_many_cost_little_more() {
        // A long run, and forks of which each leaves an earlier event than the one before.
        let earlier = |nth: u64| if nth == 0 { (0, 1_000) } else { (1_000 - nth, 1_001 - nth) };
        let (looked_at, held) = through(&chain(&(0..1_000).map(earlier).collect::<Vec<_>>()));
        assert!(held <= KEPT && looked_at < 20_000, "{looked_at} events, {held} states");
        // Up and down again: each of the first is left twice.
        let up = (0..500).map(|nth| (nth * 10, nth * 10 + 10));
        let down = (1..500).rev().map(|nth| (nth * 10, nth * 10 + 1));
        let (looked_at, held) = through(&chain(&up.chain(down).collect::<Vec<_>>()));
        assert!(held <= KEPT && looked_at < 100_000, "{looked_at} events, {held} states");
    }
}
