//! The outside: models and tools whose answers follow from a seed and the content of the request, never from
//! the order in which requests come. Tools that look at the world see what was written to it so far, so
//! that a call out of order has another answer.

use crate::canon;
use crate::generate::KEYS;
use crate::rng::{Rng, hash};
use selvedge_engine::{EffectId, Effects, Printed};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the outside says.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A model's reply: text and calls.
    Reply(String, Vec<canon::MsgCall>),
    /// A tool's output.
    Output(Value),
    /// Neither.
    Failed(Broken),
}

/// A failure, in neutral form.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The kind of the fault.
    pub kind: &'static str,
    /// What the outside says about it.
    pub message: String,
    /// Whether trying again may help.
    pub transient: bool,
    /// The provider's Retry-After, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// What a tool has printed meanwhile, some of the time: it changes nothing in a run, and comes again in its replay.
pub fn printed(effect: &EffectId) -> Option<Arc<Printed>> {
    let printed = Printed { stdout: format!("{effect}\n"), ..Printed::default() };
    hash(30, &effect.0).is_multiple_of(3).then(|| Arc::new(printed))
}

/// Who asks, for the faults that are mended.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The node.
    pub node: &'a str,
    /// Which try of this request, from 1.
    pub attempt: u32,
}

/// The state of the outside.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    seed: u64,
    faults: bool,
    /// Nodes whose requests no longer fail.
    pub mended: BTreeSet<String>,
    /// What changed the world: the request's identity, and its content.
    log: Vec<(String, u64)>,
    /// What is said in another way, by node and content: an edit of the past (E-19).
    pub edits: BTreeMap<(String, String), String>,
    /// Writes that were sent, by effect id; kept across crashes, as the outside keeps them.
    pub sent_writes: BTreeSet<String>,
}

impl World {
    /// An untouched world.
    pub fn new(seed: u64, faults: bool) -> Self {
        let (mended, edits) = (BTreeSet::new(), BTreeMap::new());
        Self { seed, faults, mended, log: Vec::new(), edits, sent_writes: BTreeSet::new() }
    }
    /// How often it was changed.
    pub fn changes(&self) -> usize {
        self.log.len()
    }
    /// Back to when it had been changed so often.
    pub fn rewind(&mut self, changes: usize) {
        self.log.truncate(changes);
    }
    /// Whether a person says yes to `what` at a node.
    pub fn approves(&self, node: &str, what: &str) -> bool {
        !self.faults || !hash(self.seed, &format!("approve {node} {what}")).is_multiple_of(4)
    }

    fn dice(&self, asker: Asker<'_>, content: &str) -> Option<(Rng, Rng)> {
        let faulty = self.faults && !self.mended.contains(asker.node);
        let always = Rng::new(hash(self.seed, &format!("always {content}")));
        faulty.then(|| (always, Rng::new(hash(self.seed, &format!("try {} {content}", asker.attempt)))))
    }

    /// A model's answer to `content`.
    pub fn model(&self, asker: Asker<'_>, content: &str, tools: &[String], schema: Option<&Value>) -> Answer {
        let mut fits = true;
        if let Some(text) = self.edit(asker, content) {
            // The calls are those of the reply that is edited.
            let Answer::Reply(_, calls) = self.reply(content, tools, schema, true) else { return text };
            let Answer::Reply(text, _) = text else { return text };
            return Answer::Reply(text, calls);
        }
        if let Some((mut always, mut now)) = self.dice(asker, content) {
            let broken = |kind, transient, retry_after_ms| {
                let message = format!("model: {kind}");
                Answer::Failed(Broken { kind, message, transient, retry_after_ms })
            };
            match always.below(300) {
                0..=2 => return broken("provider_error", false, None),
                3 => return broken("provider_error", true, Some(61_000)),
                4 => return broken("timeout", true, None),
                5..=7 => return Answer::Reply(String::new(), Vec::new()),
                _ => {}
            }
            match now.below(100) {
                0..=8 => return broken("provider_error", true, None),
                9..=10 => return broken("provider_error", true, Some(1_500)),
                11..=18 => return Answer::Reply(if now.chance(50) { "" } else { " \n" }.into(), Vec::new()),
                19..=45 => fits = false,
                _ => {}
            }
        }
        self.reply(content, tools, schema, fits)
    }

    fn edit(&self, asker: Asker<'_>, content: &str) -> Option<Answer> {
        let text = self.edits.get(&(asker.node.to_owned(), content.to_owned()))?;
        Some(Answer::Reply(text.clone(), Vec::new()))
    }

    fn reply(&self, content: &str, tools: &[String], schema: Option<&Value>, fits: bool) -> Answer {
        let mut rng = Rng::new(hash(self.seed, content));
        let calls = rng.chance(if tools.is_empty() { 7 } else { 55 });
        if calls {
            let mut list: Vec<canon::MsgCall> = Vec::new();
            for at in 0..1 + rng.below(3) {
                let last = list.last().map(|call| call.id.clone());
                list.push(call(&mut rng, tools, at, last));
            }
            let text = if rng.chance(30) { words(&mut rng) } else { String::new() };
            return Answer::Reply(text, list);
        }
        let text = match schema {
            Some(schema) if fits => fitting(&mut rng, schema),
            Some(schema) => misfit(&mut rng, schema),
            None => words(&mut rng),
        };
        Answer::Reply(text, Vec::new())
    }

