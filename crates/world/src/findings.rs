//! What a run, or two of them, show to be wrong with a document.

mod compare;

use crate::kind::Kind;
use crate::luck::{Hit, Luck};
use crate::map::{Map, Spot};
use crate::trial::{Stop, Trial, World};
use compare::{decided_otherwise, difference, short};
use selvedge_engine::graph::{Act, Control};
use selvedge_engine::place::Place;
use selvedge_engine::{AskKind, AskPlace, EffectId, Event, Fault, FaultKind, State};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What else was done to see it, besides running with a seed's luck.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    /// Nothing.
    Once,
    /// Running it again in another order.
    Order(u64),
    /// Letting the process die while a call was in flight.
    During(EffectId),
    /// Letting it die after so many events.
    After(usize),
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Raised {
    pub(crate) kind: Kind,
    pub(crate) spot: Option<Spot>,
    /// What reports call the node.
    pub(crate) node: String,
    pub(crate) message: String,
}

/// The run that a seed brings, and the other one that it is held against.
pub(crate) struct Seen {
    pub(crate) trials: Vec<Trial>,
    pub(crate) raised: Vec<Raised>,
}

/// What looks at runs of one document.
pub(crate) struct Eye<'w> {
    pub(crate) world: &'w World,
    pub(crate) map: Map,
}

impl<'w> Eye<'w> {
    pub(crate) fn of(world: &'w World) -> Self {
        Self { world, map: Map::of(world.graph()) }
    }

    /// Runs it, and once more as `how` says.
    pub(crate) fn look(&self, luck: &Luck, how: impl FnOnce(&Trial) -> How) -> (Seen, How) {
        let first = self.world.run(luck, None);
        let mut raised = self.of_one(&first);
        let how = how(&first);
        let second = match &how {
            How::Once => None,
            How::Order(order) => {
                let second = self.world.run(&luck.in_order(*order), Some(&first));
                raised.extend(self.of_orders(&first, &second));
                Some(second)
            }
            How::During(effect) => {
                let at = first.records.iter().position(|record| requests(&record.event) == Some(effect));
                at.map(|at| self.world.resume(luck, &first, at + 1))
            }
            How::After(events) => Some(self.world.resume(luck, &first, *events)),
        };
        if let (How::During(_) | How::After(_), Some(second)) = (&how, &second) {
            raised.extend(self.of_crash(&first, second));
        }
        let trials = std::iter::once(first).chain(second).collect();
        (Seen { trials, raised }, how)
    }

    fn raised(&self, kind: Kind, state: &State, name: &str, message: String) -> Raised {
        let spot = self.map.spot(name).map(|(spot, _)| spot);
        Raised { kind, spot, node: state.report_name(name).into_owned(), message }
    }

    /// What one run shows.
    fn of_one(&self, trial: &Trial) -> Vec<Raised> {
        let (state, mut raised) = (&trial.state, Vec::new());
        match trial.stop {
            Stop::Waiting => raised.extend(self.unanswered(trial)),
            Stop::Long => raised.push(self.endless(trial)),
            Stop::Stuck => {
                let message = "the run neither ends nor waits for anything".to_owned();
                raised.push(self.raised(Kind::InternalError, state, "", message));
            }
            Stop::Ended => raised.extend(self.limit(trial)),
        }
        for effect in &trial.repeated {
            let name = name_of(&effect.0);
            let message = format!(
                "{}, which may not be made twice, is made again after it had no answer in time",
                self.call(state, &name)
            );
            raised.push(self.raised(Kind::WriteRepeated, state, &name, message));
        }
        for warning in state.warnings().iter().filter(|warning| &*warning.code == "write-cancelled") {
            let name = warning.node.as_deref().unwrap_or_default();
            let message = format!(
                "{}, which may not be made twice, is cut off when a join is decided: nobody knows whether it happened",
                self.call(state, name)
            );
            raised.push(self.raised(Kind::WriteCutOff, state, name, message));
        }
        raised
    }

    /// Questions that let the run wait for ever. Those of approvals in plans can't have a time, nor can those about single calls.
    fn unanswered(&self, trial: &Trial) -> Vec<Raised> {
        let state = &trial.state;
        let asks = state.asks().iter().filter_map(|(id, ask)| {
            let AskPlace::Leaf { .. } = AskPlace::parse(id)? else { return None };
            let name = state.event_name(ask.node);
            let (spot, _) = self.map.spot(&name)?;
            let flow = self.map.graph_of(spot)?.control == Control::Flow;
            (flow || ask.kind != AskKind::Approve).then(|| {
                let node = state.report_name(&name);
                let prompt = short(&ask.prompt);
                let message = format!("nobody answers `{node}` ({prompt}), and the run waits for ever");
                self.raised(Kind::AskUnanswered, state, &name, message)
            })
        });
        asks.collect()
    }

    /// The loop that a run does not come out of.
    fn endless(&self, trial: &Trial) -> Raised {
        let mut rounds: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for record in &trial.records {
            if let Event::Entered { node, iteration: Some(_), .. } = &record.event {
                *rounds.entry(node).or_default() += 1;
            }
        }
        let most = rounds.into_iter().max_by_key(|(_, rounds)| *rounds);
        let events = trial.records.len();
        match most {
            Some((node, rounds)) => {
                let name = trial.state.report_name(node);
                let message = format!(
                    "the run has {events} events and has not ended: the loop `{name}` has gone round {rounds} times"
                );
                self.raised(Kind::LimitReached, &trial.state, node, message)
            }
            None => {
                let message = format!("the run has {events} events and has not ended");
                self.raised(Kind::LimitReached, &trial.state, "", message)
            }
        }
    }

