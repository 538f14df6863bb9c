//! One server of warm interpreters: it has imported what tools import, ahead of their calls.

use super::Key;
use super::imports::Import;
use crate::python::worker::FLAGS;
use selvedge_sandbox::isolation::Isolation;
use selvedge_sandbox::server::{Program, Server};
use serde_json::Map;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const SERVER: &str = concat!(
    include_str!("../worker.py"),
    include_str!("../output.py"),
    include_str!("sandbox.py"),
    include_str!("server.py")
);
/// How long an interpreter may take to get warm: as long as it takes to import pydantic on a busy machine.
const STARTING: Duration = Duration::from_secs(30);
/// How many modules that can't be imported ahead are found one after the other; then there are none.
const CULPRITS: usize = 3;

/// A server that is ready for calls.
#[derive(Debug)]
pub(super) struct Warmed {
    pub(super) server: Arc<Server>,
    /// What it was to import, whatever came of it.
    tried: Vec<Import>,
}

impl Warmed {
    /// Starts a server that has imported what tools import. Without what does not work: packages that take too long for it, end
    /// their interpreter or start threads are for each call to import, and do the others no harm.
    pub(super) async fn start(
        isolation: &Isolation,
        key: &Key,
        scratch_root: PathBuf,
        wanted: Vec<Import>,
    ) -> io::Result<Self> {
        let mut imports = wanted.clone();
        for left in (0..=CULPRITS).rev() {
            let mut reached = None;
            match start(isolation, key, scratch_root.clone(), &imports, &mut reached).await {
                Ok(server) => return Ok(Self { server: Arc::new(server), tried: wanted }),
                Err(error) if imports.is_empty() => return Err(error),
                Err(_) => match reached.filter(|reached| left > 1 && *reached < imports.len()) {
                    Some(culprit) => drop(imports.remove(culprit)),
                    None => imports.clear(),
                },
            }
        }
        Err(io::Error::other("the interpreter does not get warm"))
    }

    /// Whether it was to import this.
    pub(super) fn has_tried(&self, import: &Import) -> bool {
        self.tried.contains(import)
    }
}

/// Starts one, and takes note of the import that it is at.
async fn start(
    isolation: &Isolation,
    key: &Key,
    scratch_root: PathBuf,
    imports: &[Import],
    reached: &mut Option<usize>,
) -> io::Result<Server> {
    let args: Vec<OsString> = FLAGS.iter().map(Into::into).chain([SERVER.into()]).collect();
    let program = Program {
        program: &key.python,
        args: &args,
        policy: &key.policy,
        setup: Map::from_iter([("imports".to_owned(), serde_json::to_value(imports)?)]),
        starting: STARTING,
    };
    let heard = |words: &str| {
        if let Some(number) = words.strip_prefix("import ") {
            *reached = number.parse().ok();
        }
    };
    Server::start(isolation, program, scratch_root, heard).await
}
