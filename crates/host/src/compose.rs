//! The driver of a run: over its models, its tools and the operations of Selvedge's own.

use crate::coders::codex;
use crate::config::Config;
use crate::environment::Environment;
use crate::evolve::measure::measure as batch_measures;
use crate::evolve::task::task;
use crate::library::operations::{Bench, on_library, requests};
use crate::models::{self, Models};
use crate::options::RunOptions;
use crate::prepare;
use crate::secrets::{clean_model, clean_operations, clean_tools};
use crate::tokens::measure;
use crate::tools::{Known, Pins};
use selvedge_dialects::compile::Document;
use selvedge_dialects::{Capabilities, agent, evolve, steps};
use selvedge_engine::{Failure, FaultKind, ModelReply, ModelRequest, ToolRequest};
use selvedge_http::Secrets;
use selvedge_runtime::{CallContext, Driver, Model, Pending, Tools};
use selvedge_tools::{Catalogue, OwnOperations};
use serde_json::Value;
use std::sync::Arc;

/// The operations of a run (E-40): over its tools, and on the library beside it.
pub fn operations(bench: Bench) -> OwnOperations {
    let (catalogue, environment) = (bench.catalogue.clone(), bench.config.environment.clone());
    let compile = move |args: &Value| compile_more(&catalogue, &environment, args);
    let own = OwnOperations::default()
        .with_computed(&steps::compiler().name, Arc::new(compile))
        .with_computed(&agent::operations::measure().name, Arc::new(measure))
        .with(&agent::operations::codex().name, codex(&bench.config));
    let bench = Arc::new(bench);
    let own = own
        .with(&evolve::operations::task().name, task(&bench))
        .with(&evolve::operations::account().name, batch_measures(&bench));
    on_library(own, bench)
}

/// Steps that a model writes while a task runs are compiled like those of a document (D-20).
fn compile_more(catalogue: &Catalogue, environment: &Environment, args: &Value) -> Value {
    steps::compile_more(args, &Known { catalogue, pins: &Pins::new(), environment })
}

/// What an operation comes to that only computes, here and now.
pub(crate) fn operation(
    catalogue: &Catalogue,
    environment: &Environment,
    request: &ToolRequest,
) -> Result<Value, Failure> {
    let name = &request.tool.name;
    if *name == steps::compiler().name {
        return Ok(compile_more(catalogue, environment, &request.args));
    }
    if *name == agent::operations::requests().name {
        return Ok(requests(&request.args));
    }
    if *name == agent::operations::measure().name {
        return Ok(measure(&request.args));
    }
    let message = format!("there is no operation `{name}`");
    Err(Failure::permanent(FaultKind::UnknownTool, message).unsent())
}

/// A driver over these models and tools; keys in use never come back from any of its ports (C-06).
pub fn driver(models: &Models, bench: Bench, limits: selvedge_runtime::Limits) -> Driver {
    let secrets = Secrets::new(&models.secrets);
    let model = clean_model(Arc::clone(&models.model), &secrets);
    let tools = clean_tools(Arc::new(bench.catalogue.clone()), &secrets);
    let operations = clean_operations(Arc::new(operations(bench)), &secrets);
    Driver::new(model, tools, limits).with_operations(operations)
}

/// What a step task is compiled with: the configured settings, and whether a model is there that can reflect and plan
/// (C-08, D-17).
pub fn capabilities(document: &Document, chosen: &RunOptions, config: &Config) -> Capabilities {
    let mut capabilities = Capabilities {
        recovery: config.recovery,
        limits: config.limits.document(),
        agent: Arc::clone(&config.agent.settings),
        calls: prepare::budget(document.budget(), chosen, config).calls,
        ..Capabilities::default()
    };
    let roles = document.optional_models(&capabilities);
    capabilities.model = !roles.is_empty() && models::there(chosen, config, &roles);
    capabilities
}

/// A driver whose ports refuse everything: for inputs after which nothing is called any more.
pub fn idle_driver() -> Driver {
    Driver::new(Arc::new(Idle), Arc::new(Idle), selvedge_runtime::Limits::default())
}

struct Idle;

impl Idle {
    fn refuse<T: Send + 'static>() -> Pending<T> {
        let failure = Failure::permanent(FaultKind::Cancelled, "nothing is called while a run is cancelled");
        Box::pin(std::future::ready(Err(failure)))
    }
}

impl Model for Idle {
    fn call(&self, _request: ModelRequest, _context: CallContext) -> Pending<ModelReply> {
        Self::refuse()
    }
}

impl Tools for Idle {
    fn call(&self, _request: ToolRequest, _context: CallContext) -> Pending<Value> {
        Self::refuse()
    }
}
