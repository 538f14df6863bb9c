//! Helper modules: files beside a tool's that it imports. A version's text has them in it, behind the tool's own,
//! as comments: so one text is all that is hashed, kept, imported, exported and run.

use crate::diag::ToolError;
use crate::python::meta::MAX_FILE;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The line before a module's, behind which its name stands, and what stands before each of its lines.
const HEAD: &str = "\n# selvedge: module ";
const LINE: &str = "#|";
/// The most modules of one tool.
const MOST: usize = 64;

/// The Python files of folders by the names of their modules, each folder listed once.
#[derive(Debug, Default)]
pub(crate) struct Folders(Mutex<HashMap<PathBuf, Arc<BTreeMap<String, PathBuf>>>>);

impl Folders {
    /// The modules beside a file.
    fn beside(&self, file: &Path) -> Arc<BTreeMap<String, PathBuf>> {
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(folder) {
            return Arc::clone(found);
        }
        let named = |path: PathBuf| Some((path.file_name()?.to_str()?.strip_suffix(".py")?.to_owned(), path));
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let modules = Arc::new(entries.filter_map(|entry| named(entry.path())).collect());
        known.insert(folder.to_owned(), Arc::clone(&modules));
        modules
    }
}

/// The text of a tool's version: that of its file, with the modules beside it that it, or one of them, imports. And the files
/// of these.
///
/// # Errors
/// A module that can't be read, or that is no text.
pub(crate) fn whole(
    file: &Path,
    text: Vec<u8>,
    folders: &Folders,
) -> Result<(Vec<u8>, Vec<PathBuf>), ToolError> {
    let beside = folders.beside(file);
    let mut todo = imported(&text);
    todo.retain(|name| beside.contains_key(name));
    // So it is with nearly all files.
    if todo.is_empty() {
        return Ok((text, Vec::new()));
    }
    let own = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut seen: BTreeSet<String> = [own].into();
    // What came with its modules has no others.
    seen.extend(contained(&text));
    let (mut modules, mut files) = (BTreeMap::new(), Vec::new());
    while let Some(name) = todo.pop() {
        let Some(path) = beside.get(&name).filter(|_| seen.insert(name.clone())) else { continue };
        let wrong = |what: String| {
            let message = format!("it imports {}, which lies beside it and {what}", path.display());
            ToolError::document("A-31", message).at(file, None)
        };
        let Some(module) = read(path).map_err(wrong)? else { continue };
        if modules.len() == MOST {
            let message = format!("it imports more than {MOST} modules that lie beside it");
            return Err(ToolError::document("A-31", message).at(file, None));
        }
        todo.extend(imported(module.as_bytes()));
        files.push(path.clone());
        modules.insert(name, module);
    }
    let mut text = text;
    for (name, module) in modules {
        text.extend_from_slice(HEAD.as_bytes());
        text.extend_from_slice(name.as_bytes());
        for line in module.split('\n') {
            text.extend_from_slice(b"\n");
            text.extend_from_slice(LINE.as_bytes());
            text.extend_from_slice(line.as_bytes());
        }
    }
    Ok((text, files))
}

