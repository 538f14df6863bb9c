//! Many runs at once: driven by `selvedge serve`, and by a process that drives them itself.

use crate::measure::{cpu_s, emit, folder, middle, setting};
use crate::server::{Process, ask_beside_others};
use crate::{Result, plans};
use selvedge_host::options::EVERY_ROLE;
use selvedge_host::{Environment, Host, RunOptions};
use selvedge_runtime::Controls;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};

/// Questions of each run: what a server adds is added at a run's beginning, whatever comes behind it.
const QUESTIONS: [usize; 2] = [10, 40];

/// 1,000 runs of some questions each to a model of 50 ms over HTTP, durable: by a server, of which as many clients ask for one each at the
/// same time, and by a process that drives them itself and begins all at once. Each time both are new processes: one that has had as
/// many runs before has its memory from the system already.
pub(crate) fn served(scale: f64) -> Result<()> {
    let runs = ((1_000.0 * scale) as usize).max(1);
    let model = Process::start(Command::new(std::env::current_exe()?).arg("serve"))?;
    QUESTIONS.iter().try_for_each(|questions| asking(&model, runs, *questions))
}

/// The same with so many questions each.
fn asking(model: &Process, runs: usize, questions: usize) -> Result<()> {
    let plan = plans::chain(questions);
    let mut took: [Vec<f64>; 9] = Default::default();
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
        let answered = model.cpu_s()?;
        let (alone, alone_cpu) = driven(folder.path(), &model.line, runs)?;
        let alone_model = model.cpu_s()? - answered;
        let times = by_server / alone;
        let all =
            [begun, by_server, server_cpu, client_cpu, server_model, alone, alone_cpu, alone_model, times];
        took.iter_mut().zip(all).for_each(|(took, one)| took.push(one));
    }
    let [begun, by_server, server_cpu, client_cpu, server_model, alone, alone_cpu, alone_model, times] =
        took.map(middle);
    emit(
        "served",
        json!({"runs": runs, "questions": questions, "server_s": by_server, "alone_s": alone, "times": times, "server_begun_s": begun,
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
    loop {
        let metrics = server.ask("GET", "/metrics", "")?;
        let completed =
            metrics.lines().find_map(|line| line.strip_prefix("selvedge_runs{status=\"completed\"} "));
        let completed = completed.and_then(|count| count.parse::<f64>().ok()).unwrap_or_default() as usize;
        if completed == runs {
            break;
        }
        if began.elapsed() > Duration::from_secs(600) {
            return Err("the runs did not complete within ten minutes".into());
        }
        // To ask costs them time, and to ask late is counted as theirs.
        std::thread::sleep(Duration::from_millis(if completed * 10 < runs * 9 { 20 } else { 3 }));
    }
    Ok((begun, began.elapsed().as_secs_f64()))
}

/// The same runs without a server between, in a process of their own: how long until all have completed, and its processor time.
fn driven(folder: &Path, model: &str, runs: usize) -> Result<(f64, f64)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["served-one", model, &runs.to_string()]).current_dir(folder).stderr(Stdio::inherit());
    let said = command.output()?;
    let said: Value = serde_json::from_slice(&said.stdout)?;
    let figure = |name: &str| said.get(name).and_then(Value::as_f64).ok_or("the process has not measured");
    Ok((figure("wall_s")?, figure("cpu_s")?))
}

/// `served-one MODEL RUNS`: what [`driven`] starts, in a folder with the plan.
pub(crate) fn one() -> Result<()> {
    let mut given = std::env::args().skip(2);
    let (Some(model), Some(runs)) = (given.next(), given.next()) else {
        return Err("served-one takes the address of a model and a number of runs".into());
    };
    let (folder, runs) = (std::env::current_dir()?, runs.parse::<usize>()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let host = Host::new(Environment::new([], folder.clone())).in_state_dir(Some(&folder.join("state")));
    let (host, _store) = host.in_open_store()?;
    let options = RunOptions {
        models: [(EVERY_ROLE.to_owned(), "mock?latency=50".to_owned())].into(),
        base_url: Some(model),
        cwd: folder.clone(),
        ..RunOptions::default()
    };
    let plan = folder.join("plan.json");
    let (began, before) = (Instant::now(), cpu_s());
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
    emit("served-one", json!({"wall_s": began.elapsed().as_secs_f64(), "cpu_s": cpu_s() - before}));
    Ok(())
}
