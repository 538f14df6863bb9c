//! State folders that are found upwards (C-20): the runs in one say what to go on with, programs and addresses among it. Of one that
//! came with somebody else's folder, a run that could start, send or reach something goes on only once a person trusts it.

use super::part::{Does, Part};
use super::{Gate, Record};
use crate::config::parts;
use crate::environment::Environment;
use crate::error::{Error, NOT_TRUSTED};
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::places;
use crate::text::one_line;
use crate::ways::WayOut;
use selvedge_store::{BlobHash, DB_FILE};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The state folder as something to trust: this very database in this folder. None is there to trust where it holds none.
pub fn part(dir: &Path) -> Option<Part> {
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
pub fn is_trusted(environment: &Environment, dir: &Path) -> bool {
    if !places::is_found(environment, dir) {
        return true;
    }
    let record = Record::of(environment, dir);
    part(dir).is_none_or(|part| record.is_some_and(|record| record.has(&part)))
}

/// Takes note that this process has made the database of a folder which may be found upwards, also where it was named this time.
/// That it can't is told when it matters.
pub fn made(environment: &Environment, dir: &Path) {
    if let Some(part) = part(dir).filter(|_| places::has_found_name(dir)) {
        let _ = Record::write(environment, dir, &[part]);
    }
}

/// Whether a run could start a program, send a key, or reach out of the folder that its state folder lies in. Others go on
/// without a question, also where the user's data folder is another one each time, as in containers.
fn reaches_out(environment: &Environment, dir: &Path, stored: &RunOptions) -> bool {
    let folder = dir.parent().unwrap_or(dir);
    let mut paths = [&stored.allow_read, &stored.allow_write, &stored.tools].into_iter().flatten();
    stored.mcp.is_some()
        || stored.base_url.as_deref().is_some_and(|url| parts::may_carry_key(environment, url))
        || stored.allow_network.is_on()
        || !stored.allow_env.is_empty()
        || parts::is_outside(folder, &stored.document)
        || paths.any(|path| parts::is_outside(folder, path))
        || holds_commands(dir)
}

/// Whether the folder brings commands along: those that its runs have pinned.
fn holds_commands(dir: &Path) -> bool {
    let kept = std::fs::read_dir(dir.join("cache/tools")).into_iter().flatten().filter_map(Result::ok);
    kept.into_iter().any(|entry| entry.file_name().as_encoded_bytes().ends_with(b".command.json"))
}

impl Gate {
    /// Goes on with a run that was started with `stored` only where its state folder is trusted, or the run needs no trust.
    ///
    /// # Errors
    /// `Environment` where it does.
    pub fn pass_state(
        self,
        environment: &Environment,
        dir: &Path,
        run: &str,
        stored: &RunOptions,
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        if self.given || !reaches_out(environment, dir, stored) || is_trusted(environment, dir) {
            return Ok(());
        }
        let shown = shown(dir);
        let what = "nothing says that you made it here, and this run says what to start, send or allow";
        if self.asks && observer.trusts(&format!("{shown} is not trusted: {what}.")) {
            let part = part(dir);
            return Record::write(environment, dir, part.as_slice());
        }
        let message = format!("run {run} does not go on, as {shown} is not trusted: {what}");
        let show = WayOut::Show { run, at: None };
        let folder = dir.parent().unwrap_or(dir).display().to_string();
        let trust = WayOut::Trust(Some(&folder));
        let help = format!("look at it with `{show}`; `{trust}` trusts it, --trust does for one command");
        Err(Error::environment("C-20", NOT_TRUSTED, &message).help(&help))
    }
}
