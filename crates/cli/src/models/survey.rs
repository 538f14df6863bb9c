//! What is configured about models, for people: nothing is asked or refused here.

use super::{OLLAMA_PORT, OPENAI, key_for, table};
use crate::chosen::{Chosen, EVERY_ROLE};
use crate::config::Config;
use selvedge_adapters::http::Secret;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;
use url::Url;

/// A model, whom it plays, and how it is reached.
#[derive(Debug)]
pub(crate) struct Surveyed {
    /// Its name in the configuration.
    pub(crate) name: String,
    /// The roles it plays; [`EVERY_ROLE`] for all that have no model of their own.
    pub(crate) roles: Vec<String>,
    /// Its name at the endpoint; `None` takes the endpoint's first.
    pub(crate) model: Option<String>,
    /// The endpoint.
    pub(crate) base_url: String,
    /// The key that would be sent.
    pub(crate) key: Option<Secret>,
    /// The variable that the key comes from.
    pub(crate) key_variable: String,
    /// Whether a run that asks this model ends without the key (C-06).
    pub(crate) key_needed: bool,
}

/// The models that a run started here would have, scripts aside, by name.
pub(crate) fn survey(chosen: &Chosen, config: &Config) -> Vec<Surveyed> {
    let keyed =
        |base_url: &str, variable: Option<&str>| key_for(Url::parse(base_url).ok().as_ref(), variable);
    if let Some(base_url) = &chosen.base_url {
        let (key, key_variable) = keyed(base_url, None);
        let one = |role: &str, model: Option<String>| Surveyed {
            name: model.clone().unwrap_or_else(|| "the endpoint's first model".to_owned()),
            roles: vec![role.to_owned()],
            model,
            base_url: base_url.clone(),
            key: key.clone(),
            key_variable: key_variable.clone(),
            key_needed: false,
        };
        let mut all: Vec<_> =
            chosen.models.iter().map(|(role, model)| one(role, Some(model.clone()))).collect();
        if !chosen.models.contains_key(EVERY_ROLE) {
            all.push(one(EVERY_ROLE, None));
        }
        return all;
    }
    let (specs, roles) = table(chosen, config);
    let one = |(name, spec): (&String, &super::Spec)| {
        let (key, key_variable) = keyed(&spec.base_url, spec.api_key_env.as_deref());
        Surveyed {
            name: name.clone(),
            roles: roles.iter().filter(|(_, model)| *model == name).map(|(role, _)| role.clone()).collect(),
            model: Some(spec.model.clone()),
            base_url: spec.base_url.clone(),
            key,
            key_variable,
            key_needed: spec.api_key_env.is_some() || spec.base_url == OPENAI,
        }
    };
    specs.iter().map(one).collect()
}

/// Whether something listens where Ollama does.
pub(crate) fn ollama_listens() -> bool {
    let ollama = SocketAddr::from((Ipv4Addr::LOCALHOST, OLLAMA_PORT));
    TcpStream::connect_timeout(&ollama, Duration::from_millis(200)).is_ok()
}
