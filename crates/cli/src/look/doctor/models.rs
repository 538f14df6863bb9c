//! Models: who plays which role, and whether they can be reached.

use super::{Report, Verdict};
use crate::chosen::{Chosen, EVERY_ROLE};
use crate::config::Config;
use crate::models::{OLLAMA, OLLAMA_PORT, Surveyed, ollama_listens, survey};
use selvedge_adapters::http::{Http, is_loopback, shown};
use selvedge_adapters::models::openai::list_models;
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

/// How long an endpoint may take to list its models: on this machine, and elsewhere.
const NEAR: Duration = Duration::from_secs(3);
const FAR: Duration = Duration::from_secs(15);
/// Names of models that a line shows.
const NAMES: usize = 6;

type Lists = BTreeMap<String, Result<Vec<String>, String>>;

/// Looks at the models. Only endpoints on this machine are asked, the others if `online`.
pub(super) async fn look(chosen: &Chosen, config: &Config, online: bool, report: &mut Report) {
    if let Some(script) = &chosen.script {
        let verdict = if script.is_file() { Verdict::Ok } else { Verdict::Broken };
        let there = if verdict == Verdict::Ok { "" } else { ", which is not there" };
        report.add("model", verdict, format!("a script plays every role: {}{there}", script.display()));
    }
    let models = survey(chosen, config);
    if models.is_empty() && chosen.script.is_none() {
        report.add("model", Verdict::Missing, "none is configured; documents that need none run");
        report.help("set OPENAI_API_KEY and use --model NAME, or use --base-url URL, or --script FILE");
    }
    let http = Http::new();
    let mut lists = Lists::new();
    for model in &models {
        one(model, online, &http, &mut lists, report).await;
    }
    for (role, name) in
        config.roles.iter().filter(|(_, name)| !models.iter().any(|model| model.name == **name))
    {
        if chosen.base_url.is_none() && chosen.script.is_none() {
            let message = format!("[roles] gives {role} to `{name}`, and there is no [models.{name}]");
            report.add("model", Verdict::Broken, message);
            report.help(format!("add [models.{name}], or give the role to another model"));
        }
    }
    ollama(&http, &lists, report).await;
}

async fn one(model: &Surveyed, online: bool, http: &Http, lists: &mut Lists, report: &mut Report) {
    let url = Url::parse(&model.base_url).ok();
    let place = url.as_ref().map_or_else(|| model.base_url.clone(), shown);
    let roles: Vec<&str> =
        model.roles.iter().map(|role| if role == EVERY_ROLE { "every other role" } else { role }).collect();
    let plays = if roles.is_empty() { "no role".to_owned() } else { roles.join(", ") };
    let own = model.model.as_ref().filter(|own| **own != model.name);
    let own = own.map(|own| format!(" ({own})")).unwrap_or_default();
    let key = match (&model.key, model.key_needed) {
        (Some(_), _) => format!("key from {}", model.key_variable),
        (None, true) => format!("{} is not set", model.key_variable),
        (None, false) => "no key".to_owned(),
    };
    let what = format!("{}{own} plays {plays}; {place}; {key}", model.name);
    let Some(url) = url else {
        report.add("model", Verdict::Broken, format!("{what}; that is no address"));
        report.help("for example base_url = \"http://127.0.0.1:8000/v1\"");
        return;
    };
    if model.key.is_none() && model.key_needed {
        report.add("model", Verdict::Broken, what);
        report.help(format!("set {}", model.key_variable));
        return;
    }
    let near = is_loopback(&url);
    if !near && !online {
        report.add("model", Verdict::Ok, format!("{what}; not asked"));
        report.help("selvedge doctor --online asks it");
        return;
    }
    if !lists.contains_key(&model.base_url) {
        let wait = if near { NEAR } else { FAR };
        let listed = list_models(http, &model.base_url, model.key.clone(), &model.key_variable, wait).await;
        lists.insert(model.base_url.clone(), listed.map_err(|failure| failure.fault.message));
    }
    match lists.get(&model.base_url) {
        Some(Ok(names)) if model.model.as_ref().is_none_or(|own| lists_it(names, own)) => {
            report.add("model", Verdict::Ok, format!("{what}; answers"));
        }
        Some(Ok(names)) => {
            report.add("model", Verdict::Warning, format!("{what}; the endpoint does not list this model"));
            report.help(format!("it lists {}", some(names)));
        }
        Some(Err(why)) => {
            report.add("model", Verdict::Broken, format!("{what}; {why}"));
            report.help("start the server, or correct the address or the key");
        }
        None => {}
    }
}

/// Ollama lists `name:tag` for what may be asked for as `name`.
fn lists_it(names: &[String], own: &str) -> bool {
    names.iter().any(|name| name == own || name.strip_suffix(":latest") == Some(own))
}

fn some(names: &[String]) -> String {
    let mut text = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > NAMES {
        text.push_str(&format!(" and {} more", names.len() - NAMES));
    }
    text
}

async fn ollama(http: &Http, lists: &Lists, report: &mut Report) {
    let place = format!("127.0.0.1:{OLLAMA_PORT}");
    if !ollama_listens() {
        report.add("ollama", Verdict::Missing, format!("nothing listens at {place}"));
        report.help("start Ollama to use models of this machine");
        return;
    }
    let listed = match lists.get(OLLAMA) {
        Some(known) => known.clone(),
        None => list_models(http, OLLAMA, None, "SELVEDGE_API_KEY", NEAR).await.map_err(|f| f.fault.message),
    };
    match listed {
        Ok(names) => {
            report.add("ollama", Verdict::Ok, format!("at {place}: {}", some(&names)));
            report.help(format!("--base-url {OLLAMA} --model NAME uses one"));
        }
        Err(why) => report.add("ollama", Verdict::Warning, why),
    }
}
