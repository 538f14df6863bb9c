//! What looks at runs: nothing here changes one.

pub(crate) mod asks;
pub(crate) mod documents;
pub(crate) mod events;
pub(crate) mod explain;
mod fields;
pub(crate) mod nodes;
pub(crate) mod runs;
pub(crate) mod threads;
pub(crate) mod timeline;
pub(crate) mod tools;
