//! Python tools as the command line has them: in their sandbox, by interpreters that are kept warm.

use crate::Result;
use crate::measure::{chosen, complain, emit, family_cpu_s, folder, middle, setting};
use crate::runs::runtime;
use selvedge_engine::{EffectId, ToolRequest};
use selvedge_runtime::{CallContext, Tools};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::launcher::Launcher;
use selvedge_tools::{Catalogue, CatalogueConfig, ErrorClass};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The word that makes this program the launcher of confined programs.
pub(crate) const CONFINE: &str = "__confine";
/// How many calls there are at a time, where there is more than one.
const AT_A_TIME: usize = 8;
/// Metadata, then calls. Where Python, its packages or the sandbox can't be had, stderr says so.
pub(crate) fn tools(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    if chosen("metadata") {
        runtime.block_on(metadata((1_000.0 * scale) as usize))?;
    }
    if !chosen("calls") {
        return Ok(());
    }
    let folder = folder()?;
    write(folder.path(), "echo", "    return {'own_ms': (time.perf_counter() - BEGAN) * 1e3}")?;
    let work = "    end = time.process_time() + 0.02\n    while time.process_time() < end: pass\n    \
        return {'own_ms': (time.perf_counter() - BEGAN) * 1e3}";
    write(folder.path(), "work", work)?;
    if let Some(why) = runtime.block_on(missing(folder.path()))? {
        complain(&format!("tools: calls are left out: {why}"));
        return Ok(());
    }
    runtime.block_on(first(folder.path()))?;
    for tool in ["echo", "work"] {
        runtime.block_on(warm(folder.path(), tool, ((1_000.0 * scale) as usize).max(AT_A_TIME)))?;
    }
    Ok(())
}

/// A tool that knows when the interpreter began to run its file: from then on it is the tool's own time.
pub(crate) fn write(folder: &Path, name: &str, body: &str) -> Result<()> {
    let text = format!(
        "import time\nBEGAN = time.perf_counter()\nfrom pydantic import BaseModel\n\
         __TOOL_META__ = {{'name': '{name}', 'description': 'd', 'dependencies': [], 'effects': 'pure'}}\n\
         class InputModel(BaseModel):\n    x: int = 0\ndef run(i):\n{body}\n"
    );
    std::fs::create_dir_all(folder.join("tools"))?;
    Ok(std::fs::write(folder.join("tools").join(format!("{name}.py")), text)?)
}

/// As the command line has it: environments of all projects of a user in one place, the rest in the state folder.
pub(crate) fn config(folder: &Path) -> Result<CatalogueConfig> {
    let shared = std::env::var_os("SELVEDGE_CACHE_DIR").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        cache
            .or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")))
            .map(|c| c.join("selvedge"))
    });
    let env = ProcessEnv::new(std::env::vars_os(), std::env::current_dir().ok());
    let mut config = CatalogueConfig::new(
        folder,
        folder.join("cache/tools"),
        shared.unwrap_or_else(|| folder.join("cache")),
        env.clone(),
    );
    config.tool_dirs = vec![folder.join("tools")];
    config.isolation =
        Isolation::new(Launcher { program: std::env::current_exe()?, args: vec![CONFINE.to_owned()] }, &env)
            .kept_in(folder.join("isolation.json"));
    Ok(config)
}

