//! The program that starts confined programs.

use std::path::PathBuf;

/// The program that sets the inner layers and then starts the tool: `program args… ORDER -- TOOL…` must end in
/// `isolation::confine::main`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// An executable file.
    pub program: PathBuf,
    /// What it takes to make it a launcher.
    pub args: Vec<String>,
}
