//! Where the tools of a run come from, and what they may do.

mod known;
mod listed;
mod named;
mod pinned;

pub use known::{Known, Pins, broken};
pub use listed::{Listed, effects, relative};
pub use named::{called, denied_calls, is_builtin, named, tool_changed, wanted, wanted_by};
pub use pinned::{changed, claimed, leave_out_vanished, make_ready, refuse_lost, tell_gone, vanished};

use crate::config::Config;
use crate::environment::Environment;
use crate::error::Error;
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::text::{counted, one_line};
use crate::{killed, library, places, secrets, trust};
use selvedge_engine::{Graph, Warning};
use selvedge_sandbox::isolation::Isolation;
use selvedge_tools::mcp::Wanted;
use selvedge_tools::{
    Catalogue, CatalogueConfig, CatalogueErrors, CommandTool, ErrorClass, ISOLATION_MISSING, Offer,
    Permissions, ToolError,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The tools of a document in `workspace`, and what the user allowed them; none of MCP servers.
pub async fn catalogue(
    chosen: &RunOptions,
    config: &Config,
    state: &Path,
    workspace: &Path,
    observer: &Arc<dyn Observer>,
) -> Result<Catalogue, Error> {
    catalogue_of(Wanted::default(), chosen, config, state, workspace, observer).await
}

/// [`catalogue`], with the MCP tools that are wanted.
pub async fn catalogue_of(
    wanted: Wanted,
    chosen: &RunOptions,
    config: &Config,
    state: &Path,
    workspace: &Path,
    observer: &Arc<dyn Observer>,
) -> Result<Catalogue, Error> {
    let settings = CatalogueConfig { wanted, ..settings(chosen, config, state, workspace, observer)? };
    Ok(Catalogue::load(settings).await?)
}

/// Where tools come from and what they may do, for documents in `workspace`.
pub fn settings(
    chosen: &RunOptions,
    config: &Config,
    state: &Path,
    workspace: &Path,
    observer: &Arc<dyn Observer>,
) -> Result<CatalogueConfig, Error> {
    config.dirs_there()?;
    let mut settings = CatalogueConfig::new(
        workspace,
        state.join("cache/tools"),
        places::shared_cache(&config.environment, state),
        config.environment.process().clone(),
    );
    settings.tool_dirs = chosen.tools.clone();
    settings.config_dirs = config.tool_dirs.clone();
    settings.library = Some(library::source(&config.environment, state)?);
    settings.commands = config.commands.values().cloned().collect::<Vec<CommandTool>>();
    settings.natives.clone_from(&config.natives);
    settings.mcp = config.mcp.values().cloned().collect();
    settings.withheld = config.withheld();
    settings.permissions = Permissions {
        allow_read: [&chosen.allow_read[..], &config.allow_read].concat(),
        allow_write: [&chosen.allow_write[..], &config.allow_write].concat(),
        allow_network: chosen.allow_network.max(config.allow_network),
        allow_env: config
            .allow_env
            .iter()
            .map(|name| (name.clone(), config.environment.variable(name)))
            .collect(),
    };
    trust::keep_out(&config.environment, &settings.permissions.allow_write);
    if !settings.permissions.allow_write.is_empty() {
        killed::note_calls(&config.environment, observer.as_ref());
    }
    settings.limits = config.limits.tools();
    settings.python = config.environment.path("SELVEDGE_PYTHON").or_else(|| config.python.clone());
    settings.shell_approval = config.shell_approval.unwrap_or(true);
    settings.isolation = isolation(&config.environment)
        .kept_in(places::shared_cache(&config.environment, state).join("isolation.json"));
    settings.require_isolation = chosen.require_isolation;
    // That of the user is no tool's, also while another one is in use.
    settings.hidden =
        std::iter::once(state.to_owned()).chain(places::user_state(&config.environment)).collect();
    // The user's own is trusted whatever it says: it is not to be made either.
    let users = config.files.user.clone().or_else(|| places::user_config(&config.environment));
    let read = config.files.project.iter().chain(&chosen.mcp).cloned();
    settings.kept = users.into_iter().chain(read).chain(places::trust_dir(&config.environment)).collect();
    settings.keys = secrets::of_tools(config);
    let observer = Arc::clone(observer);
    settings.progress = Arc::new(move |line| observer.note(line));
    Ok(settings)
}

/// What isolates tools here.
pub fn isolation(environment: &Environment) -> Isolation {
    let with = |launcher| Isolation::new(launcher, environment.process());
    environment.launcher().cloned().map_or_else(Isolation::none, with)
}

/// Goes on with a run's tools only where isolation is as required, and says which of its layers are missing now:
/// `warnings` has what was missing when the run began.
pub async fn confinement(
    graph: &Graph,
    catalogue: &Catalogue,
    warnings: &mut Vec<Warning>,
    observer: &dyn Observer,
) -> Result<(), Error> {
    let names: Vec<&str> = graph.tools.keys().map(|name| &**name).collect();
    catalogue.require_isolation(&names).await?;
    // What is not allowed any more is denied call by call; what is missing here is told before.
    let unset = named(graph).into_iter().filter_map(|name| catalogue.refusal(name));
    let unset: Vec<ToolError> = unset.filter(|error| error.class == ErrorClass::Environment).collect();
    if !unset.is_empty() {
        return Err(CatalogueErrors(unset).into());
    }
    let missing = catalogue.isolation_warnings(&names).await;
    for warning in &missing {
        observer.warning(&warning.message);
    }
    warnings.retain(|warning| &*warning.code != ISOLATION_MISSING);
    warnings.extend(missing);
    Ok(())
}

/// Makes tools ready that only a model may choose (D-17, D-21). One that can't be made ready is none to choose.
pub async fn offer(catalogue: &Catalogue, names: Vec<Arc<str>>, offer: Offer, observer: &dyn Observer) {
    /// What takes longer is told.
    const SILENCE: Duration = Duration::from_secs(1);
    /// Names that a note lists.
    const LISTED: usize = 8;
    let mut work = Box::pin(catalogue.offer(&names, offer));
    let failed = tokio::select! {
        failed = &mut work => failed,
        () = tokio::time::sleep(SILENCE) => {
            observer.note(&format!("getting {} ready for the model to choose from", counted(names.len(), "tool")));
            work.await
        }
    };
    let mut by_reason: BTreeMap<String, Vec<Arc<str>>> = BTreeMap::new();
    for (name, error) in failed {
        by_reason.entry(error.to_string()).or_default().push(name);
    }
    for (why, names) in by_reason {
        let listed: Vec<&str> = names.iter().take(LISTED).map(|name| &**name).collect();
        let more =
            if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
        let listed = listed.join(", ");
        observer.note(&format!("note: not offered to the model: {listed}{more}: {}", one_line(&why, 1000)));
    }
}