/// Until the tools of a folder are known: with nothing kept about them, and with all of it.
async fn metadata(files: usize) -> Result<()> {
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    let mut spent = [Vec::new(), Vec::new()];
    // They go when all is measured: for seconds after files were removed, ext4 is slow to create some.
    let mut folders = Vec::new();
    for _ in 0..setting("BENCH_RUNS", 3.0) as usize {
        let folder = folder()?;
        for number in 0..files {
            let helper =
                format!("    return {number}\ndef helper(a):\n    return [a for _ in range(3)]\n").repeat(10);
            write(folder.path(), &format!("t{number}"), &helper)?;
        }
        for (times, spent) in [&mut cold, &mut warm].into_iter().zip(&mut spent) {
            let (start, before) = (Instant::now(), family_cpu_s()?);
            let catalogue = Catalogue::load(config(folder.path())?).await?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            spent.push((family_cpu_s()? - before) * 1e3);
            let known = catalogue.names().filter(|name| name.starts_with('t')).count();
            if known < files {
                return Err(format!(
                    "{known} of {files} tools are known: {:?}",
                    catalogue.warnings().first()
                )
                .into());
            }
        }
        folders.push(folder);
    }
    let [cold_cpu, warm_cpu] = spent.map(middle);
    emit(
        "tools",
        json!({"variant": "metadata", "files": files, "cold_ms": middle(cold), "warm_ms": middle(warm),
        "cold_cpu_ms": cold_cpu, "warm_cpu_ms": warm_cpu}),
    );
    Ok(())
}

/// What keeps tools from being called here; builds their environment if it is not there yet.
pub(crate) async fn missing(folder: &Path) -> Result<Option<String>> {
    let catalogue = Catalogue::load(config(folder)?).await?;
    let Err(errors) = catalogue.prepare(&["echo", "work"]).await else { return Ok(None) };
    match errors.0.iter().all(|error| error.class == ErrorClass::Environment) {
        true => Ok(Some(errors.to_string())),
        false => Err(errors.into()),
    }
}

async fn call(catalogue: &Catalogue, tool: &str) -> Result<Value> {
    let request = ToolRequest {
        effect: EffectId("n/1".into()),
        node: "n".into(),
        tool: catalogue.def(tool).ok_or("the tool is not ready")?,
        args: json!({ "x": 1 }),
        timeout_s: None,
    };
    let context = CallContext::of("bench");
    catalogue.call(request, context).await.map_err(|failure| format!("{failure:?}").into())
}

/// The first call of a process, in an environment that is there.
async fn first(folder: &Path) -> Result<()> {
    let (mut loading, mut first) = (Vec::new(), Vec::new());
    for _ in 0..setting("BENCH_RUNS", 3.0) as usize {
        let start = Instant::now();
        let catalogue = Catalogue::load(config(folder)?).await?;
        catalogue.prepare(&["echo"]).await?;
        loading.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        call(&catalogue, "echo").await?;
        first.push(start.elapsed().as_secs_f64() * 1e3);
    }
    emit(
        "tools",
        json!({"variant": "calls, first", "load_ms": middle(loading), "first_call_ms": middle(first)}),
    );
    Ok(())
}

/// Calls one after the other, and as many several at a time.
async fn warm(folder: &Path, tool: &'static str, calls: usize) -> Result<()> {
    let catalogue = Catalogue::load(config(folder)?).await?;
    catalogue.prepare(&[tool]).await?;
    call(&catalogue, tool).await?;
    let before = family_cpu_s()?;
    let (mut whole, mut beyond) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for _ in 0..calls {
        let start = Instant::now();
        let own = call(&catalogue, tool).await?.get("own_ms").and_then(Value::as_f64).unwrap_or_default();
        let took = start.elapsed().as_secs_f64() * 1e3;
        whole.push(took);
        beyond.push(took - own);
    }
    let one = start.elapsed().as_secs_f64();
    let left = Arc::new(AtomicUsize::new(calls));
    let start = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (catalogue, left) = (catalogue.clone(), Arc::clone(&left));
        callers.spawn(async move {
            let next = |left: usize| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok() {
                call(&catalogue, tool).await.map_err(|error| error.to_string())?;
            }
            Ok::<(), String>(())
        });
    }
    while let Some(result) = callers.join_next().await {
        result??;
    }
    let several = start.elapsed().as_secs_f64();
    let spent = family_cpu_s()? - before;
    emit(
        "tools",
        json!({"variant": format!("calls, warm, {tool}"), "calls": calls, "ms_per_call": middle(whole),
        "beyond_ms": middle(beyond), "one_at_a_time_s": one, "eight_at_a_time_s": several, "ratio": one / several,
        "cpu_ms_per_call": spent / (2 * calls) as f64 * 1e3}),
    );
    Ok(())
}
