//! Which models answer a run's requests: a script, one endpoint, or what is configured (C-01, C-07, C-08).

mod survey;

pub(crate) use survey::{Surveyed, ollama_listens, survey};

use crate::chosen::{Chosen, EVERY_ROLE};
use crate::config::{Config, ModelConfig, Provider};
use crate::environment::variable;
use crate::failure::{Exit, Failure};
use crate::secrets::{clean_model, clean_tools};
use selvedge_adapters::http::{Http, Secret, is_loopback};
use selvedge_adapters::models::CallLimits;
use selvedge_adapters::models::openai::{OpenAi, OpenAiConfig, list_models};
use selvedge_adapters::models::router::{DEFAULT_ROLE, ROLES, Router};
use selvedge_adapters::models::scripted::Scripted;
use selvedge_engine::graph::Act;
use selvedge_engine::{Graph, Warning};
use selvedge_runtime::{Driver, Model, Tools};
use selvedge_store::BlobHash;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The address of OpenAI's own models.
const OPENAI: &str = "https://api.openai.com/v1";
/// Where Ollama listens unless it is told otherwise.
pub(crate) const OLLAMA: &str = "http://127.0.0.1:11434/v1";
/// Its port.
pub(crate) const OLLAMA_PORT: u16 = 11434;
/// How long a list of models may take.
const LIST_WAIT: Duration = Duration::from_secs(20);
/// The largest script.
const SCRIPT_BYTES: u64 = 64 << 20;

/// The models of a run.
pub(crate) struct Models {
    /// All of them, by role.
    pub(crate) model: Arc<dyn Model>,
    /// Whether a script answers (C-07).
    pub(crate) scripted: bool,
    /// Keys in use, to be redacted (C-06).
    pub(crate) secrets: Vec<Secret>,
    /// What answers for each role that the document uses, without secrets: equal words are the same model (E-29).
    pub(crate) names: BTreeMap<Arc<str>, Arc<str>>,
    /// Roles whose model is not sent `enable_search`, `enable_thinking` and the like (P-26).
    pub(crate) plain: BTreeSet<Arc<str>>,
}

impl Models {
    /// A driver over these models and tools; keys in use never come back from either (C-06).
    pub(crate) fn driver(&self, tools: Arc<dyn Tools>, limits: selvedge_runtime::Limits) -> Driver {
        let model = clean_model(Arc::clone(&self.model), &self.secrets);
        Driver::new(model, clean_tools(tools, &self.secrets), limits)
    }

    /// A warning for each node whose settings its model is not sent (P-26).
    pub(crate) fn unsent(&self, graph: &Graph) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for node in graph.nodes.values() {
            for leaf in node.body.leaves.values() {
                let Act::Infer(infer) = &leaf.act else { continue };
                let role = infer.model.as_deref().unwrap_or(DEFAULT_ROLE);
                if infer.settings.extra.is_empty() || !self.plain.contains(role) {
                    continue;
                }
                let names: Vec<&str> = infer.settings.extra.keys().map(String::as_str).collect();
                let message = format!(
                    "{}: the provider of `{role}` does not know it; it is not sent",
                    names.join(", ")
                );
                warnings.push(Warning::at("setting-not-sent", &node.id, message));
            }
        }
        warnings
    }
}

/// A model and how to reach it, keys still unread.
#[derive(Clone, Debug)]
struct Spec {
    base_url: String,
    model: String,
    api_key_env: Option<String>,
    context_tokens: Option<u64>,
    price: Option<selvedge_adapters::models::Price>,
}

