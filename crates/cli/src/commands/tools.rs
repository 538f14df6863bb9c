//! `selvedge tools`: the library.

pub(crate) mod args;
mod export;
mod history;
pub(crate) mod import;
pub(super) mod list;
mod made;
mod run;
mod test;

use crate::args::Common;
use crate::failure::Exit;
use crate::ui::Ui;
use args::{ToolsArgs, ToolsCommand};
use selvedge_host::Error;

/// Does what is asked of the library.
pub(crate) fn tools(args: &ToolsArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    match &args.command {
        ToolsCommand::List(args) => list::list(args, common, ui),
        ToolsCommand::Show(args) => list::show(args, common, ui),
        ToolsCommand::Run(args) => run::run(args, common, ui),
        ToolsCommand::History(args) => history::history(args, common, ui),
        ToolsCommand::Test(args) => test::test(args, common, ui),
        ToolsCommand::Diff(args) => history::diff(args, common, ui),
        ToolsCommand::Rollback(args) => history::rollback(args, common, ui),
        ToolsCommand::Retire(args) => history::retire(args, common, ui),
        ToolsCommand::Import(args) => import::import(args, common, ui),
        ToolsCommand::Export(args) => export::export(args, common, ui),
    }
}
