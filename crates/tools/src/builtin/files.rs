//! `read_file`, `write_file` and `list_files`, confined to what was allowed, links resolved.

use super::{BuiltinContext, refused};
use crate::failures::{denied, input_error, over_limit, tool_failure};
use crate::limits::ToolLimits;
use crate::permissions::Reach;
use glob::{MatchOptions, Pattern};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, statat};
use selvedge_engine::{Failure, FaultKind};
use selvedge_sandbox::exact;
use selvedge_sandbox::grant::reason;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many entries of folders are looked at in one call.
const MAX_ENTRIES: usize = 1_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArgs {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArgs {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArgs {
    path: String,
    #[serde(default)]
    glob: Option<String>,
}

pub(super) async fn read(bench: &BuiltinContext, args: ReadArgs) -> Result<Value, Failure> {
    let (reach, limits) = (bench.reach.clone(), bench.limits.clone());
    aside(move || read_text(&reach, &limits, &args.path).map(Value::String)).await
}

pub(super) async fn write(bench: &BuiltinContext, args: WriteArgs) -> Result<Value, Failure> {
    let reach = bench.reach.clone();
    aside(move || {
        let place = reach.writable(&args.path).map_err(refused)?;
        write_text(&place, args.content.as_bytes()).map_err(|e| unusable(&args.path, &e))?;
        Ok(json!({ "path": args.path, "bytes": args.content.len() }))
    })
    .await
}

pub(super) async fn list(bench: &BuiltinContext, args: ListArgs) -> Result<Value, Failure> {
    let (reach, limits) = (bench.reach.clone(), bench.limits.clone());
    aside(move || list_folder(&reach, &limits, &args)).await
}

/// File work off the async threads.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(e) => Err(tool_failure("tool_execution_error", e.to_string())),
    }
}

fn unusable(path: &str, error: &io::Error) -> Failure {
    tool_failure("tool_execution_error", format!("`{path}`: {}", reason(error)))
}

/// Opens a place without links: one that was put there after the check is not followed. Nothing waits for a pipe.
fn open_real(real: &Path, flags: OFlags) -> io::Result<File> {
    exact::open(real, flags | OFlags::NONBLOCK).map(File::from)
}

fn read_text(reach: &Reach, limits: &ToolLimits, path: &str) -> Result<String, Failure> {
    let real = reach.readable(path).map_err(refused)?;
    let file = open_real(&real, OFlags::RDONLY).map_err(|e| unusable(path, &e))?;
    // Pipes and devices may never end, or do things when read.
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(tool_failure("tool_execution_error", format!("`{path}` is not a file")));
    }
    let mut bytes = Vec::new();
    let most = limits.tool_output_bytes;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| unusable(path, &e))?;
    if bytes.len() as u64 > most {
        return Err(over_limit("read_file", limits));
    }
    String::from_utf8(bytes)
        .map_err(|_| tool_failure("tool_execution_error", format!("`{path}` is not UTF-8 text")))
}

/// Writes a file beside its place and renames it, so that readers see the old or the new text as a whole.
fn write_text(place: &Path, content: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(io::Error::other("this is not the name of a file"));
    };
    // From here on by the folder itself: a link that takes its name meanwhile changes nothing.
    let folder = exact::make_folder(folder)?;
    let old = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let is_a = |kind: FileType| old.is_some_and(|old| FileType::from_raw_mode(old.st_mode) == kind);
    if is_a(FileType::Directory) {
        return Err(io::Error::other("this is a folder"));
    }
    let temporary = format!(".selvedge-{:016x}.tmp", fresh_number());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    let mut file = File::from(rustix::fs::openat(&folder, &temporary, flags, mode)?);
    let written = (|| {
        file.write_all(content)?;
        if let Some(old) = old.filter(|_| is_a(FileType::RegularFile)) {
            fchmod(&file, Mode::from_raw_mode(old.st_mode))?;
        }
        // What is reported as written must outlive a power cut (E-04).
        file.sync_all()?;
        rustix::fs::renameat(&folder, &temporary, &folder, name)?;
        Ok(())
    })();
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&folder, &temporary, rustix::fs::AtFlags::empty());
    }
    written
}

