//! The driver of the simulation: feeds inputs in an order that a seed chooses, keeps the journal as text, and
//! can begin again from any prefix of it.

use crate::canon::{self, Msg};
use crate::journal::{Journal, Mark, digest};
use crate::observed::Observed;
use crate::plan::SimPlan;
use crate::rng::Rng;
use crate::watch::{Watch, valid_conversation};
use crate::world::{Answer, Asker, World};
use selvedge_engine::{
    Budget, EffectId, Effects, Event, Failure, Fault, FaultKind, Fork, Graph, Input, Message, ModelReply,
    ModelRequest, Outcome, Record, Request, Role, RunStatus, Start, State, ToolCall,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// More events than any plan of the generator makes.
const MANY: usize = 20_000;

/// How one execution goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedule {
    /// Chooses the order of completion, delays and batches.
    pub seed: u64,
    /// Turns overlap off (P-20).
    pub sequential: bool,
    /// Whether a person says no to running a lost write again.
    pub deny_lost: bool,
    /// Cap on model calls (E-20).
    pub budget: Option<u64>,
    /// Whether digests of the state are kept, to compare a fold with.
    pub marks: bool,
    /// Whether a recovery sends writes that were in flight again, against E-05: for the canary.
    pub rerun_writes: bool,
}

/// One process that runs a plan.
pub struct Sim<'p> {
    plan: &'p SimPlan,
    schedule: Schedule,
    rng: Rng,
    /// The outside.
    pub world: World,
    /// The run.
    pub state: State,
    /// The run's journal.
    pub journal: Journal,
    watch: Watch,
    now: i64,
    requests: Vec<(usize, String)>,
    /// Effects that were lost, by their id without the attempt.
    lost: BTreeMap<String, u32>,
    /// What each effect asked: the node, and the content with the node's id in front.
    pub(crate) contents: BTreeMap<EffectId, (usize, String)>,
    asked_lost: BTreeSet<String>,
    sent: BTreeSet<EffectId>,
}

impl<'p> Sim<'p> {
    /// A process before the first event.
    pub fn new(plan: &'p SimPlan, graph: &Arc<Graph>, world: World, schedule: Schedule) -> Self {
        Self {
            plan,
            schedule,
            rng: Rng::new(schedule.seed),
            world,
            state: State::new(Arc::clone(graph)),
            journal: Journal::default(),
            watch: Watch::default(),
            now: 1_000,
            requests: Vec::new(),
            lost: BTreeMap::new(),
            contents: BTreeMap::new(),
            asked_lost: BTreeSet::new(),
            sent: BTreeSet::new(),
        }
    }

    /// A process that finds `journal` on disk after a crash (E-05).
    ///
    /// # Errors
    /// A fold that differs from the state that was live (E-03), or a broken rule.
    pub fn recover(
        plan: &'p SimPlan,
        graph: &Arc<Graph>,
        world: World,
        schedule: Schedule,
        journal: &Journal,
    ) -> Result<Self, String> {
        let mut sim = Self::new(plan, graph, world, schedule);
        sim.world.rewind(journal.marks.last().map_or(0, |mark| mark.changes));
        sim.world.sent_writes.clear();
        for (at, (record, mark)) in journal.records()?.iter().zip(&journal.marks).enumerate() {
            sim.state.apply_record(record);
            sim.now = sim.now.max(record.at);
            sim.keep_source(&record.event);
            sim.note(record, journal.lines.get(at).cloned().unwrap_or_default(), mark.changes)?;
            if let Event::Requested { effect, .. } | Event::Retried { effect, .. } = &record.event
                && sim.state.pending().get(effect).is_some_and(|p| p.effects == Effects::Write)
            {
                sim.world.sent_writes.insert(effect.to_string());
            }
            let digest = sim.journal.marks.last().and_then(|mark| mark.digest);
            if digest.is_some() && digest != mark.digest {
                return Err(format!("E-03: folding {} events gives another state than the live one", at + 1));
            }
        }
        sim.lose_writes()?;
        Ok(sim)
    }

