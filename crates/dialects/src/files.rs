//! Other files that a document names: where they come from, and which may be named.

use crate::json::Spanned;
use crate::{Diagnostics, DocumentLimits, Finding, Source, document};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the files come from that a document names.
pub trait Files: fmt::Debug + Send + Sync {
    /// The file of that path, which is below the folder of the document that is read: it has no `..`, and is not absolute.
    ///
    /// # Errors
    /// Why it can't be read, for people.
    fn read(&self, path: &str, limits: &DocumentLimits) -> Result<Source, String>;

    /// A file that may be meant by a path where there is none.
    fn near(&self, _path: &str) -> Option<String> {
        None
    }
}

/// A folder on disk.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Files for Folder {
    fn read(&self, path: &str, limits: &DocumentLimits) -> Result<Source, String> {
        let file = self.0.join(path);
        let real = |path: &Path| {
            path.canonicalize().map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                _ => error.to_string(),
            })
        };
        let folder = if self.0.as_os_str().is_empty() { Path::new(".") } else { &self.0 };
        if !real(&file)?.starts_with(real(folder)?) {
            return Err("a link leads out of the document's folder".into());
        }
        document::read_file(&file, limits).map_err(|wrong| wrong.message)
    }

    fn near(&self, path: &str) -> Option<String> {
        let file = self.0.join(path);
        if file.exists() {
            return None;
        }
        let near = document::near_file(&file)?;
        let below = Path::new(&near).strip_prefix(&self.0).ok()?;
        Some(below.display().to_string())
    }
}

/// Most files that one document may lead to (E-12).
const MOST: usize = 1_000;

/// The files that are read for one document, each once.
pub(crate) struct Includes<'f, T> {
    files: Option<&'f dyn Files>,
    limits: &'f DocumentLimits,
    /// The files that are being read, from the outside in, with their texts.
    open: Vec<Arc<str>>,
    known: HashMap<Arc<str>, Option<(Source, Arc<T>)>>,
    /// All that were read, whatever is in them.
    sources: Vec<Source>,
}

/// What a path comes to.
pub(crate) enum Named<T> {
    /// It was read before.
    Known(Option<(Source, Arc<T>)>),
    /// It is to be read: [`Includes::close`] ends that.
    New(Arc<str>, Source),
}

impl<'f, T> Includes<'f, T> {
    pub(crate) fn new(files: Option<&'f dyn Files>, limits: &'f DocumentLimits) -> Self {
        Self { files, limits, open: Vec::new(), known: HashMap::new(), sources: Vec::new() }
    }

    /// The file that a document names; findings if it may not, or if there is none.
    pub(crate) fn open(
        &mut self,
        name: &Spanned<Arc<str>>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Named<T>> {
        let folder = self.open.last().and_then(|file| Some(file.rsplit_once('/')?.0)).unwrap_or_default();
        let Some(path) = below(folder, &name.value) else {
            let message = format!("the file `{}` is not in the document's folder or below it", name.value);
            let finding = Finding::error("W-14", "file-outside", name.span, message);
            diagnostics.push(finding.help("write a path from the document's folder on, without `..`"));
            return None;
        };
        if self.open.contains(&path) {
            let chain: Vec<&str> = self.open.iter().map(|file| &**file).chain([&*path]).collect();
            let message = format!("files include each other: {}", chain.join(" → "));
            let finding = Finding::error("W-14", "files-in-a-circle", name.span, message);
            diagnostics.push(finding.help("write a loop in one workflow instead, or leave this node out"));
            return None;
        }
        if let Some(known) = self.known.get(&path) {
            return Some(Named::Known(known.clone()));
        }
        let depth = self.limits.depth_in_force();
        if self.open.len() >= depth {
            let message =
                format!("files lie more than {depth} deep in each other (`subgraph_depth` in [limits])");
            let finding = Finding::error("E-12", "too-deep", name.span, message);
            diagnostics.push(finding.help("put some of them into one document"));
            return None;
        }
        let read = match self.files {
            _ if self.known.len() >= MOST => Err(format!("the document leads to more than {MOST} files")),
            Some(files) => files.read(&path, self.limits),
            None => Err("a document that is no file itself has no folder".into()),
        };
        match read {
            Ok(source) => {
                self.open.push(path.clone());
                self.sources.push(source.clone());
                Some(Named::New(path, source))
            }
            Err(why) => {
                let message = format!("the file `{path}` can't be read: {why}");
                let finding = Finding::error("W-14", "file-not-read", name.span, message);
                let near = self
                    .files
                    .and_then(|files| files.near(&path))
                    .map(|near| format!("did you mean `{near}`? "));
                let help = "paths begin at the folder of the document that names them";
                diagnostics.push(finding.help(format!("{}{help}", near.unwrap_or_default())));
                self.known.insert(path, None);
                None
            }
        }
    }

    /// All that were read, whatever is in them.
    pub(crate) fn into_sources(self) -> Vec<Source> {
        self.sources
    }

    /// The file that was opened last has been read.
    pub(crate) fn close(&mut self, path: Arc<str>, read: Option<(Source, Arc<T>)>) {
        self.open.pop();
        self.known.insert(path, read);
    }
}

/// A path as it is from the first document's folder on; `None` if it leads out of it.
fn below(folder: &str, path: &str) -> Option<Arc<str>> {
    let outside = path.starts_with(['/', '\\', '~']) || path.contains(['\0', '\\']) || path.contains(':');
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part),
        }
    }
    (!outside && !path.is_empty()).then(|| parts.join("/").into())
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn w14_files_lie_in_the_folder_or_below_it() {
        assert_eq!(below("", "a/./b.json").as_deref(), Some("a/b.json"));
        assert_eq!(below("sub", "b.json").as_deref(), Some("sub/b.json"));
        for outside in ["../a.json", "a/../../b", "/etc/passwd", "C:\\x", "a\\b", ""] {
            assert_eq!(below("sub", outside), None, "{outside}");
        }
    }
}
