//! The built-in tools: `read_file`, `write_file`, `list_files`, `http_get`, `python`, `shell`.

mod execute;
mod fetch;
mod files;

use crate::config::CatalogueConfig;
use crate::diag::{ToolError, shown};
use crate::failures::{denied, failure, input_error, timed_out, tool_failure};
use crate::limits::ToolLimits;
use crate::permissions::{Network, Reach, Refusal};
use crate::python::context::PythonContext;
use crate::store::sha256;
use selvedge_engine::{Effects, Failure, FaultKind, ToolDef, ToolRequest};
use selvedge_http::Http;
use selvedge_runtime::ports::Printing;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// How much of the name of a field that there is not goes into a message.
const LONGEST_NAME: usize = 100;

/// One of the built-in tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `read_file {path}`: the text of a file.
    ReadFile,
    /// `write_file {path, content}`: replaces a file as a whole.
    WriteFile,
    /// `list_files {path, glob?}`: the files of a folder.
    ListFiles,
    /// `http_get {url}`: one page or document.
    HttpGet,
    /// `python {code}`: runs code in a process of its own.
    Python,
    /// `shell {command}`: runs a command line.
    Shell,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::ReadFile, Self::WriteFile, Self::ListFiles, Self::HttpGet, Self::Python, Self::Shell];

    /// The bound name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::ListFiles => "list_files",
            Self::HttpGet => "http_get",
            Self::Python => "python",
            Self::Shell => "shell",
        }
    }

    /// Their definitions, made once in a process: they are the same for all runs.
    pub(crate) fn definitions(shell_approval: bool) -> impl Iterator<Item = (Self, Arc<ToolDef>)> {
        static MADE: LazyLock<[Vec<Arc<ToolDef>>; 2]> = LazyLock::new(|| {
            [false, true].map(|approval| Builtin::ALL.map(|one| Arc::new(one.definition(approval))).into())
        });
        let [without, with] = &*MADE;
        let made = if shell_approval { with } else { without };
        Self::ALL.into_iter().zip(made.iter().cloned())
    }

    /// Its definition, with A-22's effects and outputs.
    pub fn definition(self, shell_approval: bool) -> ToolDef {
        let text = |what: &str| json!({ "type": "string", "description": what });
        let run = &["stdout", "stderr", "exit_code"][..];
        let (description, effects, properties, outputs): (&str, Effects, Value, &[&str]) = match self {
            Self::ReadFile => (
                "Reads a text file. Relative paths start at the document's folder.",
                Effects::Read,
                json!({ "path": text("The file to read") }),
                &[],
            ),
            Self::WriteFile => (
                "Writes a text file, replacing what was there. Relative paths start at the document's folder.",
                Effects::Idempotent,
                json!({ "path": text("The file to write"), "content": text("The whole content of the file") }),
                &["path", "bytes"],
            ),
            Self::ListFiles => (
                "Lists the files in a folder with their sizes in bytes. Relative paths start at the document's folder.",
                Effects::Read,
                json!({
                    "path": text("The folder to list"),
                    "glob": text("Only files whose path below the folder matches, as in `**/*.csv`; without it, the files directly in the folder"),
                }),
                &[],
            ),
            Self::HttpGet => (
                "Fetches an http or https address and returns status, headers and body.",
                Effects::Read,
                json!({ "url": text("The address to fetch") }),
                &["status", "headers", "body"],
            ),
            Self::Python => (
                "Runs Python code in a process of its own, in the document's folder. Print what is to be returned.",
                Effects::Write,
                json!({ "code": text("The Python code") }),
                run,
            ),
            Self::Shell => (
                "Runs a command line with sh, in the document's folder.",
                Effects::Write,
                json!({ "command": text("The command line") }),
                run,
            ),
        };
        let required: Vec<_> = match &properties {
            Value::Object(map) => map.keys().filter(|key| *key != "glob").cloned().collect(),
            _ => Vec::new(),
        };
        ToolDef {
            name: self.name().into(),
            description: description.into(),
            input_schema: json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            }),
            // A file's text may be JSON of any shape (D-05, E-25); a list has no fields.
            output_params: (self != Self::ReadFile).then(|| outputs.iter().copied().collect()),
            effects: Some(effects),
            // Counts behaviour, not wording: a resumed run still knows its built-ins after an update.
            version: sha256(format!("selvedge built-in {} 1", self.name()).as_bytes()).into(),
            source: "built-in".into(),
            timeout_s: None,
            approval: self == Self::Shell && shell_approval,
        }
    }
}

/// What the built-ins work with.
pub(crate) struct BuiltinContext {
    reach: Reach,
    network: Network,
    limits: ToolLimits,
    hidden: Vec<PathBuf>,
    http: Http,
}

