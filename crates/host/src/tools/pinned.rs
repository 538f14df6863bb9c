//! The tools of a recorded graph, as a run takes them that goes on with it (P-21, A-18).

use super::named::{named, tool_changed};
use super::offer;
use crate::config::Config;
use crate::error::Error;
use crate::observer::Observer;
use crate::options::RunOptions;
use selvedge_engine::{Graph, ToolDef, Warning};
use selvedge_tools::library::LIBRARY;
use selvedge_tools::{Catalogue, Offer, ToolError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The code of a folder of tools that has vanished.
const TOOLS_GONE: &str = "tools-gone";

/// A run goes on with the texts that it has pinned: a folder of tools that is no longer there stops it no more than a
/// file that is not.
pub fn leave_out_vanished(options: &mut RunOptions, config: &mut Config, observer: &dyn Observer) {
    let mut gone = Vec::new();
    for folders in [&mut options.tools, &mut config.tool_dirs] {
        let (kept, vanished) = std::mem::take(folders).into_iter().partition(|folder| folder.exists());
        *folders = kept;
        gone.extend::<Vec<PathBuf>>(vanished);
    }
    // A run may be resumed many times.
    options.warnings.retain(|warning| &*warning.code != TOOLS_GONE);
    for folder in gone {
        let message = format!(
            "the folder of tools {} is no longer there: the run goes on with the tools as it began with them",
            folder.display()
        );
        observer.warning(&message);
        options.warnings.push(Warning { code: TOOLS_GONE.into(), message, node: None });
    }
}

/// The warnings of folders that have vanished.
pub fn vanished(warnings: &[Warning]) -> Vec<Warning> {
    warnings.iter().filter(|warning| &*warning.code == TOOLS_GONE).cloned().collect()
}

/// The tools that are not what a graph has pinned. The library's take the place of pinned ones only where a run `begins`, as
/// a fork does: else other runs, which publish there, would change this one.
pub fn changed(graph: &Graph, catalogue: &Catalogue, begins: bool, observer: &dyn Observer) -> Vec<ToolDef> {
    replaced(graph, catalogue, begins, |old, new| old.version == new.version, observer)
}

/// The same where a fork leaves a run that was imported: what that says of a tool's effects, and of who approves it, says nothing (C-20).
pub fn claimed(graph: &Graph, catalogue: &Catalogue, observer: &dyn Observer) -> Vec<ToolDef> {
    let parts = |tool: &ToolDef| (Arc::clone(&tool.version), tool.effects, tool.approval);
    replaced(graph, catalogue, true, |old, new| parts(old) == parts(new), observer)
}

fn replaced(
    graph: &Graph,
    catalogue: &Catalogue,
    begins: bool,
    same: impl Fn(&ToolDef, &ToolDef) -> bool,
    observer: &dyn Observer,
) -> Vec<ToolDef> {
    let mut changed: Vec<ToolDef> = Vec::new();
    for (name, old) in &graph.tools {
        let Some(new) = catalogue.sketch(name).filter(|new| !same(old, new)) else { continue };
        if !begins && &*new.source == LIBRARY || !catalogue.is_fit(name) {
            continue;
        }
        if old.version != new.version {
            observer.warning(&tool_changed(name, &old.version, &new.version).message);
        }
        changed.push((*new).clone());
    }
    changed
}

/// Makes the tools ready that a graph's nodes name. Those that only a model may choose need no more than what is pinned,
/// unless they have changed.
///
/// # Errors
/// One of them can't be made ready, or the file of one holds a key.
pub async fn make_ready(graph: &Graph, catalogue: &Catalogue, observer: &dyn Observer) -> Result<(), Error> {
    // Other files that are wrong are stood in for by what is pinned; one with a key in it is told (C-06).
    let of = |file: &Path| graph.tools.values().any(|tool| *tool.source == *file.to_string_lossy());
    let held = |error: &&ToolError| error.rule == "C-06" && error.file.as_deref().is_some_and(of);
    if let Some(error) = catalogue.broken().values().find(held) {
        return Err(error.clone().into());
    }
    let named = named(graph);
    let (names, others): (Vec<&Arc<str>>, Vec<_>) = graph.tools.keys().partition(|name| named.contains(name));
    let names: Vec<&str> = names.into_iter().map(|name| &**name).collect();
    catalogue.prepare(&names).await?;
    let version = |name: &Arc<str>| graph.tools.get(name).map(|tool| Arc::clone(&tool.version));
    let changed = |name: &&Arc<str>| {
        catalogue.sketch(name).is_some_and(|new| version(name).is_some_and(|old| old != new.version))
    };
    let others = others.into_iter().filter(changed).cloned().collect();
    offer(catalogue, others, Offer::Light, observer).await;
    Ok(())
}
