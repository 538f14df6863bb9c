//! Keys never reach the journal, whoever says them (C-06): what models and tools answer is cleaned on its way in, and
//! what a person hands in with a key in it is refused (`handed`).

mod handed;

pub use handed::{
    in_command, in_document, refuse_choices, refuse_document, refuse_inputs, refuse_text, refuse_tool,
};

use crate::config::Config;
use selvedge_engine::{Failure, ModelReply, ModelRequest, Operated, ToolRequest};
use selvedge_http::{Flow, PROXY_VARIABLES, Secret, Secrets, proxy_passwords, url_passwords};
use selvedge_models::Provider;
use selvedge_runtime::{CallContext, Delta, Model, Operations, Pending, Printing, Tools, Watch};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// A key that this process can see, and where from.
#[derive(Clone, Debug)]
pub struct Known {
    /// Where it is from, for people: "the value of $OPENAI_API_KEY".
    origin: String,
    /// The key.
    secret: Secret,
}

impl Known {
    /// Whether a text holds it. Short dummies such as `none` are no keys.
    fn is_in(&self, text: &str) -> bool {
        matches!(self.secret.redact(text), Cow::Owned(_))
    }
}

/// Every key that this process can see, whether or not a model of this run uses it: a tool may come upon any of
/// them (C-06). Passwords of proxies are among them. Each once, whatever variables hold it.
pub fn named(config: &Config) -> Vec<Known> {
    named_with(config, None)
}

/// The same where an endpoint is chosen: what its address says is no configuration.
pub fn named_with(config: &Config, base_url: Option<&str>) -> Vec<Known> {
    let configured = config.models.values().filter_map(|model| model.api_key_env.as_deref());
    let configured = configured.chain(config.agent.codex_api_key_env.as_deref());
    let configured = configured.chain(config.webhooks.iter().map(|webhook| webhook.secret_env.as_str()));
    let tools = config.allow_env.iter().map(String::as_str);
    let own = Provider::ALL.iter().flat_map(|provider| provider.key_variables()).copied();
    let names: BTreeSet<&str> =
        ["SELVEDGE_API_KEY"].into_iter().chain(own).chain(configured).chain(tools).collect();
    let keys = names
        .into_iter()
        .filter_map(|name| Some((format!("the value of ${name}"), config.environment.variable(name)?)));
    let proxies = PROXY_VARIABLES.iter().filter_map(|name| Some((*name, config.environment.variable(name)?)));
    let passwords = proxies.flat_map(|(name, value)| {
        proxy_passwords(&value)
            .into_iter()
            .map(move |password| (format!("the password in ${name}"), password))
    });
    let servers = config.servers().flat_map(|server| {
        let origin = format!("a key of the MCP server `{}`", server.name);
        let keys = server.secrets.iter().filter(|secret| !server.given.contains(secret));
        keys.map(move |secret| (origin.clone(), secret.expose().to_owned()))
    });
    let addresses = config.models.iter().filter_map(|(name, model)| {
        Some((format!("the password in base_url of [models.{name}]"), model.base_url.clone()?))
    });
    let codex = config.agent.codex_base_url.clone();
    let codex = codex.map(|url| ("the password in codex_base_url of [agent]".to_owned(), url));
    let ollama = config
        .environment
        .variable("OLLAMA_HOST")
        .map(|host| ("the password in $OLLAMA_HOST".to_owned(), host));
    let webhooks = config.webhooks.iter();
    let webhooks =
        webhooks.map(|webhook| ("the password in url of [[webhooks]]".to_owned(), webhook.url.to_string()));
    let chosen = base_url.map(|url| ("the password in the endpoint's address".to_owned(), url.to_owned()));
    let addresses =
        addresses.chain(ollama).chain(codex).chain(webhooks).chain(chosen).flat_map(|(origin, address)| {
            in_address(&address).into_iter().map(move |password| (origin.clone(), password))
        });
    let mut all: Vec<Known> = Vec::new();
    for (origin, value) in keys.chain(passwords).chain(servers).chain(addresses) {
        let secret = Secret::new(&value);
        if !all.iter().any(|known| known.secret == secret) {
            all.push(Known { origin, secret });
        }
    }
    all
}

