//! Which models there are and who plays which role: the configuration, with `--model` over it (C-01, C-14).

use super::{keys, ollama};
use crate::config::{Config, ModelConfig};
use crate::environment::Environment;
use crate::options::{EVERY_ROLE, RunOptions};
use selvedge_engine::graph::Act;
use selvedge_engine::{Graph, ModelSettings};
use selvedge_models::router::{DEFAULT_ROLE, ROLES};
use selvedge_models::{Pace, Price, Provider};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The roles of models that the calls of a graph and of its inner graphs use (C-08).
pub fn roles(graph: &Graph) -> Vec<Arc<str>> {
    let leaves = graph.all().flat_map(|graph| graph.nodes.values().flat_map(|node| graph.leaves(node)));
    let roles: BTreeSet<Arc<str>> = leaves
        .filter_map(|leaf| match &leaf.act {
            Act::Infer(infer) => Some(infer.model.clone().unwrap_or_else(|| DEFAULT_ROLE.into())),
            _ => None,
        })
        .collect();
    roles.into_iter().collect()
}

/// A model and how to reach it, keys still unread.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    /// Whether a configuration has it; else it is a provider's model by its name alone.
    pub(super) configured: bool,
    pub(super) provider: Provider,
    pub(super) base_url: String,
    pub(super) model: String,
    pub(super) api_key_env: Option<String>,
    pub(super) context_tokens: Option<u64>,
    pub(super) price: Option<Price>,
    pub(super) pace: Pace,
    pub(super) settings: ModelSettings,
    /// Whether nothing is to be sent to it, as nobody trusts who configures it (C-20).
    pub(super) withheld: bool,
}

impl Spec {
    fn configured(environment: &Environment, model: &ModelConfig) -> Self {
        Self {
            configured: true,
            provider: model.provider,
            base_url: model.base_url.clone().unwrap_or_else(|| usual_place(environment, model.provider)),
            model: model.model.clone(),
            api_key_env: model.api_key_env.clone(),
            context_tokens: model.context_tokens,
            price: model.price,
            pace: model.pace,
            settings: model.settings.clone(),
            withheld: model.withheld,
        }
    }

    /// A model that nothing configures, by its name alone: `PROVIDER/NAME`, or a name that says whose it is.
    fn named(environment: &Environment, name: &str) -> Self {
        let prefixed =
            name.split_once('/').and_then(|(provider, model)| Some((Provider::parse(provider)?, model)));
        let (provider, model) = match prefixed.filter(|(_, model)| !model.is_empty()) {
            Some(found) => found,
            None if name.starts_with("claude-") => (Provider::Anthropic, name),
            None if name.starts_with("gemini-") => (Provider::Gemini, name),
            None => (Provider::OpenAi, name),
        };
        Self {
            configured: false,
            provider,
            base_url: usual_place(environment, provider),
            model: model.to_owned(),
            api_key_env: None,
            context_tokens: None,
            price: None,
            pace: Pace::default(),
            settings: ModelSettings::default(),
            withheld: false,
        }
    }

    /// The key that it is sent.
    pub(super) fn key(&self, environment: &Environment) -> keys::Key {
        keys::of_model(environment, self.provider, &self.base_url, self.api_key_env.as_deref())
    }

    /// Whether a call without a key is no use.
    pub(super) fn needs_key(&self) -> bool {
        self.api_key_env.is_some()
            || keys::is_own(self.provider, &self.base_url) && self.provider != Provider::Ollama
    }
}

fn usual_place(environment: &Environment, provider: Provider) -> String {
    match provider {
        Provider::Ollama => ollama::base_url(environment),
        other => other.default_base_url().to_owned(),
    }
}

/// Models by name, and roles by the name of the model that plays them.
pub(super) struct Table<'a> {
    /// Where keys are.
    pub(super) environment: &'a Environment,
    pub(super) specs: BTreeMap<String, Spec>,
    pub(super) roles: BTreeMap<String, String>,
}

impl<'a> Table<'a> {
    /// A `--model` without a role plays every role that no other option gives away.
    pub(super) fn new(chosen: &RunOptions, config: &'a Config) -> Self {
        let environment = &config.environment;
        let mut specs: BTreeMap<String, Spec> = config
            .models
            .iter()
            .map(|(name, model)| (name.clone(), Spec::configured(environment, model)))
            .collect();
        let mut roles = config.roles.clone();
        if chosen.models.contains_key(EVERY_ROLE) {
            roles.clear();
        }
        for (role, name) in &chosen.models {
            specs.entry(name.clone()).or_insert_with(|| Spec::named(environment, name));
            roles.insert(role.clone(), name.clone());
        }
        // One configured model needs no roles.
        if roles.is_empty()
            && let [only] = specs.keys().collect::<Vec<_>>().as_slice()
        {
            roles.insert(EVERY_ROLE.to_owned(), (*only).clone());
        }
        Self { environment, specs, roles }
    }

    /// The model that the router will choose for a role; the same order as
    /// [`selvedge_models::router::Router::resolve`].
    pub(super) fn model_for(&self, role: &str) -> Option<(&str, &Spec)> {
        let named = |name: &str| self.specs.get_key_value(name);
        let assigned = |role: &str| self.roles.get(role).and_then(|name| named(name));
        let standard = || {
            ROLES.contains(&role).then(|| assigned(DEFAULT_ROLE).or_else(|| named(DEFAULT_ROLE))).flatten()
        };
        let found =
            assigned(role).or_else(|| named(role)).or_else(standard).or_else(|| assigned(EVERY_ROLE))?;
        Some((found.0.as_str(), found.1))
    }
}
