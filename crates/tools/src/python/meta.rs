//! `__TOOL_META__`: read without running the file, checked, and kept by content hash.

mod script;

use crate::diag::ToolError;
use crate::names::reserved;
use crate::permissions::Declared;
use crate::python::environment::Dependencies;
use crate::python::interpreter::Interpreter;
use crate::variables::unfit_variable;
use futures_util::future::join_all;
use script::Script;
use selvedge_engine::{Effects, Outputs, Warning};
use selvedge_sandbox::policy::Policy;
use selvedge_sandbox::process::{End, Launch, run};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const READER: &str = include_str!("read_meta.py");
/// The largest tool file that is looked at.
pub(crate) const MAX_FILE: u64 = 8 << 20;
/// Files larger than this are read by an interpreter of their own: they can take long, and down what reads them.
pub(super) const LARGE: usize = 256 << 10;
/// The fewest files that are worth one more interpreter, and the most interpreters at a time.
const SHARE: usize = 64;
const READERS: usize = 8;
/// What reading may take: of files that are not large, milliseconds each.
const READING: Duration = Duration::from_secs(30);
const READING_BYTES: u64 = 2 << 30;

/// The longest name of a tool as it stands in a file name: systems take 255 bytes, with what is put around it.
pub(crate) const LONGEST_NAME: usize = 200;

const KNOWN: [&str; 10] = [
    "name",
    "description",
    "dependencies",
    "effects",
    "env",
    "output_params",
    "network",
    "read_paths",
    "write_paths",
    "timeout",
];

/// What a tool file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The bound name.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// Packages it needs besides pydantic.
    pub dependencies: Vec<String>,
    /// Declared effects; undeclared is decided by E-22.
    pub effects: Option<Effects>,
    /// Fields of its output object that go to the metadata (D-05).
    pub output_params: Option<Outputs>,
    /// Whether it uses the network.
    pub network: bool,
    /// What it reads besides what is allowed anyway.
    pub read_paths: Vec<PathBuf>,
    /// What it writes outside its scratch folder.
    pub write_paths: Vec<PathBuf>,
    /// Variables of the environment that it is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Seconds a call may take.
    pub timeout: Option<f64>,
    /// Keys that mean nothing here; each is worth a warning (E-32).
    #[serde(default)]
    pub unknown: Vec<String>,
}

/// The name of a tool as it may stand in a file name: `[^a-zA-Z0-9_]+` becomes `_`.
pub fn safe_name(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    let mut gap = false;
    for c in name.chars() {
        let plain = c.is_ascii_alphanumeric() || c == '_';
        if plain {
            safe.push(c);
        } else if !gap {
            safe.push('_');
        }
        gap = !plain;
    }
    safe
}

impl Metadata {
    /// What it declares to reach, for A-20's check.
    pub fn declared(&self) -> Declared {
        Declared {
            network: self.network,
            read_paths: self.read_paths.clone(),
            write_paths: self.write_paths.clone(),
            env: self.env.clone(),
        }
    }

    /// Why its declarations can't all be true: what may overlap and be repeated does not write.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let effects = match self.effects? {
            Effects::Pure => "pure",
            Effects::Read => "read",
            Effects::Idempotent | Effects::Write => return None,
        };
        (!self.write_paths.is_empty()).then(|| {
            format!("`effects` is \"{effects}\", and `write_paths` says that it writes: one of them is wrong")
        })
    }

    /// Its set of dependencies; entries were checked when the metadata was read.
    ///
    /// # Errors
    /// Only for metadata that was changed in the cache by hand.
    pub fn dependencies(&self) -> Result<Dependencies, ToolError> {
        Dependencies::new(&self.dependencies)
            .map_err(|refused| ToolError::document("A-08", refused.to_string()))
    }

    /// Warnings about this file, for people.
    pub fn warnings(&self, file: &Path) -> Vec<Warning> {
        let warning = |code: &str, message: String| Warning {
            code: code.into(),
            message: format!("{}: {message}", file.display()),
            node: None,
        };
        let unknown = self.unknown.iter().map(|key| {
            warning(
                "unknown-tool-key",
                format!("__TOOL_META__ has the unknown key `{key}`, which is ignored"),
            )
        });
        let declared = self.read_paths.iter().chain(&self.write_paths).filter(|path| path.starts_with("~"));
        let homes = declared.map(|path| {
            let path = path.display();
            warning(
                "tilde-in-path",
                format!("`{path}` is a folder named ~ beside the document: write the path in full"),
            )
        });
        unknown.chain(homes).collect()
    }
}

