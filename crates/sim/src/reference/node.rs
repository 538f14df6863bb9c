//! One node: P-10 … P-17.

use super::{Fault, Mistake, Outcome, Run, Sync, broken, fault_text, output_text, parsed, sendable};
use crate::canon::{Msg, MsgCall};
use crate::lower::MAX_ROUNDS;
use crate::plan::SimNode;
use crate::world::{Answer, Asker};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Body<'r, 'a> {
    run: &'r mut Run<'a>,
    at: usize,
    def: &'r SimNode,
    counts: BTreeMap<String, u32>,
    rounds: u32,
    last_text: Option<String>,
    outputs: Vec<(String, Value)>,
}

impl<'r, 'a> Body<'r, 'a> {
    pub(crate) fn new(run: &'r mut Run<'a>, at: usize, def: &'r SimNode) -> Self {
        Self { run, at, def, counts: BTreeMap::new(), rounds: 0, last_text: None, outputs: Vec::new() }
    }

    pub(crate) fn run(mut self) -> Result<Outcome, Fault> {
        self.initial()?;
        if let Some(prompt) = &self.def.prompt {
            let text = self.run.scope.text(prompt)?;
            self.run.push(&self.def.thread, Msg::text("user", text));
            self.talk()?;
        }
        Ok(self.result())
    }

    /// P-13 and P-16.
    fn initial(&mut self) -> Result<(), Fault> {
        let Some(initial) = &self.def.initial else { return Ok(()) };
        let args = self.run.scope.args(&initial.args)?;
        self.run.serial += 1;
        let call = MsgCall { id: format!("own{}", self.run.serial), name: initial.tool.clone(), args };
        let outcome = self.call(&call);
        let mut message = Msg::text("assistant", "");
        message.calls.push(call.clone());
        self.run.push(&self.def.thread, message);
        self.answer(&call, &outcome);
        outcome.map(|_| ())
    }

    fn answer(&mut self, call: &MsgCall, outcome: &Result<Value, Fault>) {
        let text = match outcome {
            Ok(output) => {
                self.outputs.push((call.name.clone(), output.clone()));
                output_text(output)
            }
            Err(fault) => fault_text(fault),
        };
        self.run.push(&self.def.thread, Msg::tool(call, text));
    }

    /// One call that is allowed: checked, approved, tried and counted.
    fn call(&mut self, call: &MsgCall) -> Result<Value, Fault> {
        let strict = self.run.plan.tool(&call.name).is_some_and(|tool| tool.strict);
        let approval = self.run.plan.tool(&call.name).is_some_and(|tool| tool.approval);
        let integer = |value: &Value| {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        };
        let fits = call.args.as_object().is_some_and(|args| !strict || args.get("a").is_none_or(integer));
        let outcome = if !fits {
            Err(("input_error".to_owned(), String::new()))
        } else if approval && !self.run.world.approves(&self.def.id, "tool") {
            Err(("denied".to_owned(), String::new()))
        } else {
            self.tries(call)
        };
        if outcome.is_ok() || self.run.mistake != Mistake::FreeFailures {
            *self.counts.entry(call.name.clone()).or_insert(0) += 1;
        }
        outcome
    }

    /// P-24: transient faults are tried again.
    fn tries(&mut self, call: &MsgCall) -> Result<Value, Fault> {
        let most = 1 + self.def.retry.unwrap_or(0);
        let mut attempt = 1;
        loop {
            let asker = Asker { node: &self.def.id, attempt };
            match self.run.ask_tool(self.at, asker, self.def, &call.name, &call.args) {
                Answer::Output(output) => return Ok(output),
                Answer::Failed(failure) if failure.transient && attempt < most => attempt += 1,
                Answer::Failed(failure) => return Err(broken(failure)),
                Answer::Reply(..) => return Err(("bug".into(), "a tool that talks".into())),
            }
        }
    }

    /// P-14: whether the model has to conclude.
    fn exhausted(&self) -> bool {
        let spent = |tool: &String| {
            self.def
                .limits
                .get(tool)
                .is_some_and(|limit| self.counts.get(tool).copied().unwrap_or(0) >= *limit)
        };
        self.rounds >= self.def.max_rounds.unwrap_or(MAX_ROUNDS)
            || (!self.def.tools.is_empty() && self.def.tools.iter().all(spent))
    }

    /// P-10, P-11, P-14.
    fn talk(&mut self) -> Result<(), Fault> {
        loop {
            let conclude = self.def.looped && self.exhausted();
            let tools = if conclude { Vec::new() } else { self.def.tools.clone() };
            let calls = self.reply(&tools)?;
            for call in &calls {
                let outcome = self.react(call, conclude);
                self.answer(call, &outcome);
            }
            self.rounds += 1;
            if calls.is_empty() || conclude || !self.def.looped {
                return Ok(());
            }
        }
    }

