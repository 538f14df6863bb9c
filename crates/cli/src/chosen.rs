//! What was chosen for a run by options and variables: kept with the run, so that `resume`, `answer` and `fork`
//! default to it (C-10). No secrets: keys are named by their variables only.

mod values;

pub(crate) use values::{base_url, budget, seconds};

use crate::args::{Exec, Grants, Sources};
use crate::config::not_a_variable;
use crate::environment::{self, absolute};
use crate::failure::Failure;
use crate::ui::one_line;
use selvedge_dialects::{Diagnostics, DocumentLimits, Source, json};
use selvedge_engine::{Budget, Warning};
use selvedge_tools::Network;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    /// Whether it is `SELVEDGE_MODEL` alone that names them: a wrong name is no wrong call then (C-03).
    #[serde(skip)]
    pub(crate) models_of_environment: bool,
    /// `--script`.
    pub(crate) script: Option<PathBuf>,
    /// SHA-256 of the script as it was.
    pub(crate) script_hash: Option<String>,
    /// `--allow-read`.
    pub(crate) allow_read: Vec<PathBuf>,
    /// `--allow-write`.
    pub(crate) allow_write: Vec<PathBuf>,
    /// `--allow-network`.
    pub(crate) allow_network: Network,
    /// `--allow-env`.
    pub(crate) allow_env: Vec<String>,
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
        let mut chosen = Self {
            plan: exec.plan.clone(),
            dialect: exec.dialect.clone(),
            base_url: exec.base_url.as_deref().map(|url| base_url(url, "--base-url")).transpose()?,
            script: exec.script.as_deref().map(absolute),
            require_isolation: exec.require_isolation,
            sequential: exec.sequential,
            max_parallel: exec.max_parallel,
            ..Self::from_sources(&exec.from)?
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

    /// The same of those about tools.
    fn from_sources(from: &Sources) -> Result<Self, Failure> {
        let all = |paths: &[PathBuf]| paths.iter().map(|path| absolute(path)).collect();
        let Grants { allow_read, allow_write, allow_network, allow_env } = &from.grants;
        // What is to be written may come into being later; what is to be read must be there (C-12).
        if let Some(path) = allow_read.iter().find(|path| !path.exists()) {
            let message = format!("`--allow-read`: there is no {}", path.display());
            return Err(Failure::usage("C-12", "file-not-found", &message)
                .help("check the path; relative paths start at the current folder"));
        }
        if let Some(why) = allow_env.iter().find_map(|name| not_a_variable(name)) {
            // What stands there may be the key itself: it is not shown (C-06).
            let message = format!("`--allow-env` takes the name of a variable, and what stands there {why}");
            return Err(Failure::usage("C-06", "bad-variable-name", &message)
                .help("write --allow-env NAME, and set the variable NAME to the key"));
        }
        Ok(Self {
            tools: all(&from.tools),
            mcp: from.mcp.as_deref().map(absolute),
            allow_read: all(allow_read),
            allow_write: all(allow_write),
            allow_network: allow_network.unwrap_or_default(),
            allow_env: allow_env.clone(),
            ..Self::default()
        })
    }

    /// Options over variables, to look at documents and tools in the current folder (C-10).
    pub(crate) fn for_reading(from: &Sources) -> Result<Self, Failure> {
        let mut chosen = environment::chosen()?.under(Self::from_sources(from)?);
        environment::tools_there(&chosen, &from.tools)?;
        chosen.cwd = absolute(Path::new("."));
        Ok(chosen)
    }

    /// Options over variables, for a new run (C-06).
    pub(crate) fn for_run(exec: &Exec) -> Result<Self, Failure> {
        let mut chosen = environment::chosen()?.under(Self::from_options(exec)?);
        environment::there(&chosen, exec)?;
        chosen.cwd = absolute(Path::new("."));
        chosen.recordable()
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
        Self::read(stored)?.under(Self::from_options(exec)?).recordable()
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
        Self::read(stored)?.under(Self::from_options(exec)?).recordable()
    }

    /// These choices, if all paths among them can be recorded: JSON has Unicode only.
    ///
    /// # Errors
    /// Exit 2 with the path that has other bytes, before anything runs (C-12).
    pub(crate) fn recordable(self) -> Result<Self, Failure> {
        let wrong = std::iter::once(("the current folder", &self.cwd))
            .chain(self.paths())
            .find(|(_, path)| path.to_str().is_none())
            .map(|(what, path)| unrecordable(what, path));
        wrong.map_or(Ok(self), Err)
    }

    /// The paths among these choices, each with what names it.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let single = [("--mcp", &self.mcp), ("--script", &self.script)].into_iter();
        let lists = [
            ("--tools", &self.tools),
            ("--allow-read", &self.allow_read),
            ("--allow-write", &self.allow_write),
        ];
        let lists = lists.into_iter().flat_map(|(what, paths)| paths.iter().map(move |path| (what, path)));
        let single = single.filter_map(|(what, path)| Some((what, path.as_ref()?)));
        std::iter::once(("the document", &self.document)).chain(single).chain(lists)
    }

    /// The JSON that is kept with a run: without what an address may say of users and keys (C-06, C-10).
    ///
    /// # Errors
    /// Only for paths that are no Unicode.
    pub(crate) fn to_stored(&self) -> Result<String, serde_json::Error> {
        let kept = Self { base_url: self.kept_base_url(), ..self.clone() };
        serde_json::to_string(&kept)
    }

    /// The address that is kept with a run: without what it may say of users and keys (C-06).
    pub(crate) fn kept_base_url(&self) -> Option<String> {
        let written = self.base_url.as_deref()?;
        let Ok(mut url) = url::Url::parse(written) else { return Some(written.to_owned()) };
        let secret = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
        if secret && url.set_username("").is_ok() && url.set_password(None).is_ok() {
            url.set_query(None);
            return Some(url.to_string());
        }
        Some(written.to_owned())
    }

    /// What a run was started with, to go on with it.
    ///
    /// # Errors
    /// Exit 4 if what is recorded is damaged: without it, the run would go on with other tools and permissions.
    fn read(json: &str) -> Result<Self, Failure> {
        serde_json::from_str(json).map_err(|error| {
            let message = format!("the options that the run was started with can't be read: {error}");
            Failure::environment("C-10", "run-unreadable", &message).help(
                "restore the state folder from a backup, or use the selvedge that wrote it or a later one",
            )
        })
    }

    /// What a run was started with, to look at it. One that an older or newer version wrote may lack parts.
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
            return Err(Failure::usage("C-01", "bad-model", &message)
                .help("NAME alone plays every role, ROLE=NAME one; neither may be empty"));
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
        self.models_of_environment &= over.models.is_empty();
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
            allow_network: over.allow_network.max(self.allow_network),
            allow_env: joined(self.allow_env, over.allow_env),
            require_isolation: over.require_isolation || self.require_isolation,
            sequential: over.sequential || self.sequential,
            max_parallel: over.max_parallel.or(self.max_parallel),
            budget,
            timeout_s: over.timeout_s.or(self.timeout_s),
            ..self
        }
    }
}

