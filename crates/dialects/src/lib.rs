//! Document formats ("dialects"): how a file becomes a typed document, and what is found wrong with it.
//!
//! The layers, each usable alone:
//!
//! 1. [`document`]: a file's text, with fast line and column look-up ([`Source`]).
//! 2. [`json`]: strict JSON in which every key and value knows its place ([`Node`], [`Span`]).
//! 3. [`diagnostic`]: findings about a document, their places, and how they are shown ([`Diagnostics`]).
//! 4. [`fields`]: reading the fields of an object, misspelt and unknown ones included (`E-32`).
//! 5. [`mod@recognise`]: which dialect a document is written in (`C-11`).
//! 6. [`plan`]: the typed plan document, its checks, and its lowering.
//! 7. [`compile`]: all of it, from text to the engine's graph ([`Document`]).
//!
//! Reading never stops at the first finding: it returns what it could read, and every finding goes to the
//! [`Diagnostics`] collector.

pub mod compile;
pub mod diagnostic;
pub mod document;
pub mod fields;
pub mod json;
pub mod limits;
pub mod plan;
pub mod recognise;

pub use compile::{Document, ToolSource, read};
pub use diagnostic::{Diagnostic, Diagnostics, Finding, Severity};
pub use document::Source;
pub use json::{Node, Span, Spanned};
pub use limits::DocumentLimits;
pub use recognise::{Dialect, recognise};