/// A module that may stand beside a tool; `None` for another tool.
///
/// # Errors
/// What is wrong with it.
fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::metadata(path) {
        Ok(kind) if kind.is_dir() => return Err("is a folder: a helper module is one file".to_owned()),
        Ok(kind) if !kind.is_file() => return Err("is no file, but a pipe, a socket or a device".to_owned()),
        Ok(_) => {}
        Err(error) if path.is_symlink() => return Err(format!("is a link that leads to no file: {error}")),
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    // A link must not bring what the tool itself could not read.
    let folder = |path: &Path| path.parent().map(Path::to_owned);
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    if folder(path).and_then(|folder| real(&folder)) != real(path).and_then(|path| folder(&path)) {
        return Err("is a link that leads out of the folder".to_owned());
    }
    let mut bytes = Vec::new();
    let open = std::fs::File::open(path);
    let read = open.and_then(|open| open.take(MAX_FILE + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("is larger than {MAX_FILE} bytes"));
    }
    if is_tool(&bytes) {
        return Ok(None);
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    // In a comment, these would end it.
    let bare = |at: usize| text.as_bytes().get(at + 1) != Some(&b'\n');
    if text.contains('\0') || text.match_indices('\r').any(|(at, _)| bare(at)) {
        return Err("has a carriage return within a line, or a NUL".to_owned());
    }
    Ok(Some(text))
}

/// Whether a file says that it is a tool.
pub(super) fn is_tool(text: &[u8]) -> bool {
    text.starts_with(b"__TOOL_META__") || text.windows(14).any(|part| part == b"\n__TOOL_META__")
}

/// Files of a folder that are no tools, as another one of them imports them.
pub fn among(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let folders = Folders::default();
    let used = files.iter().filter_map(|file| {
        // What is wrong with a file is told when it is loaded.
        whole(file, std::fs::read(file).ok()?, &folders).ok()
    });
    used.flat_map(|(_, files)| files).collect()
}

/// The text of a tool's file with its modules, as far as they can be read: to be looked through.
pub fn with_modules(file: &Path, text: Vec<u8>) -> Vec<u8> {
    whole(file, text.clone(), &Folders::default()).map_or(text, |(text, _)| text)
}

/// The modules that a text has in it.
fn contained(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.split(HEAD).skip(1).filter_map(|part| part.lines().next()).map(str::to_owned).collect()
}

/// The modules that the lines of a file import, wherever they stand: of `a.b` the first part.
fn imported(text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let line = line.trim_ascii_start();
        // Quick to tell for nearly all lines.
        if !line.starts_with(b"import ") && !line.starts_with(b"from ") {
            continue;
        }
        let line = String::from_utf8_lossy(line);
        let names: Vec<&str> = match line.split_once(' ') {
            Some(("from", rest)) => rest.split_whitespace().take(1).collect(),
            Some((_, rest)) => rest.split(['#', ';']).take(1).flat_map(|rest| rest.split(',')).collect(),
            None => Vec::new(),
        };
        for name in names {
            let name = name.trim_start().split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
            found.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_wherever_they_stand() {
        let text = b"import os, helpers as h  # and more\n    from _deep.x import y\r\nfrom . import own\nimportant = 1\nx = 'import no'\n";
        assert_eq!(imported(text), ["os", "helpers", "_deep"]);
    }

    /// what a link leads to outside of the folder is no module: the tool itself could not read it.
    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_folder_is_no_module() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("secret"), "root:x:0").unwrap();
        std::fs::write(folder.path().join("within.py"), "x = 1").unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
        link(&outside.path().join("secret"), "out.py");
        link(Path::new("within.py"), "own.py");
        let file = folder.path().join("tool.py");
        let bundle = |text: &str| whole(&file, text.into(), &Folders::default());
        let error = bundle("from out import x\n").unwrap_err().to_string();
        assert!(error.contains("leads out of the folder") && !error.contains("root:x"), "{error}");
        assert!(bundle("import own\n").is_ok());
    }

    /// a name that is there and can't be a module is told of, and never waited for.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("a_folder.py")).unwrap();
        std::os::unix::fs::symlink("a_loop.py", at("a_loop.py")).unwrap();
        std::os::unix::net::UnixListener::bind(at("a_socket.py")).unwrap();
        for (name, words) in [
            ("a_folder", "is a folder"),
            ("a_loop", "is a link that leads to no file"),
            ("a_socket", "is no file, but a pipe"),
        ] {
            let text = format!("import {name}\n").into_bytes();
            let error = whole(&at("tool.py"), text, &Folders::default()).unwrap_err().to_string();
            assert!(error.contains(&format!("{name}.py, which lies beside it and {words}")), "{error}");
        }
    }

    /// the text is the same whatever the order of imports, has all of every module, and nothing is added to it again.
    #[test]
    fn a_text_has_its_modules_and_gets_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("b.py", "import _a\r\n\nx = 1");
        write("_a.py", "");
        write("c.py", "__TOOL_META__ = {}\n");
        write("unused.py", "raise 1\n");
        let file = folder.path().join("tool.py");
        let bundle = |text: &str| whole(&file, text.into(), &Folders::default()).unwrap();
        let (text, files) = bundle("import c, b, os\n");
        let expected =
            "import c, b, os\n\n# selvedge: module _a\n#|\n# selvedge: module b\n#|import _a\r\n#|\n#|x = 1";
        assert_eq!(String::from_utf8(text.clone()).unwrap(), expected);
        assert_eq!(files.len(), 2);
        write("b.py", "changed");
        let again = whole(&file, text.clone(), &Folders::default()).unwrap();
        assert_eq!(again, (text, Vec::new()), "what has its modules keeps them");
        assert_eq!(bundle("import os\n").0, b"import os\n");
        write("b.py", "x = 1\ry = 2\n");
        assert!(whole(&file, b"import b".to_vec(), &Folders::default()).is_err());
    }
}
