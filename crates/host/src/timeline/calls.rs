//! Calls and questions, as events tell of them.

use super::Timeline;
use super::history::{Answer, Attempt, Call, CallKind, Moment, NodeTimeline, Question, Visit, push};
use super::recovery::Spent;
use selvedge_engine::graph::{Act, INTERNAL, is_operation};
use selvedge_engine::place::EffectPlace;
use selvedge_engine::{AskPlace, Asked, Asking, EffectId, Event, Failure, Outcome, Request, State};
use serde_json::Value;
use std::sync::Arc;

/// The role of who asks for none.
const BASIC: &str = "basic";

/// Where an attempt stands: its node, and by number the visit, the call and the attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallAt {
    row: usize,
    visit: usize,
    call: usize,
    attempt: usize,
}

impl Timeline {
    /// Takes an event of a call or a question in.
    pub(super) fn call_event(&mut self, state: &State, now: Moment, event: &Event) {
        match event {
            Event::Requested { effect, args, .. } => {
                let mut call = self.requested(state, effect);
                call.arguments = call.arguments.or_else(|| args.as_deref().map(shared));
                self.call(effect, call, Attempt::new(effect, now), |visit| visit.requested += 1);
            }
            Event::Retried { effect, after_ms, reason } => {
                let again = Attempt {
                    after_ms: *after_ms,
                    reason: Some(reason.as_str().into()),
                    ..Attempt::new(effect, now)
                };
                self.retried(state, effect, again);
            }
            Event::Reused { effect, from, args } => self.reused(effect, from, args.as_deref(), now),
            Event::Refused { effect, fault, args } => {
                let arguments = args.as_deref().map(shared);
                let outcome = Some(Outcome::from(Failure::of((**fault).clone())));
                let attempt = Attempt { ended: Some(now), outcome, ..Attempt::new(effect, now) };
                self.call(effect, Call::of(CallKind::Unknown, arguments), attempt, |_| {});
            }
            Event::Completed { effect, outcome, printed, took, .. } => {
                let Some(at) = self.calls.get(effect).copied() else { return };
                self.touched = Some(at.row);
                self.count(effect, outcome);
                self.note_made(at, outcome);
                let Some(visit) = self.visit_mut(at) else { return };
                outcome.tokens().into_iter().for_each(|tokens| visit.tokens.add(tokens));
                visit.under_way.retain(|open| *open != (at.call, at.attempt));
                if let Some(attempt) = visit.attempt_mut(at) {
                    (attempt.ended, attempt.took) = (Some(now), *took);
                    (attempt.outcome, attempt.printed) = (Some(outcome.clone()), printed.clone());
                }
            }
            Event::Lost { effect } => {
                let Some(at) = self.calls.get(effect).copied() else { return };
                self.touched = Some(at.row);
                let Some(visit) = self.visit_mut(at) else { return };
                visit.under_way.retain(|open| *open != (at.call, at.attempt));
                if let Some(attempt) = visit.attempt_mut(at) {
                    attempt.lost = true;
                }
            }
            Event::Asked(asked) => self.asked(asked, now),
            Event::Answered { ask, value } => self.answered(ask, value, now),
            Event::Fired { timer } => self.close(timer, now),
            Event::Unsent { effects } => {
                for effect in effects {
                    if let Some(attempt) = self.attempt_mut(effect) {
                        attempt.unsent = true;
                    }
                }
            }
            _ => {}
        }
    }

    /// What a call is, by the state that has it under way.
    fn requested(&self, state: &State, effect: &EffectId) -> Call {
        let Some(pending) = state.pending().get(effect) else {
            return Call::of(self.kind_by_graph(effect), None);
        };
        if pending.model {
            return Call::of(CallKind::Model, None);
        }
        let call = match state.request(effect) {
            Some(Request::Tool(request)) => {
                Call::of(CallKind::Tool(request.tool.name.clone()), Some(Arc::new(request.args)))
            }
            Some(Request::Operation(request)) => {
                Call::of(CallKind::Operation(request.tool.name.clone()), Some(Arc::new(request.args)))
            }
            Some(Request::Model(_)) => Call::of(CallKind::Model, None),
            None => Call::of(CallKind::Unknown, None),
        };
        Call { effects: Some(pending.effects), ..call }
    }