/// Prepares the models for a document whose requests use `roles` (empty: it needs none). What is found out on
/// the way (the first model of an endpoint, the script's hash) goes to `chosen`, so that a resume finds it there.
pub(crate) async fn prepare(
    chosen: &mut Chosen,
    config: &Config,
    roles: &[Arc<str>],
    http: &Http,
) -> Result<Models, Failure> {
    let limits = config.limits.calls();
    let mut models = if let Some(script) = chosen.script.clone() {
        scripted(&script, chosen)?
    } else if let Some(base_url) = chosen.base_url.clone() {
        endpoint(&base_url, chosen, !roles.is_empty(), limits, http).await?
    } else {
        configured(chosen, config, roles, limits, http)?
    };
    models.secrets = secrets(config);
    models.names = roles.iter().map(|role| (Arc::clone(role), identity(role, chosen, config))).collect();
    Ok(models)
}

/// The model that answers for a role, and where it is, in words that hold no secret.
fn identity(role: &str, chosen: &Chosen, config: &Config) -> Arc<str> {
    if chosen.script.is_some() {
        return "scripted".into();
    }
    let (specs, roles) = table(chosen, config);
    let spec = name_for(role, &specs, &roles).map(|(_, spec)| (spec.model.clone(), spec.base_url.clone()));
    let (model, url) = match &chosen.base_url {
        Some(url) => {
            let model = [role, DEFAULT_ROLE, EVERY_ROLE].iter().find_map(|role| chosen.models.get(*role));
            (model.cloned().unwrap_or_default(), url.clone())
        }
        None => spec.unwrap_or_default(),
    };
    let place = Url::parse(&url).map(|url| selvedge_adapters::http::shown(&url)).unwrap_or_default();
    format!("{model} at {place}").into()
}

/// Every key that this process can see, whether or not a model of this run uses it: a tool may come upon any
/// of them (C-06).
fn secrets(config: &Config) -> Vec<Secret> {
    let configured = config.models.values().filter_map(|model| model.api_key_env.as_deref());
    let names: BTreeSet<&str> =
        ["SELVEDGE_API_KEY", "OPENAI_API_KEY"].into_iter().chain(configured).collect();
    names.into_iter().filter_map(|name| variable(name).map(|key| Secret::new(&key))).collect()
}

fn scripted(path: &Path, chosen: &mut Chosen) -> Result<Models, Failure> {
    let name = path.display().to_string();
    let wrong = |message: &str| Failure::about_file(&name, "C-07", "bad-script", message);
    let facts = std::fs::metadata(path).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such script".to_owned(),
            _ => format!("the script can't be read: {error}"),
        };
        Failure::about_file(&name, "C-12", "file-not-found", &message)
            .help("check --script; relative paths start at the current folder")
    })?;
    if facts.len() > SCRIPT_BYTES {
        return Err(wrong("the script is larger than 64 MiB"));
    }
    let bytes = std::fs::read(path).map_err(|error| wrong(&format!("the script can't be read: {error}")))?;
    chosen.script_hash = Some(BlobHash::of(&bytes).to_string());
    let yaml = String::from_utf8(bytes).map_err(|_| wrong("the script is not UTF-8 text"))?;
    let scripted = Scripted::parse(&name, &yaml).map_err(|error| {
        wrong(&error.message)
            .at(error.line, error.column)
            .help("a script is a list of rules: - when: {…}, reply: {text: …}")
    })?;
    let router = Router::single(Arc::new(scripted), None);
    Ok(Models {
        model: Arc::new(router),
        scripted: true,
        secrets: Vec::new(),
        plain: BTreeSet::new(),
        names: BTreeMap::new(),
    })
}

