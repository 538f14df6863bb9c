//! The environment of this process, as a value: it is read once, by the program itself, and handed in.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where programs are looked for if nothing says it.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// The variables of this process, and the folder it is in. Cloning shares them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProcessEnv(Arc<Inner>);

#[derive(Default, PartialEq, Eq)]
struct Inner {
    variables: BTreeMap<OsString, OsString>,
    folder: Option<PathBuf>,
}

impl ProcessEnv {
    /// These variables, in this folder, if it is known.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>, folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner { variables: variables.into_iter().collect(), folder }))
    }

    /// What a variable says, if it is set.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.0.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The folder that this process is in.
    pub fn folder(&self) -> Option<&Path> {
        self.0.folder.as_deref()
    }

    /// The folders in which programs are looked for.
    pub fn search_path(&self) -> impl Iterator<Item = PathBuf> {
        let path = self.variable("PATH").unwrap_or_else(|| OsStr::new(USUAL));
        std::env::split_paths(path).filter(|folder| folder.is_absolute())
    }

    /// The folder for what is soon removed.
    pub fn temporary(&self) -> PathBuf {
        self.variable("TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from)
    }

    /// All variables with some of them changed, `None` removing one: for programs of ours that run no tool's code.
    pub fn with(
        &self,
        changes: impl IntoIterator<Item = (OsString, Option<OsString>)>,
    ) -> Vec<(OsString, OsString)> {
        let mut variables = self.0.variables.clone();
        for (name, value) in changes {
            match value {
                Some(value) => variables.insert(name, value),
                None => variables.remove(&name),
            };
        }
        variables.into_iter().collect()
    }
}

/// Without the values, among which there are keys (C-06).
impl fmt::Debug for ProcessEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessEnv").field("folder", &self.0.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_changed_and_removed_in_a_copy() {
        let env = ProcessEnv::new([("A".into(), "1".into()), ("B".into(), "2".into())], None);
        let changed = env.with([("A".into(), None), ("C".into(), Some("3".into()))]);
        assert_eq!(changed, [("B".into(), "2".into()), ("C".into(), "3".into())]);
        assert_eq!(env.variable("A"), Some(OsStr::new("1")));
        assert_eq!(format!("{env:?}"), "ProcessEnv { folder: None, .. }");
        assert_eq!(env.temporary(), Path::new("/tmp"));
        assert!(env.search_path().any(|folder| folder == Path::new("/usr/bin")));
    }
}
