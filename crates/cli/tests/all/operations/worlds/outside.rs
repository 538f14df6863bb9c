//! What answers in a random world of agents: models that are right, wrong or silent, coders whose files are good, bad or none, and tools
//! that do what their file says. All of it follows from the seed and from who asks, so that a process that takes up the work of one that
//! died hears the same.

#![expect(clippy::result_large_err, reason = "a port's own error")]

use futures_util::future::BoxFuture;
use selvedge_engine::library::{Facts, Sample};
use selvedge_engine::schema::Schema;
use selvedge_engine::{
    Effects, Failure, FaultKind, Message, ModelReply, ModelRequest, Role, Tokens, ToolCall, ToolDef,
    ToolRequest,
};
use selvedge_host::Error;
use selvedge_host::library::operations::Workshop;
use selvedge_host::library::replay::{Against, Verdict, better};
use selvedge_runtime::{CallContext, Model, Pending, Tools};
use selvedge_store::{BlobHash, Store};
use selvedge_tools::library::LIBRARY;
use selvedge_tools::{Drafted, NotDrafted, ToolError};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Names that are asked for.
const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

/// A number that follows from a seed and a text.
pub(super) fn number(seed: u64, text: &str) -> u64 {
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 31;
    hash.wrapping_mul(0x94d0_49bb_1331_11eb) >> 17
}

/// One world.
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) store: Arc<Store>,
    /// What was wrong with what models were sent.
    pub(super) wrong: Mutex<Vec<String>>,
}

impl World {
    fn dice(&self, of: &str, sides: u64) -> u64 {
        number(self.seed, of) % sides
    }

    fn text(&self, version: &str) -> Option<String> {
        String::from_utf8(self.store.get_blob(version.parse().ok()?).ok()?).ok()
    }

    fn answer(&self, request: &ModelRequest) -> Result<ModelReply, Failure> {
        let of = &*request.effect.0;
        let tokens = match self.dice("counts", 3) {
            0 => Tokens { input: 50, output: 10, ..Tokens::default() },
            _ => Tokens::default(),
        };
        let says = |text: String| Ok(ModelReply { text, tokens, ..ModelReply::default() });
        match self.dice(of, 40) {
            0 => return Err(Failure::permanent(FaultKind::ProviderError, "the model is gone")),
            1 => return says(String::new()),
            2 => return says("<|endoftext|> no idea {".to_owned()),
            _ => {}
        }
        if let Some(schema) = &request.schema {
            return says(self.shaped(&schema.schema, request).to_string());
        }
        if !request.tools.is_empty() && self.dice(&format!("{of} calls"), 100) < 75 {
            let calls = (0..=self.dice(&format!("{of} many"), 3)).map(|at| {
                let pick = self.dice(&format!("{of} tool {at}"), 12) as usize;
                let name = request.tools.get(pick % request.tools.len()).filter(|_| pick > 0);
                let name = name.map_or_else(|| "nowhere".into(), |tool| Arc::clone(&tool.name));
                let x = self.dice(&format!("{of} x {at}"), 9);
                let arguments = if x == 8 { json!({"x": "eight"}) } else { json!({"x": x}) };
                ToolCall { id: format!("c{at}").into(), name, arguments }
            });
            return Ok(ModelReply { calls: calls.collect(), tokens, ..ModelReply::default() });
        }
        if *request.role == *"coder" {
            return says(self.written(request));
        }
        says(format!("so it is {}", "word ".repeat(self.dice(&format!("{of} long"), 60) as usize)))
    }

    /// An answer that fits, whatever it says.
    fn shaped(&self, schema: &Value, request: &ModelRequest) -> Value {
        let of = &*request.effect.0;
        let has = |field: &str| schema["properties"].get(field).is_some();
        let dice = |what: &str, sides| self.dice(&format!("{of} {what}"), sides);
        if has("tool_requests") {
            let asked = NAMES.iter().filter(|name| dice(name, 3) == 0).map(|name| {
                let output = json!({"type": "object", "required": ["n"]});
                json!({"name": name, "description": "does it", "input_schema": {}, "output_schema": output})
            });
            let required = NAMES.iter().filter(|name| dice(&format!("uses {name}"), 3) == 0);
            let asked: Vec<Value> = asked
                .chain((dice("odd", 9) == 0).then(|| json!({"name": "../../", "description": ""})))
                .collect();
            return json!({"required_tool_names": required.collect::<Vec<_>>(), "tool_usage_guidance": "", "tool_requests": asked});
        }
        if has("status") {
            let status = if dice("status", 3) == 0 { "RETRY" } else { "FINISH" };
            return json!({"status": status, "reason": "as it seems"});
        }
        if has("class") {
            let class = ["Success", "Success", "Input Error", "Execution Failure"][dice("class", 4) as usize];
            return json!({"class": class, "reason": "as it seems"});
        }
        if has("equal") {
            return json!({"equal": dice("equal", 2) == 0, "reason": "as it seems"});
        }
        if has("tried") {
            return json!({"tried": "it", "failed": "it", "suggestions": []});
        }
        json!({"final_answer": "that is it", "reasoning_summary": "so"})
    }

    /// A coder's words: most often with a file in them.
    fn written(&self, request: &ModelRequest) -> String {
        let asked: Vec<&Arc<Message>> = request.messages.iter().collect();
        let first = asked.first().map(|message| &*message.content).unwrap_or_default();
        let name = NAMES.iter().find(|name| {
            first.contains(&format!("<name>\n{name}\n")) || first.contains(&format!("The tool `{name}`"))
        });
        let name = name.copied().unwrap_or("alpha");
        let of = &*request.effect.0;
        let dice = |what: &str, sides| self.dice(&format!("{of} {what}"), sides);
        let file = match dice("file", 8) {
            0 => return "I would rather not.".to_owned(),
            1 => "# it does not parse\n".to_owned(),
            2 => "# tool other\n".to_owned(),
            _ => format!(
                "# tool {name}\n# does {}\n# salt {}\n",
                [100, 90, 60, 30][dice("does", 4) as usize],
                dice("salt", 4)
            ),
        };
        format!("Here it is.\n```python\n{file}```\n")
    }
}

