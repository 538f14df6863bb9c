//! What answers in a simulated world: what somebody has recorded or scripted, and else random values that fit.

use crate::luck::Luck;
use crate::values;
use crate::words::Words;
use selvedge_engine::graph::AskKind;
use selvedge_engine::{
    Asking, EffectId, Failure, FaultKind, ModelReply, ModelRequest, Outcome, Request, State, Tokens,
    ToolCall, ToolRequest, answered,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Who answers before chance does.
pub trait Outside: Send + Sync {
    /// One run's part of it.
    fn session(&self) -> Box<dyn Session + '_>;
}

/// What answers one run.
pub trait Session {
    /// What a model says, and after how many milliseconds at least; nothing leaves it to chance.
    fn model(&mut self, request: &ModelRequest) -> Option<(Result<ModelReply, Failure>, u64)> {
        let _ = request;
        None
    }
    /// What one of Selvedge's own operations comes to (E-40).
    fn operation(&mut self, request: &ToolRequest) -> Result<Value, Failure> {
        let message = format!("there is no operation `{}` in this world", request.tool.name);
        Err(Failure::permanent(FaultKind::UnknownTool, message))
    }
    /// Whether what it says depends on how often it was asked, so that it has to hear of every request.
    fn counts(&self) -> bool {
        false
    }
}

/// Nobody: chance answers everything.
impl Outside for () {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(())
    }
}

impl Session for () {}

/// What calls came to in another run, by their first attempts.
pub type Recorded = HashMap<EffectId, Outcome>;

/// What the outside says to a request, and after how long at least.
pub(crate) fn outcome(
    session: &mut dyn Session,
    recorded: &Recorded,
    words: &Words,
    luck: &Luck,
    request: &Request,
) -> (Outcome, u64) {
    match request {
        Request::Model(request) => {
            if let Some((reply, ms)) = session.model(request) {
                return (reply.map_or_else(Outcome::from, |reply| Outcome::Reply(Arc::new(reply))), ms);
            }
            let known = known(recorded, &request.effect);
            (known.unwrap_or_else(|| Outcome::Reply(Arc::new(reply(words, luck, request)))), 0)
        }
        Request::Tool(request) => {
            let known = known(recorded, &request.effect);
            (known.unwrap_or_else(|| Outcome::Output(Arc::new(output(words, luck, request)))), 0)
        }
        Request::Operation(request) => match session.operation(request) {
            Ok(output) => (Outcome::Output(Arc::new(output)), 0),
            Err(failure) => (failure.into(), 0),
        },
    }
}

fn known(recorded: &Recorded, effect: &EffectId) -> Option<Outcome> {
    if recorded.is_empty() {
        return None;
    }
    recorded.get(&first(effect)).cloned()
}

/// The first attempt of an effect: what all of them have in common.
pub fn first(effect: &EffectId) -> EffectId {
    effect.place().map_or_else(|| effect.clone(), |place| place.first().id())
}

/// A reply that fits the request: calls of tools that are offered, a value of the schema, or words.
fn reply(words: &Words, luck: &Luck, request: &ModelRequest) -> ModelReply {
    let mut dice = luck.dice("reply", &request.effect.0);
    let tokens = Tokens { input: 100, output: 20, ..Tokens::default() };
    if !request.tools.is_empty() && dice.chance(45) {
        let many = 1 + usize::from(dice.chance(25));
        let calls = (0..many).filter_map(|at| {
            let tool = dice.pick(&request.tools)?.clone();
            let arguments = match values::fitting(&tool.input_schema, words, &mut dice) {
                Value::Object(arguments) => Value::Object(arguments),
                _ => Value::Object(Map::new()),
            };
            Some(ToolCall { id: format!("call{at}").into(), name: tool.name.clone(), arguments })
        });
        return ModelReply { calls: calls.collect(), tokens, ..ModelReply::default() };
    }
    let text = match &request.schema {
        Some(schema) => values::fitting(&schema.schema, words, &mut dice).to_string(),
        None => values::text(words, &mut dice),
    };
    ModelReply { text, tokens, ..ModelReply::default() }
}

/// An output with the fields that the tool declares; of one that declares none, with those that the document reads.
fn output(words: &Words, luck: &Luck, request: &ToolRequest) -> Value {
    let mut dice = luck.dice("output", &request.effect.0);
    match &request.tool.output_params {
        Some(declared) => {
            let fields = declared.names().iter().map(|name| {
                let value = match declared.schema(name) {
                    Some(schema) => values::fitting(schema, words, &mut dice),
                    None => values::any(words, &mut dice),
                };
                (name.to_string(), value)
            });
            Value::Object(fields.collect())
        }
        None if words.fields.is_empty() => values::any(words, &mut dice),
        None => values::object(words, &mut dice),
    }
}

/// What a person says to a question that is about no call in doubt: three of four times yes where that is asked.
pub(crate) fn said(words: &Words, luck: &Luck, state: &State, id: &str, ask: &Asking) -> Option<Value> {
    let mut dice = luck.dice("answer", id);
    if ask.kind == AskKind::Approve {
        return Some(json!(if dice.chance(75) { "yes" } else { "no" }));
    }
    for _ in 0..4 {
        let value = match (state.answer_schema(ask), &ask.value) {
            (Some(schema), _) => values::fitting(schema, words, &mut dice),
            (None, Some(shown)) if ask.kind == AskKind::Edit => (**shown).clone(),
            (None, _) => values::text(words, &mut dice).into(),
        };
        if state.answer_misfit(ask, &value).is_none() {
            return Some(answered(value, None, None));
        }
    }
    None
}
