//! Command tools declared in configuration: arguments as JSON on stdin, the output on stdout.

use crate::diag::ToolError;
use crate::failures::{crashed, over_limit, tool_failure};
use crate::json;
use crate::limits::ToolLimits;
use crate::names::reserved;
use crate::permissions::Declared;
use crate::printed::{output_printed, progress};
use crate::store::sha256;
use crate::variables::{pairs, unfit_variable};
use selvedge_engine::json::Unique;
use selvedge_engine::schema::{Schema, Unusable};
use selvedge_engine::{Effects, Failure, FaultKind, Outputs, ToolDef, ToolRequest};
use selvedge_http::Secret;
use selvedge_runtime::ports::{CallContext, Stream};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::policy::Policy;
use selvedge_sandbox::process::{End, Launch, SEARCH_PATH, Scratch, clean_variables, run, search_path};
use selvedge_sandbox::spawn::Handed;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One `[tools.command.NAME]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandTool {
    /// The name it is bound to: the table's.
    #[serde(default)]
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// The program and its arguments; no shell is involved.
    pub command: Vec<String>,
    /// JSON Schema of the arguments object.
    pub input_schema: Value,
    /// Fields of its output object that go to the metadata (D-05).
    #[serde(default)]
    pub output_params: Option<Outputs>,
    /// Declared effects; undeclared is `write` (E-22).
    #[serde(default)]
    pub effects: Option<Effects>,
    /// Seconds a call may take.
    #[serde(default)]
    pub timeout_s: Option<f64>,
    /// Variables of the environment that it is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Where the command runs: the folder of the configuration file. Empty means the document's folder.
    #[serde(default)]
    pub dir: PathBuf,
}

/// Where a command runs and what it may reach.
pub struct Place<'a> {
    /// The document's folder.
    pub workspace: &'a Path,
    /// Where its program is looked for.
    pub process: &'a ProcessEnv,
    /// What it may reach.
    pub policy: Policy,
    /// The variables that it is given.
    pub env: Vec<(String, Secret)>,
    /// Where its scratch folder is made.
    pub scratch_root: PathBuf,
    /// Who watches the lines it writes to stderr (E-15), and where they are kept.
    pub context: CallContext,
}

impl CommandTool {
    /// Checks the declaration, its schema with so many steps (E-45), and makes the definition that models and graphs see.
    ///
    /// # Errors
    /// An empty name or command, a schema that is none, a time limit that is no positive number.
    pub fn definition(&self, schema_steps: u64) -> Result<ToolDef, ToolError> {
        let place = format!("[tools.command.{}]", self.name);
        let wrong = |message: String| Err(ToolError::document("A-27", format!("{place}: {message}")));
        if self.name.trim().is_empty() {
            return wrong("a command tool needs a name".into());
        }
        if let Some(message) = reserved(&self.name) {
            return wrong(message);
        }
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return wrong("`command` must name a program, as an array: [\"program\", \"argument\"]".into());
        }
        if let Some(seconds) = self.timeout_s
            && !(seconds.is_finite() && seconds > 0.0)
        {
            return wrong(format!("`timeout_s` must be a positive number of seconds, not {seconds}"));
        }
        if let Some((name, why)) = self.env.iter().find_map(|name| Some((name, unfit_variable(name)?))) {
            return wrong(format!("`env`: {name:?} {why}"));
        }
        if !self.input_schema.is_object() {
            return wrong("`input_schema` must be a JSON Schema of an object".into());
        }
        match Schema::new(&self.input_schema, schema_steps) {
            Ok(_) => {}
            Err(error @ Unusable::Invalid { .. }) => {
                return wrong(format!("`input_schema` is no JSON Schema: {error}"));
            }
            Err(Unusable::OverLimit(limit)) => {
                return wrong(format!("`input_schema` can't be used: {limit}"));
            }
        }
        Ok(ToolDef {
            name: self.name.as_str().into(),
            description: self.description.as_str().into(),
            input_schema: self.input_schema.clone(),
            output_params: self.output_params.clone(),
            effects: self.effects,
            version: self.version().into(),
            source: "command".into(),
            timeout_s: self.timeout_s,
            approval: false,
        })
    }

    /// What it declares to need, for A-20's check.
    pub(crate) fn declared(&self) -> Declared {
        Declared { env: self.env.clone(), ..Declared::default() }
    }

    /// The declaration as it is kept and hashed.
    pub fn declaration(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn version(&self) -> String {
        sha256(&self.declaration())
    }

    /// Runs the command once.
    ///
    /// # Errors
    /// `timeout`, `limit_exceeded`, or `execution_failure` with the end of stderr.
    pub async fn call(
        &self,
        request: &ToolRequest,
        limits: &ToolLimits,
        place: Place<'_>,
    ) -> Result<Value, Failure> {
        let name = &self.name;
        let scratch = Scratch::new(place.scratch_root).await.map_err(|e| {
            tool_failure("subprocess_execution_error", format!("no scratch folder can be made: {e}"))
        })?;
        let timeout = limits.timeout(request.timeout_s, self.timeout_s);
        let dir = if self.dir.as_os_str().is_empty() { place.workspace } else { &self.dir };
        let (program, args) = self.command.split_first().ok_or_else(|| {
            Failure::permanent(FaultKind::ExecutionFailure, format!("the tool `{name}` has an empty command"))
        })?;
        let unusable = |why: String| {
            let message = format!("the command of `{name}`, `{program}`, cannot be started: {why}");
            tool_failure("subprocess_execution_error", message)
        };
        let (program, folder) = found(dir, program, place.process).map_err(unusable)?;
        let mut variables =
            clean_variables(search_path(folder.as_deref()), scratch.path(), &request.effect.0);
        variables.extend(pairs(&place.env));
        let launch = Launch {
            program,
            args: args.iter().map(Into::into).collect(),
            environment: variables,
            cwd: dir.to_owned(),
            stdin: request.args.to_string().into_bytes(),
            timeout,
            output_bytes: limits.tool_output_bytes,
            stderr_is_output: false,
            bound: true,
            answers: false,
            policy: place.policy,
            // The user's own program, which may need anything of the user's: limits hold, and a clean environment.
            confined: None,
            watch: place.context.watch.map(progress),
            handed: Handed::default(),
            tool: name.clone(),
        };
        let finished = run(launch).await.map_err(|e| unusable(e.to_string()))?;
        let [stdout, stderr] = output_printed(&finished);
        // What is the output is kept as that.
        let is_output = matches!(finished.end, End::Exited(0) | End::Dismissed);
        place.context.printing.put([if is_output { Stream::default() } else { stdout }, stderr]);
        match finished.end {
            End::Exited(0) | End::Dismissed => output(name, finished.stdout, limits),
            End::TooMuchOutput => Err(over_limit(name, limits)),
            _ => Err(crashed(name, &finished, timeout)),
        }
    }
}

/// `./x` and `a/x` start at the declaration's folder, as a shell there would have it; `x` is looked up on PATH.
pub(crate) fn dir_relative(dir: &Path, program: &str) -> PathBuf {
    if program.contains('/') { dir.join(program) } else { PathBuf::from(program) }
}

/// The program of a command. A bare name is looked up on the user's search path, as the user's shell does it; what
/// runs is told nothing of that path but the folder of its own program, where its interpreter may be as well.
fn found(dir: &Path, program: &str, env: &ProcessEnv) -> Result<(PathBuf, Option<PathBuf>), String> {
    if program.contains('/') {
        let path = dir_relative(dir, program);
        return match runs(&path) {
            Some(true) => Ok((path, None)),
            Some(false) => Err(format!("{} is no program that may be run", path.display())),
            None => Err(format!("there is no {}", path.display())),
        };
    }
    let users = env.variable("PATH").unwrap_or_default();
    let folders = std::env::split_paths(users).chain(std::env::split_paths(SEARCH_PATH));
    let mut refused = None;
    for folder in folders.filter(|folder| folder.is_absolute()) {
        let path = folder.join(program);
        match runs(&path) {
            Some(true) => return Ok((path, Some(folder))),
            Some(false) => refused = refused.or(Some(path)),
            None => {}
        }
    }
    Err(match refused {
        Some(path) => format!("{} is no program that may be run", path.display()),
        None => "there is no such program on PATH".to_owned(),
    })
}

/// Whether a place is a program; `None` if nothing is there.
fn runs(path: &Path) -> Option<bool> {
    let meta = std::fs::metadata(path).ok()?;
    Some(meta.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}

/// JSON if it parses, else the text as it is.
fn output(name: &str, bytes: Vec<u8>, limits: &ToolLimits) -> Result<Value, Failure> {
    match json::read_exactly(&bytes, limits.json_nesting) {
        Ok(Unique(value)) => return Ok(value),
        // What is no JSON may be anything, also brackets without end.
        Err(json::Unread::Wrong(_)) => {}
        Err(unread) => return Err(unread.failure(name, limits)),
    }
    String::from_utf8(bytes).map(Value::String).map_err(|_| {
        tool_failure("parsing_tool_error", format!("the output of `{name}` is neither JSON nor UTF-8 text"))
    })
}
