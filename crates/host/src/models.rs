//! Which models answer a run's requests: a script, one endpoint, or what is configured (C-01, C-07, C-08).
//!
//! - `table`: models by name, roles by model. `keys`: whose key goes where. [`ollama`]: where that is.
//! - `names`: names that mean nothing. `script`: the file of a scripted model. `advice`: what is said behind a provider's refusal.
//! - `survey` and `ask`: what is configured and what endpoints have, for `models` and `doctor`.

mod advice;
mod ask;
mod keys;
mod names;
pub mod ollama;
pub(crate) mod script;
mod survey;
mod table;

pub use ask::{Lists, Place, ask, has, near, place};
pub use survey::{Surveyed, survey};
pub use table::roles;

use crate::config::Config;
use crate::environment::Environment;
use crate::error::{Error, ErrorKind};
use crate::options::{EVERY_ROLE, RunOptions};
use crate::secrets;
use advice::Advised;
use selvedge_dialects::fields::misspelt;
use selvedge_engine::graph::Act;
use selvedge_engine::{Graph, ModelSettings, Warning};
use selvedge_http::{Http, Secret, shown};
use selvedge_models::router::{DEFAULT_ROLE, Router};
use selvedge_models::{CallLimits, Endpoint, Provider, ProviderConfig, list_models};
use selvedge_runtime::Model;
use selvedge_store::BlobHash;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use table::Table;
use url::Url;

/// How long a list of models may take.
const LIST_WAIT: Duration = Duration::from_secs(20);

/// The models of a run.
pub struct Models {
    /// All of them, by role.
    pub model: Arc<dyn Model>,
    /// Whether a script answers (C-07).
    pub scripted: bool,
    /// Keys in use, to be redacted (C-06).
    pub secrets: Vec<Secret>,
    /// What answers for each role that the document uses, without secrets: equal words are the same model (E-29).
    pub names: BTreeMap<Arc<str>, Arc<str>>,
    /// The endpoints by role, which know what settings they don't send (P-26); `*` for every other role.
    pub endpoints: BTreeMap<Arc<str>, Endpoint>,
}

impl Models {
    /// Models that this router chooses from.
    fn of(router: Router) -> Self {
        Self {
            model: Arc::new(router),
            scripted: false,
            secrets: Vec::new(),
            names: BTreeMap::new(),
            endpoints: BTreeMap::new(),
        }
    }

