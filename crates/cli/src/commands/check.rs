//! `selvedge check`: diagnostics only (C-04).

use crate::args::{CheckArgs, Common, Reading, Sources};
use crate::block_on::block_on;
use crate::failure::{Exit, text};
use crate::options::for_reading;
use crate::ui::Ui;
use selvedge_dialects::diagnostic::check_json;
use selvedge_dialects::{Diagnostic, Severity};
use selvedge_host::prepare::findings::kind_of;
use selvedge_host::text::counted;
use selvedge_host::{Check, Error, RunOptions};

/// Checks documents.
pub(crate) fn check(args: &CheckArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let check = of_documents(&args.reading, common, ui)?;
    let mut findings = Vec::new();
    block_on(0, async {
        for file in &args.files {
            findings.extend(check.document(file).await?.findings);
        }
        Ok::<(), Error>(())
    })??;
    if ui.json {
        // For people it was said when the configuration was read.
        findings.extend(check.config.off.as_ref().map(|off| off.untrusted.finding()));
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    print(&findings, errors, args.files.len(), ui);
    Ok(if errors > 0 { kind_of(&findings).into() } else { Exit::Completed })
}

/// What looks at documents, as a run in the current folder would read them.
pub(crate) fn of_documents(reading: &Reading, common: &Common, ui: &Ui) -> Result<Check, Error> {
    let (plan, dialect) = (reading.plan.clone(), reading.dialect.clone());
    let options = RunOptions { plan, dialect, ..for_reading(&ui.environment, &reading.from)? };
    ui.host(common)?.check(options)
}

/// The same for commands that look at tools, and at no document.
pub(crate) fn of_tools(from: &Sources, common: &Common, ui: &Ui) -> Result<Check, Error> {
    ui.host(common)?.check(for_reading(&ui.environment, from)?)
}

fn print(findings: &[Diagnostic], errors: usize, files: usize, ui: &Ui) {
    if ui.json {
        ui.result(&format!("{}\n", check_json(findings)));
        return;
    }
    for finding in findings {
        ui.error_text(&text(finding, ui.colour));
    }
    let warnings = findings.len() - errors;
    ui.note(&format!(
        "{}: {}, {}",
        counted(files, "file"),
        counted(errors, "error"),
        counted(warnings, "warning")
    ));
}
