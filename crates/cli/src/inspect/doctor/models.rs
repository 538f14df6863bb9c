//! Models: who plays which role, and whether they can be reached.

use super::{Report, Verdict};
use selvedge_host::config::Config;
use selvedge_host::models::{Lists, Surveyed, ask, has, near, ollama, place, survey, unplayed, ways};
use selvedge_host::options::{EVERY_ROLE, RunOptions};
use selvedge_http::{Http, is_loopback, shown};
use selvedge_models::router::DEFAULT_ROLE;
use selvedge_models::{Provider, list_models};
use std::time::Duration;
use url::Url;

/// How long Ollama may take to list its models.
const NEAR: Duration = Duration::from_secs(3);
/// Names of models that a line shows.
const NAMES: usize = 6;

/// Looks at the models. Only endpoints on this machine are asked, the others if `online`.
pub(super) async fn look(chosen: &RunOptions, config: &Config, online: bool, report: &mut Report) {
    if let Some(script) = &chosen.script {
        let verdict = if script.is_file() { Verdict::Ok } else { Verdict::Broken };
        let there = if verdict == Verdict::Ok { "" } else { ", which is not there" };
        report.add("model", verdict, format!("a script plays every role: {}{there}", script.display()));
        if verdict == Verdict::Broken {
            report.help("correct SELVEDGE_SCRIPT");
        }
    }
    let models = survey(chosen, config);
    if models.is_empty() && chosen.script.is_none() {
        report.add("model", Verdict::Missing, "none is configured; documents that need none run");
        report.help(ways(&config.environment));
    }
    let http = config.environment.http();
    let asked = models.iter().filter(|model| is_asked(model, online));
    let lists = ask(asked, http).await;
    for model in &models {
        one(model, &lists, report);
    }
    if chosen.base_url.is_none() && chosen.script.is_none() {
        for wrong in config.nobodys_roles() {
            super::settings::finding(&wrong, "model", report);
        }
        if unplayed(chosen, config, &[DEFAULT_ROLE.into()]).is_some() {
            let message = format!("no model plays `{DEFAULT_ROLE}`, the role of whatever names none");
            report.add("model", Verdict::Warning, message);
            report.help(format!("give it away: [roles] {DEFAULT_ROLE} = \"NAME\""));
        }
    }
    keys(config, report);
    local(config, http, &lists, report).await;
}

fn is_asked(model: &Surveyed, online: bool) -> bool {
    let lacking = model.key.secret.is_none() && model.key_needed;
    !model.withheld && !lacking && Url::parse(&model.base_url).is_ok_and(|url| online || is_loopback(&url))
}

fn one(model: &Surveyed, lists: &Lists, report: &mut Report) {
    let url = Url::parse(&model.base_url).ok();
    let shown = url.as_ref().map_or_else(|| model.base_url.clone(), shown);
    let roles: Vec<&str> =
        model.roles.iter().map(|role| if role == EVERY_ROLE { "every other role" } else { role }).collect();
    let plays = match roles.is_empty() {
        true => "is there for documents that name it".to_owned(),
        false => format!("plays {}", roles.join(", ")),
    };
    let own = model.model.as_ref().filter(|own| **own != model.name);
    let own = own.map(|own| format!(" ({own})")).unwrap_or_default();
    let variable = &model.key.variable;
    let key = match (&model.key.secret, model.key_needed) {
        (Some(_), _) => format!("key from {variable}"),
        (None, true) => format!("{variable} is not set"),
        (None, false) => "no key".to_owned(),
    };
    let limits = crate::inspect::models::limits(model.pace);
    let limits = if limits.is_empty() { limits } else { format!("; at most {limits}") };
    let what = format!("{}{own} {plays}; {}, {shown}; {key}{limits}", model.name, model.provider.name());
    if model.withheld {
        return report.add(
            "model",
            Verdict::Warning,
            format!("{what}; not trusted, so nothing is sent there"),
        );
    }
    if url.is_none() {
        report.add("model", Verdict::Broken, format!("{what}; that is no address"));
        return report.help("for example base_url = \"http://127.0.0.1:8000/v1\"");
    }
    if model.key.secret.is_none() && model.key_needed {
        report.add("model", Verdict::Broken, what);
        return report.help(format!("set {variable}"));
    }
    match lists.get(&place(model)) {
        Some(Ok(names)) if model.model.as_ref().is_none_or(|own| has(names, own)) => {
            report.add("model", Verdict::Ok, format!("{what}; answers"));
        }
        Some(Ok(names)) => {
            report.add("model", Verdict::Warning, format!("{what}; the endpoint does not list this model"));
            let like = near(names, model.model.as_deref().unwrap_or_default(), NAMES);
            report.help(format!("it lists {}", some(if like.is_empty() { names } else { &like })));
        }
        Some(Err(failure)) => {
            report.add("model", Verdict::Broken, format!("{what}; {}", failure.fault.message));
            report.help("start the server, or correct the address or the key");
        }
        None => {
            report.add("model", Verdict::Ok, format!("{what}; not asked"));
            report.help("selvedge doctor --online asks it");
        }
    }
}

fn some(names: &[String]) -> String {
    let mut text = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > NAMES {
        text.push_str(&format!(" and {} more", names.len() - NAMES));
    }
    text
}

/// Keys of providers that are found, never their values (C-06).
fn keys(config: &Config, report: &mut Report) {
    let found = Provider::ALL.iter().flat_map(|provider| provider.key_variables());
    let mut found: Vec<&str> =
        found.copied().filter(|name| config.environment.variable(name).is_some()).collect();
    found.dedup();
    if !found.is_empty() {
        report.add("keys", Verdict::Ok, format!("found: {}", found.join(", ")));
        report.help("--model PROVIDER/NAME uses one; selvedge models --available lists the models");
    }
}

async fn local(config: &Config, http: &Http, lists: &Lists, report: &mut Report) {
    let (place, url) = (ollama::place(&config.environment), ollama::base_url(&config.environment));
    if !ollama::listens(&config.environment) {
        report.add("ollama", Verdict::Missing, format!("nothing listens at {place}"));
        return report.help("start Ollama to use models of this machine");
    }
    let known = lists.iter().find(|((_, base_url, _), listed)| *base_url == url && listed.is_ok());
    let listed = match known {
        Some((_, known)) => known.clone(),
        None => list_models(http, Provider::Ollama, Some(&url), None, "SELVEDGE_API_KEY", NEAR).await,
    };
    match listed {
        Ok(names) => {
            report.add("ollama", Verdict::Ok, format!("at {place}: {}", some(&names)));
            report.help("--model ollama/NAME uses one");
        }
        Err(failure) => report.add("ollama", Verdict::Warning, failure.fault.message),
    }
}
