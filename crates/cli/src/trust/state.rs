//! State folders that are found upwards (C-20): the runs in one say what to go on with, programs and addresses among it. One that
//! came with somebody else's folder is looked at, and no more, until a person trusts it.

use super::{Gate, NOT_TRUSTED, Record};
use crate::config::{Does, Part};
use crate::failure::Failure;
use crate::hints::command;
use crate::places;
use crate::ui::{Ui, one_line};
use selvedge_store::{BlobHash, DB_FILE};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The state folder as something to trust: this very database in this folder. None is there to trust where it holds none.
pub(crate) fn part(dir: &Path) -> Option<Part> {
    let found = std::fs::metadata(dir.join(DB_FILE)).ok()?;
    let born = found.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let identity = format!("{} {}", found.ino(), born.unwrap_or_default().as_nanos());
    Some(Part {
        name: "runs".to_owned(),
        does: Does::Start,
        what: format!("what the runs in {} were started with, when one goes on", shown(dir)),
        line: 0,
        hash: BlobHash::of(identity.as_bytes()).to_string(),
    })
}

fn shown(dir: &Path) -> String {
    one_line(&dir.display().to_string(), usize::MAX)
}

/// Whether the runs of a state folder are this user's own, or trusted. One that is named, or in the user's own folder, is.
pub(crate) fn is_trusted(dir: &Path) -> bool {
    if !places::is_found(dir) {
        return true;
    }
    let record = Record::of(dir);
    part(dir).is_none_or(|part| record.is_some_and(|record| record.has(&part)))
}

/// Takes note that this process has made the database of a folder which may be found upwards, also where it was named this time.
/// That it can't is told when it matters.
pub(crate) fn made(dir: &Path) {
    if let Some(part) = part(dir).filter(|_| places::has_found_name(dir)) {
        let _ = Record::write(dir, &[part]);
    }
}

impl Gate {
    /// Goes on with a run only where its state folder is trusted.
    ///
    /// # Errors
    /// Exit 4 where it is not.
    pub(crate) fn pass_state(self, dir: &Path, run: &str, ui: &Ui) -> Result<(), Failure> {
        if self.given || is_trusted(dir) {
            return Ok(());
        }
        let shown = shown(dir);
        let what =
            "nothing says that you made it here, and its runs say what to start and where to send keys";
        if self.asks {
            ui.notice(&format!("{shown} is not trusted: {what}."));
            if super::confirmed(ui) {
                let part = part(dir);
                return Record::write(dir, part.as_slice());
            }
        }
        let message = format!("run {run} does not go on, as {shown} is not trusted: {what}");
        let show = command(&["show", run]);
        let folder = dir.parent().unwrap_or(dir).display().to_string();
        let trust = command(&["trust", &folder]);
        let help = format!("look at it with `{show}`; `{trust}` trusts it, --trust does for one command");
        Err(Failure::environment("C-20", NOT_TRUSTED, &message).help(&help))
    }
}
