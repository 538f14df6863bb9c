//! `selvedge diff`: what two runs have in common, what differs, and what each cost (C-15).

mod inline;
mod page;

use super::guarded;
use super::out::Out;
use crate::args::Common;
use crate::failure::Exit;
use crate::ui::Ui;
use crate::words::command;
use clap::Args;
use selvedge_host::Error;
use selvedge_host::diff::{Diff, Shared, Side, both};
use selvedge_host::stores::find_run;

const DIFF_HELP: &str = "\
Examples:
  selvedge diff 1kq3 2pw7
  selvedge diff @-1 @
  selvedge diff 2pw7                  # a fork, against the run that it was forked from
  selvedge diff 1kq3 2pw7 --json

Compares threads message by message, results node by node, metadata and usage; of what differs, the words do. Where colours \
are off, [-these-] stand in A only and {+these+} in B only. What two forks share is said, and read once. Ids of tool calls \
and how often something was tried make no difference. Exits with 0 whether or not anything differs.";

/// `selvedge diff`.
#[derive(Args, Debug)]
#[command(after_help = DIFF_HELP)]
pub(crate) struct DiffArgs {
    /// The first run: its id or enough of its beginning; @ is the latest, @-1 the one before
    #[arg(value_name = "A")]
    pub(crate) run_a: String,
    /// The second run; without it, A is a fork and is compared with its source
    #[arg(value_name = "B")]
    pub(crate) run_b: Option<String>,
}

/// Two runs that are compared.
struct Compared<'s> {
    a: &'s Side,
    b: &'s Side,
    shared: Option<&'s Shared>,
    diff: Diff<'s>,
}

/// Compares two runs.
pub(crate) fn diff(args: &DiffArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let (store, first) = super::find(common, &args.run_a, ui)?;
    let (a, b) = match &args.run_b {
        Some(second) => (first, find_run(&store, second)?),
        None => match store.run(&first)?.fork {
            Some(point) => (point.run, first),
            None => {
                let message = format!("run {first} is no fork: name the run that it is to be compared with");
                let help = command(&["diff", &first, "OTHER"]);
                return Err(Error::usage("C-15", "no-fork", &message).help(&help));
            }
        },
    };
    let ui = &guarded(ui);
    let (a, b, shared) = both(&store, &a, &b)?;
    let compared = Compared { a: &a, b: &b, shared: shared.as_ref(), diff: Diff::of(&a, &b) };
    match ui.json {
        true => print_json(&compared, ui)?,
        false => page::print(&compared, ui),
    }
    Ok(Exit::Completed)
}

/// Prints C-15's object list by list.
fn print_json(compared: &Compared<'_>, ui: &Ui) -> Result<(), Error> {
    let mut out = Out::new(ui);
    let sides = (compared.a, compared.b);
    let head = compared.diff.head(sides, compared.shared).to_string();
    out.write(head.strip_suffix('}').unwrap_or(&head))?;
    for (name, entries) in compared.diff.lists(sides) {
        out.write(&format!(",\"{name}\":["))?;
        for (at, entry) in entries.enumerate() {
            if !out.json(if at == 0 { "" } else { "," }, &entry.to_string(), "")? {
                break;
            }
        }
        out.write("]")?;
    }
    out.write("}\n")?;
    out.finish()
}
