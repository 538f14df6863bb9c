//! Documents that the server has, by their names (S-03).

use crate::problem::Problem;
use selvedge_host::Error;
use selvedge_host::text::or_meant;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The documents of a folder, as it is now.
pub(crate) struct Documents(pub(crate) BTreeMap<String, PathBuf>);

impl Documents {
    /// Of a folder: files of JSON and YAML, by their names without what says so.
    pub(crate) fn of(folder: Option<&Path>) -> Result<Self, Problem> {
        let Some(folder) = folder else { return Ok(Self(BTreeMap::new())) };
        let unreadable = |error: std::io::Error| {
            let message = format!("the documents in {} can't be listed: {error}", folder.display());
            Problem::from(Error::environment("S-03", "no-documents", &message))
        };
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let kind = path.extension().and_then(|kind| kind.to_str());
            let name = path.file_stem().and_then(|name| name.to_str());
            if let (Some("json" | "jsonc" | "yaml" | "yml"), Some(name)) = (kind, name)
                && path.is_file()
            {
                found.insert(name.to_owned(), path);
            }
        }
        Ok(Self(found))
    }

    /// The file of one.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf, Problem> {
        self.0.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let message = format!("there is no document \"{name}\"");
            let help = or_meant(name, &known, "documents are the files in the folder of `serve --documents`");
            Error::usage("S-03", "unknown-document", &message).help(&help).into()
        })
    }
}