    /// A tool's answer; `key` is the identity of the request (the idempotency key).
    pub fn tool(&mut self, asker: Asker<'_>, key: &str, content: &str, effects: Effects) -> Answer {
        let edit = self.edit(asker, content);
        if edit.is_none()
            && let Some((mut always, mut now)) = self.dice(asker, content)
        {
            let broken = |kind, transient| {
                let message = format!("tool: {kind} \"{}\"", content.len());
                Answer::Failed(Broken { kind, message, transient, retry_after_ms: None })
            };
            if always.chance(10) {
                return broken("execution_failure", false);
            }
            if effects != Effects::Write && now.chance(15) {
                return broken(if now.chance(50) { "timeout" } else { "provider_error" }, true);
            }
        }
        let known = self.log.iter().position(|(known, _)| known == key);
        let seen = match effects {
            Effects::Pure => 0,
            _ => self
                .log
                .iter()
                .take(known.unwrap_or(self.log.len()))
                .fold(1, |h, (_, c)| hash(h, &c.to_string())),
        };
        let content = hash(self.seed ^ seen, content);
        if effects >= Effects::Idempotent && known.is_none() {
            self.log.push((key.to_owned(), content));
        }
        match edit {
            Some(Answer::Reply(text, _)) => Answer::Output(Value::String(text)),
            _ => Answer::Output(output(&mut Rng::new(content))),
        }
    }
}

fn call(rng: &mut Rng, tools: &[String], at: usize, last: Option<String>) -> canon::MsgCall {
    let id = match rng.below(20) {
        0..=2 => String::new(),
        3..=6 => format!("{}a", canon::MODEL_ID),
        7 | 8 => last.unwrap_or_default(),
        _ => format!("{}{:x}{at}", canon::MODEL_ID, rng.bits() >> 40),
    };
    let name = if rng.chance(10) { None } else { rng.pick(tools).cloned() };
    let args = match rng.below(12) {
        0 => json!("{\"a\": 1"),
        1 => json!({"a": "one"}),
        2 => json!([1]),
        3 => json!({}),
        _ => json!({"a": rng.within(0, 3)}),
    };
    canon::MsgCall { id, name: name.unwrap_or_else(|| "ghost".into()), args }
}

fn scalar(rng: &mut Rng) -> Value {
    match rng.below(6) {
        0 => json!(null),
        1 => json!(true),
        2 => json!(rng.within(-9, 9)),
        3 => json!(2.5),
        4 => json!("{\"in\": 1}"),
        _ => json!(format!("s{}", rng.below(50))),
    }
}

fn object(rng: &mut Rng) -> Map<String, Value> {
    let mut object = Map::new();
    for key in KEYS {
        if rng.chance(55) {
            let value = if rng.chance(15) { json!({"x": scalar(rng)}) } else { scalar(rng) };
            object.insert(key.to_owned(), value);
        }
    }
    object
}

fn output(rng: &mut Rng) -> Value {
    match rng.below(10) {
        0 => json!(format!("out {}", rng.below(99))),
        1 => json!(" {\"x\": 1, \"city\": \"Bonn\"} "),
        2 => json!(rng.within(0, 9)),
        3 => json!([rng.within(0, 9), {"x": 1}]),
        4 => scalar(rng),
        _ => Value::Object(object(rng)),
    }
}

fn words(rng: &mut Rng) -> String {
    match rng.below(8) {
        0 | 1 => Value::Object(object(rng)).to_string(),
        2 => format!("\n {} ", Value::Object(object(rng))),
        3 => "[1, 2]".to_owned(),
        4 => "42".to_owned(),
        _ => format!("said {}", rng.below(1000)),
    }
}

fn fitting(rng: &mut Rng, schema: &Value) -> String {
    let mut object = Map::new();
    for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|p| p.keys()) {
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.is_some_and(|names| names.iter().any(|n| n == name.as_str()));
        if required || rng.chance(60) {
            object.insert(name.clone(), rng.within(0, 9).into());
        }
    }
    if rng.chance(30) {
        object.insert("total_extra".into(), json!("more"));
    }
    let text = Value::Object(object).to_string();
    if rng.chance(20) { format!(" {text}\n") } else { text }
}

fn misfit(rng: &mut Rng, schema: &Value) -> String {
    match rng.below(4) {
        0 => "[]".to_owned(),
        1 => "no json".to_owned(),
        // Without what is required; where nothing is, no object at all.
        2 if schema.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty()) => {
            "{}".to_owned()
        }
        2 => "7".to_owned(),
        _ => fitting(rng, schema).replace(':', ":\"x\"+"),
    }
}
