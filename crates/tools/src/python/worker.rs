//! The process that runs a tool file: interpreter, environment, policy, file and input come together here only.

use crate::failures::{crashed, failure, made_ours, not_started, over_limit, overfull, tool_failure};
use crate::json;
use crate::limits::ToolLimits;
use crate::printed::{printing, progress};
use crate::python::meta::safe_name;
#[cfg(target_os = "linux")]
use crate::python::warm::{Key, Warm};
use selvedge_engine::{Failure, FaultKind};
use selvedge_http::Secret;
use selvedge_runtime::ports::{Printing, Watch};
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::policy::Policy;
use selvedge_sandbox::process::{Confined, End, Finished, Launch, Scratch, Talk, run, sandboxed_variables};
#[cfg(target_os = "linux")]
use selvedge_sandbox::server::Call;
use selvedge_sandbox::spawn::Handed;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program of a worker. `output.py` writes outputs as JSON.
const WORKER: &str = concat!(include_str!("worker.py"), include_str!("output.py"), include_str!("once.py"));
/// How an interpreter is started: by itself, without the user's settings; the program follows.
pub(super) const FLAGS: [&str; 5] = ["-I", "-B", "-X", "utf8", "-c"];

/// What is asked of a tool file.
pub(crate) enum Ask<'a> {
    /// The JSON schema of its input.
    Schema,
    /// One run with this input.
    Call(&'a Value),
}

/// One piece of work for a tool file.
pub(crate) struct Job<'a> {
    /// The tool's bound name.
    pub(crate) name: &'a str,
    /// The content-addressed copy of its file.
    pub(crate) file: &'a Path,
    /// What it is called in tracebacks: the file of its author.
    pub(crate) shown: &'a str,
    /// Its content.
    pub(crate) source: &'a [u8],
    /// The sha256 of that.
    pub(crate) version: &'a str,
    /// How its policy is enforced.
    pub(crate) isolation: &'a Isolation,
    /// Interpreters that are warm already.
    #[cfg(target_os = "linux")]
    pub(crate) warm: &'a Warm,
    /// The `python` of its environment.
    pub(crate) python: &'a Path,
    /// The effect id, its idempotency key.
    pub(crate) effect: &'a str,
    /// The variables that it is given besides those of every tool.
    pub(crate) env: Vec<(String, Secret)>,
    /// What it may reach.
    pub(crate) policy: Policy,
    /// Its time limit.
    pub(crate) timeout: Duration,
    /// Its output limit.
    pub(crate) limits: &'a ToolLimits,
    /// The document's folder, where a call runs: relative paths in its input start there.
    pub(crate) folder: &'a Path,
    /// Where its scratch folder is made.
    pub(crate) scratch_root: PathBuf,
    /// Who watches what it prints.
    pub(crate) watch: Option<Watch>,
    /// Where that is kept.
    pub(crate) printing: Printing,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Answer {
    Ok(Value),
    Error(Map<String, Value>),
}

/// Runs a job in a process of its own, in a fresh scratch folder that is removed afterwards.
///
/// # Errors
/// A-21's failures, `limit_exceeded` and `timeout`.
pub(crate) async fn work(job: Job<'_>, ask: Ask<'_>) -> Result<Value, Failure> {
    let input = input(&job, &ask)?;
    #[cfg(target_os = "linux")]
    if let Some(call) = warm(&job).await {
        let (folder, variables) = surroundings(&job, &ask, call.scratch());
        // Otherwise the call has not begun, and starts an interpreter of its own.
        if let Ok(finished) =
            call.run(&folder, &variables, job.version, job.name, talk(&job, input.clone())).await
        {
            return outcome(&job, &ask, finished);
        }
    }
    let scratch = Scratch::new(job.scratch_root.clone()).await.map_err(|e| {
        tool_failure("subprocess_execution_error", format!("no scratch folder can be made: {e}"))
    })?;
    let (cwd, environment) = surroundings(&job, &ask, scratch.path());
    let Talk { stdin, timeout, output_bytes, stderr_is_output, answers, watch } = talk(&job, input);
    let mut finished = run(Launch {
        program: job.python.to_owned(),
        args: FLAGS.iter().map(Into::into).chain([WORKER.into()]).collect(),
        environment,
        cwd,
        stdin,
        timeout,
        output_bytes,
        stderr_is_output,
        bound: false,
        answers,
        policy: job.policy.clone(),
        confined: Some(Confined { isolation: job.isolation.clone(), scratch: scratch.path().to_owned() }),
        watch,
        handed: Handed::default(),
        tool: job.name.to_owned(),
    })
    .await
    .map_err(|e| not_started(&job.python.display().to_string(), &e))?;
    // A sandbox ends as a shell does: a signal that ended its program comes out as an exit code.
    if let End::Exited(code @ 129..=192) = finished.end {
        finished.end = End::Signalled(code - 128);
    }
    outcome(&job, &ask, finished)
}

