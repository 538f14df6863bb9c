//! What was chosen for a run by options and variables: kept with the run, so that `resume`, `answer` and `fork`
//! default to it (C-10). No secrets: keys are named by their variables only.

mod values;
mod variables;

pub use values::{base_url, budget, cap_count, is_cap, number_text, seconds};
pub use variables::{from_variables, there, tools_there, trusts};

use crate::error::Error;
use crate::text::one_line;
use selvedge_dialects::head::Head;
use selvedge_dialects::inputs::{self, Input, InputType};
use selvedge_dialects::{Diagnostics, DocumentLimits, Source, json};
use selvedge_engine::template::normalized;
use selvedge_engine::{Budget, Warning};
use selvedge_tools::Network;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The role that stands for all roles without a model of their own.
pub const EVERY_ROLE: &str = "*";

/// Choices that are kept with a run, as JSON in its row of the index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// The folder in which the run was started: where `selvedge.toml` is looked for.
    pub cwd: PathBuf,
    /// The document's file.
    pub document: PathBuf,
    /// The document itself, where it is in no file: that of `agent "QUERY"` (C-16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
    /// `--plan`.
    pub plan: Option<String>,
    /// `--dialect`.
    pub dialect: Option<String>,
    /// `--tools`.
    pub tools: Vec<PathBuf>,
    /// `--mcp`.
    pub mcp: Option<PathBuf>,
    /// `--base-url`.
    pub base_url: Option<String>,
    /// `--model`, by role; [`EVERY_ROLE`] for one without.
    pub models: BTreeMap<String, String>,
    /// Whether it is `SELVEDGE_MODEL` alone that names them: a wrong name is no wrong call then (C-03).
    #[serde(skip)]
    pub models_of_environment: bool,
    /// `--script`.
    pub script: Option<PathBuf>,
    /// SHA-256 of each file of the document as it was, by absolute path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub document_files: BTreeMap<PathBuf, String>,
    /// SHA-256 of the script as it was.
    pub script_hash: Option<String>,
    /// `--allow-read`.
    pub allow_read: Vec<PathBuf>,
    /// `--allow-write`.
    pub allow_write: Vec<PathBuf>,
    /// `--allow-network`.
    pub allow_network: Network,
    /// `--allow-env`.
    pub allow_env: Vec<String>,
    /// `--require-isolation`.
    pub require_isolation: bool,
    /// `--sequential`.
    pub sequential: bool,
    /// `--max-parallel`.
    pub max_parallel: Option<u32>,
    /// `--budget`.
    pub budget: Budget,
    /// `--timeout`.
    pub timeout_s: Option<u64>,
    /// `--input`.
    pub inputs: Map<String, Value>,
    /// The texts of `--input` that are not read yet: the document says how ([`Self::read_inputs`]).
    #[serde(skip)]
    pub input_texts: Vec<(String, String)>,
    /// The inputs that the document declares, with their types.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub declared: BTreeMap<String, Option<InputType>>,
    /// What the checker and the catalogue had to say about the document (C-02).
    pub warnings: Vec<Warning>,
    /// Where the run comes from.
    #[serde(skip_serializing_if = "Origin::is_here")]
    pub origin: Origin,
    /// That a server drives it, which goes on with it when it starts again (S-01).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub served: bool,
    /// What it was asked for with, as a digest: the same request means the same run (S-07).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// Where a run comes from: whose words its journal is (C-20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It was begun in this state folder.
    #[default]
    Here,
    /// It was imported (C-14).
    Imported,
    /// It is a fork, made here, of one that was imported.
    ForkOfImported,
}

impl Origin {
    fn is_here(&self) -> bool {
        *self == Self::Here
    }

    /// That of a fork of such a run.
    #[must_use]
    pub fn of_fork(self) -> Self {
        match self {
            Self::Here => Self::Here,
            Self::Imported | Self::ForkOfImported => Self::ForkOfImported,
        }
    }
}

impl RunOptions {
    /// These choices, if all paths among them can be recorded: JSON has Unicode only.
    ///
    /// # Errors
    /// `Usage` with the path that has other bytes, before anything runs (C-12).
    pub fn recordable(self) -> Result<Self, Error> {
        let wrong = std::iter::once(("the current folder", &self.cwd))
            .chain(self.paths())
            .find(|(_, path)| path.to_str().is_none())
            .map(|(what, path)| unrecordable(what, path));
        wrong.map_or(Ok(self), Err)
    }

