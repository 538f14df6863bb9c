//! `selvedge explain`: when each node ran, whom it waited for and why, and whose messages it saw (C-15, P-20).

mod again;
mod bars;
mod critical;
mod page;
mod statuses;
mod table;
mod tree;

pub(super) use statuses::statuses;

use super::out::Out;
use super::{Found, guarded};
use crate::args::{Common, count};
use crate::failure::Exit;
use crate::ui::Ui;
use clap::Args;
use selvedge_host::Error;
use selvedge_host::explain::{At, Explained, Journal, Seen, Shown, Step, Story, path};
use selvedge_host::timeline::Followed;
use selvedge_store::RunInfo;
use serde_json::Value;

const EXPLAIN_HELP: &str = "\
Examples:
  selvedge explain 1kq3
  selvedge explain 1kq3 --node report
  selvedge explain @ --slowest 5
  selvedge explain @ --critical
  selvedge explain 1kq3 --json

TOOK is work; what a node waited for its calls' turn (QUEUED), or for a person, another try or other nodes (WAITED), \
stands beside it. What has not ended goes on until now, or until the last event if no process drives the run. A node waits for the earlier nodes that it can observe, and for no others; » marks one that started before an \
earlier node had finished. Of a node that ran several times, after a resume, the last time is shown. Under a fork or a loop \
stands what is in its paths and iterations; of many of them the slowest, and those that failed.";

/// `selvedge explain`.
#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_HELP)]
pub(crate) struct ExplainArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    #[arg(default_value = "@")]
    pub(crate) run: String,
    /// One node, with its reasons in full
    #[arg(long, value_name = "ID")]
    pub(crate) node: Option<String>,
    /// Only the N nodes that worked longest, the longest first
    #[arg(long, value_name = "N", value_parser = count::<usize>, conflicts_with = "node", allow_negative_numbers = true)]
    pub(crate) slowest: Option<usize>,
    /// Also the critical path: the chain of nodes and waits that set how long the run took
    #[arg(long, conflicts_with = "node")]
    pub(crate) critical: bool,
}

/// The run that is explained.
struct Subject {
    info: RunInfo,
    driven: bool,
    /// Whether it is none that is recorded, so that no command reaches it.
    simulated: bool,
}

impl Subject {
    fn run(&self) -> &str {
        &self.info.id
    }

    fn title(&self) -> String {
        if self.simulated { self.info.id.clone() } else { format!("run {}", self.info.id) }
    }
}

/// Explains a run.
pub(crate) fn explain(args: &ExplainArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let found = Found::new(common, &args.run, ui)?;
    let ui = &guarded(ui);
    let journal = Journal::read(&found.store, found.run(), found.driven)?;
    let found = Subject { info: found.info, driven: found.driven, simulated: false };
    let explained = Explained::new(&journal.run.state, journal.story(), found.driven);
    let shown = &journal.shown;
    let only = args.node.as_deref().map(|id| explained.find(id, found.run())).transpose()?;
    let critical = args.critical.then(|| path(&explained));
    let nodes = match (only, args.slowest) {
        (Some(only), _) => vec![only],
        (None, Some(most)) => explained.slowest(most),
        (None, None) => explained.story.all().collect(),
    };
    match (ui.json, only) {
        (true, only) => print_json((&explained, shown), &found, (&nodes, only), critical.as_deref(), ui)?,
        (false, Some(node)) => page::one((&explained, shown), &found, node, ui),
        (false, None) => {
            page::all(&explained, &found, args.slowest.map(|_| &*nodes), critical.as_deref(), ui);
        }
    }
    Ok(Exit::Completed)
}

/// Shows a run that is recorded nowhere, as `explain` shows one that is.
pub(crate) fn simulated(info: RunInfo, run: &Followed, ui: &Ui) {
    let explained = Explained::new(&run.state, Story::new(&run.timeline, run.state.graph(), None), false);
    page::all(&explained, &Subject { info, driven: false, simulated: true }, None, None, ui);
}

/// Prints C-15's object, node by node: the lists of all nodes together can be much longer than the document.
fn print_json(
    (explained, shown): (&Explained<'_>, &Shown),
    found: &Subject,
    (nodes, only): (&[At], Option<At>),
    critical: Option<&[Step]>,
    ui: &Ui,
) -> Result<(), Error> {
    let mut out = Out::new(ui);
    let mut seen = Seen::new(&explained.story, explained.state, shown);
    let mut separator = "{\"nodes\":[";
    for at in nodes {
        let object = explained.object(found.run(), *at, only.is_some(), &mut seen);
        if !out.json(separator, &object.to_string(), "")? {
            break;
        }
        separator = ",";
    }
    out.write(if separator == "," { "]" } else { "{\"nodes\":[]" })?;
    let recovery = explained.recovery(only.as_ref().map(std::slice::from_ref));
    if !recovery.is_empty() {
        out.json(",\"recovery\":", &Value::from(recovery).to_string(), "")?;
    }
    if let Some(roles) = explained.roles().filter(|_| only.is_none()) {
        out.json(",\"roles\":", &roles.to_string(), "")?;
    }
    if let Some(steps) = critical {
        let steps = selvedge_host::explain::critical(explained, steps);
        out.json(",\"critical\":", &steps.to_string(), "")?;
    }
    out.write("}\n")?;
    out.finish()
}
