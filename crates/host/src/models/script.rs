//! The file of a scripted model (C-07).

use super::Models;
use crate::error::Error;
use crate::options::RunOptions;
use selvedge_dialects::document::near_file;
use selvedge_models::router::Router;
use selvedge_models::scripted::Scripted;
use selvedge_store::BlobHash;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

/// The largest script.
const BYTES: u64 = 64 << 20;
/// Where pipes are that the shell has opened for us: reading them comes to an end.
const OPENED: [&str; 3] = ["/dev/fd", "/dev/stdin", "/proc/self/fd"];

/// One scripted model for every role.
pub(super) fn scripted(path: &Path, chosen: &mut RunOptions) -> Result<Models, Error> {
    let (scripted, hash) = read(path)?;
    chosen.script_hash = Some(hash);
    Ok(Models { scripted: true, ..Models::of(Router::single(Arc::new(scripted), None)) })
}

/// The scripted model of a file, and the file's hash.
///
/// # Errors
/// It can't be read, or is no script.
pub(crate) fn read(path: &Path) -> Result<(Scripted, String), Error> {
    let name = path.display().to_string();
    let wrong = |message: &str| Error::about_file(&name, "C-07", "bad-script", message);
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Error::about_file(&name, "C-12", "file-not-found", "there is no such script")
            .help(&match near_file(path) {
            Some(near) => format!("did you mean `{near}`? Else check --script"),
            None => {
                "check --script, or name another one or a --model; relative paths start at the current folder"
                    .to_owned()
            }
        }),
        _ => wrong(&format!("the script can't be read: {error}"))
            .help("check --script, and who may read the file"),
    };
    // Opening a pipe that nobody writes to would wait for ever.
    let facts = std::fs::metadata(path).map_err(unreadable)?;
    if !facts.is_file() && !OPENED.iter().any(|place| path.starts_with(place)) {
        return Err(wrong("a script must be a file").help("name a file of rules, or /dev/stdin"));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > BYTES {
        return Err(wrong("the script is larger than 64 MiB").help("leave out what no request fits"));
    }
    let hash = BlobHash::of(&bytes).to_string();
    let yaml = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        wrong(&format!("the script is not UTF-8 text: byte {} is none of it", at + 1))
            .help("save the file as UTF-8")
    })?;
    let scripted = Scripted::parse(&name, &yaml).map_err(|error| {
        wrong(&error.message)
            .at(error.line, error.column)
            .showing(&yaml)
            .help("a script is a list of rules: - when: {…}, reply: {text: …}")
    })?;
    Ok((scripted, hash))
}
