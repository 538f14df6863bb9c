//! What was chosen for a run by options and variables: kept with the run, so that `resume`, `answer` and `fork`
//! default to it (C-10). No secrets: keys are named by their variables only.

use crate::args::Exec;
use crate::environment::{self, absolute};
use crate::failure::Failure;
use selvedge_dialects::diagnostic::shown;
use selvedge_engine::{Budget, Warning};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The role that stands for all roles without a model of their own.
pub(crate) const EVERY_ROLE: &str = "*";

/// Choices that are kept with a run, as JSON in its row of the index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Chosen {
    /// The folder in which the run was started: where `selvedge.toml` is looked for.
    pub(crate) cwd: PathBuf,
    /// The document's file.
    pub(crate) document: PathBuf,
    /// `--plan`.
    pub(crate) plan: Option<String>,
    /// `--dialect`.
    pub(crate) dialect: Option<String>,
    /// `--tools`.
    pub(crate) tools: Vec<PathBuf>,
    /// `--mcp`.
    pub(crate) mcp: Option<PathBuf>,
    /// `--base-url`.
    pub(crate) base_url: Option<String>,
    /// `--model`, by role; [`EVERY_ROLE`] for one without.
    pub(crate) models: BTreeMap<String, String>,
    /// `--script`.
    pub(crate) script: Option<PathBuf>,
    /// SHA-256 of the script as it was.
    pub(crate) script_hash: Option<String>,
    /// `--allow-read`.
    pub(crate) allow_read: Vec<PathBuf>,
    /// `--allow-write`.
    pub(crate) allow_write: Vec<PathBuf>,
    /// `--allow-network`.
    pub(crate) allow_network: bool,
    /// `--require-isolation`.
    pub(crate) require_isolation: bool,
    /// `--sequential`.
    pub(crate) sequential: bool,
    /// `--max-parallel`.
    pub(crate) max_parallel: Option<u32>,
    /// `--budget`.
    pub(crate) budget: Budget,
    /// `--timeout`.
    pub(crate) timeout_s: Option<u64>,
    /// `--input`.
    pub(crate) inputs: Map<String, Value>,
    /// What the checker and the catalogue had to say about the document (C-02).
    pub(crate) warnings: Vec<Warning>,
}

impl Chosen {
    /// What the options of a command choose; relative paths start at the current folder.
    pub(crate) fn from_options(exec: &Exec) -> Result<Self, Failure> {
        let all = |paths: &[PathBuf]| paths.iter().map(|path| absolute(path)).collect();
        // What is to be written may come into being later; what is to be read must be there (C-12).
        if let Some(path) = exec.allow_read.iter().find(|path| !path.exists()) {
            let message = format!("`--allow-read`: there is no {}", path.display());
            return Err(Failure::usage("C-12", "file-not-found", &message)
                .help("check the path; relative paths start at the current folder"));
        }
        let mut chosen = Self {
            plan: exec.plan.clone(),
            dialect: exec.dialect.clone(),
            tools: all(&exec.tools),
            mcp: exec.mcp.as_deref().map(absolute),
            base_url: exec.base_url.clone(),
            script: exec.script.as_deref().map(absolute),
            allow_read: all(&exec.allow_read),
            allow_write: all(&exec.allow_write),
            allow_network: exec.allow_network,
            require_isolation: exec.require_isolation,
            sequential: exec.sequential,
            max_parallel: exec.max_parallel,
            ..Self::default()
        };
        for model in &exec.model {
            chosen.add_model(model, "--model")?;
        }
        if let Some(text) = &exec.budget {
            chosen.budget = budget(text, "--budget")?;
        }
        if let Some(given) = exec.timeout {
            // Numbers of hundreds of digits are said with an exponent.
            let text = if given.abs() < 1e16 { given.to_string() } else { format!("{given:?}") };
            chosen.timeout_s = Some(seconds(Some(given), &text, "--timeout")?);
        }
        Ok(chosen)
    }

    /// Options over variables, for a new run (C-06).
    pub(crate) fn for_run(exec: &Exec) -> Result<Self, Failure> {
        let mut chosen = environment::chosen()?.under(Self::from_options(exec)?);
        chosen.cwd = absolute(std::path::Path::new("."));
        Ok(chosen)
    }

    /// Options over what the run was started with (C-10).
    pub(crate) fn for_resume(stored: &str, exec: &Exec) -> Result<Self, Failure> {
        for (given, option) in [
            (exec.plan.is_some(), "--plan"),
            (exec.dialect.is_some(), "--dialect"),
            (!exec.input.is_empty(), "--input"),
            (exec.run_id.is_some(), "--run-id"),
        ] {
            if given {
                let message =
                    format!("`{option}` belongs to the beginning of a run: it can't change in the middle");
                return Err(Failure::usage("C-10", "option-of-run", &message)
                    .help("start a new run with it (`selvedge run`, or `selvedge fork` of this one), or leave it out"));
            }
        }
        Ok(Self::stored(stored).under(Self::from_options(exec)?))
    }

    /// Options over what the source was started with (C-10, C-13). Which plan and dialect belongs to a document.
    pub(crate) fn for_fork(stored: &str, exec: &Exec, document: bool) -> Result<Self, Failure> {
        for (given, option) in [(exec.plan.is_some(), "--plan"), (exec.dialect.is_some(), "--dialect")] {
            if given && !document {
                let message = format!("`{option}` says how to read a document, and there is no `--document`");
                return Err(Failure::usage("C-13", "option-of-run", &message)
                    .help("name the document, or leave the option out"));
            }
        }
        Ok(Self::stored(stored).under(Self::from_options(exec)?))
    }

