//! Runs that were imported are a stranger's words (C-20): what they recorded is read, and nothing that came with them runs unless a person
//! trusts it. A fork is a run of one's own, with one's own tools; to go on with the very run is to act on all that its journal says, answers
//! of people among it.

use crate::error::{Error, NOT_TRUSTED};
use crate::host::Host;
use crate::options::Origin;
use crate::text::one_line;
use crate::ways::WayOut;
use selvedge_engine::{Graph, ToolDef};
use selvedge_tools::Catalogue;
use selvedge_tools::library::LIBRARY;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Tools that a message names.
const NAMED: usize = 8;
/// Characters of a name that are shown.
const NAME: usize = 100;

/// Which tools of a recorded graph this machine's own of the same name stand in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// All.
    All,
    /// All but those that are in the library.
    ButByLibrary,
    /// None: the run is told something as it stands.
    None,
}

impl Host {
    /// Whether texts that came with such a run may stand in for tools that are not here.
    pub(crate) fn takes_pins(&self, origin: Origin) -> bool {
        origin == Origin::Here || self.gate.given
    }

    /// Lets a run of this origin, which has so many events, go on or be forked with this machine's own tools only, unless a person trusts what came with it.
    ///
    /// # Errors
    /// `Environment` where it needs more than that.
    pub(crate) fn vet(
        &self,
        origin: Origin,
        (run, events): (&str, u64),
        graph: &Graph,
        catalogue: &Catalogue,
        replaced: Replaced,
    ) -> Result<(), Error> {
        if self.takes_pins(origin) {
            return Ok(());
        }
        let tools = graph.all().flat_map(Graph::offered);
        let anew = replaced == Replaced::All;
        let needed: BTreeSet<&Arc<str>> = tools
            // An imported run may have approvals in it, and calls under way.
            .filter(|tool| (origin == Origin::Imported && !anew) || !is_own(tool, catalogue, replaced))
            .map(|tool| &tool.name)
            .collect();
        if needed.is_empty() {
            catalogue.only_own();
            return Ok(());
        }
        let names = listed(&needed);
        let what = match origin {
            Origin::Imported => "was imported",
            Origin::Here | Origin::ForkOfImported => "is a fork of one that was imported",
        };
        let about = match origin == Origin::Imported && !anew {
            true => format!("run {run} {what}, and would go on to call {names} as its journal says"),
            false => format!("run {run} {what}, and nobody here has chosen the tools that it calls: {names}"),
        };
        if self.gate.may_ask() && self.observer.trusts(&format!("{about}.")) {
            return Ok(());
        }
        let fork = WayOut::Fork { run, at: Some(events) };
        let own = "name your own of these names with --tools DIR or in a selvedge.toml";
        let help = match anew {
            true => format!("{own}; --trust runs, in this command, those whose text came along"),
            false => {
                format!(
                    "`{fork}` goes on as a run of your own, with your tools; --trust goes on with this one"
                )
            }
        };
        Err(Error::environment("C-20", NOT_TRUSTED, &about).help(&help))
    }
}

/// Whether a recorded tool is one that was found here, or one that was found here takes its place.
fn is_own(recorded: &ToolDef, catalogue: &Catalogue, replaced: Replaced) -> bool {
    let Some(own) = catalogue.sketch(&recorded.name) else { return false };
    let version = own.version == recorded.version;
    let same = version && own.effects == recorded.effects && own.approval == recorded.approval;
    let stands_in = match replaced {
        Replaced::All => true,
        Replaced::ButByLibrary => !version && &*own.source != LIBRARY,
        Replaced::None => false,
    };
    same || stands_in && catalogue.is_fit(&recorded.name)
}

fn listed(names: &BTreeSet<&Arc<str>>) -> String {
    let mut listed: Vec<String> =
        names.iter().take(NAMED).map(|name| format!("`{}`", one_line(name, NAME))).collect();
    if names.len() > NAMED {
        listed.push(format!("{} more", names.len() - NAMED));
    }
    match listed.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => listed.concat(),
    }
}