/// What is secret in the address of a model: its password, in all ways in which it is written or sent, and keys in its query.
pub fn in_address(address: &str) -> Vec<String> {
    let mut found = url_passwords(address);
    let written = crate::config::keys_in_addresses(address);
    found.extend(written.into_iter().filter_map(|range| address.get(range).map(str::to_owned)));
    found
}

/// The keys of [`named`], to be redacted, and what servers are given besides.
pub fn known(config: &Config) -> Vec<Secret> {
    let mut known: Vec<Secret> = named(config).into_iter().map(|known| known.secret).collect();
    for given in config.servers().flat_map(|server| &server.given) {
        if !known.contains(given) {
            known.push(given.clone());
        }
    }
    known
}

/// The keys of [`named`], each with where it is from, for who reads the files of tools.
pub fn of_tools(config: &Config) -> Vec<(String, Secret)> {
    named(config).into_iter().map(|known| (known.origin, known.secret)).collect()
}

/// A port behind which no key comes back.
struct Cleaned<P: ?Sized> {
    secrets: Secrets,
    port: Arc<P>,
}

/// The same models, without the keys in their answers.
pub fn clean_model(model: Arc<dyn Model>, secrets: &Secrets) -> Arc<dyn Model> {
    if secrets.is_empty() { model } else { Arc::new(Cleaned { secrets: secrets.clone(), port: model }) }
}

/// The same tools, without the keys in their outputs.
pub fn clean_tools(tools: Arc<dyn Tools>, secrets: &Secrets) -> Arc<dyn Tools> {
    if secrets.is_empty() { tools } else { Arc::new(Cleaned { secrets: secrets.clone(), port: tools }) }
}

/// The same operations, without the keys in their outputs.
pub fn clean_operations(operations: Arc<dyn Operations>, secrets: &Secrets) -> Arc<dyn Operations> {
    if secrets.is_empty() {
        operations
    } else {
        Arc::new(Cleaned { secrets: secrets.clone(), port: operations })
    }
}

impl Model for Cleaned<dyn Model> {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        let (context, heard) = listening(context, &self.secrets);
        let (reply, secrets) = (self.port.call(request, context), self.secrets.clone());
        Box::pin(async move {
            let mut reply = reply.await.map_err(|failure| failed(failure, &secrets))?;
            if let Some(heard) = heard {
                heard.end();
            }
            text(&mut reply.text, &secrets);
            for call in &mut reply.calls {
                value(&mut call.arguments, &secrets);
                label(&mut call.name, &secrets);
                label(&mut call.id, &secrets);
            }
            Ok(reply)
        })
    }

    fn counts(&self) -> bool {
        self.port.counts()
    }

    fn recorded(&self, request: &ModelRequest, run: &str) {
        self.port.recorded(request, run);
    }
}

impl Tools for Cleaned<dyn Tools> {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Value> {
        let (context, hearing) = Hearing::of(context, &self.secrets);
        let (output, secrets) = (self.port.call(request, context), self.secrets.clone());
        Box::pin(async move {
            let output = output.await;
            hearing.end(&secrets);
            let mut output = output.map_err(|failure| failed(failure, &secrets))?;
            value(&mut output, &secrets);
            Ok(output)
        })
    }
}

impl Operations for Cleaned<dyn Operations> {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Operated> {
        let (context, hearing) = Hearing::of(context, &self.secrets);
        let (operated, secrets) = (self.port.call(request, context), self.secrets.clone());
        Box::pin(async move {
            let operated = operated.await;
            hearing.end(&secrets);
            let mut operated = operated.map_err(|failure| failed(failure, &secrets))?;
            value(Arc::make_mut(&mut operated.output), &secrets);
            Ok(operated)
        })
    }
}

/// What a call says and prints until it ends.
struct Hearing {
    watched: Option<Arc<Heard>>,
    printed: Printing,
    printing: Printing,
}

impl Hearing {
    /// The call's circumstances, by which it is heard first.
    fn of(context: CallContext, secrets: &Secrets) -> (CallContext, Self) {
        let (mut context, watched) = listening(context, secrets);
        let printed = Printing::default();
        let printing = std::mem::replace(&mut context.printing, printed.clone());
        (context, Self { watched, printed, printing })
    }