    /// The JSON that is kept with a run: without what an address may say of users and keys (C-06, C-10).
    ///
    /// # Errors
    /// Only for paths that are no Unicode.
    pub(crate) fn to_stored(&self) -> Result<String, serde_json::Error> {
        let mut kept = self.clone();
        if let Some(mut url) = kept.base_url.as_deref().and_then(|url| url::Url::parse(url).ok()) {
            let secret = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
            if secret && url.set_username("").is_ok() && url.set_password(None).is_ok() {
                url.set_query(None);
                kept.base_url = Some(url.to_string());
            }
        }
        serde_json::to_string(&kept)
    }

    /// What a run was started with. One that an older or newer version wrote may lack parts.
    pub(crate) fn stored(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Adds `[ROLE=]NAME`.
    pub(crate) fn add_model(&mut self, text: &str, option: &str) -> Result<(), Failure> {
        // A model's own name may hold a `=`: only a plain word before it is a role.
        let word = |role: &str| role.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        let by_role = text.split_once('=').filter(|(role, _)| word(role.trim()));
        let (role, name) = by_role.unwrap_or((EVERY_ROLE, text));
        if role.trim().is_empty() || name.trim().is_empty() {
            let message = format!("`{option}` takes NAME or ROLE=NAME, not {text:?}");
            return Err(Failure::usage("C-01", "bad-model", &message));
        }
        self.models.insert(role.trim().to_owned(), name.trim().to_owned());
        Ok(())
    }

    /// `self` with everything that `over` chooses in its place. Which model answers is one choice: a script
    /// takes the place of an endpoint and the other way round.
    fn under(mut self, over: Self) -> Self {
        if over.script.is_some() {
            (self.base_url, self.models) = (None, BTreeMap::new());
        } else if over.base_url.is_some() {
            (self.script, self.script_hash) = (None, None);
            // Names of models belong to the endpoint that has them.
            self.models.clear();
        } else if !over.models.is_empty() {
            (self.script, self.script_hash) = (None, None);
        }
        self.models.extend(over.models);
        let paths = |below: Vec<PathBuf>, over: Vec<PathBuf>| if over.is_empty() { below } else { over };
        let budget = Budget {
            calls: over.budget.calls.or(self.budget.calls),
            tokens: over.budget.tokens.or(self.budget.tokens),
            cost: over.budget.cost.or(self.budget.cost),
        };
        Self {
            plan: over.plan.or(self.plan),
            dialect: over.dialect.or(self.dialect),
            tools: paths(self.tools, over.tools),
            mcp: over.mcp.or(self.mcp),
            base_url: over.base_url.or(self.base_url),
            script_hash: if over.script.is_some() { None } else { self.script_hash },
            script: over.script.or(self.script),
            allow_read: joined(self.allow_read, over.allow_read),
            allow_write: joined(self.allow_write, over.allow_write),
            allow_network: over.allow_network || self.allow_network,
            require_isolation: over.require_isolation || self.require_isolation,
            sequential: over.sequential || self.sequential,
            max_parallel: over.max_parallel.or(self.max_parallel),
            budget,
            timeout_s: over.timeout_s.or(self.timeout_s),
            ..self
        }
    }
}

/// What was allowed stays allowed: an option adds to it.
fn joined(mut below: Vec<PathBuf>, over: Vec<PathBuf>) -> Vec<PathBuf> {
    for path in over {
        if !below.contains(&path) {
            below.push(path);
        }
    }
    below
}

/// Caps as `calls=100,tokens=1e6,cost=2.5` (C-01).
pub(crate) fn budget(text: &str, option: &str) -> Result<Budget, Failure> {
    let mut budget = Budget::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let wrong = || {
            let message = format!("`{option}`: {part:?} is no cap");
            Failure::usage("C-01", "bad-budget", &message)
                .help("write caps as calls=100,tokens=1e6,cost=2.5; each is a number from 0 on")
        };
        let (name, number) = part.split_once('=').ok_or_else(wrong)?;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        if !(number.is_finite() && number >= 0.0) {
            return Err(wrong());
        }
        // Counts beyond 2^53 mean "no cap"; the cast saturates.
        let count = number.floor() as u64;
        match name.trim() {
            "calls" => budget.calls = Some(count),
            "tokens" => budget.tokens = Some(count),
            "cost" => budget.cost = Some(number),
            _ => return Err(wrong()),
        }
    }
    Ok(budget)
}

/// The longest time limit, in seconds: thirty years.
const LONGEST: f64 = 1e9;

/// Whole seconds from 1 on; parts of a second count as one.
pub(crate) fn seconds(given: Option<f64>, text: &str, option: &str) -> Result<u64, Failure> {
    match given {
        Some(seconds) if seconds > 0.0 && seconds <= LONGEST => Ok(seconds.ceil() as u64),
        _ => {
            let message =
                format!("`{option}` must be a number of seconds above 0 and up to 1e9, not {}", shown(text));
            Err(Failure::usage("C-01", "bad-timeout", &message).help("leave it out for no limit"))
        }
    }
}

/// `--input KEY=VALUE`: JSON if it parses, else text; the last of equal keys counts (C-01).
pub(crate) fn inputs(given: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut values = Map::new();
    for text in given {
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let message = format!("`--input` takes KEY=VALUE, not {text:?}");
            let help = "write --input name=value; the value is JSON if it parses, else text";
            return Err(Failure::usage("C-01", "bad-input", &message).help(help));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        values.insert(key.to_owned(), value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
