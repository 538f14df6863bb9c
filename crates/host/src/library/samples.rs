//! Recorded calls beside tool files: `NAME.calls.jsonl`, one call a line.

use super::regular;
use crate::error::Error;
use selvedge_dialects::Diagnostic;
use selvedge_engine::library::{LARGE_CALL_BYTES, Sample};
use std::path::{Path, PathBuf};

/// The largest file of calls that is read: all that a version may have, and more.
const FILE_BYTES: u64 = 96 << 20;

/// Where the calls of a tool file are: `word_count.py` has `word_count.calls.jsonl`.
pub fn beside(file: &Path) -> PathBuf {
    file.with_extension("calls.jsonl")
}

/// A call with its JSON in the form in which it is kept.
#[derive(Clone, Debug)]
pub struct Line {
    /// The call.
    pub sample: Sample,
    /// Its JSON.
    pub json: String,
}

/// Reads calls; none if there is no file. A call that is too large to be kept is told by `too_large`.
///
/// # Errors
/// `Usage` with each line that is no call.
pub fn read(path: &Path, mut too_large: impl FnMut(usize)) -> Result<Vec<Line>, Error> {
    let shown = path.display().to_string();
    let unreadable = |why: &str| Error::about_file(&shown, "A-15", "calls-unreadable", why);
    let Some(bytes) = regular::read(path, FILE_BYTES).map_err(|why| unreadable(&why))? else {
        return Ok(Vec::new());
    };
    let text = String::from_utf8(bytes).map_err(|_| unreadable("the file is not UTF-8"))?;
    // As in documents (E-28).
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (mut lines, mut wrong) = (Vec::new(), Vec::new());
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match parsed(line) {
            Ok(line) if line.json.len() as u64 > LARGE_CALL_BYTES => too_large(n + 1),
            Ok(line) => lines.push(line),
            Err(why) => wrong.push(finding(&shown, n + 1, &why)),
        }
    }
    if wrong.is_empty() { Ok(lines) } else { Err(Error::findings(crate::error::ErrorKind::Usage, wrong)) }
}

/// What is said of a call that is too large to be kept.
pub fn too_large(file: &Path, line: usize) -> String {
    format!("{}:{line}: a call of more than 64 MiB is left out", file.display())
}

/// Reads one call.
///
/// # Errors
/// Why it is none.
pub fn parsed(line: &str) -> Result<Line, String> {
    let sample: Sample =
        serde_json::from_str(line).map_err(|error| format!("this is no recorded call: {error}"))?;
    if let Some(wrong) = sample.wrong() {
        return Err(wrong.to_owned());
    }
    let json = serde_json::to_string(&sample).map_err(|error| error.to_string())?;
    Ok(Line { sample, json })
}

fn finding(file: &str, line: usize, why: &str) -> Diagnostic {
    let mut finding = Diagnostic::about_file(file, "A-15", "bad-call", why);
    (finding.line, finding.column) = (u32::try_from(line).ok(), Some(1));
    finding.help = "write {\"arguments\": {…}, \"output\": …} or {\"arguments\": {…}, \"fault\": {\"kind\": \
                    \"execution_failure\"}}, with a \"note\" if you like"
        .to_owned();
    finding
}
