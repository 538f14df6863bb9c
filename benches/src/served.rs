//! Many runs at once: driven by `selvedge serve`, and by a process that drives them itself.

use crate::measure::{cpu_s, emit, folder, middle, setting};
use crate::server::{Process, ask_beside_others};
use crate::{Result, plans};
use selvedge_host::options::EVERY_ROLE;
use selvedge_host::{Environment, Host, RunOptions};
use selvedge_runtime::Controls;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};

/// 1,000 runs of ten questions each to a model of 50 ms over HTTP, durable: by a server, of which as many clients ask for one each at the
/// same time, and by a process that drives them itself and begins all at once.
pub(crate) fn served(scale: f64) -> Result<()> {
    let runs = ((1_000.0 * scale) as usize).max(1);
    let model = Process::start(Command::new(std::env::current_exe()?).arg("serve"))?;
    let plan = plans::chain(10);
    let mut took: [Vec<f64>; 8] = Default::default();
    for _ in 0..setting("BENCH_RUNS", 3.0) as usize {
        let folder = folder()?;
        let server = Process::serve(
            folder.path(),
            &["--model", "mock?latency=50", "--base-url", &model.line, "--max-runs", "100000"],
        )?;
        let (before, client, answered) = (server.cpu_s()?, cpu_s(), model.cpu_s()?);
        let (begun, by_server) = through(&server, &plan, runs)?;
        let (server_cpu, client_cpu) = (server.cpu_s()? - before, cpu_s() - client);
        let server_model = model.cpu_s()? - answered;
        drop(server);
        let folder = self::folder()?;
        std::fs::write(folder.path().join("plan.json"), plan.to_string())?;
        let (before, answered) = (cpu_s(), model.cpu_s()?);
        let alone = driven(folder.path(), &model.line, runs)?;
        let (alone_cpu, alone_model) = (cpu_s() - before, model.cpu_s()? - answered);
        let all = [begun, by_server, server_cpu, client_cpu, server_model, alone, alone_cpu, alone_model];
        took.iter_mut().zip(all).for_each(|(took, one)| took.push(one));
    }
    let [begun, by_server, server_cpu, client_cpu, server_model, alone, alone_cpu, alone_model] =
        took.map(middle);
    emit(
        "served",
        json!({"runs": runs, "server_s": by_server, "alone_s": alone, "times": by_server / alone, "server_begun_s": begun,
               "cpu_s": {"server": server_cpu, "clients": client_cpu, "model": server_model, "alone": alone_cpu, "model_alone": alone_model}}),
    );
    Ok(())
}

/// Begins so many runs by as many clients who ask at the same time; how long until all have begun, and until all have completed.
fn through(server: &Process, plan: &Value, runs: usize) -> Result<(f64, f64)> {
    let start: Arc<str> = json!({"document": plan}).to_string().into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let began = Instant::now();
    LocalSet::new().block_on(&runtime, async {
        let mut clients = JoinSet::new();
        for _ in 0..runs {
            let (address, start) = (server.address().to_owned(), Arc::clone(&start));
            clients.spawn_local(async move { ask_beside_others(&address, "POST", "/v1/runs", &start).await });
        }
        while let Some(begun) = clients.join_next().await {
            begun??;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    let begun = began.elapsed().as_secs_f64();
    let done = format!("selvedge_runs{{status=\"completed\"}} {runs}");
    while !server.ask("GET", "/metrics", "")?.lines().any(|line| line == done) {
        if began.elapsed() > Duration::from_secs(600) {
            return Err("the runs did not complete within ten minutes".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((begun, began.elapsed().as_secs_f64()))
}

/// The same runs without a server between.
fn driven(folder: &Path, model: &str, runs: usize) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let host = Host::new(Environment::new([], folder.to_owned())).in_state_dir(Some(&folder.join("state")));
    let (host, _store) = host.in_open_store()?;
    let options = RunOptions {
        models: [(EVERY_ROLE.to_owned(), "mock?latency=50".to_owned())].into(),
        base_url: Some(model.to_owned()),
        cwd: folder.to_owned(),
        ..RunOptions::default()
    };
    let plan = folder.join("plan.json");
    let began = Instant::now();
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..runs {
            let (host, plan, options) = (host.clone(), plan.clone(), options.clone());
            tasks.spawn(async move {
                let mut run = host.run(&plan, options).await.map_err(|error| error.to_string())?;
                run.drive(&mut Controls::default()).await.map_err(|error| error.to_string())?;
                Ok::<_, String>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    Ok(began.elapsed().as_secs_f64())
}