impl BuiltinContext {
    pub(crate) fn new(reach: Reach, config: &CatalogueConfig, http: Http) -> Self {
        let (network, limits) = (config.permissions.allow_network, config.limits.clone());
        let hidden = config.hidden.clone();
        Self { reach, network, limits, hidden, http }
    }

    /// Why every call of a built-in would be denied.
    pub(crate) fn refusal(&self, builtin: Builtin) -> Option<ToolError> {
        let (what, option) = match builtin {
            Builtin::WriteFile if !self.reach.may_write() => ("writes files", "--allow-write PATH"),
            Builtin::HttpGet if !self.network.is_on() => ("uses the network", "--allow-network"),
            _ => return None,
        };
        let message = format!("the built-in `{}` {what}, which is not allowed here", builtin.name());
        Some(ToolError::document("A-22", message).help(format!("allow it with `{option}`")))
    }

    /// Runs a built-in once.
    pub(crate) async fn call(
        &self,
        builtin: Builtin,
        request: &ToolRequest,
        context: &PythonContext,
        printing: &Printing,
    ) -> Result<Value, Failure> {
        if let Some(error) = self.refusal(builtin) {
            return Err(denied(format!("{}: {}", error.message, error.help)).unsent());
        }
        let timeout = self.limits.timeout(request.timeout_s, None);
        match builtin {
            // These wait for their own time limit, which ends their processes.
            Builtin::Python => execute::python(self, request, context, (timeout, printing)).await,
            Builtin::Shell => execute::shell(self, request, context, (timeout, printing)).await,
            _ => {
                let work = async {
                    match builtin {
                        Builtin::HttpGet => fetch::get(self, args(request)?).await,
                        Builtin::WriteFile => files::write(self, args(request)?).await,
                        Builtin::ListFiles => files::list(self, args(request)?).await,
                        _ => files::read(self, args(request)?).await,
                    }
                };
                match tokio::time::timeout(timeout, work).await {
                    Ok(done) => done,
                    Err(_) => Err(timed_out(builtin.name(), timeout)),
                }
            }
        }
    }
}

/// The arguments of a call, if they are what the definition asks for; else all that is wrong with them, and what it asks for.
fn args<T: DeserializeOwned>(request: &ToolRequest) -> Result<T, Failure> {
    T::deserialize(&request.args).map_err(|e| {
        let mut wrong = misfits(&request.tool.input_schema, &request.args);
        if wrong.is_empty() {
            wrong.push(e.to_string());
        }
        let (tool, wrong) = (&request.tool.name, wrong.join("; "));
        let takes = takes(&request.tool.input_schema);
        input_error(format!("the tool `{tool}` refuses its input: {wrong} (it takes {takes})"))
    })
}

/// The properties of a built-in's schema: name, schema, and whether they are required.
fn properties(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    all.map(|(name, property)| (name.as_str(), property, is_required(name))).collect()
}

/// All that keeps arguments from being those of a built-in: what is missing, what is too much, what has another type.
fn misfits(schema: &Value, args: &Value) -> Vec<String> {
    let Some(given) = args.as_object() else { return vec!["the input is no object".to_owned()] };
    let properties = properties(schema);
    let mut wrong = Vec::new();
    for (name, property, required) in &properties {
        match (given.get(*name), property.get("type").and_then(Value::as_str)) {
            (None, _) if *required => wrong.push(format!("`{name}` is missing")),
            (Some(value), Some("string")) if !value.is_string() && (*required || !value.is_null()) => {
                wrong.push(format!("`{name}` is no text"));
            }
            _ => {}
        }
    }
    for name in given.keys().filter(|name| !properties.iter().any(|(known, ..)| known == name)) {
        wrong.push(format!(
            "it has no field `{}`",
            shown(name).chars().take(LONGEST_NAME).collect::<String>()
        ));
    }
    wrong
}

/// What a built-in's schema asks for, in words.
fn takes(schema: &Value) -> String {
    let fields: Vec<String> = properties(schema)
        .into_iter()
        .map(|(name, property, required)| {
            let kind = property.get("type").and_then(Value::as_str).unwrap_or("any value");
            format!("`{name}` ({kind}{})", if required { "" } else { ", optional" })
        })
        .collect();
    fields.join(", ")
}

fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Outside(message) => denied(message).unsent(),
        Refusal::Unusable(message) => tool_failure("tool_execution_error", message),
    }
}

/// A failure of a built-in that may pass: the network's.
fn passing(message: String) -> Failure {
    let mut failed = failure(FaultKind::ExecutionFailure, "tool_execution_error", message, Map::new());
    failed.transient = true;
    failed
}
