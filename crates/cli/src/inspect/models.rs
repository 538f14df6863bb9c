//! `selvedge models`: the configured models, and what endpoints have (C-14, C-15).

use super::args::ModelsArgs;
use super::page::{BOLD, CYAN, DIM, GREEN, Page, RED, Table, YELLOW};
use crate::args::Common;
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_engine::Failure as CallFailure;
use selvedge_host::Environment;
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::models::{Lists, Place, Surveyed, ask, has, near, ollama, place, survey, ways};
use selvedge_host::options::{EVERY_ROLE, RunOptions};
use selvedge_http::shown;
use selvedge_models::{Pace, Price, Provider};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::Url;

/// How many names like one that is not listed are told.
const NEAR: usize = 3;

/// What asking a model's endpoint came to.
struct Status {
    state: &'static str,
    message: String,
    near: Vec<String>,
}

impl Status {
    /// Whether a run could not use the model.
    fn is_broken(&self) -> bool {
        matches!(self.state, "no_key" | "key_refused" | "unreachable" | "not_trusted")
    }
}

/// Lists the configured models; asks their endpoints if told to.
pub(crate) fn models(args: &ModelsArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let gate = ui.gate(common)?;
    // To list them sends nothing.
    let gate = if args.check || args.available { gate } else { gate.silent() };
    let config = Config::load(&ui.environment, super::config_files(&ui.environment), gate, ui)?;
    let mut chosen = selvedge_host::options::from_variables(&ui.environment)?;
    if let Some(base_url) = &args.base_url {
        chosen = RunOptions {
            base_url: Some(selvedge_host::options::base_url(base_url, "--base-url")?),
            ..RunOptions::default()
        };
    }
    let ui = super::guarded(ui);
    let models = survey(&chosen, &config);
    if let Some(script) = &chosen.script {
        ui.note(&format!("note: SELVEDGE_SCRIPT is set: {} plays every role", script.display()));
    }
    let lists = if args.check || args.available {
        let others = if args.available && chosen.base_url.is_none() {
            at_hand(&models, &config.environment)
        } else {
            Vec::new()
        };
        block_on(0, async {
            ask(models.iter().chain(&others).filter(|m| can_be_asked(m)), config.environment.http()).await
        })?
    } else {
        Lists::new()
    };
    let statuses: Vec<Option<Status>> =
        models.iter().map(|model| args.check.then(|| status(model, &lists))).collect();
    match ui.json {
        true => print_json(&models, &statuses, args.available.then_some(&lists), &ui),
        false => print(&models, &statuses, args.available.then_some(&lists), &ui),
    }
    let broken = statuses.iter().flatten().any(Status::is_broken);
    Ok(if broken { Exit::Environment } else { Exit::Completed })
}

/// Endpoints that need no configuration: providers whose key is found, and Ollama if it is there.
fn at_hand(models: &[Surveyed], environment: &Environment) -> Vec<Surveyed> {
    let mut found = Vec::new();
    for provider in [Provider::OpenAi, Provider::Anthropic, Provider::Gemini, Provider::Ollama] {
        let there = match provider {
            Provider::Ollama => ollama::listens(environment),
            other => other.key_variables().iter().any(|name| environment.variable(name).is_some()),
        };
        let any = RunOptions {
            models: BTreeMap::from([(EVERY_ROLE.to_owned(), format!("{}/any", provider.name()))]),
            ..RunOptions::default()
        };
        let known = |one: &Surveyed| models.iter().any(|model| place(model) == place(one));
        if there {
            found.extend(survey(&any, &Config::new(environment)).into_iter().filter(|one| !known(one)));
        }
    }
    found
}

fn can_be_asked(model: &Surveyed) -> bool {
    !model.withheld
        && (model.key.secret.is_some() || !model.key_needed)
        && Url::parse(&model.base_url).is_ok()
}

fn status(model: &Surveyed, lists: &Lists) -> Status {
    let of = |state, message: String| Status { state, message, near: Vec::new() };
    let own = model.model.as_deref();
    if model.withheld {
        return of("not_trusted", "the file that configures it is not trusted".to_owned());
    }
    match lists.get(&place(model)) {
        None if Url::parse(&model.base_url).is_err() => {
            of("unreachable", "base_url is no address".to_owned())
        }
        None => of("no_key", format!("{} is not set", model.key.variable)),
        Some(Err(failure)) => match code(failure) {
            Some(401 | 403) => of("key_refused", failure.fault.message.clone()),
            Some(404 | 405 | 501) => {
                of("no_list", "the endpoint answers, but has no list of models".to_owned())
            }
            _ => of("unreachable", failure.fault.message.clone()),
        },
        Some(Ok(names)) => match own {
            None => of("ok", format!("the first model is {}", names.first().map_or("none", String::as_str))),
            Some(own) if has(names, own) => of("ok", "the endpoint answers and lists the model".to_owned()),
            Some(own) => {
                let near = near(names, own, NEAR);
                let like =
                    if near.is_empty() { String::new() } else { format!("; it lists {}", near.join(", ")) };
                let message = format!("the endpoint answers and does not list {own}{like}");
                Status { state: "not_listed", message, near }
            }
        },
    }
}

fn code(failure: &CallFailure) -> Option<u64> {
    let field = |name: &str| failure.fault.cause.as_ref()?.get(name)?.as_u64();
    field("means").or_else(|| field("status"))
}