    /// Reads the texts of `--input`, each as JSON if it parses, else as text, or by the type that the document declares (C-01, P-23).
    /// Without a document these are the types of the one that the run began with.
    ///
    /// # Errors
    /// One of them is JSON that can't be kept as it stands.
    pub fn read_inputs(&mut self, head: Option<&Head>) -> Result<(), Error> {
        if let Some(head) = head {
            let kind = |input: &Input| input.kind.as_ref().map(|kind| kind.value);
            self.declared =
                head.inputs.iter().map(|input| (input.name.value.to_string(), kind(input))).collect();
        }
        for (name, text) in &self.input_texts {
            let kind = self.declared.get(&*normalized(name)).copied().flatten();
            self.inputs.insert(name.clone(), input(name, text, kind)?);
        }
        Ok(())
    }

    /// Refuses given inputs as the document would that the run began with (P-23); `initial` is its first data layer.
    ///
    /// # Errors
    /// One of them is not declared, or of another type.
    pub fn check_inputs(
        &self,
        initial: &Map<String, Value>,
        given: &Map<String, Value>,
    ) -> Result<(), Error> {
        let declared: Vec<&str> = self.declared.keys().map(String::as_str).collect();
        let others: Vec<&str> = initial.keys().map(String::as_str).collect();
        for (name, value) in given {
            let unknown = inputs::unknown_input(&declared, &others, name).map(|why| ("unknown-input", why));
            let kind = self.declared.get(&*normalized(name)).copied().flatten();
            let wrong = kind.and_then(|kind| inputs::wrong_type(name, kind, value, inputs::GIVEN));
            if let Some((code, (message, help))) = unknown.or(wrong.map(|why| ("input-type", why))) {
                return Err(Error::usage("P-23", code, &message).help(&help));
            }
        }
        Ok(())
    }

    /// The names of the inputs that are given with these choices.
    pub fn input_names(&self) -> Vec<String> {
        self.inputs.keys().chain(self.input_texts.iter().map(|(name, _)| name)).cloned().collect()
    }