    /// What a call does, by the leaf that its id names (E-06).
    fn act(&self, effect: &EffectId) -> Option<&Act> {
        let place = effect.place()?;
        let frame = *self.by_frame.get(place.place.frames.as_str())?;
        let nodes = self.nodes_of(frame)?;
        let mut leaves = nodes.graph().leaves(nodes.get(&place.place.node)?);
        leaves.find(|known| *known.name == *place.leaf).map(|leaf| &leaf.act)
    }

    /// Counts what a call has used with who was asked.
    fn count(&mut self, effect: &EffectId, outcome: &Outcome) {
        let tokens = outcome.tokens().copied();
        let role = match self.act(effect) {
            Some(Act::Infer(infer)) if outcome.is_sent() => infer.model.clone(),
            _ if tokens.is_none() => return,
            Some(Act::Call(call))
                if tokens.is_some_and(|used| used.input + used.output == 0) && is_operation(&call.tool) =>
            {
                return;
            }
            Some(Act::Call(call)) => Some(call.tool.strip_prefix(INTERNAL).unwrap_or(&call.tool).into()),
            _ => None,
        };
        let tokens = tokens.unwrap_or_default();
        let spent = Spent { calls: 1, tokens };
        self.roles.entry(role.unwrap_or_else(|| BASIC.into())).or_default().add(&spent);
    }

    pub(super) fn call_at(&self, at: CallAt) -> Option<&Call> {
        self.nodes.get(at.row)?.visits.get(at.visit)?.calls.get(at.call)
    }

    /// Whether a call is one of a model.
    fn kind_by_graph(&self, effect: &EffectId) -> CallKind {
        match self.act(effect) {
            Some(Act::Infer(_)) => CallKind::Model,
            _ => CallKind::Unknown,
        }
    }

    /// A recorded outcome stands for a call: that of an earlier visit is known here.
    fn reused(&mut self, effect: &EffectId, from: &EffectId, args: Option<&Value>, now: Moment) {
        let known = self.calls.get(from).and_then(|at| {
            let call = self.call_at(*at)?;
            Some((call, call.attempts.get(at.attempt)?))
        });
        let attempt = Attempt { ended: Some(now), ..Attempt::new(effect, now) };
        let (mut call, attempt) = match known {
            Some((call, before)) => {
                let (outcome, printed) = (before.outcome.clone(), before.printed.clone());
                let call = Call::of(call.kind.clone(), call.arguments.clone());
                (call, Attempt { outcome, printed, ..attempt })
            }
            None => (Call::of(self.kind_by_graph(effect), None), attempt),
        };
        call.arguments = args.map(shared).or(call.arguments);
        call.reused = Some(from.clone());
        self.call(effect, call, attempt, |visit| visit.reused += 1);
    }

    /// A call with its first attempt.
    fn call(&mut self, effect: &EffectId, mut call: Call, attempt: Attempt, count: impl FnOnce(&mut Visit)) {
        let Some(place) = effect.place() else { return };
        let Some(row) = self.of_effect(&place, attempt.requested) else { return };
        self.touched = Some(row);
        let Some(node) = self.nodes.get_mut(row) else { return };
        let Some(visit) = node.current_mut() else { return };
        visit.number = visit.number.max(place.place.visit);
        let open = attempt.is_open();
        push(&mut call.attempts, attempt);
        count(visit);
        push(&mut visit.calls, call);
        let call = visit.calls.len() - 1;
        visit.under_way.extend(open.then_some((call, 0)));
        let visit = node.visits.len() - 1;
        self.calls.insert(effect.clone(), CallAt { row, visit, call, attempt: 0 });
    }