    /// A process that makes a fork of a run, which shares `prefix` with it (E-19). The world is as the source left
    /// it, or goes on changing it.
    ///
    /// # Errors
    /// A broken rule.
    pub fn forked(
        source: &Sim<'p>,
        graph: &Arc<Graph>,
        schedule: Schedule,
        prefix: &Journal,
        fork: Fork,
    ) -> Result<Self, String> {
        let mut sim = Self::new(source.plan, graph, source.world.clone(), schedule);
        sim.contents.clone_from(&source.contents);
        for (at, record) in prefix.records()?.iter().enumerate() {
            sim.state.apply_record(record);
            sim.now = sim.now.max(record.at);
            sim.keep_source(&record.event);
            sim.note(record, prefix.lines.get(at).cloned().unwrap_or_default(), sim.world.changes())?;
        }
        sim.now = sim.now.max(source.now);
        sim.input(Input::Fork(Box::new(fork)))?;
        Ok(sim)
    }

    /// The same with another plan from here on.
    pub fn of(mut self, plan: &'p SimPlan) -> Self {
        self.plan = plan;
        self
    }

    fn keep_source(&mut self, event: &Event) {
        if let Event::Forked(fork) = event {
            self.journal.sources.push((fork.past.clone(), fork.compiled.clone()));
        }
    }

