//! Whose key goes where (C-01, C-06): a provider's own key to that provider or to an address that the configuration
//! gives it, and to this machine none but `SELVEDGE_API_KEY`.

use crate::environment::Environment;
use crate::error::Error;
use selvedge_http::{Secret, is_loopback};
use selvedge_models::Provider;
use url::Url;

/// Selvedge's own key: for endpoints that are nobody's in particular.
const OWN: &str = "SELVEDGE_API_KEY";

/// A key, and the variable that it comes from or would come from.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key, if the variable is set.
    pub secret: Option<Secret>,
    /// The variable.
    pub variable: String,
}

impl Key {
    /// Refuses a key that no request can carry: what is wrong is the configuration, and no run (C-03).
    pub(super) fn sendable(&self) -> Result<(), Error> {
        let sends = |secret: &Secret| secret.expose().bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        if self.secret.as_ref().is_none_or(sends) {
            return Ok(());
        }
        let name = &self.variable;
        let message = format!("the key in ${name} has characters that can't be sent, such as a line break");
        Err(Error::environment("C-06", "bad-key", &message).help(&format!("set {name} to the key alone")))
    }
}

/// The first of `names` that is set; where none is, `wanted` is what to set.
fn first(environment: &Environment, names: &[&str], wanted: &str) -> Key {
    match names.iter().find_map(|name| Some((*name, environment.variable(name)?))) {
        Some((name, key)) => Key { secret: Some(Secret::new(&key)), variable: name.to_owned() },
        None => Key { secret: None, variable: wanted.to_owned() },
    }
}

fn is_near(base_url: &str) -> bool {
    Url::parse(base_url).is_ok_and(|url| is_loopback(&url))
}

/// The key for `--base-url` (C-01).
pub(super) fn of_endpoint(environment: &Environment, base_url: &str) -> Key {
    match is_near(base_url) {
        true => first(environment, &[OWN], OWN),
        false => first(environment, &[OWN, "OPENAI_API_KEY"], "OPENAI_API_KEY"),
    }
}

/// The key for a model: from the variable that its configuration names, and from no other if it names one.
pub(super) fn of_model(
    environment: &Environment,
    provider: Provider,
    base_url: &str,
    configured: Option<&str>,
) -> Key {
    if let Some(name) = configured {
        return first(environment, &[name], name);
    }
    let mut names = provider.key_variables().to_vec();
    let wanted = provider.key_variable().unwrap_or(OWN);
    match (is_near(base_url), is_own(provider, base_url)) {
        (true, _) => first(environment, &[OWN], OWN),
        (false, true) => {
            // As with `--base-url`, Selvedge's key may stand in for OpenAI's, and for nobody else's.
            if wanted == "OPENAI_API_KEY" {
                names.push(OWN);
            }
            first(environment, &names, wanted)
        }
        (false, false) => {
            names.insert(0, OWN);
            first(environment, &names, wanted)
        }
    }
}

/// Whether an address is the provider's own.
pub(super) fn is_own(provider: Provider, base_url: &str) -> bool {
    let host = |text: &str| Url::parse(text).ok().and_then(|url| url.host_str().map(str::to_owned));
    host(base_url).is_some_and(|found| host(provider.default_base_url()) == Some(found))
}