/// What the reader says about one file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Good { meta: Map<String, Value>, line: u32, lines: HashMap<String, u32>, script: Option<String> },
    Bad { error: String, line: Option<u32>, column: Option<u32>, help: Option<String> },
}

/// A file whose metadata is to be read.
#[derive(Debug)]
pub struct Text {
    /// What is in it.
    pub bytes: Arc<[u8]>,
    /// Its name, for people.
    pub file: PathBuf,
}

/// Reads the metadata of files, many by one interpreter.
///
/// # Errors
/// Each file has its own result.
pub async fn read(python: &Interpreter, files: &[Text]) -> Vec<Result<Metadata, ToolError>> {
    let large = |text: &Text| text.bytes.len() > LARGE;
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(READERS);
    let share = files.len().div_ceil(cores).max(SHARE);
    // Neighbours stay together, so that results come in the order of files.
    let mut batches: Vec<&[Text]> = Vec::new();
    for run in files.chunk_by(|one, other| !large(one) && !large(other)) {
        batches.extend(run.chunks(share));
    }
    let mut all = Vec::with_capacity(files.len());
    for some in batches.chunks(cores) {
        all.extend(join_all(some.iter().map(|batch| settle(python, batch))).await.into_iter().flatten());
    }
    all
}

/// Reads a batch; a file that brings the reader down is found by halves, and does not take the others with it.
async fn settle(python: &Interpreter, files: &[Text]) -> Vec<Result<Metadata, ToolError>> {
    let why = match read_batch(python, files).await {
        Ok(all) => return all,
        Err(why) => why,
    };
    if let (true, Some((first, second))) = (files.len() > 1, files.split_at_checked(files.len() / 2)) {
        let mut all = Box::pin(settle(python, first)).await;
        all.extend(Box::pin(settle(python, second)).await);
        return all;
    }
    let error = ToolError::document("A-08", format!("the file cannot be read as Python: {why}"));
    files.iter().map(|text| Err(error.clone().at(&text.file, None))).collect()
}

async fn read_batch(
    python: &Interpreter,
    files: &[Text],
) -> Result<Vec<Result<Metadata, ToolError>>, String> {
    // No site packages, no user folder, no variables: the reader is ours and runs nothing of the tool's.
    let args = ["-I", "-S", "-B", "-X", "utf8", "-c", READER].map(Into::into).into();
    let launch = Launch {
        stdin: framed(files),
        timeout: READING,
        policy: Policy { memory_bytes: Some(READING_BYTES), ..Policy::default() },
        ..Launch::own(python.path.clone(), args, Vec::new(), "/".into())
    };
    let finished = run(launch).await.map_err(|e| format!("{}: {e}", python.path.display()))?;
    match finished.end {
        End::Exited(0) => {}
        End::TimedOut => return Err(format!("its parser took longer than {} s", READING.as_secs())),
        End::Signalled(number) => return Err(format!("its parser was ended by signal {number}")),
        other => return Err(format!("{other:?}: {}", finished.stderr_end(500))),
    }
    let answers: Vec<Read> = serde_json::from_slice(&finished.stdout).map_err(|e| e.to_string())?;
    if answers.len() != files.len() {
        return Err("the reader left files out".into());
    }
    let read = answers.into_iter().zip(files);
    let read = read.map(|(answer, text)| {
        checked(answer, text, python.version).map_err(|error| error.showing(&text.bytes))
    });
    Ok(read.collect())
}

/// What the reader is sent: the lengths of the files, and then these.
fn framed(files: &[Text]) -> Vec<u8> {
    let lengths: Vec<String> = files.iter().map(|text| text.bytes.len().to_string()).collect();
    let mut framed = lengths.join(" ").into_bytes();
    framed.push(b'\n');
    files.iter().for_each(|text| framed.extend_from_slice(&text.bytes));
    framed
}