    /// Another attempt of a call; of one that is not known the first.
    fn retried(&mut self, state: &State, effect: &EffectId, again: Attempt) {
        let Some(place) = effect.place() else { return };
        let before = EffectPlace { attempt: place.attempt.saturating_sub(1), ..place }.id();
        let known = self.calls.get(&before).copied();
        let call =
            known.and_then(|at| self.nodes.get_mut(at.row)?.visits.get_mut(at.visit)?.calls.get_mut(at.call));
        match (known, call) {
            (Some(at), Some(call)) => {
                call.attempts.push(again);
                let attempt = call.attempts.len() - 1;
                if let Some(visit) = self.visit_mut(at) {
                    visit.under_way.push((at.call, attempt));
                }
                self.touched = Some(at.row);
                self.calls.insert(effect.clone(), CallAt { attempt, ..at });
            }
            _ => {
                let call = self.requested(state, effect);
                self.call(effect, call, again, |_| {});
            }
        }
    }

    /// An attempt is to wait so long before it is made.
    pub(super) fn delay(&mut self, effect: &EffectId, ms: u64) {
        if let Some(attempt) = self.attempt_mut(effect) {
            attempt.after_ms = ms;
        }
    }

    /// A question that was asked before anybody looked on.
    pub(super) fn ask_so_far(&mut self, state: &State, ask: &Arc<str>, asking: &Asking, now: Moment) {
        let Some(place) = AskPlace::parse(ask).map(AskPlace::into_place) else { return };
        let Some(frame) = self.frame_of(place.frames, now) else { return };
        let row = self.row(frame, state.node_id(asking.node));
        let Some(visit) = self.nodes.get_mut(row).and_then(NodeTimeline::current_mut) else { return };
        let prompt = asking.prompt.as_str().into();
        visit.questions.push(Question {
            ask: ask.clone(),
            kind: asking.kind,
            prompt,
            asked: now,
            shown: None,
            closed: None,
        });
        self.questions.insert(ask.clone(), (row, visit.questions.len() - 1));
        self.count_asking(frame, |count| count + 1);
    }

    fn visit_mut(&mut self, at: CallAt) -> Option<&mut Visit> {
        self.nodes.get_mut(at.row)?.visits.get_mut(at.visit)
    }

    fn attempt_mut(&mut self, effect: &EffectId) -> Option<&mut Attempt> {
        let at = *self.calls.get(effect)?;
        self.visit_mut(at)?.attempt_mut(at)
    }

    fn asked(&mut self, asked: &Asked, now: Moment) {
        let Asked { ask, node, ask_kind, prompt, .. } = asked;
        let released = self.released;
        let Some(row) = self.make(node, now) else { return };
        if row.current().is_none() {
            // It asks whether it may begin.
            row.begin(released, None);
        }
        let Some(visit) = row.current_mut() else { return };
        let prompt = prompt.as_str().into();
        visit.questions.push(Question {
            ask: ask.clone(),
            kind: *ask_kind,
            prompt,
            asked: now,
            shown: None,
            closed: None,
        });
        let question = visit.questions.len() - 1;
        let Some(row) = AskPlace::parse(ask).map(|place| place.into_place()) else { return };
        let Some(frame) = self.frame_of(row.frames, now) else { return };
        let row = self.row(frame, &row.node);
        self.questions.insert(ask.clone(), (row, question));
        self.count_asking(frame, |count| count + 1);
    }

    /// An answer. To a question that is not open it takes back what was said before.
    fn answered(&mut self, ask: &Arc<str>, value: &Value, now: Moment) {
        let Some(place) = AskPlace::parse(ask).map(AskPlace::into_place) else { return };
        let shown = value.get("shown").and_then(Value::as_i64).map(|at| Moment { at, ..now });
        if let Some(question) = self.question_mut(ask) {
            question.shown = shown;
        }
        self.close(ask, now);
        let Some(frame) = self.frame_of(place.frames, now) else { return };
        let row = self.row(frame, &place.node);
        self.touched = Some(row);
        let Some(row) = self.nodes.get_mut(row) else { return };
        row.answers.push(Answer { ask: ask.clone(), value: Arc::new(value.clone()), at: now });
        // What came back of a call in doubt, whose effect is the ask.
        if let Some(output) = value.get("done")
            && let Some(attempt) = self.attempt_mut(&EffectId(ask.clone())).filter(|attempt| attempt.lost)
        {
            (attempt.ended, attempt.outcome) = (Some(now), Some(Outcome::Output(shared(output))));
        }
    }