    /// A warning for each node whose settings its model is not sent (P-26).
    pub fn unsent(&self, graph: &Graph) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let nodes = graph.all().flat_map(|graph| graph.nodes.values().map(move |node| (graph, node)));
        for (graph, node) in nodes {
            for leaf in graph.leaves(node) {
                let Act::Infer(infer) = &leaf.act else { continue };
                let role = infer.model.as_deref().unwrap_or(DEFAULT_ROLE);
                let endpoint = self.endpoints.get(role).or_else(|| self.endpoints.get(EVERY_ROLE));
                let names = endpoint.map(|endpoint| endpoint.unsent(&infer.settings)).unwrap_or_default();
                if names.is_empty() {
                    continue;
                }
                let model = self.names.get(role).map_or(role, |name| &**name);
                let message = format!(
                    "node {}: {} is not sent: the provider of {model} does not know it",
                    node.id,
                    names.join(", ")
                );
                let warning = Warning::at("setting-not-sent", &node.id, message);
                // A node may ask in more than one place.
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings
    }
}

/// Prepares the models for a document whose requests use `roles` (empty: it needs none). What is found out on
/// the way (the first model of an endpoint, the script's hash) goes to `chosen`, so that a resume finds it there.
pub async fn prepare(
    chosen: &mut RunOptions,
    config: &Config,
    roles: &[Arc<str>],
    http: &Http,
) -> Result<Models, Error> {
    let limits = config.limits.calls();
    let mut models = if let Some(script) = chosen.script.clone() {
        names::check(chosen, config)?;
        script::scripted(&script, chosen)?
    } else if let Some(base_url) = chosen.base_url.clone() {
        endpoint(&config.environment, &base_url, chosen, !roles.is_empty(), limits, http).await?
    } else {
        names::check(chosen, config)?;
        trusted(&Table::new(chosen, config), roles, config)?;
        configured(&Table::new(chosen, config), roles, limits, http)?
    };
    models.secrets = secrets::known(config);
    // What `--base-url` or its variable says is no configuration.
    let own = chosen.base_url.iter().flat_map(|url| secrets::in_address(url));
    models.secrets.extend(own.map(|secret| Secret::new(&secret)));
    let clean = |name: Arc<str>| {
        // They are recorded, and an address that is configured may have a key in its path (C-06).
        models.secrets.iter().fold(name, |name, secret| match secret.redact(&name) {
            Cow::Owned(clean) => clean.into(),
            Cow::Borrowed(_) => name,
        })
    };
    let names = roles.iter().map(|role| (Arc::clone(role), clean(identity(role, chosen, config))));
    models.names = names.collect();
    Ok(models)
}

/// The models that would answer for `roles`, as runs record them: nothing is asked, and no key is needed. Where none is configured, it is
/// the one that was `recorded`.
pub(crate) fn named(
    roles: &[Arc<str>],
    chosen: &RunOptions,
    config: &Config,
    recorded: &BTreeMap<Arc<str>, Arc<str>>,
) -> BTreeMap<Arc<str>, Arc<str>> {
    let known = |role: &Arc<str>| {
        chosen.script.is_some()
            || chosen.base_url.is_some()
            || Table::new(chosen, config).model_for(role).is_some()
    };
    let name = |role: &Arc<str>| match known(role) {
        true => Some(identity(role, chosen, config)),
        false => recorded.get(role).cloned(),
    };
    roles.iter().filter_map(|role| Some((role.clone(), name(role)?))).collect()
}

/// The model that answers for a role, and where it is, in words that hold no secret.
fn identity(role: &str, chosen: &RunOptions, config: &Config) -> Arc<str> {
    if chosen.script.is_some() {
        return "scripted".into();
    }
    let (model, url, settings) = match &chosen.base_url {
        Some(url) => (endpoint_model(role, chosen).unwrap_or_default(), url.clone(), None),
        None => {
            let table = Table::new(chosen, config);
            let spec = table.model_for(role).map(|(_, spec)| spec);
            let settings = spec.and_then(|spec| settings_digest(&spec.settings));
            let spec = spec.map(|spec| (spec.model.clone(), spec.base_url.clone())).unwrap_or_default();
            (spec.0, spec.1, settings)
        }
    };
    let place = Url::parse(&url).map(|url| shown(&url)).unwrap_or_default();
    // Their values may be nobody's business (C-06).
    let settings = settings.map(|digest| format!(" with settings {digest}")).unwrap_or_default();
    format!("{model} at {place}{settings}").into()
}

/// A few digits that tell these settings from others; `None` if there are none.
fn settings_digest(settings: &ModelSettings) -> Option<String> {
    let written = serde_json::to_string(settings).ok().filter(|_| *settings != ModelSettings::default())?;
    BlobHash::of(written.as_bytes()).to_string().get(..8).map(str::to_owned)
}

/// One endpoint for every role (`--base-url`).
async fn endpoint(
    environment: &Environment,
    base_url: &str,
    chosen: &mut RunOptions,
    needed: bool,
    limits: CallLimits,
    http: &Http,
) -> Result<Models, Error> {
    let key = keys::of_endpoint(environment, base_url);
    if needed {
        key.sendable()?;
        way_there(base_url, http)?;
    }
    if needed && !chosen.models.contains_key(EVERY_ROLE) {
        let (secret, place) = (key.secret.clone(), Some(base_url));
        let listed = list_models(http, Provider::OpenAi, place, secret, &key.variable, LIST_WAIT).await;
        let first = listed.map_err(|failure| {
            Error::environment("C-01", "no-model-list", &failure.fault.message)
                .help("check --base-url and that the server runs, or name a model with --model")
        })?;
        chosen.models.insert(EVERY_ROLE.to_owned(), first.into_iter().next().unwrap_or_default());
    }
    let address = Url::parse(base_url).map(|url| shown(&url)).ok();
    let mut router = Router::new();
    let mut endpoints = BTreeMap::new();
    for (role, model) in &chosen.models {
        let config = ProviderConfig {
            key: key.secret.clone(),
            key_variable: key.variable.clone(),
            limits,
            ..ProviderConfig::new(Provider::OpenAi, model.as_str()).at(base_url)
        };
        let model_at = reachable(config, http)?;
        endpoints.insert(Arc::from(role.as_str()), model_at.clone());
        let advised = Advised { model: Arc::new(model_at), context_tokens: None, address: address.clone() };
        router.add(model, Arc::new(advised), None);
        router.assign(role, model);
    }
    Ok(Models { endpoints, ..Models::of(router) })
}

/// Refuses proxies and certificates of the environment that a model's requests need and can't use: what is wrong is the
/// configuration, and no run (C-03, C-06).
fn way_there(base_url: &str, http: &Http) -> Result<(), Error> {
    let Ok(url) = Url::parse(base_url) else { return Ok(()) };
    http.check(&url).map_err(|wrong| Error::environment("C-06", wrong.code, &wrong.message).help(&wrong.help))
}

fn reachable(config: ProviderConfig, http: &Http) -> Result<Endpoint, Error> {
    Endpoint::new(config, http).map_err(|message| {
        Error::usage("C-01", "bad-base-url", &message).help("for example --base-url http://127.0.0.1:8000/v1")
    })
}

/// Refuses models that a configuration has which nobody trusts (C-20): neither keys nor what is asked go there.
fn trusted(table: &Table<'_>, needed: &[Arc<str>], config: &Config) -> Result<(), Error> {
    let withheld = |role: &Arc<str>| table.model_for(role).filter(|(_, spec)| spec.withheld);
    let (Some((name, _)), Some(off)) = (needed.iter().find_map(withheld), &config.off) else { return Ok(()) };
    let message = format!("the model `{name}` of {} is not trusted", off.untrusted.file);
    let refusal = off.untrusted.refusal(&format!("models.{name}"), &message);
    Err(Error::findings(ErrorKind::Environment, vec![refusal]))
}

/// What is configured, with `--model` over it.
fn configured(
    table: &Table<'_>,
    needed: &[Arc<str>],
    limits: CallLimits,
    http: &Http,
) -> Result<Models, Error> {
    if table.specs.is_empty() && !needed.is_empty() {
        return Err(nothing_configured(table.environment, needed));
    }
    let mut wanted: BTreeMap<&str, Vec<&Arc<str>>> = BTreeMap::new();
    for role in needed {
        let (name, _) = table.model_for(role).ok_or_else(|| unknown_role(role, table))?;
        wanted.entry(name).or_default().push(role);
    }
    let mut endpoints = BTreeMap::new();
    let mut router = Router::new();
    for (name, spec) in table.specs.iter().filter(|(_, spec)| !spec.withheld) {
        let key = spec.key(table.environment);
        if key.secret.is_none() && spec.needs_key() && wanted.contains_key(name.as_str()) {
            let message = format!("the model `{name}` needs a key, and ${} is not set", key.variable);
            let help = format!("set {}, or choose another model with --model", key.variable);
            let meant =
                if spec.configured { String::new() } else { format!("; {}", names::taken_for(name, table)) };
            return Err(Error::environment("C-06", "no-key", &message).help(&format!("{help}{meant}")));
        }
        if wanted.contains_key(name.as_str()) {
            key.sendable()?;
            way_there(&spec.base_url, http)?;
        }
        let model = ProviderConfig {
            key: key.secret,
            key_variable: key.variable,
            price: spec.price,
            settings: spec.settings.clone(),
            limits,
            pace: spec.pace,
            ..ProviderConfig::new(spec.provider, spec.model.as_str()).at(spec.base_url.as_str())
        };
        let model = match Endpoint::new(model, http) {
            Ok(model) => model,
            Err(why) if wanted.contains_key(name.as_str()) => {
                return Err(Error::environment("C-14", "bad-base-url", &format!("[models.{name}]: {why}"))
                    .help("correct base_url in selvedge.toml"));
            }
            // Nobody asks it.
            Err(_) => continue,
        };
        let roles = wanted.get(name.as_str()).into_iter().flatten();
        endpoints.extend(roles.map(|role| (Arc::clone(role), model.clone())));
        let context_tokens = spec.context_tokens;
        let advised = Advised { model: Arc::new(model), context_tokens, address: None };
        router.add(name, Arc::new(advised), context_tokens);
    }
    for (role, name) in &table.roles {
        router.assign(role, name);
    }
    Ok(Models { endpoints, ..Models::of(router) })
}

fn unknown_role(role: &str, table: &Table<'_>) -> Error {
    let (message, help) = nobody_plays(role, table);
    Error::environment("C-08", "no-model-for-role", &message).help(&help)
}

/// What is said about a role or a model's name that no model goes by, and what to do.
fn nobody_plays(role: &str, table: &Table<'_>) -> (String, String) {
    let names: Vec<&str> = table.specs.keys().map(String::as_str).collect();
    let roles: Vec<&str> =
        table.roles.keys().map(String::as_str).filter(|role| *role != EVERY_ROLE).collect();
    let known: Vec<&str> = names.iter().chain(&roles).copied().collect();
    let mut message = format!("no model plays `{role}`; configured: {}", names.join(", "));
    if !roles.is_empty() {
        message.push_str(&format!("; roles: {}", roles.join(", ")));
    }
    let way = format!("name one with --model {role}=NAME, or in [roles] of selvedge.toml");
    let help = misspelt(role, &known).map(|meant| format!("did you mean \"{meant}\"? Else {way}"));
    (message, help.unwrap_or(way))
}

/// The first of `roles` that no model plays, where models are configured and are to answer (C-08).
pub fn unplayed(chosen: &RunOptions, config: &Config, roles: &[Arc<str>]) -> Option<Arc<str>> {
    let table = configured_table(chosen, config)?;
    roles.iter().find(|role| table.model_for(role).is_none()).cloned()
}

/// The first of `roles` whose model is not trusted (C-20).
pub fn untrusted(chosen: &RunOptions, config: &Config, roles: &[Arc<str>]) -> Option<Arc<str>> {
    let table = configured_table(chosen, config)?;
    let withheld = |role: &&Arc<str>| table.model_for(role).is_some_and(|(_, spec)| spec.withheld);
    roles.iter().find(withheld).cloned()
}

/// Whether models play all of these roles and can be asked: a key that is needed is there. An endpoint that is named is
/// taken to be there (D-17).
pub fn there(chosen: &RunOptions, config: &Config, roles: &[Arc<str>]) -> bool {
    if chosen.script.is_some() || chosen.base_url.is_some() {
        return true;
    }
    let table = Table::new(chosen, config);
    let can = |spec: &table::Spec| {
        !spec.withheld && (!spec.needs_key() || spec.key(table.environment).secret.is_some())
    };
    roles.iter().all(|role| table.model_for(role).is_some_and(|(_, spec)| can(spec)))
}

/// What is said about a role of [`unplayed`], and what to do.
pub fn unplayed_words(role: &str, chosen: &RunOptions, config: &Config) -> (String, String) {
    nobody_plays(role, &Table::new(chosen, config))
}

/// The models by role; `None` where none is configured, or a script or one endpoint answers for all.
fn configured_table<'c>(chosen: &RunOptions, config: &'c Config) -> Option<Table<'c>> {
    let table = Table::new(chosen, config);
    (chosen.script.is_none() && chosen.base_url.is_none() && !table.specs.is_empty()).then_some(table)
}