fn checked(answer: Read, text: &Text, python: (u32, u32)) -> Result<Metadata, ToolError> {
    let file = &*text.file;
    match answer {
        Read::Bad { error, line, column, help: Some(help) } => {
            Err(ToolError::document("A-31", error).at(file, line).column(column).help(help))
        }
        Read::Bad { error, line, column, help: None } => {
            let help = if error.contains("has no __TOOL_META__") {
                "add __TOOL_META__ = {\"name\": …, \"description\": …, \"dependencies\": []}, or let a file that is no tool start with `_`"
            } else if error.contains("__TOOL_META__") {
                "write __TOOL_META__ = {…} with nothing but texts, numbers, true or false, lists and dictionaries in it"
            } else {
                "correct the file, or let one that is no tool start with `_`"
            };
            Err(ToolError::document("A-08", error).at(file, line).column(column).help(help))
        }
        Read::Good { meta, line, lines, script } => {
            let script = script.map(|script| Script::read(&script, python)).transpose();
            let checked = script.map_err(|why| ("", why)).and_then(|script| check(&meta, script));
            checked.map_err(|(key, message)| {
                let place = lines.get(key).copied().unwrap_or(line);
                let error = ToolError::document("A-08", message).help("correct __TOOL_META__");
                if key != "env" {
                    return error.at(file, Some(place));
                }
                // Keys may stand there (C-06): only what is none by its letters is shown.
                let text = String::from_utf8_lossy(&text.bytes);
                let (place, column) = unfit_place(&meta, &text, place);
                let written = text.split('\n').nth((place as usize).saturating_sub(1)).unwrap_or_default();
                error.at(file, Some(place)).column(column).hiding(&plain_words(written))
            })
        }
    }
}

/// Where the first name stands that is none of a variable, from the line of `env` on; in that line if it is not found as it is.
fn unfit_place(meta: &Map<String, Value>, text: &str, line: u32) -> (u32, Option<u32>) {
    let names = meta.get("env").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let unfit = names.filter(|name| is_plain(name)).find(|name| unfit_variable(name).is_some());
    let found = unfit.and_then(|name| {
        let lines = text.split('\n').zip(1_u32..).skip_while(|(_, nth)| *nth < line);
        let quoted = ['"', '\''].map(|quote| format!("{quote}{name}{quote}"));
        lines.into_iter().find_map(|(written, nth)| {
            let at = quoted.iter().find_map(|quoted| written.find(quoted))?;
            Some((nth, u32::try_from(written.get(..at)?.chars().count() + 1).ok()))
        })
    });
    found.unwrap_or((line, None))
}

/// A line with `*` in place of each word that may be a key, as long as it is.
fn plain_words(line: &str) -> String {
    let between = |c: char| c.is_whitespace() || "\"'[](){},:".contains(c);
    let mut shown = String::with_capacity(line.len());
    for part in line.split_inclusive(between) {
        let word = part.trim_end_matches(between);
        let plain = is_plain(word) || KNOWN.contains(&word) || word == "=";
        match plain {
            true => shown.push_str(word),
            false => shown.extend(word.chars().map(|_| '*')),
        }
        shown.push_str(part.get(word.len()..).unwrap_or_default());
    }
    shown.trim_end().to_owned()
}

/// Whether a word is no key by its letters.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