    /// The call has ended.
    fn end(self, secrets: &Secrets) {
        if let Some(watched) = self.watched {
            watched.end();
        }
        if let Some(mut streams) = self.printed.take() {
            streams.iter_mut().for_each(|stream| text(&mut stream.text, secrets));
            self.printing.put(streams);
        }
    }
}

/// What a call says meanwhile, on its way to who hears it: a key may begin in one piece and end in another.
struct Heard {
    watch: Watch,
    text: Mutex<Flow>,
    lines: Mutex<Lines>,
}

/// Lines, in which a key may be wrapped: one that may end within a key waits for the next.
struct Lines {
    flow: Flow,
    /// What is told of a line that has not ended.
    begun: String,
}

impl Lines {
    /// The lines that have ended with `told`.
    fn ended(&mut self, told: &str) -> Vec<String> {
        self.begun.push_str(told);
        let Some((whole, begun)) = self.begun.rsplit_once('\n') else { return Vec::new() };
        let lines = whole.split('\n').map(str::to_owned).collect();
        self.begun = begun.to_owned();
        lines
    }
}

impl Heard {
    fn say(&self, delta: Delta) {
        match delta {
            Delta::Text(piece) => self.tell(|text| text.more(piece)),
            Delta::Progress(line) => self.tell_lines(|lines| {
                let told = lines.flow.more(line + "\n");
                lines.ended(&told)
            }),
        }
    }

    /// Nothing follows: what was held back is no key.
    fn end(&self) {
        self.tell(Flow::rest);
        self.tell_lines(|lines| {
            let told = lines.flow.rest() + "\n";
            lines.ended(&told)
        });
    }

    fn tell(&self, say: impl FnOnce(&mut Flow) -> String) {
        let said = say(&mut self.text.lock().unwrap_or_else(PoisonError::into_inner));
        if !said.is_empty() {
            (self.watch)(Delta::Text(said));
        }
    }

