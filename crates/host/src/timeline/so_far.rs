//! What is known of a run that somebody begins to look at in its middle.

use super::Timeline;
use super::frames::FrameStatus;
use super::history::{Moment, NodeTimeline};
use selvedge_engine::{Event, NodeSoFar, State};

impl Timeline {
    /// What a state tells of its past: where nodes stand, and what is under way. `now`: what waits to be tried again waits from
    /// then on. What has happened by then has the number 0 for its event.
    pub fn so_far(state: &State, now: i64) -> Self {
        Self::so_far_by(state, now, |at| at)
    }

    /// The same by another clock than the journal's: `clock` has the moments of the latter by the former.
    pub fn so_far_by(state: &State, now: i64, clock: impl Fn(i64) -> i64) -> Self {
        let mut timeline = Self::new(state.graph());
        for node in state.live_view().so_far() {
            timeline.node_so_far(&node, &clock);
        }
        let (journal, now) = (now, clock(now));
        for (effect, pending) in state.pending_in_order() {
            timeline.recovery.in_flight(&timeline.graph, effect);
            let at = Moment { n: state.events(), at: now };
            timeline.call_event(
                state,
                at,
                &Event::Requested { effect: effect.clone(), args: None, warnings: Vec::new() },
            );
            timeline.delay(effect, pending.wait().left_ms(journal));
        }
        for (ask, asking) in state.asks() {
            let at = Moment { n: state.events(), at: now };
            timeline.ask_so_far(state, ask, asking, at);
        }
        timeline.touched = None;
        timeline
    }

    fn node_so_far(&mut self, node: &NodeSoFar<'_>, clock: impl Fn(i64) -> i64) {
        let started = Moment { n: 0, at: clock(node.started) };
        let Some(frame) = self.frame_of(node.place.frames, started) else { return };
        let row = self.row(frame, &node.place.node);
        let Some(known) = self.nodes.get_mut(row) else { return };
        if node.skipped {
            known.skipped = Some("".into());
            return;
        }
        known.begin(0, (node.started > 0).then_some(started));
        if let Some(visit) = known.current_mut() {
            visit.number = node.place.visit;
            visit.frames.paths = node.paths;
        }
        self.frame_goes_on(row);
        let Some(ended) = node.ended.map(|at| Moment { n: 0, at: clock(at) }) else {
            if node.gone {
                self.frame_ends(frame, FrameStatus::Cancelled, started);
            }
            return;
        };
        if let Some(visit) = self.nodes.get_mut(row).and_then(NodeTimeline::current_mut) {
            (visit.ended, visit.fault) = (Some(ended), node.fault.cloned().map(Box::new));
        }
        let end = self.nodes.get(row).and_then(|known| self.ends(known, node.fault.is_some()));
        if let Some((within, status)) = end {
            self.frame_ends(within, status, ended);
        }
    }
}