/// What the worker reads: a line about the file, the file, and the input.
fn input(job: &Job<'_>, ask: &Ask<'_>) -> Result<Vec<u8>, Failure> {
    let mode = match ask {
        Ask::Schema => "schema",
        Ask::Call(_) => "call",
    };
    let module = format!("selvedge_tool_{}", safe_name(job.name));
    let file = job.file.to_str().ok_or_else(|| {
        let message = format!("the cache's folder {} has a name that is not UTF-8", job.file.display());
        tool_failure("subprocess_execution_error", message)
    })?;
    // Not in the environment that it starts with: a warm interpreter hands that over, and this goes past it, to the tool's own
    // process.
    let env: Map<String, Value> =
        job.env.iter().map(|(name, value)| (name.clone(), value.expose().into())).collect();
    let (shown, bytes) = (job.shown, job.source.len());
    let head = serde_json::json!({"mode": mode, "file": file, "shown": shown, "module": module, "bytes": bytes, "env": env});
    let mut input = head.to_string().into_bytes();
    input.push(b'\n');
    input.extend_from_slice(job.source);
    if let Ask::Call(value) = ask {
        input.extend_from_slice(value.to_string().as_bytes());
    }
    Ok(input)
}

/// A call of a warm interpreter, where there are such.
#[cfg(target_os = "linux")]
async fn warm(job: &Job<'_>) -> Option<Call> {
    let key = Key::new(job.python, &job.policy);
    let root = job.scratch_root.clone();
    let server = job.warm.server(job.isolation, &key, root, job.source).await?;
    Call::new(server, job.isolation).await.ok()
}

/// The folder in which a job runs, and its variables.
fn surroundings(job: &Job<'_>, ask: &Ask<'_>, scratch: &Path) -> (PathBuf, Vec<(OsString, OsString)>) {
    let folder = match ask {
        Ask::Schema => scratch,
        Ask::Call(_) => job.folder,
    };
    let mut search_path = OsString::from(job.python.parent().unwrap_or(Path::new("/usr/bin")));
    search_path.push(":/usr/local/bin:/usr/bin:/bin");
    (folder.to_owned(), sandboxed_variables(search_path, scratch, job.effect))
}

fn talk(job: &Job<'_>, stdin: Vec<u8>) -> Talk {
    Talk {
        stdin,
        timeout: job.timeout,
        // The answer's own wrapping is not the tool's output.
        output_bytes: job.limits.tool_output_bytes.saturating_add(32),
        stderr_is_output: false,
        answers: true,
        watch: job.watch.clone().map(progress),
    }
}

fn outcome(job: &Job<'_>, ask: &Ask<'_>, finished: Finished) -> Result<Value, Failure> {
    job.printing.put(printing(&finished));
    if !finished.made.is_empty() {
        return Err(made_ours(job.name, &finished.made));
    }
    match finished.end {
        End::TooMuchOutput => Err(over_limit(job.name, job.limits)),
        End::TooMuchScratch => Err(overfull(job.name, &job.policy)),
        End::TimedOut => Err(crashed(job.name, &finished, job.timeout)),
        // The tool ended its process before it could answer.
        _ if finished.stdout.is_empty() => Err(crashed(job.name, &finished, job.timeout)),
        _ => answer(job, ask, &finished.stdout),
    }
}

fn answer(job: &Job<'_>, ask: &Ask<'_>, bytes: &[u8]) -> Result<Value, Failure> {
    let tool = job.name;
    // The answer's own wrapping is not the tool's output.
    let nesting = job.limits.json_nesting.saturating_add(1);
    let read = match ask {
        Ask::Call(_) => json::read_exactly(bytes, nesting),
        // Bounds that no number of 64 bits reaches are met as well by the nearest that a schema can have.
        Ask::Schema => json::read(bytes, nesting),
    };
    match read {
        Ok(Answer::Ok(value)) => Ok(value),
        Ok(Answer::Error(mut error)) => {
            let text =
                |value: Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            let class = text(error.remove("type"));
            let message = text(error.remove("message"));
            Err(match class.as_str() {
                "input_error" => {
                    let message = format!("the tool `{tool}` refuses its input: {message}");
                    failure(FaultKind::InputError, &class, message, error)
                }
                _ => failure(FaultKind::ExecutionFailure, &class, message, error),
            })
        }
        Err(unread) => Err(unread.failure(tool, job.limits)),
    }
}