    /// The paths among these choices, each with what names it.
    pub fn paths(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
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
    pub fn to_stored(&self) -> Result<String, serde_json::Error> {
        let kept = Self { base_url: self.kept_base_url(), ..self.clone() };
        serde_json::to_string(&kept)
    }

    /// The address that is kept with a run: without what it may say of users and keys (C-06).
    pub fn kept_base_url(&self) -> Option<String> {
        let written = self.base_url.as_deref()?;
        let Ok(mut url) = url::Url::parse(written) else { return Some(written.to_owned()) };
        let secret = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
        if secret && url.set_username("").is_ok() && url.set_password(None).is_ok() {
            url.set_query(None);
            return Some(url.to_string());
        }
        Some(written.to_owned())
    }

    /// What of them means the same on another machine: no path, no address, and nothing that allows anything (C-14, C-20).
    #[must_use]
    pub fn portable(self) -> Self {
        Self {
            document: self.document.file_name().map(PathBuf::from).unwrap_or_default(),
            given: self.given,
            plan: self.plan,
            dialect: self.dialect,
            models: self.models,
            require_isolation: self.require_isolation,
            sequential: self.sequential,
            max_parallel: self.max_parallel,
            budget: self.budget,
            timeout_s: self.timeout_s,
            inputs: self.inputs,
            declared: self.declared,
            warnings: self.warnings,
            ..Self::default()
        }
    }

    /// Those of a run that was imported have no folder: it goes on where somebody says that it shall.
    #[must_use]
    pub fn in_folder(mut self, cwd: &Path) -> Self {
        if self.cwd.as_os_str().is_empty() {
            self.document = cwd.join(&self.document);
            self.cwd = cwd.to_owned();
        }
        self
    }

    /// What a run was started with, to go on with it.
    ///
    /// # Errors
    /// `Environment` if what is recorded is damaged: without it, the run would go on with other tools and permissions.
    pub fn read(json: &str) -> Result<Self, Error> {
        serde_json::from_str(json).map_err(|error| {
            let message = format!("the options that the run was started with can't be read: {error}");
            Error::environment("C-10", "run-unreadable", &message).help(
                "restore the state folder from a backup, or use the selvedge that wrote it or a later one",
            )
        })
    }

    /// What a run was started with, to look at it. One that an older or newer version wrote may lack parts.
    pub fn stored(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Adds `[ROLE=]NAME`: NAME alone is the model of all roles.
    ///
    /// # Errors
    /// `Usage` if the role or the name is empty.
    pub fn add_model(&mut self, text: &str, option: &str) -> Result<(), Error> {
        // A model's own name may hold a `=`: only a plain word before it is a role.
        let word = |role: &str| role.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        let by_role = text.split_once('=').filter(|(role, _)| role.trim() == EVERY_ROLE || word(role.trim()));
        let (role, name) = by_role.unwrap_or((EVERY_ROLE, text));
        self.set_model(role, name, || format!("`{option}` takes NAME or ROLE=NAME, not {text:?}"))
    }

    /// Sets the model of a role. `wrong` is the message for an empty role or name.
    ///
    /// # Errors
    /// `Usage` if the role or the name is empty.
    pub fn set_model(&mut self, role: &str, name: &str, wrong: impl FnOnce() -> String) -> Result<(), Error> {
        if role.trim().is_empty() || name.trim().is_empty() {
            return Err(Error::usage("C-01", "bad-model", &wrong())
                .help("NAME alone plays every role, ROLE=NAME one; neither may be empty"));
        }
        self.models.insert(role.trim().to_owned(), name.trim().to_owned());
        Ok(())
    }

    /// `self` with everything that `over` chooses in its place. Which model answers is one choice: a script
    /// takes the place of an endpoint and the other way round.
    pub fn under(mut self, over: Self) -> Self {
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
pub fn unrecordable(what: &str, path: &Path) -> Error {
    let message = format!("{what} can't be {}: the path is not UTF-8, so it can't be recorded", bytes(path));
    Error::usage("C-12", "path-not-unicode", &message)
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
pub fn joined<T: PartialEq>(mut below: Vec<T>, over: Vec<T>) -> Vec<T> {
    for one in over {
        if !below.contains(&one) {
            below.push(one);
        }
    }
    below
}

/// The texts of `--input KEY=VALUE` (C-01), which [`RunOptions::read_inputs`] reads.
///
/// # Errors
/// One of them has no key, or two have the same.
pub fn input_texts(given: &[String]) -> Result<Vec<(String, String)>, Error> {
    /// Bytes of two inputs that are shown.
    const BOTH: usize = 400;
    let mut texts: Vec<(String, String)> = Vec::new();
    for (at, text) in given.iter().enumerate() {
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let message = format!("`--input` takes KEY=VALUE, not {text:?}");
            let help = "write --input name=value; the value is JSON if it parses, else text";
            return Err(Error::usage("C-01", "bad-input", &message).help(help));
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
            return Err(Error::usage("C-01", "bad-input", &message).help("leave one of them out"));
        }
        texts.push((key.to_owned(), value.to_owned()));
    }
    Ok(texts)
}

/// The value of an input: JSON if it parses, else text. Of an input that is declared as a text, only JSON that is a text is
/// read as JSON.
fn input(key: &str, text: &str, kind: Option<InputType>) -> Result<Value, Error> {
    let as_text = || Ok(Value::String(text.to_owned()));
    if kind == Some(InputType::String) {
        return serde_json::from_str(text).map(Value::String).or_else(|_| as_text());
    }
    let Ok(value) = serde_json::from_str(text) else { return as_text() };
    // What JSON's usual readers take silently: a number that becomes another one, and a key that stands twice.
    let source = Source::new("", text);
    let mut found = Diagnostics::new();
    let _ = json::parse_exactly(&source, &DocumentLimits::default(), &mut found);
    let findings = found.report(&source);
    match findings.first() {
        None => Ok(value),
        Some(finding) => {
            let message = format!("`--input {key}=…`: {}", finding.message);
            Err(Error::usage("C-01", "bad-input", &message).help(&finding.help))
        }
    }
}
