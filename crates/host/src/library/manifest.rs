//! `library.json`: what a folder of tools says about itself beyond its files (V-12).

use super::regular;
use crate::error::Error;
use selvedge_engine::library::{Author, Stage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

/// The manifest's name.
pub const FILE: &str = "library.json";
/// The form of it that this version writes, and the newest that it reads.
const FORMAT: u32 = 3;
/// The largest manifest that is read.
const BYTES: u64 = 64 << 20;

/// The manifest of a folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The form of this file.
    pub format: u32,
    /// The tools.
    pub tools: Vec<Tool>,
    /// Names that lead to tools of other names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
}

/// What every form says.
#[derive(Deserialize)]
struct Form {
    format: u32,
}

/// One tool with its versions.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The name that documents call it by; it may differ from its metadata's.
    pub name: String,
    /// Which version the name means; none if the tool was retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// All versions that the name has meant, oldest first, behind those of tools whose work it does now.
    pub versions: Vec<Version>,
}

/// One version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// SHA-256 of its file.
    pub version: String,
    /// The file, relative to the folder. Its recorded calls lie beside it.
    pub file: String,
    /// Who wrote it.
    pub author: Author,
    /// What it was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// The versions whose work it does since a merge, without its being made of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// How many recorded calls lie beside its file.
    #[serde(default)]
    pub calls: usize,
    /// What caused it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub request: Value,
    /// The name that meant it, if that was another one: it leads to this tool now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What became of it, if the name does not mean it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Recording>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What a version is that a name does not mean any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recording {
    /// A newer version has its place.
    Enhanced,
    /// Another tool does its work.
    Merged,
    /// It was given up.
    Retired,
    /// It was given up for an earlier version.
    RolledBack,
}

impl Recording {
    /// The same as a stage.
    pub fn stage(self) -> Stage {
        match self {
            Self::Enhanced => Stage::Enhanced,
            Self::Merged => Stage::Merged,
            Self::Retired => Stage::Retired,
            Self::RolledBack => Stage::RolledBack,
        }
    }

    /// A stage that is one of these.
    pub fn of(stage: Stage) -> Option<Self> {
        let all = [Self::Enhanced, Self::Merged, Self::Retired, Self::RolledBack];
        all.into_iter().find(|past| past.stage() == stage)
    }
}

impl Manifest {
    /// A manifest without tools.
    pub fn new() -> Self {
        Self { format: FORMAT, ..Self::default() }
    }

    /// The manifest of a folder; `None` if it has none.
    ///
    /// # Errors
    /// `Usage` if it can't be read, or names files outside of the folder.
    pub fn of(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(FILE);
        let shown = path.display().to_string();
        let wrong = |why: &str| Error::about_file(&shown, "A-17", "bad-manifest", why);
        let Some(bytes) = regular::read(&path, BYTES).map_err(|why| wrong(&why))? else { return Ok(None) };
        // Another form may have other fields.
        if let Ok(Form { format }) = serde_json::from_slice(&bytes)
            && !(1..=FORMAT).contains(&format)
        {
            let why = format!("its form {format} is newer than this version of selvedge knows");
            return Err(match format {
                0 => wrong("there is no form 0").help("take a manifest that an export has written"),
                _ => wrong(&why).help("use the selvedge that wrote it or a later one"),
            });
        }
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|error| {
            wrong(&format!("this is no manifest: {error}"))
                .at(error.line() as u64, error.column() as u64)
                .help("leave the file out, or take one that an export has written")
        })?;
        for file in manifest.tools.iter().flat_map(|tool| &tool.versions).map(|version| &version.file) {
            let inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
            if !inside || !folder.join(file).is_file() {
                let why = format!("it names the file {file:?}, which is not in the folder");
                return Err(wrong(&why).help("put the file there, or take it out of the manifest"));
            }
        }
        let lacking = |tool: &&Tool| match &tool.current {
            Some(current) => tool.versions.iter().all(|version| version.version != *current),
            None => tool.versions.is_empty(),
        };
        if let Some(tool) = manifest.tools.iter().find(lacking) {
            let why = match tool.current {
                Some(_) => format!("the current version of `{}` is not among its versions", tool.name),
                None => format!("the tool `{}` has no version", tool.name),
            };
            return Err(wrong(&why));
        }
        if let Some(what) = manifest.twice() {
            let why = format!("it names {what} twice");
            return Err(wrong(&why).help("take one of them out of the manifest"));
        }
        Ok(Some(manifest))
    }

    /// What is named twice: a tool, or a version of one.
    fn twice(&self) -> Option<String> {
        let mut names = BTreeSet::new();
        self.tools.iter().find_map(|tool| {
            let mut versions = BTreeSet::new();
            let version = tool.versions.iter().find(|version| !versions.insert(&version.version));
            let version = version
                .map(|twice| format!("the version {} of `{}`", super::short(&twice.version), tool.name));
            (!names.insert(&tool.name)).then(|| format!("the tool `{}`", tool.name)).or(version)
        })
    }
}