/// An address without credentials (C-06).
fn address(base_url: &str) -> String {
    Url::parse(base_url).map_or_else(|_| base_url.to_owned(), |url| shown(&url))
}

fn print_json(models: &[Surveyed], statuses: &[Option<Status>], lists: Option<&Lists>, ui: &Ui) {
    let rows = models.iter().zip(statuses).map(|(model, status)| {
        let mut row = json!({
            "name": model.name,
            "provider": model.provider.name(),
            "model": model.model,
            "base_url": address(&model.base_url),
            "roles": model.roles,
            "key": {"variable": model.key.variable, "found": model.key.secret.is_some()},
            "context_tokens": model.context_tokens,
            "price": model.price.map(|price| json!({
                "input_per_mtok": price.input_per_mtok,
                "output_per_mtok": price.output_per_mtok,
                "cached_input_per_mtok": price.cached_input_per_mtok,
            })),
            "requests_per_minute": model.pace.requests_per_minute,
            "tokens_per_minute": model.pace.tokens_per_minute,
            "max_parallel": model.pace.max_parallel,
        });
        if let (Some(status), Some(fields)) = (status, row.as_object_mut()) {
            let told = json!({"state": status.state, "message": status.message, "near": status.near});
            fields.insert("status".to_owned(), told);
        }
        row
    });
    let mut all = Map::new();
    all.insert("models".to_owned(), rows.collect());
    if let Some(lists) = lists {
        let rows = lists.iter().map(|((provider, base_url, _), listed)| {
            json!({
                "provider": provider.name(),
                "base_url": address(base_url),
                "models": listed.as_ref().ok(),
                "error": listed.as_ref().err().map(|failure| &failure.fault.message),
            })
        });
        all.insert("available".to_owned(), rows.collect());
    }
    ui.result(&format!("{}\n", Value::Object(all)));
}

fn print(models: &[Surveyed], statuses: &[Option<Status>], lists: Option<&Lists>, ui: &Ui) {
    // Addresses stay whole where they are taken on from here.
    let mut page = Page::whole();
    if models.is_empty() {
        page.line("no model is configured; documents that need none run");
        page.labelled("  to use one:", DIM, 14, &ways(&ui.environment), 12);
    } else {
        page.table(&table(models));
    }
    let told: Vec<_> = models.iter().zip(statuses).filter_map(|(m, s)| Some((m, s.as_ref()?))).collect();
    if !told.is_empty() {
        page.gap();
    }
    for (model, status) in told {
        let style = match status.state {
            "ok" => GREEN,
            _ if status.is_broken() => RED,
            _ => YELLOW,
        };
        let text = format!("{}: {}", model.name, status.message);
        page.labelled(&status.state.replace('_', " "), style, 13, &text, 12);
    }
    for (place, listed) in lists.into_iter().flatten() {
        available(&mut page, place, listed);
    }
    page.print(ui);
}

fn available(page: &mut Page, place: &Place, listed: &Result<Vec<String>, CallFailure>) {
    page.gap();
    let (provider, base_url, _) = place;
    let head = format!("{} at {}", provider.name(), address(base_url));
    match listed {
        Ok(names) => {
            page.labelled("", "", 0, &format!("{head}:"), 4);
            names.iter().for_each(|name| page.labelled("", "", 2, name, 4));
        }
        Err(failure) => page.labelled("", "", 0, &format!("{head}: {}", failure.fault.message), 12),
    }
}

fn table(models: &[Surveyed]) -> Table {
    let mut table = Table::new(&["NAME", "MODEL", "ROLES", "KEY", "CONTEXT", "PRICE", "LIMITS", "WHERE"], 7);
    (table.spare, table.whole) = (vec![4, 5, 6], vec![4, 5, 6]);
    for model in models {
        let roles: Vec<&str> =
            model.roles.iter().map(|role| if role == EVERY_ROLE { "(others)" } else { role }).collect();
        let (key, style) = match (&model.key.secret, model.key_needed) {
            (Some(_), _) => (model.key.variable.clone(), GREEN),
            (None, true) => (format!("{} not set", model.key.variable), RED),
            (None, false) => ("none".to_owned(), DIM),
        };
        let own = model.model.as_deref().unwrap_or("(the first it lists)");
        table.row([
            (model.name.clone(), BOLD),
            (format!("{}/{own}", model.provider.name()), ""),
            (roles.join(", "), CYAN),
            (key, style),
            (model.context_tokens.map(|tokens| tokens.to_string()).unwrap_or_default(), DIM),
            (model.price.map(price).unwrap_or_default(), DIM),
            (limits(model.pace), DIM),
            (address(&model.base_url), DIM),
        ]);
    }
    table
}

/// How much a model is asked, in words; nothing without a limit.
pub(super) fn limits(pace: Pace) -> String {
    let Pace { requests_per_minute, tokens_per_minute, max_parallel } = pace;
    let limit = |most: Option<u64>, what: &str| most.map(|most| format!("{most} {what}"));
    let all = [
        limit(requests_per_minute, "requests/min"),
        limit(tokens_per_minute, "tokens/min"),
        limit(max_parallel, "at a time"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a million tokens of prompt and of reply cost, and of prompt from a cache where that is another price.
fn price(price: Price) -> String {
    let cached = price.cached_input_per_mtok.map(|cached| format!(" ({cached} cached)")).unwrap_or_default();
    format!("{}+{}{cached}", price.input_per_mtok, price.output_per_mtok)
}
