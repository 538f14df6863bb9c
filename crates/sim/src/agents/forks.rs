//! What must hold for forks of agents, at any event: with an edited document, prompt or message a fork comes to the end of a fresh run of that,
//! so that what was reused is what that would have said (E-19, E-29).

use super::SimAgent;
use crate::canon::{self, Msg};
use crate::replay::replay;
use crate::rng::Rng;
use crate::workflows::driver::Sim;
use crate::workflows::forks::{POINTS, as_tried, named, past};
use selvedge_dialects::agent::prompts::{
    CODER, EQUIVALENCE, EXECUTOR, FAILURE_REPORT, FINAL_ANSWER, HAND_OVER, JUDGE, MANAGER, MEND, Prompt,
    SUMMARY, TOOL_CLASS,
};
use selvedge_engine::{Body, EffectId, Event, Fork, Graph, Outcome};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::sync::Arc;

const PROMPTS: [Prompt; 11] = [
    MANAGER,
    JUDGE,
    FAILURE_REPORT,
    EXECUTOR,
    CODER,
    MEND,
    TOOL_CLASS,
    EQUIVALENCE,
    SUMMARY,
    HAND_OVER,
    FINAL_ANSWER,
];

/// What forks came by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    /// Outcomes that were taken.
    pub taken: usize,
    /// Requests that were sent.
    pub sent: usize,
    /// Forks that came to another end than their source.
    pub moved: usize,
    /// Forks with an edited message.
    pub messages: usize,
}

impl AddAssign for Met {
    fn add_assign(&mut self, other: Self) {
        self.taken += other.taken;
        self.sent += other.sent;
        self.moved += other.moved;
        self.messages += other.messages;
    }
}

/// Forks of a run, each with another edit.
///
/// # Errors
/// What differs, and where the run was forked.
pub fn edited(agent: &SimAgent, seed: u64) -> Result<Met, String> {
    let graph = agent.graph()?;
    let mut rng = Rng::new(seed);
    let mut source = Sim::new(agent, &graph, rng.bits());
    source.run()?;
    let events = source.journal.len();
    let past = past(&graph, &source, events)?;
    let replies = editable(agent, &source)?;
    let mut met = Met::default();
    for _ in 0..POINTS {
        let mut other = agent.clone();
        let mut fork = Fork { past: Some(Arc::clone(&past)), ..named(events) };
        let mut last = events;
        let message = rng.pick(&replies).filter(|_| rng.chance(50));
        let what = match message {
            Some(reply) => {
                let text = edit_reply(&mut other, reply, &mut rng)?;
                fork.texts = [(reply.effect.clone(), text.into())].into();
                (last, met.messages) = (reply.came, met.messages + 1);
                format!("{} edited", reply.effect)
            }
            None => edit_document(&mut other, &mut rng),
        };
        let after = other.graph()?;
        if message.is_none() {
            let hash = after.hash().map_err(|error| error.to_string())?;
            (fork.graph, fork.compiled) = (Some(hash.into()), Some(Arc::clone(&after)));
        }
        let at = 1 + rng.below(last);
        let what = |error: String| format!("{what}, forked at {at} of {events}: {error}");
        let fresh = ended(&other, &after, rng.bits()).map_err(what)?;
        let mut sim = Sim::forked(&source, &other, &graph, (at, rng.bits()), fork.clone()).map_err(what)?;
        // The executor goes on with what it looks at between its rounds.
        sim.goes_on_in_place()?;
        sim.run().map_err(what)?;
        let end = observed(&sim);
        if fresh != end {
            return Err(what(format!("a fresh run comes to {fresh:#}\nthe fork to {end:#}")));
        }
        replay(&graph, &sim.journal).map_err(what)?;
        as_tried(&source, &graph, at, fork, &sim).map_err(what)?;
        met.moved += usize::from(end != observed(&source));
        for record in sim.journal.records()?.iter().skip(at) {
            met.taken += usize::from(matches!(record.event, Event::Reused { .. }));
            met.sent += usize::from(matches!(record.event, Event::Requested { .. }));
        }
    }
    Ok(met)
}

/// What a fresh run comes to.
fn ended(agent: &SimAgent, graph: &Arc<Graph>, seed: u64) -> Result<Value, String> {
    let mut sim = Sim::new(agent, graph, seed);
    sim.run().map_err(|error| format!("a fresh run: {error}"))?;
    Ok(observed(&sim))
}

/// How a run ended, what came of it, and what stands on its threads.
fn observed(sim: &Sim<'_>) -> Value {
    let view = sim.state.view();
    let threads: BTreeMap<String, Value> = view
        .threads()
        .map(|(name, thread)| {
            let said: Vec<Msg> = thread.iter().map(|message| Msg::from(message.as_ref())).collect();
            (name.to_string(), json!(canon::messages(&said, false)))
        })
        .collect();
    json!({"fault": view.fault().map(|fault| fault.kind.name()), "output": view.output(), "threads": threads})
}

/// A reply that may say something else: it calls nothing, and nobody was asked the same again.
struct Reply {
    effect: EffectId,
    content: String,
    /// How many events came before it.
    came: usize,
}

fn editable(agent: &SimAgent, source: &Sim<'_>) -> Result<Vec<Reply>, String> {
    let asked = agent.asked.borrow();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for content in asked.values() {
        *times.entry(content).or_default() += 1;
    }
    let records = source.journal.records()?;
    let appended: BTreeSet<&EffectId> = records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Appended { body: Body::Reply(effect), .. } => Some(effect),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for (came, record) in records.iter().enumerate() {
        let Event::Completed { effect, outcome: Outcome::Reply(reply), .. } = &record.event else { continue };
        let content = asked.get(effect).filter(|content| times.get(content.as_str()) == Some(&1));
        if let Some(content) = content.filter(|_| reply.calls.is_empty() && appended.contains(effect)) {
            found.push(Reply { effect: effect.clone(), content: content.clone(), came });
        }
    }
    Ok(found)
}

/// The world says something else to that request: what.
fn edit_reply(agent: &mut SimAgent, reply: &Reply, rng: &mut Rng) -> Result<String, String> {
    agent.edits.insert(reply.content.clone(), rng.bits());
    let asked: Value = serde_json::from_str(&reply.content).map_err(|error| error.to_string())?;
    let said = agent.said(&reply.content, asked.get(2).and_then(Value::as_str), &[]);
    said.map(|reply| reply.text).map_err(|kind| kind.name().to_owned())
}

/// Something else stands in the document or in a prompt: what.
fn edit_document(agent: &mut SimAgent, rng: &mut Rng) -> String {
    let numbers = ["max_steps", "max_task_executions", "tool_enhance_interval"];
    if rng.chance(30)
        && let Some(name) = rng.pick(&numbers)
        && let Some(number) = agent.document.get_mut(*name)
    {
        *number = json!(number.as_u64().unwrap_or(1) % 4 + 1);
        return format!("{name} = {number}");
    }
    if rng.chance(10)
        && let Some(query) = agent.document.get_mut("query")
    {
        *query = json!("another task");
        return "another query".to_owned();
    }
    let Some(prompt) = rng.pick(&PROMPTS) else { return String::new() };
    let text = format!("{}\nAnother {}.\n", prompt.text, rng.below(9));
    agent.prompts.insert(prompt.name.into(), text.into());
    format!("the prompt {} edited", prompt.name)
}
