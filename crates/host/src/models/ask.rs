//! Asking endpoints which models they have: all at once, each for a bounded time.

use super::survey::Surveyed;
use futures_util::future::join_all;
use selvedge_engine::Failure;
use selvedge_http::{Http, is_loopback};
use selvedge_models::{Provider, list_models};
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

/// How long an endpoint may take to list its models: on this machine, and elsewhere.
const NEAR: Duration = Duration::from_secs(3);
const FAR: Duration = Duration::from_secs(15);

/// An endpoint, and the variable of the key it is asked with.
pub type Place = (Provider, String, String);

/// What each endpoint listed, or why it did not.
pub type Lists = BTreeMap<Place, Result<Vec<String>, Failure>>;

/// The endpoint of a model.
pub fn place(model: &Surveyed) -> Place {
    (model.provider, model.base_url.clone(), model.key.variable.clone())
}

/// Asks the endpoints of these models, each of them once.
pub async fn ask<'m>(models: impl IntoIterator<Item = &'m Surveyed>, http: &Http) -> Lists {
    let places: BTreeMap<Place, &Surveyed> = models.into_iter().map(|model| (place(model), model)).collect();
    let asked = places.into_iter().map(|(place, model)| async move {
        let near = Url::parse(&model.base_url).is_ok_and(|url| is_loopback(&url));
        let (wait, key) = (if near { NEAR } else { FAR }, model.key.secret.clone());
        let listed = list_models(http, place.0, Some(&model.base_url), key, &model.key.variable, wait).await;
        (place, listed)
    });
    join_all(asked).await.into_iter().collect()
}

/// Whether a list has a model. Ollama lists `name:tag` for what may be asked for as `name`, Gemini `models/name`.
pub fn has(names: &[String], own: &str) -> bool {
    let own = own.strip_prefix("models/").unwrap_or(own);
    names.iter().any(|name| {
        let name = name.strip_prefix("models/").unwrap_or(name);
        name == own || name.strip_suffix(":latest") == Some(own)
    })
}

/// The names of a list that are most like one that it does not have, at most `most`.
pub fn near(names: &[String], own: &str, most: usize) -> Vec<String> {
    let own = own.to_lowercase();
    let mut all: Vec<(f64, &String)> = names
        .iter()
        .map(|name| {
            let lower = name.to_lowercase();
            let inside = !own.is_empty() && (lower.contains(&own) || own.contains(&lower));
            (strsim::jaro_winkler(&lower, &own) + f64::from(u8::from(inside)), name)
        })
        .filter(|(likeness, _)| *likeness > 0.75)
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    all.into_iter().take(most).map(|(_, name)| name.clone()).collect()
}