/// Differs between writers of all processes; the exclusive creation would notice if it did not.
fn fresh_number() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

fn list_folder(reach: &Reach, limits: &ToolLimits, args: &ListArgs) -> Result<Value, Failure> {
    let root = reach.readable(&args.path).map_err(refused)?;
    if !root.is_dir() {
        return Err(tool_failure("tool_execution_error", format!("`{}` is not a folder", args.path)));
    }
    let pattern = match &args.glob {
        None => None,
        Some(glob) if Path::new(glob).is_absolute() || glob.split('/').any(|part| part == "..") => {
            return Err(denied(format!(
                "the pattern `{glob}` leads out of the folder; it must stay below it"
            )));
        }
        Some(glob) => {
            let text = glob.strip_prefix("./").unwrap_or(glob);
            Some(Pattern::new(text).map_err(|e| input_error(format!("the pattern `{glob}` is wrong: {e}")))?)
        }
    };
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    let mut looked_at = 0usize;
    let mut size = 0u64;
    while let Some(folder) = folders.pop() {
        let opened = open_real(&folder, OFlags::RDONLY | OFlags::DIRECTORY);
        let entries = match opened.and_then(|opened| Ok((Dir::read_from(&opened)?, opened))) {
            Ok(entries) => entries,
            Err(e) if folder == root => return Err(unusable(&args.path, &e)),
            // A folder further down that cannot be read has nothing to list.
            Err(_) => continue,
        };
        let (entries, opened) = entries;
        for name in entries.filter_map(Result::ok) {
            let name = OsStr::from_bytes(name.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let path = folder.join(name);
            looked_at += 1;
            if looked_at > MAX_ENTRIES {
                return Err(Failure::permanent(
                    FaultKind::LimitExceeded,
                    format!(
                        "`list_files` looks at no more than {MAX_ENTRIES} entries: list a folder further down"
                    ),
                ));
            }
            let Some((bytes, is_folder)) = entry(reach, &opened, &path) else { continue };
            if is_folder {
                if pattern.is_some() {
                    folders.push(path);
                }
            } else if fits(pattern.as_ref(), &root, &path) {
                let shown = reach.shown(&path);
                size = size.saturating_add(shown.len() as u64 + 24);
                if size > limits.tool_output_bytes {
                    return Err(over_limit("list_files", limits));
                }
                found.push((shown, bytes));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(path, bytes)| json!({ "path": path, "bytes": bytes })).collect())
}

/// Size and kind of an entry; a link counts as the file it leads to, if that may be read, and never as a folder.
fn entry(reach: &Reach, folder: &File, path: &Path) -> Option<(u64, bool)> {
    let of =
        |meta: Stat| (u64::try_from(meta.st_size).unwrap_or_default(), FileType::from_raw_mode(meta.st_mode));
    let (size, kind) = of(statat(folder, path.file_name()?, AtFlags::SYMLINK_NOFOLLOW).ok()?);
    match kind {
        // State folders are not for tools.
        FileType::RegularFile | FileType::Directory => {
            reach.is_readable(path).then_some((size, kind == FileType::Directory))
        }
        FileType::Symlink => {
            let real = path.canonicalize().ok().filter(|real| reach.is_readable(real))?;
            let (size, kind) = of(exact::stat(&real).ok()?);
            (kind == FileType::RegularFile).then_some((size, false))
        }
        _ => None,
    }
}

fn fits(pattern: Option<&Pattern>, root: &Path, path: &Path) -> bool {
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
    match (pattern, path.strip_prefix(root)) {
        (None, _) => true,
        (Some(pattern), Ok(below)) => pattern.matches_path_with(below, options),
        (Some(_), Err(_)) => false,
    }
}