/// One endpoint for every role (`--base-url`).
async fn endpoint(
    base_url: &str,
    chosen: &mut Chosen,
    needed: bool,
    limits: CallLimits,
    http: &Http,
) -> Result<Models, Failure> {
    let url = Url::parse(base_url).ok();
    let (key, variable) = key_for(url.as_ref(), None);
    if needed && !chosen.models.contains_key(EVERY_ROLE) {
        let listed = list_models(http, base_url, key.clone(), &variable, LIST_WAIT).await;
        let first = listed.map_err(|failure| {
            Failure::environment("C-01", "no-model-list", &failure.fault.message)
                .help("check --base-url and that the server runs, or name a model with --model")
        })?;
        chosen.models.insert(EVERY_ROLE.to_owned(), first.into_iter().next().unwrap_or_default());
    }
    let mut router = Router::new();
    for (role, model) in &chosen.models {
        let config = OpenAiConfig {
            key: key.clone(),
            key_variable: variable.clone(),
            limits,
            ..OpenAiConfig::new(base_url, model.as_str())
        };
        router.add(model, Arc::new(open_ai(config, http)?), None);
        router.assign(role, model);
    }
    Ok(Models {
        model: Arc::new(router),
        scripted: false,
        secrets: Vec::new(),
        plain: BTreeSet::new(),
        names: BTreeMap::new(),
    })
}

fn open_ai(config: OpenAiConfig, http: &Http) -> Result<OpenAi, Failure> {
    OpenAi::new(config, http).map_err(|message| {
        Failure::usage("C-01", "bad-base-url", &message)
            .help("for example --base-url http://127.0.0.1:8000/v1")
    })
}

/// The key for an address and the variable it comes from: the configured variable, else `SELVEDGE_API_KEY`, else,
/// unless the address is on this machine, `OPENAI_API_KEY` (C-01).
fn key_for(url: Option<&Url>, configured: Option<&str>) -> (Option<Secret>, String) {
    let read = |name: &str| variable(name).map(|key| Secret::new(&key));
    if let Some(name) = configured {
        return (read(name), name.to_owned());
    }
    if let Some(key) = read("SELVEDGE_API_KEY") {
        return (Some(key), "SELVEDGE_API_KEY".to_owned());
    }
    if url.is_some_and(is_loopback) {
        return (None, "SELVEDGE_API_KEY".to_owned());
    }
    (read("OPENAI_API_KEY"), "OPENAI_API_KEY".to_owned())
}

/// What is configured, with `--model` over it.
fn configured(
    chosen: &Chosen,
    config: &Config,
    needed: &[Arc<str>],
    limits: CallLimits,
    http: &Http,
) -> Result<Models, Failure> {
    let (specs, roles) = table(chosen, config);
    if specs.is_empty() && !needed.is_empty() {
        return Err(nothing_configured(needed));
    }
    let mut wanted: BTreeMap<&str, Vec<&Arc<str>>> = BTreeMap::new();
    for role in needed {
        let found = name_for(role, &specs, &roles);
        let (name, _) = found.ok_or_else(|| unknown_role(role, &specs, &roles))?;
        wanted.entry(name).or_default().push(role);
    }
    let mut plain = BTreeSet::new();
    let mut router = Router::new();
    for (name, spec) in &specs {
        let url = Url::parse(&spec.base_url).ok();
        let (key, variable) = key_for(url.as_ref(), spec.api_key_env.as_deref());
        let lacking = key.is_none() && (spec.api_key_env.is_some() || spec.base_url == OPENAI);
        if lacking && wanted.contains_key(name.as_str()) {
            let message = format!("the model `{name}` needs a key, and ${variable} is not set");
            return Err(Failure::environment("C-06", "no-key", &message)
                .help(&format!("set {variable}, or choose another model with --model")));
        }
        let mut model = OpenAiConfig::new(spec.base_url.as_str(), spec.model.as_str());
        (model.key, model.key_variable) = (key, variable);
        (model.price, model.limits) = (spec.price, limits);
        let model = open_ai(model, http)?;
        if !model.sends_extras() {
            plain.extend(wanted.get(name.as_str()).into_iter().flatten().map(|role| Arc::clone(role)));
        }
        router.add(name, Arc::new(model), spec.context_tokens);
    }
    for (role, name) in &roles {
        router.assign(role, name);
    }
    Ok(Models {
        model: Arc::new(router),
        scripted: false,
        secrets: Vec::new(),
        plain,
        names: BTreeMap::new(),
    })
}

