//! Whether the files of a run's document are as they were when the run began (C-28).

use crate::environment::Environment;
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::text::one_line;
use crate::ways::WayOut;
use selvedge_dialects::{DocumentLimits, Source, document};
use selvedge_engine::Warning;
use selvedge_store::BlobHash;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The code of a document that is not as it was.
const DOCUMENT_CHANGED: &str = "document-changed";
/// Files that a message names.
const NAMED: usize = 8;
/// Characters of a file's name that are shown.
const NAME: usize = 200;

/// Returns SHA-256 of each file that was read for a document, by absolute path. A document that came in a request or through a pipe
/// has none.
pub(crate) fn hashes<'s>(
    environment: &Environment,
    given: bool,
    sources: impl Iterator<Item = &'s Source>,
) -> BTreeMap<PathBuf, String> {
    if given {
        return BTreeMap::new();
    }
    let file = |source: &Source| {
        let path = environment.absolute(Path::new(source.name()));
        // A name such as /dev/stdin means another file in the next process.
        let lasts = path.is_file() && !path.starts_with("/dev") && !path.starts_with("/proc");
        lasts.then(|| (path, hash(source)))
    };
    sources.filter_map(file).collect()
}

fn hash(source: &Source) -> String {
    BlobHash::of(source.text().as_bytes()).to_string()
}

/// Warns if a file of the document has changed since the run began, or is gone: the run continues with the graph that it recorded.
pub(crate) fn tell_changes(
    environment: &Environment,
    run: &str,
    options: &mut RunOptions,
    limits: &DocumentLimits,
    observer: &dyn Observer,
) {
    // A run may be resumed many times.
    options.warnings.retain(|warning| &*warning.code != DOCUMENT_CHANGED);
    let changes = options.document_files.iter().filter_map(|(file, known)| {
        let shown = one_line(&environment.shown(file), NAME);
        match document::read_file(file, limits) {
            Ok(source) if hash(&source) == *known => None,
            Ok(_) => Some(format!("{shown} has changed")),
            Err(_) => Some(format!("{shown} can't be read any more")),
        }
    });
    let mut changes: Vec<String> = changes.collect();
    if changes.is_empty() {
        return;
    }
    let more = changes.len().saturating_sub(NAMED);
    changes.truncate(NAMED);
    if more > 0 {
        changes.push(format!("{more} more"));
    }
    let message = format!(
        "the document is not as it was when run {run} began ({}): the run continues with the recorded one; `{}` takes another one",
        changes.join(", "),
        WayOut::Fork { run, at: None }
    );
    observer.warning(&message);
    options.warnings.push(Warning { code: DOCUMENT_CHANGED.into(), message, node: None });
}