    /// A run that failed as a limit was reached.
    fn limit(&self, trial: &Trial) -> Option<Raised> {
        let (_, fault) = trial.state.ended()?;
        let fault = fault.filter(|fault| is_limit(fault))?;
        let name = fault.node.as_deref().unwrap_or_default();
        Some(self.raised(Kind::LimitReached, &trial.state, name, fault.message.clone()))
    }

    /// What two orders of the same outcomes show. Where time itself ended something, orders are no orders of the same.
    fn of_orders(&self, first: &Trial, second: &Trial) -> Option<Raised> {
        let both = [first, second];
        let timed = |trial: &Trial| trial.records.iter().any(|r| matches!(r.event, Event::Fired { .. }));
        if both.iter().any(|trial| trial.stop != Stop::Ended || timed(trial)) {
            return None;
        }
        let difference = difference(&first.state, &second.state)?;
        let join = decided_otherwise(first, second).unwrap_or_default();
        let what = match join.is_empty() {
            true => "the same outcomes in another order".to_owned(),
            false => format!("which path of `{}` ends first", first.state.report_name(&join)),
        };
        let message = format!("{what} decides what comes of the run: {difference}");
        Some(self.raised(Kind::OrderDependent, &first.state, &join, message))
    }

    /// What a process that died and went on shows, held against one that did not die.
    fn of_crash(&self, first: &Trial, second: &Trial) -> Vec<Raised> {
        let mut raised: Vec<Raised> = Vec::new();
        for record in &second.records {
            if let Event::Lost { effect } = &record.event {
                let name = name_of(&effect.0);
                let message = format!(
                    "{}, which may not be made twice, is in flight when the process dies: nobody knows whether it happened, and the run waits for a person",
                    self.call(&second.state, &name)
                );
                raised.push(self.raised(Kind::WriteInDoubt, &second.state, &name, message));
            }
        }
        let same = first.stop == second.stop;
        let difference = match same && first.stop == Stop::Ended {
            true => difference(&first.state, &second.state),
            false => (!same).then(|| "one of them does not end".to_owned()),
        };
        if let Some(difference) = difference.filter(|_| !second.unsure) {
            let message = format!("a run that is taken up after a crash comes to another end: {difference}");
            raised.push(self.raised(Kind::ResumeDiffers, &first.state, "", message));
        }
        raised
    }

    /// `the call of TOOL at NODE`.
    fn call(&self, state: &State, name: &str) -> String {
        let node = state.report_name(name);
        let def = self.map.spot(name).and_then(|(spot, _)| self.map.node(spot));
        let tool = def.and_then(|def| {
            let mut calls = def.body.leaves.values().filter_map(|leaf| match &leaf.act {
                Act::Call(call) => Some(&call.tool),
                _ => None,
            });
            calls.next_back().cloned().or_else(|| def.tool.clone())
        });
        match tool {
            Some(tool) => format!("the call of `{tool}` at `{node}`"),
            None => format!("a call at `{node}`"),
        }
    }

    /// The joins that were decided in a run, by the node that opened their paths: whether each was met, and why not.
    pub(crate) fn joins<'t>(&self, trial: &'t Trial) -> Vec<(&'t Arc<str>, Option<&'t Fault>)> {
        let decided = trial.records.iter().filter_map(|record| match &record.event {
            Event::Left { node, joined: Some(_) } => Some((node, None)),
            Event::NodeFinished { node, fault: Some(fault), .. }
                // What is around a fork may fail of the same.
                if matches!(fault.kind, FaultKind::JoinUnmet | FaultKind::Timeout) && self.opens_paths(node) =>
            {
                Some((node, Some(&**fault)))
            }
            _ => None,
        });
        decided.collect()
    }

    fn opens_paths(&self, name: &str) -> bool {
        let node = self.map.spot(name).and_then(|(spot, _)| self.map.node(spot));
        node.is_some_and(|node| node.body.leaves.values().any(|leaf| matches!(leaf.act, Act::Fork(_))))
    }

    /// That a join is never met, as one run shows it.
    pub(crate) fn never_met(&self, trial: &Trial, spot: Spot, decided: u64) -> Option<Raised> {
        let of_it = |name: &str| self.map.spot(name).is_some_and(|(found, _)| found == spot);
        let (name, fault) =
            self.joins(trial).into_iter().find(|(name, fault)| fault.is_some() && of_it(name))?;
        let node = trial.state.report_name(name);
        let why = fault.map(|fault| fault.message.as_str()).unwrap_or_default();
        let message = format!("the join `{node}` was decided {decided} times and never met: {why}");
        Some(self.raised(Kind::JoinNeverMet, &trial.state, name, message))
    }
}

/// Whether bad luck of so many hits does not explain what was found: one that is handled may lead into a loop without an end, many
/// use up what a document meant to allow.
pub(crate) fn counts(kind: Kind, hits: &[Hit]) -> bool {
    kind != Kind::LimitReached || hits.len() <= 1
}

fn is_limit(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::LimitExceeded | FaultKind::BudgetExceeded)
}

pub(crate) fn requests(event: &Event) -> Option<&EffectId> {
    match event {
        Event::Requested { effect, .. } | Event::Retried { effect, .. } => Some(effect),
        _ => None,
    }
}

/// What events call the node that an effect belongs to.
fn name_of(id: &str) -> String {
    match AskPlace::parse(id).map(AskPlace::into_place) {
        Some(place) if place.frames.is_root() => place.node.into_owned(),
        Some(place) => Place { visit: 1, ..place }.to_string(),
        None => id.to_owned(),
    }
}

#[cfg(test)]
mod tests;