/// What a call of a version comes to.
fn behaves(text: &str, arguments: &Value) -> Result<Value, Failure> {
    let of = |what: &str| -> u64 {
        let found =
            text.lines().find_map(|line| line.strip_prefix(what)).and_then(|rest| rest.trim().parse().ok());
        found.unwrap_or_default()
    };
    let Some(x) = arguments["x"].as_u64() else {
        return Err(Failure::permanent(FaultKind::InputError, "x is no number"));
    };
    let hard = number(7, &x.to_string());
    if hard % 100 >= of("# does ") {
        return match hard % 3 {
            0 => Err(Failure::permanent(FaultKind::Timeout, "it took too long")),
            1 => Err(Failure::permanent(FaultKind::ExecutionFailure, "it broke")),
            _ => Ok(json!({})),
        };
    }
    // Some versions say it in another way.
    let other = hard.is_multiple_of(5) && of("# salt ") == 1;
    let mut output = json!({"n": hard % 1000 + u64::from(other)});
    // Others say much.
    if of("# salt ") == 2 {
        output["text"] = "and so on ".repeat(60).into();
    }
    Ok(output)
}

impl Model for World {
    fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        if let Err(why) = valid(request.messages.iter()) {
            self.wrong.lock().unwrap().push(format!("{}: {why}", request.effect));
        }
        let reply = self.answer(&request);
        Box::pin(async move { reply })
    }
}

/// E-10: each call of a message has one result, in order, right behind it.
fn valid<'m>(messages: impl Iterator<Item = &'m Arc<Message>>) -> Result<(), String> {
    let mut open: std::collections::VecDeque<&str> = Default::default();
    for message in messages {
        match (message.role == Role::Tool, message.tool_call_id.as_deref()) {
            (true, Some(id)) if open.front() == Some(&id) => drop(open.pop_front()),
            (true, id) => return Err(format!("a result of {id:?}, where {open:?} are open")),
            (false, _) if open.is_empty() => {}
            (false, _) => return Err(format!("no result of {open:?}")),
        }
        open.extend(message.tool_calls.iter().map(|call| &*call.id));
    }
    if open.is_empty() { Ok(()) } else { Err(format!("no result of {open:?} at the end")) }
}

impl Tools for World {
    fn call(&self, request: ToolRequest, _: CallContext) -> Pending<Value> {
        let text = self.text(&request.tool.version);
        let came = text.map(|text| behaves(&text, &request.args));
        Box::pin(async move {
            came.unwrap_or_else(|| Err(Failure::permanent(FaultKind::UnknownTool, "no such file")))
        })
    }
}

fn definition(name: &str, version: &str) -> ToolDef {
    ToolDef {
        name: name.into(),
        description: "does it".into(),
        input_schema: json!({"type": "object", "properties": {"x": {"type": "integer"}}}),
        output_params: None,
        effects: Some(Effects::Pure),
        version: version.into(),
        source: LIBRARY.into(),
        timeout_s: None,
        approval: false,
    }
}

impl Workshop for World {
    fn draft<'w>(&'w self, name: &'w str, file: &'w str) -> BoxFuture<'w, Result<Drafted, NotDrafted>> {
        Box::pin(async move {
            match file.lines().next().and_then(|line| line.strip_prefix("# tool ")) {
                None => Err(vec!["it does not parse".to_owned()].into()),
                Some(own) if own != name => Err(vec![format!("`name` is {own} and not {name}")].into()),
                Some(_) => {
                    let version = BlobHash::of(file.as_bytes()).to_string();
                    let definition = definition(name, &version);
                    let input_schema = definition.input_schema.clone();
                    let facts = Facts {
                        description: "does it".into(),
                        input_schema,
                        metadata: json!({"name": name}),
                        ..Facts::default()
                    };
                    // Where it lies before the library has it.
                    self.store
                        .put_blob(file.as_bytes().to_vec())
                        .1
                        .await
                        .map_err(|error| vec![error.to_string()])?;
                    Ok(Drafted { definition: Arc::new(definition), facts })
                }
            }
        })
    }

    fn of_library<'w>(
        &'w self,
        name: &'w Arc<str>,
        version: &'w str,
    ) -> BoxFuture<'w, Result<Arc<ToolDef>, ToolError>> {
        Box::pin(async move {
            let lost = || ToolError::document("A-23", "its text is gone");
            self.text(version).map(|_| Arc::new(definition(name, version))).ok_or_else(lost)
        })
    }

    fn repeat<'w>(
        &'w self,
        _: &'w Arc<Store>,
        (_, version): (&'w Arc<str>, &'w Arc<str>),
        calls: &'w [(PathBuf, Sample)],
        against: &'w Against,
    ) -> BoxFuture<'w, Result<Vec<Verdict>, Error>> {
        Box::pin(async move {
            let text = self.text(version).unwrap_or_default();
            let schema: Option<&Schema> = match against {
                Against::Better(schema) => schema.as_ref(),
                Against::Same | Against::Merged => None,
            };
            let each =
                calls.iter().map(|(_, sample)| better(sample, behaves(&text, &sample.arguments), schema));
            Ok(each.collect())
        })
    }
}
