//! What is configured about models, for people: nothing is asked or refused here.

use super::keys::{Key, of_endpoint};
use super::table::Table;
use crate::config::Config;
use crate::options::{EVERY_ROLE, RunOptions};
use selvedge_models::router::ROLES;
use selvedge_models::{Pace, Price, Provider};

/// A model, whom it plays, and how it is reached.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// Its name in the configuration.
    pub name: String,
    /// Whose protocol it speaks.
    pub provider: Provider,
    /// The roles it plays; [`EVERY_ROLE`] for all that have no model of their own.
    pub roles: Vec<String>,
    /// Its name at the endpoint; `None` takes the endpoint's first.
    pub model: Option<String>,
    /// The endpoint.
    pub base_url: String,
    /// The key that would be sent, and its variable.
    pub key: Key,
    /// Whether a run that asks this model ends without the key (C-06).
    pub key_needed: bool,
    /// How many tokens fit into its context, if the configuration says.
    pub context_tokens: Option<u64>,
    /// What it costs, if the configuration says.
    pub price: Option<Price>,
    /// How much it is asked, as the configuration says (E-51).
    pub pace: Pace,
    /// Whether it is not asked, as nobody trusts who configures it (C-20).
    pub withheld: bool,
}

/// The models that a run started here would have, scripts aside, by name.
pub fn survey(chosen: &RunOptions, config: &Config) -> Vec<Surveyed> {
    if let Some(base_url) = &chosen.base_url {
        let one = |role: &str, model: Option<&String>| Surveyed {
            name: model.cloned().unwrap_or_else(|| "(any)".to_owned()),
            provider: Provider::OpenAi,
            roles: vec![role.to_owned()],
            model: model.cloned(),
            base_url: base_url.clone(),
            key: of_endpoint(&config.environment, base_url),
            key_needed: false,
            context_tokens: None,
            price: None,
            pace: Pace::default(),
            withheld: false,
        };
        let mut all: Vec<_> = chosen.models.iter().map(|(role, model)| one(role, Some(model))).collect();
        if !chosen.models.contains_key(EVERY_ROLE) {
            all.push(one(EVERY_ROLE, None));
        }
        return all;
    }
    let table = Table::new(chosen, config);
    let played = |name: &String| {
        let given = table.roles.iter().filter(|(_, model)| *model == name).map(|(role, _)| role.clone());
        // A model that is called like a role plays it, unless another was given the role.
        let own = ROLES.contains(&name.as_str()) && !table.roles.contains_key(name);
        given.chain(own.then(|| name.clone())).collect()
    };
    let one = |(name, spec): (&String, &super::table::Spec)| Surveyed {
        name: name.clone(),
        provider: spec.provider,
        roles: played(name),
        model: Some(spec.model.clone()),
        base_url: spec.base_url.clone(),
        key: spec.key(&config.environment),
        key_needed: spec.needs_key(),
        context_tokens: spec.context_tokens,
        price: spec.price,
        pace: spec.pace,
        withheld: spec.withheld,
    };
    table.specs.iter().map(one).collect()
}
