//! Agents: rounds of an executor with what works between them, and the tokens of long conversations.

use crate::Result;
use crate::library::Asking;
use crate::measure::{emit, folder, middle, setting};
use crate::plans;
use crate::ports::Hundred;
use crate::runs::{drive, runtime};
use crate::tools::config;
use selvedge_dialects::agent::operations;
use selvedge_engine::{ModelReply, ModelRequest, ToolCall};
use selvedge_host::library::operations::Bench;
use selvedge_host::{Config, Environment, Host, RunOptions, compose};
use selvedge_runtime::{CallContext, Driver, Limits, Model, Operations, Pending};
use selvedge_store::{Mode, Store};
use selvedge_tools::{Catalogue, CatalogueConfig};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// An executor by itself, in a workflow: rounds with one tool, looked at after every second one.
pub(crate) fn executor(max_steps: usize) -> Value {
    json!({"nodes": [
        {"id": "start", "type": "START", "config": {}},
        {"id": "work", "type": "AGENT", "config": {"query": "go", "tools": ["step"], "max_steps": max_steps}},
        {"id": "end", "type": "END", "config": {}}],
        "edges": [{"from": "start", "to": "work"}, {"from": "work", "to": "end"}]})
}

/// A driver with the operations of agents, whose library is in a folder.
pub(crate) async fn driver(
    model: Arc<dyn Model>,
    store: &Arc<Store>,
    folder: &std::path::Path,
) -> Result<Driver> {
    let limits = Limits { max_parallel: 512, concurrency: 64, run_timeout_s: None };
    Ok(Driver::new(model, Arc::new(Hundred), limits).with_operations(operations_in(store, folder).await?))
}

async fn operations_in(store: &Arc<Store>, folder: &std::path::Path) -> Result<Arc<dyn Operations>> {
    let catalogue = Catalogue::load(CatalogueConfig { tool_dirs: Vec::new(), ..config(folder)? }).await?;
    Ok(operations_of(store, catalogue, folder))
}

/// The operations of agents whose library is in a store, and which begin no runs.
pub(crate) fn operations_of(
    store: &Arc<Store>,
    catalogue: Catalogue,
    folder: &std::path::Path,
) -> Arc<dyn Operations> {
    let environment = Environment::new([], folder.to_owned());
    let (config, children) = (Config::new(&environment), Arc::new(Host::new(environment)));
    let bench = Bench::new(Arc::clone(store), catalogue, config, children, RunOptions::default());
    Arc::new(compose::operations(bench))
}

/// A model that calls a tool until it has been asked so often, and when it was.
struct Rounds {
    rounds: usize,
    asked: Mutex<Vec<Instant>>,
}

impl Model for Rounds {
    fn call(&self, request: ModelRequest, _: CallContext) -> Pending<ModelReply> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(Instant::now());
        let n = asked.len();
        let call = |tool: &Arc<selvedge_engine::ToolDef>| ToolCall {
            id: format!("c{n}").into(),
            name: Arc::clone(&tool.name),
            arguments: json!({"x": n}),
        };
        let calls = request.tools.first().filter(|_| n <= self.rounds).map(call);
        let reply =
            ModelReply { text: "on".into(), calls: calls.into_iter().collect(), ..ModelReply::default() };
        Box::pin(async move { Ok(reply) })
    }
}