    /// What a call of a reply comes to (P-14, P-15).
    fn react(&mut self, call: &MsgCall, conclude: bool) -> Result<Value, Fault> {
        let limit = self.def.limits.get(&call.name).copied();
        let used = self.counts.get(&call.name).copied().unwrap_or(0);
        if conclude {
            return Err(("limit_exceeded".into(), String::new()));
        }
        if !self.def.tools.contains(&call.name) {
            return Err(("unknown_tool".into(), String::new()));
        }
        if limit.is_some_and(|limit| used >= limit) {
            return Err(("limit_exceeded".into(), String::new()));
        }
        self.call(call)
    }

    /// Asks until there is a reply, appends it, and returns its calls with usable ids (E-10).
    fn reply(&mut self, tools: &[String]) -> Result<Vec<MsgCall>, Fault> {
        let (text, calls) = self.ask(tools)?;
        let thread = self.run.threads.get(&self.def.thread).cloned().unwrap_or_default();
        let mut used: BTreeSet<String> = thread.iter().flat_map(|m| &m.calls).map(|c| c.id.clone()).collect();
        used.extend(thread.iter().filter_map(|message| message.of.as_ref()).map(|(id, _)| id.clone()));
        let mut message = Msg::text("assistant", text.clone());
        for mut call in calls {
            if call.id.is_empty() || !used.insert(call.id.clone()) {
                self.run.serial += 1;
                call.id = format!("own{}", self.run.serial);
            }
            message.calls.push(call);
        }
        let calls = message.calls.clone();
        self.run.push(&self.def.thread, message);
        if !text.is_empty() {
            self.last_text = Some(text);
        }
        Ok(calls)
    }

    /// E-14, E-27 and E-33.
    fn ask(&mut self, tools: &[String]) -> Result<(String, Vec<MsgCall>), Fault> {
        let schema = self.def.schema_json();
        let (mut attempt, mut faults, mut empties) = (0, 0, 0);
        let mut refused: Option<String> = None;
        loop {
            attempt += 1;
            let mut sent = sendable(self.run.threads.get(&self.def.thread).map_or(&[][..], Vec::as_slice));
            if let Some(reply) = &refused {
                sent.push(Msg::text("assistant", reply.clone()));
                sent.push(Msg::text("user", crate::canon::ASKED_AGAIN));
            }
            let asker = Asker { node: &self.def.id, attempt };
            let (text, calls) = match self.run.ask_model(self.at, asker, &sent, tools, schema.as_ref()) {
                Answer::Failed(failure) => {
                    faults += 1;
                    let long = failure.retry_after_ms.is_some_and(|ms| ms > 60_000);
                    if failure.transient && faults < 5 && !long {
                        continue;
                    }
                    return Err(broken(failure));
                }
                Answer::Reply(text, calls) => (text, calls),
                Answer::Output(_) => return Err(("bug".into(), "a model with an output".into())),
            };
            faults = 0;
            if calls.is_empty() && text.trim().is_empty() {
                empties += 1;
                if empties > 2 {
                    return Err(("empty_response".into(), String::new()));
                }
            } else if calls.is_empty() && !self.fits(&text) {
                if refused.is_some() {
                    return Err(("malformed_response".into(), String::new()));
                }
                refused = Some(text);
            } else {
                return Ok((text, calls));
            }
        }
    }

    fn fits(&self, text: &str) -> bool {
        let Some(fields) = &self.def.schema else { return true };
        let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text.trim()) else { return false };
        fields.iter().all(|(name, required)| match object.get(name) {
            Some(value) => value.is_i64() || value.is_u64(),
            None => !required,
        })
    }

    /// P-17, D-05, E-25.
    fn result(&self) -> Outcome {
        if let Some(text) = &self.last_text {
            let names = self.def.schema.as_ref();
            let sync = names.map(|fields| Sync::Names(fields.iter().map(|(name, _)| name.clone()).collect()));
            return Outcome { text: text.clone(), value: parsed(text), sync: sync.unwrap_or(Sync::Nothing) };
        }
        if let [(tool, output)] = self.outputs.as_slice() {
            let names = self.run.plan.tool(tool).and_then(|tool| tool.output_params.clone());
            let value = match output {
                Value::String(text) => parsed(text),
                other => other.clone(),
            };
            return Outcome { text: output_text(output), value, sync: names.map_or(Sync::All, Sync::Names) };
        }
        let text = if self.def.is_empty() {
            let thread = self.run.threads.get(&self.def.thread);
            thread.and_then(|list| list.last()).map(|last| last.content.clone()).unwrap_or_default()
        } else {
            self.outputs.iter().map(|(_, output)| output_text(output)).collect::<Vec<_>>().join("\n")
        };
        Outcome { value: parsed(&text), text, sync: Sync::Nothing }
    }
}
