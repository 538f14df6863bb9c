//! The stages on the way to a run that is driven: what was asked for, and what is ready to begin.

use crate::begun::ForkedFrom;
use crate::config::Config;
use crate::fork::source::Source;
use crate::models::Models;
use crate::options::RunOptions;
use crate::prepare::Read;
use crate::recorded::RecordedRun;
use selvedge_engine::{Budget, Graph, Input, Limits, State, Warning};
use selvedge_http::Secret;
use selvedge_store::{DriverLock, RunInfo, Store};
use selvedge_tools::Catalogue;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is to be driven, found to be right by itself, with what it is to be driven with. No tool has been looked for and no
/// model asked.
pub struct Asked {
    /// The id that the run has, or will have.
    pub id: String,
    /// What people are told that a new run is, if its document does not say it.
    pub(crate) name: Option<String>,
    /// The run that begins it, if one does (E-39).
    pub(crate) parent: Option<Arc<str>>,
    /// What is configured for it.
    pub config: Config,
    /// What was chosen.
    pub options: RunOptions,
    pub(crate) what: What,
}

/// What is to be driven.
pub(crate) enum What {
    /// A document, as a new run in a state folder.
    Document { read: Read, state_dir: PathBuf },
    /// A graph, as a new run in a state folder.
    Graph { composed: Composed, state_dir: PathBuf },
    /// A run that is there.
    Run { run: Box<RecordedRun>, lock: DriverLock, inputs: Vec<Input> },
    /// A fork of a run.
    Fork {
        source: Box<Source>,
        /// The folders of tools that were chosen, whether or not they are there.
        folders: Vec<PathBuf>,
        /// Inputs and caps that are given for it.
        given: (Map<String, Value>, Budget),
        /// Another document.
        read: Option<Read>,
    },
}

impl Asked {
    /// Bytes of its document, if one is to be compiled.
    pub fn bytes(&self) -> usize {
        match &self.what {
            What::Document { read, .. } | What::Fork { read: Some(read), .. } => read.bytes(),
            What::Graph { .. } | What::Run { .. } | What::Fork { .. } => 0,
        }
    }
}

/// Everything that a run needs and that could fail. Nothing of it is recorded yet.
pub struct Ready {
    /// The id that the run has, or will have.
    pub id: String,
    /// What is configured for it.
    pub config: Config,
    /// What was chosen, with what was found out meanwhile.
    pub options: RunOptions,
    /// Its tools.
    pub catalogue: Catalogue,
    /// Its models.
    pub models: Models,
    /// Whether the script that answers is the one that the run was begun with, with another content (C-07).
    pub script_changed: bool,
    pub(crate) begins: Begins,
}

/// With what it begins.
pub(crate) enum Begins {
    /// With its first event.
    New { compiled: Compiled, state_dir: PathBuf },
    /// Where its journal ends.
    Run { run: Box<RecordedRun>, lock: DriverLock, inputs: Vec<Input> },
    /// Where it leaves another run.
    Fork { source: Box<Source>, changed: Changed },
}

/// A graph that was put together here, and what it begins with.
pub struct Composed {
    /// The graph.
    pub graph: Arc<Graph>,
    /// Its first data layer.
    pub initial: Map<String, Value>,
    /// The run's name, for people.
    pub name: String,
    /// What stands for its dialect.
    pub dialect: &'static str,
}

/// What a document comes to.
pub(crate) struct Compiled {
    pub(crate) graph: Arc<Graph>,
    pub(crate) initial: Map<String, Value>,
    pub(crate) name: String,
    pub(crate) dialect: &'static str,
    /// Its own caps.
    pub(crate) budget: Budget,
    /// The run that begins it.
    pub(crate) parent: Option<Arc<str>>,
}

/// What a fork changes.
pub(crate) struct Changed {
    /// The graph that it begins anew, if it does not go on with the source's.
    pub(crate) anew: Option<Arc<Graph>>,
    pub(crate) initial: Option<Map<String, Value>>,
    pub(crate) budget: Budget,
    pub(crate) limits: Limits,
    pub(crate) name: String,
    pub(crate) dialect: String,
}

/// What has begun, and nothing drives yet.
pub(crate) struct Started {
    pub(crate) store: Arc<Store>,
    pub(crate) state: State,
    pub(crate) graph: Arc<Graph>,
    pub(crate) info: RunInfo,
    pub(crate) lock: DriverLock,
    pub(crate) inputs: Vec<Input>,
    /// The run that it was forked from, whenever that was.
    pub(crate) source: Option<String>,
    pub(crate) fork: Option<ForkedFrom>,
}

impl Ready {
    /// Keys in use, which nothing shows (C-06).
    pub fn secrets(&self) -> &[Secret] {
        &self.models.secrets
    }

    /// What was said of it so far.
    pub fn warnings(&self) -> &[Warning] {
        &self.options.warnings
    }

    /// The script that answers, if one does (C-07).
    pub fn script(&self) -> Option<&Path> {
        self.options.script.as_deref().filter(|_| self.models.scripted)
    }
}