/// The models that requests of these roles go to and that have no price: what they cost is not counted (E-20). A
/// script costs nothing.
pub fn unpriced(chosen: &RunOptions, config: &Config, roles: &[Arc<str>]) -> Vec<Warning> {
    let told = |name: &str, help: &str| {
        let message =
            format!("the budget's cost is not counted for the model `{name}`, which has no price: {help}");
        Warning { code: "no-price".into(), message, node: None }
    };
    if chosen.script.is_some() || roles.is_empty() {
        return Vec::new();
    }
    if chosen.base_url.is_some() {
        let names = roles.iter().filter_map(|role| endpoint_model(role, chosen));
        let names: BTreeSet<String> = names.collect();
        let help = "configure it in [models.NAME], with base_url and price, in place of --base-url";
        return names.iter().map(|name| told(name, help)).collect();
    }
    let table = Table::new(chosen, config);
    let used: BTreeMap<&str, &table::Spec> = roles.iter().filter_map(|role| table.model_for(role)).collect();
    let unpriced = used.into_iter().filter(|(_, spec)| spec.price.is_none());
    let help = |name: &str, configured: bool| match configured {
        true => format!("set price in [models.{name}]"),
        false => "configure it in [models.NAME], with a price".to_owned(),
    };
    unpriced.map(|(name, spec)| told(name, &help(name, spec.configured))).collect()
}