type Wrong = (&'static str, String);

/// Checks the literal, key by key; the first error names its key, so that its line can be found.
fn check(meta: &Map<String, Value>, script: Option<Script>) -> Result<Metadata, Wrong> {
    let script = script.unwrap_or_default();
    let mut unknown = Vec::new();
    for key in meta.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
        // E-32: one or two letters away is a slip of the pen.
        let near = |known: &&&str| strsim::levenshtein(known, key) <= 2.min(known.len() / 2);
        if let Some(near) = KNOWN.iter().find(near) {
            return Err(("", format!("__TOOL_META__ has no key `{key}`; is `{near}` meant?")));
        }
        unknown.push(key.clone());
    }
    let name = text(meta, "name")?;
    if name.chars().any(char::is_control) || name.trim() != name {
        return Err(("name", "`name` must have no control characters and no spaces around it".into()));
    }
    if let Some(message) = reserved(&name) {
        return Err(("name", message));
    }
    let length = safe_name(&name).len();
    if length > LONGEST_NAME {
        let message =
            format!("`name` makes a file name of {length} characters, and the longest is {LONGEST_NAME}");
        return Err(("name", message));
    }
    let dependencies = script::agreed(strings(meta, "dependencies")?, script.dependencies)
        .map_err(|message| ("dependencies", message))?;
    unknown.extend(script.unknown);
    if let Err(refused) = Dependencies::new(&dependencies) {
        return Err(("dependencies", format!("`dependencies`: {refused}")));
    }
    let paths = |key| Ok(strings(meta, key)?.unwrap_or_default().into_iter().map(PathBuf::from).collect());
    let metadata = Metadata {
        name,
        description: text(meta, "description")?,
        dependencies,
        effects: effects(meta)?,
        output_params: output_params(meta)?,
        network: match meta.get("network") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(network)) => *network,
            Some(other) => return Err(("network", format!("`network` must be True or False, not {other}"))),
        },
        read_paths: paths("read_paths")?,
        write_paths: paths("write_paths")?,
        env: env(meta)?,
        timeout: timeout(meta)?,
        unknown,
    };
    match metadata.contradiction() {
        Some(message) => Err(("effects", message)),
        None => Ok(metadata),
    }
}

fn text(meta: &Map<String, Value>, key: &'static str) -> Result<String, Wrong> {
    match meta.get(key) {
        // Only a name has to say something.
        Some(Value::String(text)) if key != "name" || !text.trim().is_empty() => Ok(text.clone()),
        Some(Value::String(_)) => Err((key, format!("`{key}` must not be empty"))),
        Some(other) => Err((key, format!("`{key}` must be a string, not {other}"))),
        None => Err((key, format!("__TOOL_META__ has no `{key}`"))),
    }
}

fn strings(meta: &Map<String, Value>, key: &'static str) -> Result<Option<Vec<String>>, Wrong> {
    let wrong = |found: &Value| (key, format!("`{key}` must be a list of strings, not {found}"));
    match meta.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let read = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(|| wrong(item));
            items.iter().map(read).collect::<Result<_, _>>().map(Some)
        }
        Some(other) => Err(wrong(other)),
    }
}

/// Names of variables. What is none may be a key: it is not shown (C-06).
fn env(meta: &Map<String, Value>) -> Result<Vec<String>, Wrong> {
    let names = strings(meta, "env").map_err(|(key, _)| {
        (
            key,
            "`env` must be a list of names of variables; their values stand in the environment alone".into(),
        )
    })?;
    let names = names.unwrap_or_default();
    match names.iter().find_map(|name| Some((name, unfit_variable(name)?))) {
        None => Ok(names),
        Some((name, why)) => {
            let name = if is_plain(name) { format!("`{name}`") } else { "what stands there".to_owned() };
            Err(("env", format!("`env`: {name} {why}")))
        }
    }
}

/// D-24: a list of names, or an object whose keys are the names and whose values may say of what type they are.
fn output_params(meta: &Map<String, Value>) -> Result<Option<Outputs>, Wrong> {
    if let Some(Value::Object(fields)) = meta.get("output_params") {
        return Ok(Some(Outputs::of_fields(fields)));
    }
    let wrong = |(key, message): Wrong| (key, format!("{message}, nor an object with the names as keys"));
    let names = strings(meta, "output_params").map_err(wrong)?;
    Ok(names.map(Outputs::from_iter))
}

fn effects(meta: &Map<String, Value>) -> Result<Option<Effects>, Wrong> {
    match meta.get("effects") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value.clone()).map(Some).map_err(|_| {
            let message =
                format!("`effects` must be \"pure\", \"read\", \"idempotent\" or \"write\", not {value}");
            ("effects", message)
        }),
    }
}

fn timeout(meta: &Map<String, Value>) -> Result<Option<f64>, Wrong> {
    match meta.get("timeout") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64().filter(|seconds| *seconds > 0.0) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(("timeout", format!("`timeout` must be a positive number of seconds, not {value}"))),
        },
    }
}
