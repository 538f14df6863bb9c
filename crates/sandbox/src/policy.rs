//! What a process may reach.

use crate::grant::Grant;
use std::path::PathBuf;

/// What a process may reach. Enforced by the isolation layer; limits are set on every child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Folders and files it may read, besides its scratch folder and its interpreter.
    pub read: Vec<Grant>,
    /// Folders and files it may write, besides its scratch folder.
    pub write: Vec<Grant>,
    /// What its program consists of, where that is no part of the system: read as well.
    pub runtime: Vec<PathBuf>,
    /// What stays hidden although it lies in what may be read: the state folder.
    pub hidden: Vec<PathBuf>,
    /// What stays as it is although it lies in what may be written: what Selvedge reads for itself, and what other programs
    /// run unasked.
    pub kept: Vec<PathBuf>,
    /// Files that Selvedge would read or run, and that are not there: they are not to be made.
    pub unmade: Vec<PathBuf>,
    /// The folder that this process is in: these files are looked for on the way there, too.
    pub here: Option<PathBuf>,
    /// Whether none of what other programs run is made either.
    pub unasked: bool,
    /// Whether it may use the network.
    pub network: bool,
    /// Processes and threads; needs isolation.
    pub processes: Option<u64>,
    /// Address space in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory in bytes of all processes together; needs control groups.
    pub total_bytes: Option<u64>,
    /// The largest file in bytes.
    pub file_bytes: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
}
