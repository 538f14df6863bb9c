//! `python` and `shell`: a process in the document's folder; its exit code is part of the output.

use super::{Builtin, BuiltinContext, args};
use crate::failures::{crashed, made_ours, not_started, over_limit, overfull, tool_failure};
use crate::permissions::Access;
use crate::printed::output_printed;
use crate::python::context::PythonContext;
use selvedge_engine::{Failure, ToolRequest};
use selvedge_runtime::ports::Printing;
use selvedge_sandbox::policy::Policy;
use selvedge_sandbox::process::{Confined, End, Launch, Scratch, run, sandboxed_variables, search_path};
use selvedge_sandbox::spawn::Handed;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PythonArgs {
    code: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellArgs {
    command: String,
}

pub(super) async fn python(
    bench: &BuiltinContext,
    request: &ToolRequest,
    context: &PythonContext,
    circumstances: (Duration, &Printing),
) -> Result<Value, Failure> {
    let PythonArgs { code } = args(request)?;
    let interpreter = context
        .environments
        .interpreter()
        .await
        .map_err(|error| tool_failure("subprocess_execution_error", error.to_string()))?;
    let scratch = scratch(context).await?;
    // A file, because the system limits the length of an argument.
    let file = scratch.path().join("code.py");
    tokio::fs::write(&file, code)
        .await
        .map_err(|e| tool_failure("subprocess_execution_error", e.to_string()))?;
    let arguments = vec!["-I".into(), "-B".into(), "-X".into(), "utf8".into(), file.into()];
    let mut runtime = interpreter.homes.clone();
    runtime.push(interpreter.path.clone());
    let program = (interpreter.path.clone(), runtime);
    execute(bench, request, context, scratch, program, arguments, circumstances).await
}

pub(super) async fn shell(
    bench: &BuiltinContext,
    request: &ToolRequest,
    context: &PythonContext,
    circumstances: (Duration, &Printing),
) -> Result<Value, Failure> {
    let ShellArgs { command } = args(request)?;
    let scratch = scratch(context).await?;
    let program = ("/bin/sh".into(), Vec::new());
    execute(bench, request, context, scratch, program, vec!["-c".into(), command.into()], circumstances).await
}

async fn scratch(context: &PythonContext) -> Result<Scratch, Failure> {
    let Access { read, write, .. } = context.granted.all();
    let granted = Policy { read, write, ..Policy::default() };
    Scratch::new(context.scratch_root(&granted)).await.map_err(|e| {
        tool_failure("subprocess_execution_error", format!("no scratch folder can be made: {e}"))
    })
}

async fn execute(
    bench: &BuiltinContext,
    request: &ToolRequest,
    context: &PythonContext,
    scratch: Scratch,
    (program, runtime): (PathBuf, Vec<PathBuf>),
    arguments: Vec<OsString>,
    (timeout, printing): (Duration, &Printing),
) -> Result<Value, Failure> {
    let name = &request.tool.name;
    let mut policy = bench.limits.closed();
    if &**name != Builtin::Python.name() {
        // Other languages' runtimes reserve far more address space than they use.
        policy.memory_bytes = None;
    }
    Access { read: policy.read, write: policy.write, .. } = context.granted.all();
    policy.runtime = runtime;
    policy.hidden.clone_from(&bench.hidden);
    policy.unmade.clone_from(&context.unmade);
    policy.network = context.granted.network();
    context.names.guard(&mut policy, &context.own).await;
    let finished = run(Launch {
        program,
        args: arguments,
        environment: sandboxed_variables(search_path(None), scratch.path(), &request.effect.0),
        cwd: context.workspace.clone(),
        stdin: Vec::new(),
        timeout,
        output_bytes: bench.limits.tool_output_bytes,
        stderr_is_output: true,
        bound: false,
        answers: false,
        policy,
        confined: Some(Confined { isolation: context.isolation.clone(), scratch: scratch.path().to_owned() }),
        watch: None,
        handed: Handed::default(),
        tool: name.to_string(),
    })
    .await;
    let finished = finished.map_err(|e| not_started(&format!("`{name}`"), &e))?;
    // What is the output is kept as that.
    if !matches!(finished.end, End::Exited(_)) || !finished.made.is_empty() {
        printing.put(output_printed(&finished));
    }
    if !finished.made.is_empty() {
        return Err(made_ours(name, &finished.made));
    }
    match finished.end {
        End::Exited(code) => Ok(json!({
            "stdout": String::from_utf8_lossy(&finished.stdout),
            "stderr": String::from_utf8_lossy(&finished.stderr),
            "exit_code": code,
        })),
        End::TooMuchOutput => Err(over_limit(name, &bench.limits)),
        End::TooMuchScratch => Err(overfull(name, &bench.limits.closed())),
        _ => Err(crashed(name, &finished, timeout)),
    }
}