    /// A question is open no more.
    fn close(&mut self, ask: &Arc<str>, now: Moment) {
        if let Some(question) = self.question_mut(ask) {
            question.closed = Some(now);
        }
        let Some((row, _)) = self.questions.remove(ask) else { return };
        self.touched = Some(row);
        if let Some(frame) = self.nodes.get(row).map(|node| node.within) {
            self.count_asking(frame, |count| count.saturating_sub(1));
        }
    }

    /// An open question of a visit that counts.
    fn question_mut(&mut self, ask: &Arc<str>) -> Option<&mut Question> {
        let (row, question) = *self.questions.get(ask)?;
        let question = self.nodes.get_mut(row)?.current_mut()?.questions.get_mut(question);
        question.filter(|question| question.ask == *ask)
    }

    fn of_effect(&mut self, place: &EffectPlace<'_>, now: Moment) -> Option<usize> {
        let frame = self.frame_of(place.place.frames, now)?;
        Some(self.row(frame, &place.place.node))
    }
}

impl Visit {
    fn attempt_mut(&mut self, at: CallAt) -> Option<&mut Attempt> {
        self.calls.get_mut(at.call)?.attempts.get_mut(at.attempt)
    }
}

fn shared(value: &Value) -> Arc<Value> {
    Arc::new(value.clone())
}

impl Call {
    fn of(kind: CallKind, arguments: Option<Arc<Value>>) -> Self {
        Self { kind, arguments, effects: None, reused: None, attempts: Vec::new() }
    }
}

impl Attempt {
    pub(super) fn new(effect: &EffectId, requested: Moment) -> Self {
        Self {
            effect: effect.clone(),
            requested,
            after_ms: 0,
            reason: None,
            ended: None,
            took: None,
            outcome: None,
            printed: None,
            lost: false,
            unsent: false,
        }
    }
}

/// What is open in a node, and in the frames that its current visit opened.
impl Timeline {
    /// The attempt that an effect is, with its call and the node that makes it, if it has been asked for.
    pub fn attempt(&self, effect: &EffectId) -> Option<(usize, &Call, &Attempt)> {
        let at = self.calls.get(effect)?;
        let call = self.nodes.get(at.row)?.visits.get(at.visit)?.calls.get(at.call)?;
        Some((at.row, call, call.attempts.get(at.attempt)?))
    }

    /// The node itself, and all nodes of the frames that its current visit opened.
    pub fn within<'t>(&'t self, node: &'t NodeTimeline) -> impl Iterator<Item = &'t NodeTimeline> {
        let mut rows = vec![node];
        std::iter::from_fn(move || {
            let row = rows.pop()?;
            let inner = row.current().into_iter().flat_map(|visit| &visit.inner);
            rows.extend(inner.filter_map(|at| self.nodes.get(*at)));
            Some(row)
        })
    }

    /// Attempts that are under way or wait to be.
    pub fn open_attempts<'t>(&'t self, node: &'t NodeTimeline) -> impl Iterator<Item = &'t Attempt> {
        self.open_visits(node).flat_map(Visit::under_way).map(|(_, attempt)| attempt)
    }

    /// Questions that nobody has answered.
    pub fn open_questions<'t>(&'t self, node: &'t NodeTimeline) -> impl Iterator<Item = &'t Question> {
        self.open_visits(node).flat_map(Visit::open_questions)
    }

    /// An open question, by its id.
    pub fn question(&self, ask: &str) -> Option<&Question> {
        let (row, _) = *self.questions.get(ask)?;
        self.nodes.get(row)?.current()?.open_questions().find(|question| &*question.ask == ask)
    }

    /// Whether a person is asked anything.
    pub(super) fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    fn open_visits<'t>(&'t self, node: &'t NodeTimeline) -> impl Iterator<Item = &'t Visit> {
        let visits = self.within(node).filter_map(NodeTimeline::current);
        visits.filter(|visit| visit.ended.is_none())
    }
}
