//! Paths of placeholders, and what their first name stands for (D-06, D-07).

use std::fmt;
use std::sync::Arc;

use super::name::{is_digits, is_name};

/// Roots with a meaning of their own; refused as step ids (D-07).
pub const RESERVED_ROOTS: [&str; 2] = ["metadata", "inputs"];

/// One step of a path into a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seg {
    /// `.key` or `["odd.key"]`: a member of an object; made only of digits, also an element of an array.
    Key(Arc<str>),
    /// `[3]` or `[-1]`: an element of an array, negative from the end. Beyond `i64` the bound is kept: no array is
    /// that long.
    Index(i64),
}

/// A parsed path: `root` and then `rest`. `Display` writes it in the grammar of D-09.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// The first name.
    pub root: Arc<str>,
    /// Where to go from there.
    pub rest: Vec<Seg>,
}

/// What a path refers to (D-07).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root<'a> {
    /// `step.output.…`, `step.outputs.…`, `step.…` or `step`: `rest` goes into that step's output.
    StepOutput {
        /// The step's id. Not necessarily a known one: a root of digits can be nothing else.
        step: &'a str,
        /// The path inside the output.
        rest: &'a [Seg],
    },
    /// `metadata.name.…`: runtime, then initial layer.
    Metadata {
        /// The top-level key.
        name: &'a str,
        /// The path inside its value.
        rest: &'a [Seg],
    },
    /// `inputs.name.…`: initial layer only.
    Inputs {
        /// The top-level key.
        name: &'a str,
        /// The path inside its value.
        rest: &'a [Seg],
    },
    /// `name.…`: runtime, then initial layer, then the latest successful step with such a key.
    Name {
        /// The top-level key.
        name: &'a str,
        /// The path inside its value.
        rest: &'a [Seg],
    },
}

/// Decides what `path` refers to, given which ids are steps of the reader's scope (D-07).
///
/// `metadata` and `inputs` come first (no step can have these ids), then steps, which shadow metadata of the same
/// name, then names. `step["output"]` is `step.output`; a field that is really called `output` is
/// `step.output.output`. `{{metadata}}` and `{{inputs}}` without a name behind them are ordinary names.
pub fn classify(path: &Path, is_step: impl Fn(&str) -> bool) -> Root<'_> {
    let root = &*path.root;
    if let Some((Seg::Key(name), rest)) = path.rest.split_first() {
        match root {
            "metadata" => return Root::Metadata { name, rest },
            "inputs" => return Root::Inputs { name, rest },
            _ => {}
        }
    }
    if is_digits(root) || is_step(root) {
        let rest = match path.rest.split_first() {
            Some((Seg::Key(key), rest)) if matches!(&**key, "output" | "outputs") => rest,
            _ => &path.rest,
        };
        return Root::StepOutput { step: root, rest };
    }
    Root::Name { name: root, rest: &path.rest }
}

impl fmt::Display for Seg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) if is_name(key) => write!(f, ".{key}"),
            Self::Key(key) => write!(f, "[{}]", serde_json::Value::from(&**key)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        self.rest.iter().try_for_each(|seg| seg.fmt(f))
    }
}
