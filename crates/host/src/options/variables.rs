//! What the variables of an environment choose (C-06).

use super::{RunOptions, base_url, budget, seconds};
use crate::environment::Environment;
use crate::error::Error;
use selvedge_tools::Network;
use std::path::PathBuf;

/// What the variables choose.
///
/// # Errors
/// `Environment` with the variable's name: what is wrong there is no matter of the command line (C-03).
pub fn from_variables(environment: &Environment) -> Result<RunOptions, Error> {
    read(environment).map_err(Error::of_environment)
}

fn read(environment: &Environment) -> Result<RunOptions, Error> {
    let mut chosen = RunOptions::default();
    if let Some(url) = environment.variable("SELVEDGE_BASE_URL") {
        chosen.base_url = Some(base_url(&url, "SELVEDGE_BASE_URL")?);
    }
    for model in environment.variable("SELVEDGE_MODEL").iter().flat_map(|list| list.split(',')) {
        chosen.add_model(model.trim(), "SELVEDGE_MODEL")?;
        chosen.models_of_environment = true;
    }
    chosen.script = environment.path("SELVEDGE_SCRIPT").map(|script| environment.absolute(&script));
    if let Some(folders) = environment.path("SELVEDGE_TOOLS") {
        chosen.tools = std::env::split_paths(&folders)
            .filter(|folder| !folder.as_os_str().is_empty())
            .map(|folder| environment.absolute(&folder))
            .collect();
    }
    chosen.allow_network = match environment.variable("SELVEDGE_ALLOW_NETWORK").as_deref() {
        Some("local") => Network::Local,
        _ if flag(
            environment,
            "SELVEDGE_ALLOW_NETWORK",
            "set it to 1 to let tools that declare it use the network, or to local",
        )? =>
        {
            Network::Public
        }
        _ => Network::Off,
    };
    if let Some(text) = environment.variable("SELVEDGE_MAX_PARALLEL") {
        let number = text.parse().ok().filter(|number| *number > 0);
        chosen.max_parallel = Some(number.ok_or_else(|| {
            let message = format!("`SELVEDGE_MAX_PARALLEL` must be a whole number from 1 on, not {text:?}");
            Error::environment("C-06", "bad-variable", &message).help("unset it for the default")
        })?);
    }
    if let Some(text) = environment.variable("SELVEDGE_BUDGET") {
        chosen.budget = budget(&text, "SELVEDGE_BUDGET")?;
    }
    if let Some(text) = environment.variable("SELVEDGE_TIMEOUT") {
        let given = text.parse().ok();
        chosen.timeout_s = Some(seconds(given, &text, "SELVEDGE_TIMEOUT")?);
    }
    Ok(chosen)
}

/// Whether `SELVEDGE_TRUST` says what `--trust` does.
///
/// # Errors
/// `Environment` if it says neither that nor the contrary.
pub fn trusts(environment: &Environment) -> Result<bool, Error> {
    flag(environment, "SELVEDGE_TRUST", "set it to 1 to trust what a `selvedge.toml` starts and sends")
}

fn flag(environment: &Environment, name: &str, help: &str) -> Result<bool, Error> {
    match environment.variable(name).as_deref() {
        Some("1" | "true") => Ok(true),
        Some("0" | "false") | None => Ok(false),
        Some(other) => {
            let message = format!("`{name}` must be 1 or 0, not {other:?}");
            Err(Error::environment("C-06", "bad-variable", &message).help(help))
        }
    }
}

/// Checks that files and folders that variables name are there (C-03), but for the script and the tools that options name in their place.
///
/// # Errors
/// `Environment` with the variable's name.
pub fn there(chosen: &RunOptions, script: bool, tools: bool) -> Result<(), Error> {
    let script = chosen.script.as_ref().filter(|_| !script);
    let lost = |path: &&PathBuf| !path.exists();
    let (name, path) = match script.filter(lost) {
        Some(path) => ("SELVEDGE_SCRIPT", path),
        None => return tools_there(chosen, tools),
    };
    Err(not_there(name, path))
}

/// The same of folders of tools; `given` says whether an option names some.
pub fn tools_there(chosen: &RunOptions, given: bool) -> Result<(), Error> {
    match chosen.tools.iter().find(|folder| !given && !folder.is_dir()) {
        Some(folder) => Err(not_there("SELVEDGE_TOOLS", folder)),
        None => Ok(()),
    }
}

fn not_there(name: &str, path: &std::path::Path) -> Error {
    let what = if name == "SELVEDGE_TOOLS" { "folder" } else { "file" };
    let message = format!("`{name}`: there is no {what} {}", path.display());
    Error::environment("C-06", "file-not-found", &message).help(&format!("correct {name}, or unset it"))
}
