//! The variables of the environment that configure Selvedge (C-06); this table is what `help environment` shows.

use crate::chosen::Chosen;
use crate::failure::Failure;
use std::path::PathBuf;

/// Every variable with what it means.
pub(crate) const VARIABLES: [(&str, &str); 23] = [
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
    ("SELVEDGE_ALLOW_NETWORK", "1 is like --allow-network"),
    ("SELVEDGE_MAX_PARALLEL", "like --max-parallel"),
    ("SELVEDGE_BUDGET", "like --budget"),
    ("SELVEDGE_TIMEOUT", "like --timeout"),
    ("HTTPS_PROXY", "the proxy for https addresses of other machines, http://[USER:PASSWORD@]HOST:PORT"),
    ("HTTP_PROXY", "the proxy for http addresses of other machines"),
    ("ALL_PROXY", "the proxy for both"),
    ("NO_PROXY", "hosts that are asked without a proxy, separated by commas"),
    ("SSL_CERT_FILE", "certificates to trust instead of the system's, as a PEM file"),
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
pub(crate) fn chosen() -> Result<Chosen, Failure> {
    let mut chosen = Chosen { base_url: variable("SELVEDGE_BASE_URL"), ..Chosen::default() };
    for model in variable("SELVEDGE_MODEL").iter().flat_map(|list| list.split(',')) {
        chosen.add_model(model.trim(), "SELVEDGE_MODEL")?;
    }
    chosen.script = path("SELVEDGE_SCRIPT").as_deref().map(absolute);
    if let Some(folders) = path("SELVEDGE_TOOLS") {
        chosen.tools = std::env::split_paths(&folders)
            .filter(|folder| !folder.as_os_str().is_empty())
            .map(|folder| absolute(&folder))
            .collect();
    }
    chosen.allow_network = variable("SELVEDGE_ALLOW_NETWORK").is_some_and(|value| value != "0");
    if let Some(text) = variable("SELVEDGE_MAX_PARALLEL") {
        let number = text.parse().ok().filter(|number| *number > 0);
        chosen.max_parallel = Some(number.ok_or_else(|| {
            let message = format!("SELVEDGE_MAX_PARALLEL must be a whole number from 1 on, not {text:?}");
            Failure::environment("C-06", "bad-variable", &message)
        })?);
    }
    if let Some(text) = variable("SELVEDGE_BUDGET") {
        chosen.budget = crate::chosen::budget(&text, "SELVEDGE_BUDGET")?;
    }
    if let Some(text) = variable("SELVEDGE_TIMEOUT") {
        let seconds = text.parse().ok();
        chosen.timeout_s = Some(crate::chosen::seconds(seconds, &text, "SELVEDGE_TIMEOUT")?);
    }
    Ok(chosen)
}

/// A path that means the same from everywhere.
pub(crate) fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