/// The model of `--base-url` that answers for a role.
fn endpoint_model(role: &str, chosen: &RunOptions) -> Option<String> {
    [role, DEFAULT_ROLE, EVERY_ROLE].iter().find_map(|role| chosen.models.get(*role)).cloned()
}

/// The three shortest ways to a model, with what was found here (C-08).
fn nothing_configured(environment: &Environment, roles: &[Arc<str>]) -> Error {
    let message = format!("the document asks a model ({}) and none is configured", roles.join(", "));
    Error::new(ErrorKind::Environment, "C-08", "no-model", &message).help(&ways(environment))
}

/// The three shortest ways to a model: a provider whose key is found, Ollama, a script (C-08).
pub fn ways(environment: &Environment) -> String {
    let keyed = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini].into_iter();
    let found: Vec<(&str, Provider)> = keyed
        .filter_map(|provider| {
            let mut names = provider.key_variables().iter();
            Some((*names.find(|name| environment.variable(name).is_some())?, provider))
        })
        .collect();
    let first = match found.as_slice() {
        [] => "OPENAI_API_KEY is not set, nor ANTHROPIC_API_KEY or GEMINI_API_KEY: export one and add \
               --model PROVIDER/NAME (openai, anthropic or gemini)"
            .to_owned(),
        found => {
            let each = found
                .iter()
                .map(|(name, provider)| format!("{name} is set: add --model {}/NAME", provider.name()));
            each.collect::<Vec<_>>().join(", or ")
        }
    };
    let (place, url) = (ollama::place(environment), ollama::base_url(environment));
    let second = match ollama::listens(environment) {
        true => format!("Ollama was found at {place}: add --base-url {url}"),
        false => format!("no Ollama was found at {place}: start one and add --base-url {url}"),
    };
    let third = "without any model: add --script FILE, a YAML file of scripted replies";
    format!("(1) {first}; (2) {second}; (3) {third}")
}

#[cfg(test)]
mod tests;
