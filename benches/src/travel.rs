//! Time travel: forks of a long run until their first effect, forks of forks, and comparing two runs.

use crate::measure::{cost, emit, folder};
use crate::runs::runtime;
use crate::{Result, plans};
use selvedge_engine::Event;
use selvedge_host::diff::{Diff, both};
use selvedge_host::{Begun, Environment, ForkOptions, Host, RunOptions};
use selvedge_runtime::Controls;
use serde_json::{Value, json};
use std::hint::black_box;
use std::path::Path;

/// A folder with a document and its runs, which a script answers.
struct World {
    host: Host,
    folder: tempfile::TempDir,
}

impl World {
    fn new(document: &Value) -> Result<Self> {
        let folder = folder()?;
        std::fs::write(folder.path().join("plan.json"), document.to_string())?;
        std::fs::write(folder.path().join("replies.yaml"), "- reply: {text: said}\n")?;
        // More rounds than a loop has by itself.
        std::fs::write(folder.path().join("selvedge.toml"), "[limits]\nloop_iterations = 100_000\n")?;
        let environment = Environment::new([], folder.path().to_owned());
        let host = Host::new(environment).in_state_dir(Some(&folder.path().join("state")));
        Ok(Self { host, folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn options(&self, script: &str) -> RunOptions {
        let script = Some(self.path().join(script));
        RunOptions { script, cwd: self.path().to_owned(), ..RunOptions::default() }
    }

    /// Runs the document, and gives the id and how many events there are.
    async fn run(&self, script: &str) -> Result<(String, u64)> {
        let run = self.host.run(&self.path().join("plan.json"), self.options(script)).await?;
        driven(run).await
    }

    /// Goes on from a fork until something is asked for, or nothing more follows: how many events that takes.
    fn followed(begun: &mut Begun) -> u64 {
        let mut events = 0;
        while begun.state.pending().is_empty()
            && let Some(event) = begun.state.step()
        {
            begun.state.apply(&event);
            events += 1;
        }
        events
    }

    /// The first message from an event on that a model has said.
    fn reply(&self, run: &str, from: u64) -> Result<u64> {
        let store = selvedge_host::stores::open(&self.host.state_dir()?)?.ok_or("no store")?;
        for entry in store.journal(run, from)? {
            let entry = entry?;
            let event: Event = selvedge_runtime::recorded(entry.json.as_bytes())?;
            if matches!(&event, Event::Appended { body: selvedge_engine::Body::Reply(_), .. }) {
                return Ok(entry.n);
            }
        }
        Err("no reply".into())
    }
}

async fn driven(mut run: Begun) -> Result<(String, u64)> {
    run.drive(&mut Controls::default()).await?;
    let known = (run.id.clone(), run.state.events());
    run.close().await;
    Ok(known)
}

/// A workflow that asks a model so many times, round by round.
fn rounds(count: usize) -> Value {
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "type": kind, "config": config});
    let ids = ["start", "talk", "say", "talked", "end"];
    let edges = ids.windows(2).map(|pair| json!({"from": pair.first(), "to": pair.last()}));
    json!({
        "nodes": [
            node("start", "START", json!({})),
            node("talk", "LOOP_START", json!({"count": count, "limit": count})),
            node("say", "LLM", json!({"prompt": "q"})),
            node("talked", "LOOP_END", json!({"loop": "talk"})),
            node("end", "END", json!({})),
        ],
        "edges": edges.collect::<Vec<_>>(),
    })
}

/// Forks of runs of 100,000 events until their first effect, in the middle and near the end, with a message edited and without: from the first
/// look at the state folder, and of a run that this process has folded before. Then 1,000 forks of forks.
pub(crate) fn fork(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    let nodes = (100_000.0 * scale) as usize / 7 + 2;
    for (document, text) in [("plan", plans::chain(nodes)), ("loop", rounds(nodes))] {
        let world = World::new(&text)?;
        let (run, events) = runtime.block_on(world.run("replies.yaml"))?;
        let loaded = world.host.forkable(&run)?;
        for (at, part) in [("middle", events / 2), ("end", events - 20)] {
            let edited = world.reply(&run, part - 40)?;
            for (what, messages) in
                [("edited", vec![(edited, "another".to_owned())]), ("as it was", Vec::new())]
            {
                for (from, known) in [("store", None), ("loaded", Some(&loaded))] {
                    let mut followed = 0;
                    let cost = cost(|| {
                        let (over, messages) = (world.options("replies.yaml"), messages.clone());
                        let at = messages.is_empty().then_some(part);
                        let fork = ForkOptions { at, messages, over, ..ForkOptions::default() };
                        let mut begun = match known {
                            None => runtime.block_on(world.host.fork(&run, fork))?,
                            Some(known) => runtime.block_on(world.host.fork_of(known, fork))?,
                        };
                        followed = World::followed(&mut begun);
                        Ok(begun)
                    })?;
                    emit(
                        "fork",
                        json!({"document": document, "events": events, "at": at, "messages": what, "from": from, "own_events": followed,
                            "wall_s": cost.wall_s, "cpu_s": cost.cpu_s}),
                    );
                }
            }
        }
    }
    chain(scale)
}

/// Forks of forks, each at the last event of the one before.
fn chain(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    let world = World::new(&plans::chain(10))?;
    let (first, _) = runtime.block_on(world.run("replies.yaml"))?;
    let deep = (1_000.0 * scale) as usize + 1;
    let mut last = first;
    let began = std::time::Instant::now();
    for _ in 0..deep {
        let fork = ForkOptions { over: world.options("replies.yaml"), ..ForkOptions::default() };
        let begun = runtime.block_on(world.host.fork(&last, fork))?;
        (last, _) = runtime.block_on(driven(begun))?;
    }
    let made = began.elapsed().as_secs_f64();
    let cost = cost(|| {
        let fork = ForkOptions { over: world.options("replies.yaml"), ..ForkOptions::default() };
        let asked = world.host.source(&last, fork)?;
        Ok(black_box(asked))
    })?;
    let bytes = crate::measure::size(&world.host.state_dir()?)?;
    emit("fork", json!({"deep": deep, "made_s": made, "source_s": cost.wall_s, "state_bytes": bytes}));
    Ok(())
}

/// Two runs of 100,000 events that differ in a few replies; then a run and a fork of it.
pub(crate) fn diff(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    let nodes = (100_000.0 * scale) as usize / 7 + 2;
    let world = World::new(&plans::chain(nodes))?;
    let other = format!(
        "- when: {{contains: task n{}}}\n  reply: {{text: another}}\n- reply: {{text: said}}\n",
        nodes / 2
    );
    std::fs::write(world.path().join("other.yaml"), other)?;
    let (a, events) = runtime.block_on(world.run("replies.yaml"))?;
    let (b, _) = runtime.block_on(world.run("other.yaml"))?;
    let fork =
        ForkOptions { at: Some(events / 2), over: world.options("replies.yaml"), ..ForkOptions::default() };
    let begun = runtime.block_on(world.host.fork(&a, fork))?;
    let (f, _) = runtime.block_on(driven(begun))?;
    let store = selvedge_host::stores::open(&world.host.state_dir()?)?.ok_or("no store")?;
    for (what, other) in [("another run", &b), ("a fork", &f)] {
        let mut same = 0;
        let cost = cost(|| {
            let (a, b, _) = both(&store, &a, other)?;
            let diff = Diff::of(&a, &b);
            same = diff.results.iter().filter(|node| node.is == selvedge_host::diff::Is::Same).count();
            drop(black_box(diff));
            Ok((a, b))
        })?;
        emit(
            "diff",
            json!({"events": events, "with": what, "nodes": nodes, "same": same, "wall_s": cost.wall_s, "cpu_s": cost.cpu_s}),
        );
    }
    Ok(())
}
