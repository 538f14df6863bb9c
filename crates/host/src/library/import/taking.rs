//! What becomes of files in the library: decided one after the other, and changed in one commit.

use super::{Imported, Incoming, Meeting, Tool};
use crate::error::Error;
use crate::library::record::recorded;
use crate::library::samples::Line;
use crate::library::{self, short};
use crate::ways::WayOut;
use selvedge_engine::library::{Change, Command, Library, Place, Refusal, Stage};
use selvedge_store::{BlobHash, Store};
use selvedge_tools::examine::Examined;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An import as it is decided on.
pub(super) struct Import<'s> {
    pub(super) store: &'s Store,
    pub(super) change: Change,
    pub(super) contents: Vec<Vec<u8>>,
    pub(super) meeting: Meeting,
    /// The names that this import has given, and to which files.
    pub(super) names: BTreeMap<Arc<str>, PathBuf>,
}

impl Import<'_> {
    fn library(&self) -> &Library {
        self.change.after()
    }

    /// Takes a tool with its versions.
    pub(super) fn tool(
        &mut self,
        tool: &Tool,
        examined: &BTreeMap<PathBuf, Examined>,
    ) -> Result<Imported, Error> {
        let found = |incoming: &Incoming| {
            examined.get(&incoming.file).ok_or_else(|| Error::internal("a file was not examined"))
        };
        let Some(current) = tool.current else { return self.retired(tool, examined) };
        let Some(current) = tool.versions.get(current) else {
            return Err(Error::internal("a tool without a version"));
        };
        let target = found(current)?;
        let own = || Arc::from(target.metadata.name.as_str());
        let name: Arc<str> = tool.name.clone().unwrap_or_else(own);
        if let Some(other) = self.names.insert(Arc::clone(&name), current.file.clone()) {
            let message = format!("the tool `{name}` is in {} too", other.display());
            let file = current.file.display().to_string();
            return Err(Error::about_file(&file, "A-22", "name-taken", &message)
                .help("give one of them another name in __TOOL_META__, or take it out of the folder"));
        }
        let head = self.library().head(&Place::Library, &name).cloned();
        let stage = self.library().version(&target.version).and_then(|known| known.stage(&Place::Library));
        let ahead = !matches!(stage, None | Some(Stage::Drafted | Stage::Validated | Stage::Public));
        if self.meeting == Meeting::GoesOn && ahead {
            return Ok(Imported { name, version: Arc::clone(&target.version), result: "known", calls: 0 });
        }
        let mut result = match &head {
            None => "new",
            Some(head) if **head == *target.version => "unchanged",
            Some(_) if self.meeting == Meeting::Replaces => "replaced",
            Some(head) => return Err(taken(&name, head, &current.file)),
        };
        for incoming in &tool.versions {
            let examined = found(incoming)?;
            if self.mend(incoming, examined)? && result == "unchanged" {
                result = "mended";
            }
            let old = head.clone().filter(|_| std::ptr::eq(incoming, current));
            self.version(&name, incoming, examined, old)
                .map_err(|refusal| placed(&refusal, &incoming.file))?;
        }
        if self.library().head(&Place::Library, &name) != Some(&target.version) {
            let to = Arc::clone(&target.version);
            let back = Command::Rollback { name: Arc::clone(&name), to, reason: String::new() };
            self.change.accept(back).map_err(|refusal| placed(&refusal, &current.file))?;
        }
        let calls = tool.versions.iter().map(|incoming| incoming.calls.len()).sum();
        Ok(Imported { name, version: Arc::clone(&target.version), result, calls })
    }

    /// Takes the past of a tool that was retired. What its name means here stays.
    fn retired(&mut self, tool: &Tool, examined: &BTreeMap<PathBuf, Examined>) -> Result<Imported, Error> {
        let before = self.change.len();
        let (mut last, mut mended, mut calls) = (None, false, 0);
        for incoming in &tool.versions {
            let found = examined.get(&incoming.file);
            let found = found.ok_or_else(|| Error::internal("a file was not examined"))?;
            let name = tool.name.clone().unwrap_or_else(|| Arc::from(found.metadata.name.as_str()));
            mended |= self.mend(incoming, found)?;
            self.version(&name, incoming, found, None).map_err(|refusal| placed(&refusal, &incoming.file))?;
            calls += incoming.calls.len();
            last = Some((name, Arc::clone(&found.version)));
        }
        let (name, version) = last.ok_or_else(|| Error::internal("a tool without a version"))?;
        let result = match (self.change.len() != before, mended) {
            (true, _) => "retired",
            (false, true) => "mended",
            (false, false) => "unchanged",
        };
        Ok(Imported { name, version, result, calls })
    }

    /// Stores anew what the library has of a version, and is not there any more as it was (E-44). Whether there is any.
    fn mend(&mut self, incoming: &Incoming, found: &Examined) -> Result<bool, Error> {
        let Some(known) = self.library().version(&found.version) else { return Ok(false) };
        let samples: BTreeSet<Arc<str>> = known.calls.iter().map(|call| Arc::clone(&call.sample)).collect();
        let calls = incoming.calls.iter().map(|line| line.json.as_bytes());
        let calls = calls.filter(|json| samples.contains(&*BlobHash::of(json).to_string()));
        let before = self.contents.len();
        for content in std::iter::once(&*found.text).chain(calls) {
            if !self.store.has_blob(BlobHash::of(content))? {
                self.contents.push(content.to_vec());
            }
        }
        Ok(self.contents.len() > before)
    }

    /// Brings one version to where it may be used, with its calls. `old` is what it takes the place of.
    fn version(
        &mut self,
        name: &Arc<str>,
        incoming: &Incoming,
        found: &Examined,
        old: Option<Arc<str>>,
    ) -> Result<(), Refusal> {
        let (place, version) = (Place::Library, Arc::clone(&found.version));
        let stage = self.library().version(&version).and_then(|known| known.stage(&place));
        // A version that is retired here and there stays as it is.
        let stays = stage == Some(Stage::Retired)
            && incoming.past.as_ref().is_some_and(|(stage, _)| *stage == Stage::Retired);
        if !stays && matches!(stage, None | Some(Stage::Retired)) {
            let known = |older: &Arc<str>| *older != version && self.library().version(older).is_some();
            let parents: BTreeSet<Arc<str>> =
                incoming.parents.iter().cloned().chain(old).filter(known).collect();
            let members = incoming.members.iter().filter(|older| known(older)).cloned().collect();
            self.change.accept(Command::Draft {
                place: place.clone(),
                version: Arc::clone(&version),
                name: found.metadata.name.as_str().into(),
                author: incoming.author.clone(),
                parents: parents.into_iter().collect(),
                members,
                request: incoming.request.clone(),
            })?;
            self.contents.push(found.text.clone());
        }
        if !stays && matches!(stage, None | Some(Stage::Retired | Stage::Drafted)) {
            let version = Arc::clone(&version);
            let facts = found.metadata.facts(found.input_schema.clone());
            self.change.accept(Command::Validate { place: place.clone(), version, facts })?;
        }
        if !stays && matches!(stage, None | Some(Stage::Retired | Stage::Drafted | Stage::Validated)) {
            let version = Arc::clone(&version);
            self.change.accept(match &incoming.past {
                None => Command::Publish { place, version, name: Some(Arc::clone(name)) },
                Some((stage, reason)) => Command::Restore {
                    version,
                    name: Arc::clone(incoming.name.as_ref().unwrap_or(name)),
                    stage: *stage,
                    reason: reason.clone(),
                },
            })?;
        }
        for Line { sample, json } in &incoming.calls {
            let kept = |import: &Self| import.library().version(&version).map(|known| known.calls.len());
            let before = kept(self);
            self.change.accept(recorded(&version, sample, json, None))?;
            if kept(self) != before {
                self.contents.push(json.clone().into_bytes());
            }
        }
        Ok(())
    }

    /// Has a name lead to a tool of another name.
    pub(super) fn alias(&mut self, alias: &str, name: &str) -> Result<(), Error> {
        // A name that has become a tool of its own here stays that.
        if self.library().head(&Place::Library, alias).is_some() {
            return Ok(());
        }
        let command = Command::Alias { alias: alias.into(), name: self.library().resolve(name).into() };
        self.change.accept(command).map_err(|refusal| library::refused(&refusal))
    }
}

fn taken(name: &str, head: &str, file: &Path) -> Error {
    let message = format!("the library has another tool `{name}` already, version {}", short(head));
    Error::about_file(&file.display().to_string(), "A-17", "name-taken", &message).help(&format!(
        "make this a new version of it with --replace, or give the file another name in __TOOL_META__; `{}` shows \
         the one that is there",
        WayOut::ShowTool { name, folders: &[] }
    ))
}

fn placed(refusal: &Refusal, file: &Path) -> Error {
    Error::about_file(&file.display().to_string(), "A-17", refusal.code, &refusal.message)
        .help(&format!("`{}` shows what the library has", WayOut::AllTools))
}