/// Rounds of one conversation: what one takes of engine and journal, at its beginning and at its end.
pub(crate) fn rounds(scale: f64) -> Result<()> {
    let rounds = ((setting("BENCH_ROUNDS", 1_000.0) * scale) as usize).max(20);
    let graph = plans::compile(&executor(rounds + 1).to_string())?;
    let runtime = runtime()?;
    let folder = folder()?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    for (variant, durable) in [("memory", None), ("durable", Some(&store))] {
        let (mut first, mut last, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setting("BENCH_RUNS", 3.0) as usize + 1 {
            let model = Arc::new(Rounds { rounds, asked: Mutex::default() });
            runtime.block_on(async {
                let driver = driver(Arc::clone(&model) as _, &store, folder.path()).await?;
                drive(&driver, &graph, durable).await.map(drop)
            })?;
            let asked = model.asked.lock().unwrap_or_else(PoisonError::into_inner);
            // An even number: a look stands between every second and the next.
            let tenth = (asked.len() / 10).next_multiple_of(2);
            let us = |from: usize| {
                let (from, to) = (asked.get(from), asked.get(from + tenth));
                from.zip(to)
                    .map_or(0.0, |(from, to)| to.duration_since(*from).as_secs_f64() * 1e6 / tenth as f64)
            };
            first.push(us(0));
            last.push(us(asked.len().saturating_sub(tenth + 2)));
            let ends = asked.first().zip(asked.last());
            whole.push(
                ends.map_or(0.0, |(from, to)| to.duration_since(*from).as_secs_f64() * 1e6 / rounds as f64),
            );
        }
        emit(
            "rounds",
            json!({"variant": variant, "rounds": rounds, "us_per_round": middle(whole), "us_per_round_first_tenth": middle(first),
                   "us_per_round_last_tenth": middle(last)}),
        );
    }
    Ok(())
}

/// Words as they stand in texts, so many tokens of them.
fn words(tokens: usize, seed: usize) -> String {
    const WORDS: [&str; 8] = ["the", " river", " of", " 1948", " flows", ", and", " slowly", " north"];
    (0..tokens).filter_map(|n| WORDS.get((n * 7 + n / 13 + seed) % WORDS.len()).copied()).collect()
}

/// Counting a conversation and cutting an output that is too long, first and with one message more (A-11 … A-13).
pub(crate) fn tokens(scale: f64) -> Result<()> {
    let tokens = ((setting("BENCH_TOKENS", 1e6) * scale) as usize).max(1_000);
    let folder = folder()?;
    let runtime = runtime()?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let config = CatalogueConfig { tool_dirs: Vec::new(), ..config(folder.path())? };
    let mut asking = runtime.block_on(Asking::of(&store, config))?;
    // Half of it is one output, which is cut; the rest is messages.
    let long = words(tokens / 2, 0);
    let mut texts: Vec<Arc<str>> = (0..tokens / 2 / 500).map(|n| words(500, n).into()).collect();
    texts.push(long.as_str().into());
    // Where the conversation only has become longer, a run tells what it came to before, and what is new.
    let mut ask = |texts: &[Arc<str>], long: Option<&str>, counted: Option<&Value>| -> Result<(f64, Value)> {
        let call = long
            .map(|long| json!({"id": "c", "tool": "step", "version": "1", "arguments": {}, "output": long}));
        let calls: Vec<Value> = call.into_iter().collect();
        let start = Instant::now();
        // As a run tells of what is said in it.
        let texts: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
        let mut args = json!({"used": 0, "tool_output_tokens": tokens / 16, "encoding": "cl100k_base", "calls": calls, "texts": texts});
        if let (Some(counted), Some(args)) = (counted, args.as_object_mut()) {
            args.insert("counted".to_owned(), counted.clone());
        }
        let (measured, _) = runtime.block_on(asking.ask(operations::measure(), "t", args))?;
        Ok((start.elapsed().as_secs_f64() * 1e3, measured))
    };
    let (first_ms, measured) = ask(&texts, Some(&long), None)?;
    let cut = measured.pointer("/long/0/cut").and_then(Value::as_str);
    // It stands for the output from then on.
    texts.pop();
    texts.push(cut.ok_or("a long output was not cut")?.into());
    let (_, mut before) = ask(&texts, None, None)?;
    let mut more = Vec::new();
    for n in 0..20 {
        let (ms, measured) = ask(&[words(20, n + 1).into()], None, before.get("counted"))?;
        more.push(ms);
        before = measured;
    }
    let counted = measured.get("tokens").cloned();
    emit(
        "tokens",
        json!({"tokens": tokens, "first_ms": first_ms, "one_more_ms": middle(more), "counted_after_cut": counted}),
    );
    Ok(())
}
