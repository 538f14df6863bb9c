//! What a run needs of whoever begins runs for it (E-39).

use crate::error::Error;
use crate::options::RunOptions;
use selvedge_store::RunInfo;
use std::pin::Pin;
use std::sync::Arc;

/// A run that another one begins.
pub struct Child {
    /// Its id, which follows from what it is begun for.
    pub id: String,
    /// What people are told that it is.
    pub name: String,
    /// The run that begins it.
    pub parent: Arc<str>,
    /// What it is begun with; its document is given.
    pub options: RunOptions,
}

/// A child's run on its way to its end.
pub type Running = Pin<Box<dyn Future<Output = Result<Option<RunInfo>, Error>> + Send>>;

/// Who begins runs for a run.
pub trait Children: Send + Sync {
    /// Begins the run, or goes on with it, and drives it until it has ended. What it asks somebody is denied: nobody is there. `None`: it
    /// was interrupted, and whoever asks for it again goes on with it.
    fn run(&self, child: Child) -> Running;
}
