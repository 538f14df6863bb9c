//! A document in a simulated world (C-18): compiled as `check` compiles it, with its tools known by what they declare, and run by
//! nobody but chance, a script or what another run has recorded. No tool and no model is called, and nothing is recorded.

use crate::environment::Environment;
use crate::error::Error;
use crate::host::Host;
use crate::models::script;
use crate::options::RunOptions;
use crate::{compose, prepare};
use selvedge_dialects::Diagnostic;
use selvedge_engine::{EDITION, Event, Failure, ModelReply, ModelRequest, Outcome, Start, ToolRequest};
use selvedge_models::scripted::{Counts, Scripted};
use selvedge_runtime::Reading;
use selvedge_tools::Catalogue;
use selvedge_world::{Outside, Recorded, Session, World, first};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// A document that is to be simulated.
pub struct Simulation {
    /// What is found about the document without running it.
    pub findings: Vec<Diagnostic>,
    /// The document in its world, unless there are errors.
    pub simulated: Option<Simulated>,
}

/// A document in a simulated world.
pub struct Simulated {
    /// The world.
    pub world: World,
    /// Schemas of which no random value could be made that fits, by what they belong to: what comes of these runs says little.
    pub unmade: Vec<String>,
}

impl Host {
    /// The document `file` in a simulated world, with its models' replies from the script of `options`, from the recorded run
    /// `from`, or by chance.
    ///
    /// # Errors
    /// Something is wrong with the choices, the configuration or the script, or there is no such run. What is wrong with the document
    /// is a finding.
    pub async fn simulated(
        &self,
        file: &Path,
        options: RunOptions,
        from: Option<&str>,
    ) -> Result<Simulation, Error> {
        let mut options = options;
        let given = options.input_names();
        let recorded = from.map(|run| self.recorded_outcomes(run)).transpose()?;
        if let Some((inputs, _)) = &recorded {
            let over = std::mem::replace(&mut options.inputs, inputs.clone());
            options.inputs.extend(over);
        }
        let script = options.script.as_deref().map(script::read).transpose()?;
        let script = script.map(|(script, _)| script);
        // Those of a recorded run are not given now.
        let mut check = self.check(options.clone())?;
        check.given = given;
        let (checked, compiled) = check.simulated(file).await?;
        let (Some(graph), Some(compiled)) = (checked.graph, compiled) else {
            return Ok(Simulation { findings: checked.findings, simulated: None });
        };
        let start = Start {
            initial: compiled.initial,
            sequential: options.sequential,
            budget: prepare::budget(compiled.budget, &options, &check.config),
            limits: check.config.limits.machine(),
            edition: EDITION,
            ..Start::default()
        };
        let mut world = World::new(Arc::new(graph), start);
        let schema = |kind: Option<&'static str>| kind.map_or(json!(true), |kind| json!({ "type": kind }));
        let missing = compiled.missing.into_iter();
        world.unknown = missing.map(|(name, kind)| (name, schema(kind))).collect();
        world.outside = Arc::new(Answers {
            script,
            catalogue: compiled.catalogue,
            environment: check.config.environment.clone(),
        });
        world.recorded = recorded.map(|(_, recorded)| recorded).unwrap_or_default();
        let unmade = world.unmade();
        Ok(Simulation { findings: checked.findings, simulated: Some(Simulated { world, unmade }) })
    }

    /// What a recorded run began with, and what its calls came to.
    fn recorded_outcomes(&self, run: &str) -> Result<(Map<String, Value>, Recorded), Error> {
        let (_, store, id) = self.find(run)?;
        let mut reading = Reading::open(&store, &id)?;
        let (mut initial, mut recorded) = (Map::new(), Recorded::new());
        for entry in store.journal(&id, 1)? {
            match reading.event(&entry?)? {
                Event::Started(start) => initial = start.initial,
                Event::Forked(fork) => initial = fork.initial.unwrap_or(initial),
                Event::Completed { effect, outcome, .. } if !matches!(outcome, Outcome::Failed(_)) => {
                    recorded.insert(first(&effect), outcome);
                }
                Event::Reused { effect, from, .. } => {
                    let known = recorded.get(&first(&from)).cloned();
                    recorded.extend(known.map(|outcome| (first(&effect), outcome)));
                }
                _ => {}
            }
        }
        Ok((initial, recorded))
    }
}

/// What answers before chance does: a script, and Selvedge's own operations.
struct Answers {
    script: Option<Scripted>,
    catalogue: Catalogue,
    environment: Environment,
}

/// The same for one run.
struct Asked<'a> {
    of: &'a Answers,
    counts: Counts,
}

impl Outside for Answers {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(Asked { of: self, counts: Counts::default() })
    }
}

impl Session for Asked<'_> {
    fn model(&mut self, request: &ModelRequest) -> Option<(Result<ModelReply, Failure>, u64)> {
        let (reply, after) = self.of.script.as_ref()?.says(request, &mut self.counts);
        Some((reply, u64::try_from(after.as_millis()).unwrap_or(u64::MAX)))
    }

    fn operation(&mut self, request: &ToolRequest) -> Result<Value, Failure> {
        compose::operation(&self.of.catalogue, &self.of.environment, request)
    }

    fn counts(&self) -> bool {
        self.of.script.is_some()
    }
}
