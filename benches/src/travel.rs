//! Time travel: forks of a long run until their first effect, forks of forks, and comparing two runs.

use crate::measure::{cost, emit, folder};
use crate::runs::runtime;
use crate::{Result, plans};
use selvedge_engine::Event;
use selvedge_host::diff::{Diff, both};
use selvedge_host::{Begun, Environment, ForkOptions, Host, RunOptions};
use selvedge_runtime::Controls;
use serde_json::json;
use std::hint::black_box;
use std::path::Path;

/// A folder with a document and its runs, which a script answers.
struct World {
    host: Host,
    folder: tempfile::TempDir,
}

impl World {
    fn new(nodes: usize) -> Result<Self> {
        let folder = folder()?;
        std::fs::write(folder.path().join("plan.json"), plans::chain(nodes).to_string())?;
        std::fs::write(folder.path().join("replies.yaml"), "- reply: {text: said}\n")?;
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

    /// Forks a run and goes on until something is asked for, or nothing more follows.
    async fn fork(&self, run: &str, fork: ForkOptions) -> Result<(Begun, u64)> {
        let mut begun = self.host.fork(run, fork).await?;
        let mut events = 0;
        while begun.state.pending().is_empty()
            && let Some(event) = begun.state.step()
        {
            begun.state.apply(&event);
            events += 1;
        }
        Ok((begun, events))
    }
}

async fn driven(mut run: Begun) -> Result<(String, u64)> {
    run.drive(&mut Controls::default()).await?;
    let known = (run.id.clone(), run.state.events());
    run.close().await;
    Ok(known)
}

/// Forks of a run of 100,000 events, from the first look at the state folder to the first effect: with a message edited in its
/// middle and at its end, and the last node of its document; then 1,000 forks of forks.
pub(crate) fn fork(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    let nodes = (100_000.0 * scale) as usize / 7 + 2;
    let world = World::new(nodes)?;
    let (run, events) = runtime.block_on(world.run("replies.yaml"))?;
    let message = |from: u64| -> Result<u64> {
        let dir = world.host.state_dir()?;
        let store = selvedge_host::stores::open(&dir)?.ok_or("no store")?;
        for entry in store.journal(&run, from)? {
            let entry = entry?;
            let event: Event = selvedge_runtime::recorded(entry.json.as_bytes())?;
            if matches!(&event, Event::Appended { body: selvedge_engine::Body::Reply(_), .. }) {
                return Ok(entry.n);
            }
        }
        Err("no reply".into())
    };
    for (at, part) in [("middle", events / 2), ("end", events - 20)] {
        let edited = message(part)?;
        let mut followed = 0;
        let cost = cost(|| {
            let messages = vec![(edited, "another".to_owned())];
            let fork =
                ForkOptions { messages, over: world.options("replies.yaml"), ..ForkOptions::default() };
            let (begun, events) = runtime.block_on(world.fork(&run, fork))?;
            followed = events;
            Ok(begun)
        })?;
        emit(
            "fork",
            json!({"events": events, "edit": at, "at": edited, "own_events": followed, "wall_s": cost.wall_s, "cpu_s": cost.cpu_s}),
        );
    }
    chain(scale)
}

/// Forks of forks, each at the last event of the one before.
fn chain(scale: f64) -> Result<()> {
    let runtime = runtime()?;
    let world = World::new(10)?;
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
    let world = World::new(nodes)?;
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
