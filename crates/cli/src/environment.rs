//! The variables of the environment that configure Selvedge (C-06); this table is what `help environment` shows.

use crate::args::Exec;
use crate::chosen::{Chosen, base_url, budget, seconds};
use crate::failure::Failure;
use selvedge_tools::Network;
use std::path::PathBuf;

/// Every variable with what it means.
pub(crate) const VARIABLES: [(&str, &str); 28] = [
    ("SELVEDGE_API_KEY", "key for --base-url and for models without a key variable of their own"),
    (
        "OPENAI_API_KEY",
        "the key of OpenAI; with --base-url where SELVEDGE_API_KEY is not set, but never to this machine",
    ),
    ("ANTHROPIC_API_KEY", "the key of Anthropic"),
    ("GEMINI_API_KEY", "the key of Gemini"),
    ("GOOGLE_API_KEY", "the same where GEMINI_API_KEY is not set"),
    ("OLLAMA_HOST", "where Ollama is, instead of 127.0.0.1:11434"),
    ("SELVEDGE_BASE_URL", "like --base-url"),
    ("SELVEDGE_MODEL", "like --model, several separated by commas"),
    ("SELVEDGE_SCRIPT", "like --script"),
    ("SELVEDGE_TOOLS", "like --tools, several separated as in PATH"),
    ("SELVEDGE_STATE_DIR", "like --state-dir"),
    ("SELVEDGE_CONFIG", "the user's configuration file, instead of ~/.config/selvedge/config.toml"),
    ("SELVEDGE_CACHE_DIR", "the folder of tools' environments, instead of ~/.cache/selvedge"),
    ("SELVEDGE_PYTHON", "the Python that runs tools, instead of the first usable one on PATH"),
    ("SELVEDGE_ALLOW_NETWORK", "1 is like --allow-network, local like --allow-network=local"),
    ("SELVEDGE_TRUST", "1 is like --trust"),
    ("SELVEDGE_MAX_PARALLEL", "like --max-parallel"),
    ("SELVEDGE_BUDGET", "like --budget"),
    ("SELVEDGE_TIMEOUT", "like --timeout"),
    ("PAGER", "what shows long pages on a terminal, instead of `less -FRX`"),
    ("NO_PAGER", "like --no-pager"),
    (
        "COLUMNS",
        "the width of pages and of lines on a terminal, and of pages in a pipe, which are not wrapped without it",
    ),
    ("HTTPS_PROXY", "the proxy for https addresses of other machines, http://[USER:PASSWORD@]HOST:PORT"),
    ("HTTP_PROXY", "the proxy for http addresses of other machines"),
    ("ALL_PROXY", "the proxy for both"),
    ("NO_PROXY", "hosts that are asked without a proxy, separated by commas"),
    ("SSL_CERT_FILE", "certificates to trust instead of the system's, as a PEM file"),
    ("SSL_CERT_DIR", "the same as folders of PEM files, several separated as in PATH"),
];

