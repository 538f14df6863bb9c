//! Expressions: conditions of ways and loops, and values of variables, in a part of CEL (E-46).
//!
//! An [`Expression`] is parsed once and evaluated as often as needed against what a placeholder would see
//! ([`Layers`]). Its variables are the roots of placeholders, without braces: `n1.output.score > 3 && flag`. A node whose
//! id is no name of CEL is `results["fetch-a"].output`.
//!
//! Nothing here does I/O, and nothing depends on a clock, a locale or an order of addresses: the same expression over
//! the same values comes to the same (E-02). What it may cost is counted, and an expression that nests deeper than
//! [`DEPTH`] or is longer than [`BYTES`] is none: what is written in a document can't exhaust stack, memory or time.
//!
//! What of CEL there is, and what not, `docs/expressions.md` says.

mod access;
mod ast;
mod condition;
mod eval;
mod functions;
mod lex;
mod numbers;
mod operators;
mod parse;
mod result;
mod roots;
mod value;

pub use condition::Condition;

use crate::fault::{Fault, FaultKind};
use crate::template::{Layers, Path};
use ast::{Expr, Kind};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// How deep an expression may be nested.
pub const DEPTH: usize = 64;
/// How long its text may be, in bytes.
pub const BYTES: usize = 16 << 10;
/// What one evaluation may cost unless a run says otherwise: steps, elements, and bytes of text.
pub const COST: u64 = 1_000_000;

/// A parsed expression. Cheap to clone; equal when the sources are; serialized as its source.
#[derive(Clone)]
pub struct Expression(Arc<Parsed>);

struct Parsed {
    source: Box<str>,
    root: Expr,
    paths: Vec<(usize, Path)>,
}

/// Why a text is no expression. An error of the document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at byte {at})")]
pub struct ExpressionError {
    /// Byte offset in the source.
    pub at: usize,
    /// What is wrong and how to write it, for people.
    pub message: String,
}

impl ExpressionError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// Why an expression came to no value: the fault `input_error`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// What it says can't be done with these values.
    #[error("{message} (at byte {at})")]
    Wrong {
        /// Byte offset in the source of what can't be done.
        at: usize,
        /// Why not, for people.
        message: String,
    },
    /// It costs more than it may.
    #[error("it costs more than {most} steps, elements and bytes of text (`expression_cost` in [limits])")]
    TooMuch {
        /// What it may cost.
        most: u64,
    },
}

impl From<EvaluationError> for Fault {
    fn from(error: EvaluationError) -> Self {
        Fault::new(FaultKind::InputError, error.to_string())
    }
}

impl Expression {
    /// Parses a text.
    ///
    /// # Errors
    /// [`ExpressionError`] for what is no expression, is not supported, or is over [`DEPTH`] or [`BYTES`].
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        let root = parse::parse(source)?;
        let mut paths = Vec::new();
        collect(&root, &mut paths);
        Ok(Self(Arc::new(Parsed { source: source.into(), root, paths })))
    }

    /// The text that it was parsed from.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The paths that it reads as placeholders do, in the order of the text, each as far as it is written out:
    /// `n1.output[i]` reads `n1.output`.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.paths.iter().map(|(_, path)| path)
    }

    /// The same, each with the byte offset at which it stands.
    pub fn reads(&self) -> impl Iterator<Item = (usize, &Path)> {
        self.0.paths.iter().map(|(at, path)| (*at, path))
    }

    /// What it comes to, for at most that cost.
    ///
    /// # Errors
    /// [`EvaluationError`] if it comes to no value that JSON has.
    pub fn evaluate(&self, layers: &dyn Layers, most: u64) -> Result<Value, EvaluationError> {
        eval::evaluate(&self.0.root, layers, most)
    }
}

fn collect(expr: &Expr, paths: &mut Vec<(usize, Path)>) {
    if let Kind::Root(root) = &expr.kind {
        paths.push((expr.at, root.path.clone()));
    }
    for part in expr.parts() {
        collect(part, paths);
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source
    }
}

impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.0.source).finish()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.source)
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.source())
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
