//! The tools of a recorded graph, as a run takes them that goes on with it (P-21, A-18).

use super::named::{named, tool_changed};
use super::offer;
use crate::config::Config;
use crate::error::Error;
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::text::one_line;
use crate::ways::WayOut;
use selvedge_engine::{Graph, State, ToolDef, Warning};
use selvedge_tools::library::LIBRARY;
use selvedge_tools::{Catalogue, Offer, ToolError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The code of a tool that is no longer there.
const TOOL_GONE: &str = "tool-gone";
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

/// Warns of tools of a recorded graph that are no longer there, one by one, as tools of a vanished folder are told of already. Returns the
/// names of those that can't be called as they were pinned.
pub async fn tell_gone(
    graph: &Graph,
    catalogue: &Catalogue,
    warnings: &mut Vec<Warning>,
    observer: &dyn Observer,
) -> BTreeSet<Arc<str>> {
    // A run may be resumed many times.
    warnings.retain(|warning| &*warning.code != TOOL_GONE);
    let (mut pinned, mut lost) = (Vec::new(), BTreeSet::new());
    for tool in graph.offered() {
        if catalogue.contains(&tool.name) || catalogue.broken().contains_key(&tool.name) {
            continue;
        }
        if !catalogue.has_pinned(tool).await {
            lost.insert(Arc::clone(&tool.name));
        } else if !is_of_vanished_folder(tool) {
            pinned.push(&tool.name);
        }
    }
    let told = [
        (listed(&pinned), "the run continues with the version that it has pinned"),
        (listed(&lost.iter().collect::<Vec<_>>()), "the run has no copy to call"),
    ];
    for (names, what) in told.into_iter().filter(|(names, _)| !names.is_empty()) {
        let message = format!("no longer there: {names}; {what}");
        observer.warning(&message);
        warnings.push(Warning { code: TOOL_GONE.into(), message, node: None });
    }
    lost
}

fn is_of_vanished_folder(tool: &ToolDef) -> bool {
    let folder = Path::new(&*tool.source).parent().filter(|folder| folder.is_absolute());
    folder.is_some_and(|folder| !folder.exists())
}

/// Names of tools as a message has them.
fn listed(names: &[&Arc<str>]) -> String {
    /// Names that a message has.
    const LISTED: usize = 8;
    let shown = names.iter().take(LISTED).map(|name| format!("the tool `{}`", one_line(name, 100)));
    let more = names.len().checked_sub(LISTED).filter(|more| *more > 0);
    shown.chain(more.map(|more| format!("{more} more"))).collect::<Vec<_>>().join(", ")
}

/// Refuses to go on with a run that may still call a tool which is gone (C-28).
///
/// # Errors
/// `Environment` with the tool and a node that calls it.
pub fn refuse_lost(run: &str, state: &State, lost: &BTreeSet<Arc<str>>) -> Result<(), Error> {
    let mut ahead = state.calls_ahead().into_iter();
    let Some((tool, node)) = ahead.find(|(tool, _)| lost.contains(tool)) else { return Ok(()) };
    let message = format!(
        "run {run} can't go on: the node `{}` calls the tool `{}`, which is no longer there",
        one_line(&node, 100),
        one_line(&tool, 100)
    );
    let help = format!(
        "put the tool back where it was (selvedge.toml, --tools DIR or --mcp CONFIG), or leave it out: `{}`",
        WayOut::Fork { run, at: None }
    );
    Err(Error::environment("C-28", TOOL_GONE, &message).help(&help))
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