/// A variable's value; an empty one counts as not set.
pub(crate) fn variable(name: &str) -> Option<String> {
    debug_assert!(is_listed(name), "{name} is in no table");
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Our own variables are read only if the table has them, so that the table is complete.
fn is_listed(name: &str) -> bool {
    VARIABLES.iter().any(|(known, _)| *known == name) || !name.starts_with("SELVEDGE_")
}

/// A variable that holds a path.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    debug_assert!(is_listed(name), "{name} is in no table");
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// What the variables choose.
///
/// # Errors
/// Exit 4 with the variable's name: what is wrong there is no matter of the command line (C-03).
pub(crate) fn chosen() -> Result<Chosen, Failure> {
    read().map_err(Failure::of_environment)
}

fn read() -> Result<Chosen, Failure> {
    let mut chosen = Chosen::default();
    if let Some(url) = variable("SELVEDGE_BASE_URL") {
        chosen.base_url = Some(base_url(&url, "SELVEDGE_BASE_URL")?);
    }
    for model in variable("SELVEDGE_MODEL").iter().flat_map(|list| list.split(',')) {
        chosen.add_model(model.trim(), "SELVEDGE_MODEL")?;
        chosen.models_of_environment = true;
    }
    chosen.script = path("SELVEDGE_SCRIPT").as_deref().map(absolute);
    if let Some(folders) = path("SELVEDGE_TOOLS") {
        chosen.tools = std::env::split_paths(&folders)
            .filter(|folder| !folder.as_os_str().is_empty())
            .map(|folder| absolute(&folder))
            .collect();
    }
    chosen.allow_network = match variable("SELVEDGE_ALLOW_NETWORK").as_deref() {
        Some("local") => Network::Local,
        _ if flag(
            "SELVEDGE_ALLOW_NETWORK",
            "set it to 1 to let tools that declare it use the network, or to local",
        )? =>
        {
            Network::Public
        }
        _ => Network::Off,
    };
    if let Some(text) = variable("SELVEDGE_MAX_PARALLEL") {
        let number = text.parse().ok().filter(|number| *number > 0);
        chosen.max_parallel = Some(number.ok_or_else(|| {
            let message = format!("`SELVEDGE_MAX_PARALLEL` must be a whole number from 1 on, not {text:?}");
            Failure::environment("C-06", "bad-variable", &message).help("unset it for the default")
        })?);
    }
    if let Some(text) = variable("SELVEDGE_BUDGET") {
        chosen.budget = budget(&text, "SELVEDGE_BUDGET")?;
    }
    if let Some(text) = variable("SELVEDGE_TIMEOUT") {
        let given = text.parse().ok();
        chosen.timeout_s = Some(seconds(given, &text, "SELVEDGE_TIMEOUT")?);
    }
    Ok(chosen)
}

/// Whether `SELVEDGE_TRUST` says what `--trust` does.
///
/// # Errors
/// Exit 4 if it says neither that nor the contrary.
pub(crate) fn trusts() -> Result<bool, Failure> {
    flag("SELVEDGE_TRUST", "set it to 1 to trust what a `selvedge.toml` starts and sends")
}

fn flag(name: &str, help: &str) -> Result<bool, Failure> {
    match variable(name).as_deref() {
        Some("1" | "true") => Ok(true),
        Some("0" | "false") | None => Ok(false),
        Some(other) => {
            let message = format!("`{name}` must be 1 or 0, not {other:?}");
            Err(Failure::environment("C-06", "bad-variable", &message).help(help))
        }
    }
}

/// Checks that files and folders that variables name, and no option in their place, are there (C-03).
///
/// # Errors
/// Exit 4 with the variable's name.
pub(crate) fn there(chosen: &Chosen, exec: &Exec) -> Result<(), Failure> {
    let script = chosen.script.as_ref().filter(|_| exec.script.is_none());
    let lost = |path: &&PathBuf| !path.exists();
    let (name, path) = match script.filter(lost) {
        Some(path) => ("SELVEDGE_SCRIPT", path),
        None => return tools_there(chosen, &exec.from.tools),
    };
    Err(not_there(name, path))
}

/// The same of folders of tools; `given` are those of an option.
pub(crate) fn tools_there(chosen: &Chosen, given: &[PathBuf]) -> Result<(), Failure> {
    match chosen.tools.iter().find(|folder| given.is_empty() && !folder.is_dir()) {
        Some(folder) => Err(not_there("SELVEDGE_TOOLS", folder)),
        None => Ok(()),
    }
}

fn not_there(name: &str, path: &std::path::Path) -> Failure {
    let what = if name == "SELVEDGE_TOOLS" { "folder" } else { "file" };
    let message = format!("`{name}`: there is no {what} {}", path.display());
    Failure::environment("C-06", "file-not-found", &message).help(&format!("correct {name}, or unset it"))
}

/// A path that means the same from everywhere.
pub(crate) fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
