//! `selvedge run`: read, prepare, record, drive.
//!
//! Everything that can be wrong with the call, the document or the machine is found before the run is recorded,
//! cheapest first, so that nothing half-runs.

use crate::args::{Common, RunArgs};
use crate::block_on::block_on;
use crate::drive::Drive;
use crate::failure::Exit;
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_host::Error;

/// Runs a document.
pub(crate) fn run(args: &RunArgs, common: &Common, mut ui: Ui) -> Result<Exit, Error> {
    let mut options = crate::options::for_run(&ui.environment, &args.exec)?;
    options.inputs = selvedge_host::options::inputs(&args.exec.input)?;
    let host = ui.host(common)?;
    let asked = host.read(&args.file, options, args.exec.run_id.as_deref())?;
    block_on(asked.read.bytes(), async {
        let signals = Signals::listen(&ui);
        let ready = tokio::select! {
            biased;
            () = signals.came() => return Err(Error::interrupted()),
            ready = host.prepare(asked) => ready?,
        };
        ui.secrets = ready.secrets().to_vec();
        if let Some(script) = ready.options.script.as_ref().filter(|_| ready.prepared.models.scripted) {
            ui.notice(&format!("note: scripted model: the replies come from {}", script.display()));
        }
        let begun = host.begin(ready).await?;
        ui.note(&format!("run {}", begun.id));
        Ok(Drive::of(begun, &ui).go(&signals).await)
    })?
}