    /// What was in flight is sent again, a write is lost (E-05).
    fn lose_writes(&mut self) -> Result<(), String> {
        let flying: Vec<(EffectId, Effects)> =
            self.state.pending().iter().map(|(id, pending)| (id.clone(), pending.effects)).collect();
        if self.rng.chance(50) {
            self.quiesce()?;
        }
        for (effect, effects) in flying {
            match effects {
                Effects::Write if self.schedule.rerun_writes => {}
                Effects::Write => self.input(Input::Lose(effect))?,
                // It may have happened: then it must not happen again.
                Effects::Idempotent if self.rng.chance(50) => drop(self.outcome(&effect)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs until the end, or until the journal has `stop` events.
    ///
    /// # Errors
    /// A broken rule.
    pub fn run(&mut self, stop: Option<usize>) -> Result<(), String> {
        if self.journal.is_empty() {
            let graph = self.state.graph().hash().map_err(|error| error.to_string())?.into();
            let start = Start {
                graph,
                initial: self.plan.metadata.clone(),
                sequential: self.schedule.sequential,
                budget: Budget { calls: self.schedule.budget, ..Budget::default() },
                ..Start::default()
            };
            self.input(Input::Start(Box::new(start)))?;
        }
        loop {
            if self.journal.len() > MANY {
                return Err("the run does not end".into());
            }
            if stop.is_some_and(|stop| self.journal.len() >= stop) {
                return Ok(());
            }
            // Several inputs may be recorded before the machine goes on.
            if !self.rng.chance(15) && !self.step_once(stop)? {
                return Ok(());
            }
            if self.state.ended().is_none() && (self.state.step().is_none() || self.rng.chance(10)) {
                self.outside()?;
            }
        }
    }

    /// Derives one event or all; false once the run has ended.
    fn step_once(&mut self, stop: Option<usize>) -> Result<bool, String> {
        let all = self.rng.chance(70) && stop.is_none();
        if all {
            self.quiesce()?;
        } else if let Some(event) = self.state.step() {
            self.push(event)?;
        }
        Ok(self.state.ended().is_none())
    }

    fn quiesce(&mut self) -> Result<(), String> {
        while let Some(event) = self.state.step() {
            self.push(event)?;
            if self.journal.len() > MANY {
                return Err("the machine does not come to rest".into());
            }
        }
        Ok(())
    }

    /// Lets the outside do one thing.
    fn outside(&mut self) -> Result<(), String> {
        let ready: Vec<EffectId> = self.state.pending().keys().cloned().collect();
        let open: Vec<Arc<str>> = self.state.asks().keys().cloned().collect();
        if ready.is_empty() && open.is_empty() {
            if self.state.step().is_some() {
                return Ok(());
            }
            let (retired, all) = self.state.progress();
            return Err(format!("the run is stuck with {retired} of {all} nodes retired"));
        }
        if ready.is_empty() && self.state.step().is_none() && self.state.status() != RunStatus::Waiting {
            return Err("E-21: only a person can go on, and the status is not `waiting`".into());
        }
        for effect in &ready {
            self.send(effect)?;
        }
        self.now += self.rng.within(0, 40);
        if !open.is_empty() && (ready.is_empty() || self.rng.chance(40)) {
            let Some(ask) = self.rng.pick(&open).cloned() else { return Ok(()) };
            let yes = self.approve(&ask);
            return self.input(Input::Answer(ask, if yes { json!("yes") } else { json!("no") }));
        }
        let Some(effect) = self.rng.pick(&ready).cloned() else { return Ok(()) };
        let not_before = self.state.pending().get(&effect).map_or(0, |pending| pending.not_before);
        self.now = self.now.max(not_before);
        let outcome = self.outcome(&effect)?;
        let jitter = u32::try_from(self.rng.below(1_000_000)).unwrap_or(0);
        self.input(Input::Complete(effect, outcome, jitter))
    }

    fn approve(&self, ask: &str) -> bool {
        if self.asked_lost.contains(ask) {
            return !self.schedule.deny_lost;
        }
        let node = self.state.asks().get(ask).map(|asking| asking.node);
        let node = node.and_then(|ix| self.state.graph().nodes.get(ix)).map_or("", |node| &node.id);
        // An ask of a call is named after the effect; one of a node has only node and leaf.
        self.world.approves(node, if ask.matches('/').count() > 1 { "tool" } else { "node" })
    }

    /// E-04: what is sent stands in the journal; E-10: what a model is sent is a conversation.
    fn send(&mut self, effect: &EffectId) -> Result<(), String> {
        if !self.sent.insert(effect.clone()) {
            return Ok(());
        }
        let Some(request) = self.state.request(effect) else {
            return Err(format!("{effect} is pending and has no request"));
        };
        let Some(pending) = self.state.pending().get(effect) else { return Ok(()) };
        if pending.effects == Effects::Write && !self.world.sent_writes.insert(effect.to_string()) {
            return Err(format!("E-05: the write {effect} is sent twice"));
        }
        match request {
            Request::Model(request) => {
                let sent: Vec<Msg> = request.messages.iter().map(|m| Msg::from(m.as_ref())).collect();
                valid_conversation(&sent).map_err(|error| format!("{effect}: {error}"))
            }
            Request::Tool(_) => Ok(()),
        }
    }

    /// What the outside says to an effect that is pending.
    fn outcome(&mut self, effect: &EffectId) -> Result<Outcome, String> {
        let request = self.state.request(effect).ok_or_else(|| format!("{effect} has no request"))?;
        let (base, attempt) = effect.0.rsplit_once('/').unwrap_or((&effect.0, "1"));
        let attempt = attempt.parse::<u32>().unwrap_or(1) - self.lost.get(base).copied().unwrap_or(0);
        let answer = match &request {
            Request::Model(request) => {
                let asker = Asker { node: &request.node, attempt };
                let tools: Vec<String> = request.tools.iter().map(|tool| tool.name.to_string()).collect();
                let schema = request.schema.as_ref().map(|schema| &schema.schema);
                self.world.model(asker, &self.model_content(request), &tools, schema)
            }
            Request::Tool(request) => {
                let asker = Asker { node: &request.node, attempt };
                let (_, def) = self.plan.node(&request.node).ok_or("a request of no node")?;
                let effects = self.plan.effects(def, &request.tool.name);
                let content = canon::tool_content(&request.tool.name, &request.args);
                self.world.tool(asker, base, &content, effects)
            }
        };
        Ok(match answer {
            Answer::Reply(text, calls) => {
                let calls = calls.into_iter().map(|call| ToolCall {
                    id: call.id.into(),
                    name: call.name.into(),
                    arguments: call.args,
                });
                Outcome::Reply(Arc::new(ModelReply { text, calls: calls.collect(), ..ModelReply::default() }))
            }
            Answer::Output(output) => Outcome::Output(Arc::new(output)),
            Answer::Failed(broken) => Outcome::Failed(Failure {
                fault: Fault::new(kind(broken.kind), broken.message),
                transient: broken.transient,
                retry_after_ms: broken.retry_after_ms,
                unsent: false,
            }),
        })
    }

    /// A request's content; the engine's own words when it asks again are left out.
    fn model_content(&self, request: &ModelRequest) -> String {
        let mut sent: Vec<Msg> = request.messages.iter().map(|m| Msg::from(m.as_ref())).collect();
        let thread = self.state.thread_of(&request.node).unwrap_or_default();
        let foreign = |m: &Arc<Message>| !thread.iter().any(|known| Arc::ptr_eq(known, m));
        if let [.., reply, again] = request.messages.as_slice()
            && reply.role == Role::Assistant
            && again.role == Role::User
            && foreign(reply)
            && let Some(last) = sent.last_mut()
        {
            *last = Msg::text("user", canon::ASKED_AGAIN);
        }
        let tools: Vec<String> = request.tools.iter().map(|tool| tool.name.to_string()).collect();
        canon::model_content(&sent, &tools, request.schema.as_ref().map(|schema| &schema.schema))
    }

    /// Records an input; one that changes nothing is dropped, as the machine says.
    ///
    /// # Errors
    /// A broken rule.
    pub fn input(&mut self, input: Input) -> Result<(), String> {
        let Some(event) = self.state.accept(input) else { return Ok(()) };
        self.state.tick(self.now);
        self.push(event)
    }

    fn push(&mut self, event: Event) -> Result<(), String> {
        let record = Record { at: self.state.tick(0), event };
        let line = serde_json::to_string(&record).map_err(|error| error.to_string())?;
        self.state.apply(&record.event);
        self.keep_source(&record.event);
        self.note(&record, line, self.world.changes())
    }

    /// Keeps the journal and checks what must hold after each event.
    fn note(&mut self, record: &Record, line: String, changes: usize) -> Result<(), String> {
        match &record.event {
            Event::Lost { effect } => {
                let base = effect.0.rsplit_once('/').map_or(&*effect.0, |(base, _)| base);
                *self.lost.entry(base.to_owned()).or_insert(0) += 1;
                self.asked_lost.insert(effect.to_string());
            }
            Event::Requested { effect, .. } | Event::Retried { effect, .. } => self.note_request(effect)?,
            Event::Reused { effect, from, .. } => {
                // A reply that came at a later attempt answers the question of the first.
                let base = from.0.rsplit_once('/').map(|(base, _)| EffectId(format!("{base}/1").into()));
                let first = base.and_then(|base| self.contents.get(&base));
                if let Some(content) = first.or_else(|| self.contents.get(from)).cloned() {
                    self.contents.insert(effect.clone(), content);
                }
            }
            _ => {}
        }
        self.journal.lines.push(line);
        let (events, marks) = (self.journal.len(), self.schedule.marks);
        let digest =
            (marks && events.is_multiple_of(4)).then(|| digest(&self.state, events.is_multiple_of(32)));
        self.journal.marks.push(Mark { changes, digest });
        let watched = self.watch.event(self.plan, &self.state, &record.event);
        watched.map_err(|error| format!("event {}: {error}", self.journal.len()))
    }

    fn note_request(&mut self, effect: &EffectId) -> Result<(), String> {
        let (node, content) = match self.state.request(effect) {
            Some(Request::Model(request)) => {
                (request.node.clone(), format!("{} model {}", request.node, self.model_content(&request)))
            }
            Some(Request::Tool(request)) => {
                let content = canon::tool_content(&request.tool.name, &request.args);
                (request.node.clone(), format!("{} tool {content}", request.node))
            }
            None => return Err(format!("{effect} was requested and has no request")),
        };
        let at = self.plan.node(&node).map_or(0, |(at, _)| at);
        self.contents.insert(effect.clone(), (at, content.clone()));
        self.requests.push((at, content));
        Ok(())
    }

    /// The observable result so far.
    pub fn observed(&self) -> Observed {
        Observed::from_view(&self.state.view(), &self.requests)
    }

    /// P-20's order of calls, over the whole run.
    ///
    /// # Errors
    /// The two calls that were out of order.
    pub fn in_list_order(&self) -> Result<(), String> {
        self.watch.in_list_order()
    }
}

fn kind(name: &str) -> FaultKind {
    match name {
        "timeout" => FaultKind::Timeout,
        "provider_error" => FaultKind::ProviderError,
        _ => FaultKind::ExecutionFailure,
    }
}
