//! `selvedge run`: read, prepare, record, drive.
//!
//! Everything that can be wrong with the call, the document or the machine is found before the run is recorded,
//! cheapest first, so that nothing half-runs.

use crate::args::{Common, RunArgs};
use crate::drive;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_host::Error;

/// Runs a document.
pub(crate) fn run(args: &RunArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    let options = crate::options::for_run(&ui.environment, &args.exec)?;
    let host = ui.host(common)?;
    let asked = host.read(&args.file, options, args.exec.run_id.as_deref())?;
    drive::begin(&host, asked, ui, |run, ui| ui.note(&format!("run {}", run.id)))
}