    fn tell_lines(&self, say: impl FnOnce(&mut Lines) -> Vec<String>) {
        let said = say(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        for line in said.into_iter().filter(|line| !line.is_empty()) {
            (self.watch)(Delta::Progress(line));
        }
    }
}

/// The same call, of which nobody hears a part of a key (C-06).
fn listening(context: CallContext, secrets: &Secrets) -> (CallContext, Option<Arc<Heard>>) {
    let Some(watch) = context.watch.clone() else { return (context, None) };
    let text = Mutex::new(Flow::new(secrets));
    let lines = Mutex::new(Lines { flow: Flow::new(secrets), begun: String::new() });
    let heard = Arc::new(Heard { watch, text, lines });
    let told = Arc::clone(&heard);
    let watch: Watch = Arc::new(move |delta| told.say(delta));
    (CallContext { watch: Some(watch), ..context }, Some(heard))
}

fn failed(mut failure: Failure, secrets: &Secrets) -> Failure {
    text(&mut failure.fault.message, secrets);
    if let Some(cause) = &mut failure.fault.cause {
        value(cause, secrets);
    }
    failure
}

fn text(text: &mut String, secrets: &Secrets) {
    if let Cow::Owned(clean) = secrets.redact(text) {
        *text = clean;
    }
}

fn label(label: &mut Arc<str>, secrets: &Secrets) {
    if let Cow::Owned(clean) = secrets.redact(label) {
        *label = clean.into();
    }
}

fn value(json: &mut Value, secrets: &Secrets) {
    match json {
        Value::String(said) => text(said, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| value(item, secrets)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| value(field, secrets));
            clean_names(fields, secrets, |_| true);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Fields of printed objects that hold words of our own.
const WORDS: [&str; 17] = [
    "action",
    "by",
    "code",
    "dialect",
    "effects",
    "key",
    "kind",
    "node_type",
    "origin",
    "provider",
    "result",
    "role",
    "severity",
    "source",
    "state",
    "status",
    "what",
];

/// Words of our own that tables and notes have.
const OWN: [&str; 7] =
    ["completed", "cancelled", "interrupted", "assistant", "workflow", "llm-first", "tool-first"];

/// Whether a key is nothing but a word that is printed all the time: a dummy, then.
pub fn is_own_word(key: &str) -> bool {
    OWN.contains(&key)
}

/// Whether a text is of small letters, `_` and `-` only: a word of our own, or a dummy of a key.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'))
}

/// What is about to be printed as JSON, without keys (C-06): in texts that are data, and in names that are. Numbers stay, and
/// so do names of fields and the words of a status, a role or a kind.
pub fn clean_printed(json: &mut Value, secrets: &Secrets) {
    match json {
        Value::String(said) => text(said, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_printed(item, secrets)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if !(WORDS.contains(&name.as_str()) && field.as_str().is_some_and(is_word)) {
                    clean_printed(field, secrets);
                }
            }
            clean_names(fields, secrets, |name| !is_word(name));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean_names(fields: &mut Map<String, Value>, secrets: &Secrets, may: impl Fn(&str) -> bool) {
    let told = |key: &String| may(key) && matches!(secrets.redact(key), Cow::Owned(_));
    if fields.keys().any(told) {
        let clean = std::mem::take(fields).into_iter().map(|(mut key, field)| {
            if may(&key) {
                text(&mut key, secrets);
            }
            (key, field)
        });
        *fields = clean.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// C-06: what is printed stays what it is, whatever word or number somebody took for a key.
    #[test]
    fn only_data_is_redacted_in_what_is_printed() {
        let keys = ["12345678", "completed", "input_tokens", "SK-abcdefghij"].map(Secret::new);
        let keys = Secrets::new(&keys);
        let mut said = json!({
            "status": "completed", "usage": {"input_tokens": 1_234_567_890_u64}, "output": "completed SK-abcdefghij",
            "threads": {"SK-abcdefghij": [{"role": "assistant", "content": "n 12345678"}]}, "kind": "SK-abcdefghij",
        });
        clean_printed(&mut said, &keys);
        assert_eq!(
            said,
            json!({
                "status": "completed", "usage": {"input_tokens": 1_234_567_890_u64}, "output": "[redacted] [redacted]",
                "threads": {"[redacted]": [{"role": "assistant", "content": "n [redacted]"}]}, "kind": "[redacted]",
            })
        );
    }

    /// C-06: a key that is wrapped in the lines of a tool is in none of them, also in base64; a line that may end within one waits.
    #[test]
    fn lines_that_are_watched_have_no_key() {
        let secrets = Secrets::new(&[Secret::new("sk-0123456789abcdef")]);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&heard);
        let watch: Watch = Arc::new(move |delta| {
            if let Delta::Progress(line) = delta {
                told.lock().unwrap().push(line);
            }
        });
        let (context, listening) =
            listening(CallContext { watch: Some(watch), ..CallContext::of("r") }, &secrets);
        let say = |line: &str| context.watch.as_ref().unwrap()(Delta::Progress(line.to_owned()));
        for line in ["one", "c2stMDEyMz", "  Q1Njc4OWFi", "  Y2RlZg", "two", "sk"] {
            say(line);
        }
        assert_eq!(*heard.lock().unwrap(), ["one", "[redacted]", "two"]);
        listening.unwrap().end();
        assert_eq!(heard.lock().unwrap().last().unwrap(), "sk");
    }

    /// C-06: wherever in an output a key stands, names of fields included; what else there is stays in its order.
    #[test]
    fn keys_are_removed_from_values_and_names() {
        let secrets = Secrets::new(&[Secret::new("sk-0123456789")]);
        let mut said = json!({"z": 1, "x sk-0123456789": ["sk-0123456789", {"sk-0123456789": null}], "a": 2});
        value(&mut said, &secrets);
        let clean = r#"{"z":1,"x [redacted]":["[redacted]",{"[redacted]":null}],"a":2}"#;
        assert_eq!(said.to_string(), clean);
        let mut name: Arc<str> = "call_sk-0123456789".into();
        label(&mut name, &secrets);
        assert_eq!(&*name, "call_[redacted]");
    }
}
