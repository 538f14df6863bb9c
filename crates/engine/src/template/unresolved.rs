//! The story of a placeholder that found no value (D-10).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::{Fault, FaultKind};

use super::layers::{Layers, Miss, start, walk};
use super::path::{Root, Seg, classify};
use super::render::Placeholder;

/// How many of the nearest names are told.
const NEAREST: usize = 3;
/// Longer names are compared by length only: the distance of two texts costs the product of their lengths.
const COMPARED_CHARS: usize = 64;

/// An unresolved placeholder: the content of the fault `unresolved_placeholder` (D-10).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unresolved {
    /// The placeholder as written.
    pub placeholder: Arc<str>,
    /// JSON pointer of the string (or object key) that holds it, relative to the parameters; `""` for a text of its
    /// own.
    pub pointer: Box<str>,
    /// The places that were looked at, in order.
    pub looked: Vec<String>,
    /// The nearest existing names, nearest first: of fields if a field is missing, of roots otherwise.
    pub nearest: Vec<String>,
    /// What was wrong.
    pub why: Why,
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Why {
    /// There is no step of that id.
    UnknownStep {
        /// The id.
        step: Box<str>,
    },
    /// The step has not run.
    StepNotRun {
        /// Its id.
        step: Box<str>,
    },
    /// The step failed.
    StepFailed {
        /// Its id.
        step: Box<str>,
    },
    /// No layer that the placeholder sees has that name.
    UnknownName {
        /// The name.
        name: Box<str>,
    },
    /// There is a value, but the path leads out of it.
    NoField {
        /// The missing segment: `.key` or `[index]`.
        field: Box<str>,
        /// The place and type of the value that lacks it, for people.
        holder: Box<str>,
    },
}

impl Unresolved {
    /// Tells what `miss` was about. Reads all names of the scope: for failures only.
    pub(crate) fn explain(placeholder: &Placeholder, miss: Miss, layers: &dyn Layers) -> Self {
        let root = classify(&placeholder.path, |id| layers.is_step(id));
        let (name, rest) = match root {
            Root::StepOutput { step: name, rest }
            | Root::Metadata { name, rest }
            | Root::Inputs { name, rest }
            | Root::Name { name, rest } => (name, rest),
        };
        let mut looked = places(&root, layers);
        let mut nearest = Vec::new();
        let subject = Box::from(name);
        let why = match miss {
            Miss::StepNotRun => Why::StepNotRun { step: subject },
            Miss::StepFailed => Why::StepFailed { step: subject },
            Miss::UnknownStep | Miss::UnknownName => {
                nearest = nearest_of(name, layers.names());
                match miss {
                    Miss::UnknownStep => Why::UnknownStep { step: subject },
                    _ => Why::UnknownName { name: subject },
                }
            }
            Miss::NoField { depth } => {
                let place = looked.pop().unwrap_or_default();
                looked.push(joined(&place, rest));
                let started = start(&root, layers).ok();
                // `error` and `errors` of a node are in front of what is walked.
                let first = started.map_or(0, |(_, walked)| rest.len() - walked.len());
                let (above, below) = rest.split_at_checked(first + depth).unwrap_or((rest, &[]));
                let walked = above.get(first..).unwrap_or_default();
                let holder = started.and_then(|(value, _)| walk(value, walked).ok());
                if let (Some(Value::Object(members)), Some(Seg::Key(key))) = (holder, below.first()) {
                    nearest = nearest_of(key, members.keys().cloned().collect());
                }
                let kind = holder.map_or_else(|| "missing".to_owned(), kind);
                Why::NoField {
                    field: below.first().map(Seg::to_string).unwrap_or_default().into(),
                    holder: format!("`{}` ({kind})", joined(&place, above)).into(),
                }
            }
        };
        Self { placeholder: placeholder.raw.clone(), pointer: "".into(), looked, nearest, why }
    }

    /// The same with its place filled in.
    #[must_use]
    pub fn at(mut self, pointer: &str) -> Self {
        self.pointer = pointer.into();
        self
    }
}

/// The places that `root` was looked for in: up to and including the first that has a value.
fn places(root: &Root<'_>, layers: &dyn Layers) -> Vec<String> {
    let runtime = |name: &str| (format!("runtime_metadata.{name}"), layers.runtime(name).is_some());
    let initial = |name: &str| (format!("initial_metadata.{name}"), layers.initial(name).is_some());
    let candidates = match *root {
        Root::StepOutput { step, .. } => vec![(format!("step_results.{step}.output"), true)],
        Root::Inputs { name, .. } => vec![initial(name)],
        Root::Metadata { name, .. } => vec![runtime(name), initial(name)],
        Root::Name { name, .. } => {
            vec![runtime(name), initial(name), (format!("step_results.*.output.{name}"), true)]
        }
    };
    let mut places = Vec::new();
    for (place, found) in candidates {
        places.push(place);
        if found {
            break;
        }
    }
    places
}

fn joined(place: &str, segs: &[Seg]) -> String {
    segs.iter().fold(place.to_owned(), |path, seg| path + &seg.to_string())
}

/// What a value is, for messages.
pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "a boolean".into(),
        Value::Number(_) => "a number".into(),
        Value::String(_) => "text".into(),
        Value::Array(items) => format!("an array of length {}", items.len()),
        Value::Object(members) => format!("an object of {} fields", members.len()),
    }
}

/// The names nearest to `wanted`, nearest first; equally near ones in their own order.
fn nearest_of(wanted: &str, names: Vec<String>) -> Vec<String> {
    let mut ranked: Vec<(usize, String)> =
        names.into_iter().map(|name| (distance(wanted, &name), name)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    let mut nearest = Vec::with_capacity(NEAREST);
    for (_, name) in ranked {
        if nearest.len() == NEAREST {
            break;
        }
        if !nearest.contains(&name) {
            nearest.push(name);
        }
    }
    nearest
}

fn distance(a: &str, b: &str) -> usize {
    let longest = a.chars().count().max(b.chars().count());
    if longest > COMPARED_CHARS {
        return longest;
    }
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStep { step } => write!(f, "there is no step `{step}`"),
            Self::StepNotRun { step } => write!(f, "step `{step}` has not run, so it has no output yet"),
            Self::StepFailed { step } => write!(f, "step `{step}` failed, so it has no output"),
            Self::UnknownName { name } => write!(f, "nothing is named `{name}`"),
            Self::NoField { field, holder } => write!(f, "{holder} lacks the field `{field}`"),
        }
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.placeholder)?;
        if !self.pointer.is_empty() {
            write!(f, " at {}", self.pointer)?;
        }
        write!(f, " has no value: {}; looked at {}", self.why, self.looked.join(", "))?;
        if !self.nearest.is_empty() {
            write!(f, "; nearest names: {}", self.nearest.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Unresolved {}

impl From<Unresolved> for Fault {
    fn from(error: Unresolved) -> Self {
        let fault = Self::new(FaultKind::UnresolvedPlaceholder, error.to_string());
        match serde_json::to_value(error) {
            Ok(cause) => fault.because(cause),
            Err(_) => fault,
        }
    }
}