type Table = (BTreeMap<String, Spec>, BTreeMap<String, String>);

/// Models by name, and who plays which role. A `--model` without a role plays every role that no other option
/// gives away; a name that is not configured is one of OpenAI's.
fn table(chosen: &Chosen, config: &Config) -> Table {
    let mut specs: BTreeMap<String, Spec> =
        config.models.iter().map(|(name, model)| (name.clone(), spec(model))).collect();
    let mut roles = config.roles.clone();
    if chosen.models.contains_key(EVERY_ROLE) {
        roles.clear();
    }
    for (role, name) in &chosen.models {
        specs.entry(name.clone()).or_insert_with(|| Spec {
            base_url: OPENAI.to_owned(),
            model: name.clone(),
            api_key_env: None,
            context_tokens: None,
            price: None,
        });
        roles.insert(role.clone(), name.clone());
    }
    // One configured model needs no roles.
    if roles.is_empty()
        && let [only] = specs.keys().collect::<Vec<_>>().as_slice()
    {
        roles.insert(EVERY_ROLE.to_owned(), (*only).clone());
    }
    (specs, roles)
}

fn spec(model: &ModelConfig) -> Spec {
    let own = match model.provider {
        Provider::OpenAi => OPENAI,
        Provider::Ollama => OLLAMA,
    };
    Spec {
        base_url: model.base_url.clone().unwrap_or_else(|| own.to_owned()),
        model: model.model.clone(),
        api_key_env: model.api_key_env.clone(),
        context_tokens: model.context_tokens,
        price: model.price,
    }
}

/// The model that the router will choose for a role; the same order as [`Router::resolve`].
fn name_for<'t>(
    role: &str,
    specs: &'t BTreeMap<String, Spec>,
    roles: &'t BTreeMap<String, String>,
) -> Option<(&'t str, &'t Spec)> {
    let named = |name: &str| specs.get_key_value(name);
    let assigned = |role: &str| roles.get(role).and_then(|name| named(name));
    let standard =
        || ROLES.contains(&role).then(|| assigned(DEFAULT_ROLE).or_else(|| named(DEFAULT_ROLE))).flatten();
    let found = assigned(role).or_else(|| named(role)).or_else(standard).or_else(|| assigned(EVERY_ROLE))?;
    Some((found.0.as_str(), found.1))
}

fn unknown_role(role: &str, specs: &BTreeMap<String, Spec>, roles: &BTreeMap<String, String>) -> Failure {
    let names: Vec<&str> = specs.keys().chain(roles.keys()).map(String::as_str).collect();
    let message = format!("no model plays `{role}`; configured are {}", names.join(", "));
    Failure::environment("C-08", "no-model-for-role", &message)
        .help(&format!("name one with --model {role}=NAME, or in [roles] of selvedge.toml"))
}

/// The three shortest ways to a model, with what was found here (C-08).
fn nothing_configured(roles: &[Arc<str>]) -> Failure {
    let key = variable("OPENAI_API_KEY").is_some();
    let first = match key {
        true => "OPENAI_API_KEY is set: add --model NAME to use one of OpenAI's models",
        false => "OPENAI_API_KEY is not set: export a key and add --model NAME for one of OpenAI's models",
    };
    let second = match ollama_listens() {
        true => format!("Ollama was found at 127.0.0.1:{OLLAMA_PORT}: add --base-url {OLLAMA}"),
        false => {
            format!("no Ollama was found at 127.0.0.1:{OLLAMA_PORT}: start one and add --base-url {OLLAMA}")
        }
    };
    let third = "without any model: add --script FILE, a YAML file of scripted replies";
    let message = format!("the document asks a model ({}) and none is configured", roles.join(", "));
    Failure::new(Exit::Environment, "C-08", "no-model", &message)
        .help(&format!("(1) {first}; (2) {second}; (3) {third}"))
}

#[cfg(test)]
mod tests;