/// A path that a record can't have (C-12).
pub(crate) fn unrecordable(what: &str, path: &Path) -> Failure {
    let message = format!("{what} can't be {}: the path is not UTF-8, so it can't be recorded", bytes(path));
    Failure::usage("C-12", "path-not-unicode", &message)
        .help("rename it, or go there by another path, as a link")
}

/// A path with its bytes that are no Unicode as `\xNN`.
fn bytes(path: &Path) -> String {
    let mut text = String::from("\"");
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(&one_line(chunk.valid(), usize::MAX));
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text.push('"');
    text
}

/// What was allowed stays allowed: an option adds to it.
pub(crate) fn joined<T: PartialEq>(mut below: Vec<T>, over: Vec<T>) -> Vec<T> {
    for one in over {
        if !below.contains(&one) {
            below.push(one);
        }
    }
    below
}

/// `--input KEY=VALUE`: JSON if it parses, else text; the last of equal keys counts (C-01).
pub(crate) fn inputs(given: &[String]) -> Result<Map<String, Value>, Failure> {
    /// Bytes of two inputs that are shown.
    const BOTH: usize = 400;
    let mut values = Map::new();
    for (at, text) in given.iter().enumerate() {
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let message = format!("`--input` takes KEY=VALUE, not {text:?}");
            let help = "write --input name=value; the value is JSON if it parses, else text";
            return Err(Failure::usage("C-01", "bad-input", &message).help(help));
        };
        let before =
            given.iter().take(at).find(|before| before.split_once('=').is_some_and(|(k, _)| k == key));
        if let Some(before) = before {
            // Whole or not at all: a part of a key would be shown (C-06).
            let both = match before.len() + text.len() <= BOTH {
                true => format!(": `{before}` and `{text}`"),
                false => String::new(),
            };
            let message = format!("`--input` gives {key:?} twice{both}");
            return Err(Failure::usage("C-01", "bad-input", &message).help("leave one of them out"));
        }
        values.insert(key.to_owned(), input(key, value)?);
    }
    Ok(values)
}

/// The value of an input: JSON if it parses, else text.
fn input(key: &str, text: &str) -> Result<Value, Failure> {
    let Ok(value) = serde_json::from_str(text) else { return Ok(Value::String(text.to_owned())) };
    // What JSON's usual readers take silently: a number that becomes another one, and a key that stands twice.
    let source = Source::new("", text);
    let mut found = Diagnostics::new();
    let _ = json::parse_exactly(&source, &DocumentLimits::default(), &mut found);
    let findings = found.report(&source);
    match findings.first() {
        None => Ok(value),
        Some(finding) => {
            let message = format!("`--input {key}=…`: {}", finding.message);
            Err(Failure::usage("C-01", "bad-input", &message).help(&finding.help))
        }
    }
}

#[cfg(test)]
mod tests;
