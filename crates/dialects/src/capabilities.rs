//! What documents are compiled with, besides their tools: whoever has them compiled says so.

use crate::DocumentLimits;
use crate::agent::settings::Settings;
use crate::steps::doc::Recovery;
use std::sync::Arc;

/// What documents are compiled with, besides their tools.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// Whether a model is there that can reflect and plan (`C-08`, `D-17`).
    pub model: bool,
    /// The configuration's settings of recovery; the document's own go over them.
    pub recovery: Recovery,
    /// Limits of documents: replans keep them too.
    pub limits: DocumentLimits,
    /// The configuration's settings of agents.
    pub agent: Arc<Settings>,
    /// Calls of models that the run may make, if the document is not the one to say so: an agent keeps one for its answer.
    pub calls: Option<u64>,
}
