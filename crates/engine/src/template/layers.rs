//! What a placeholder can see, and how it is looked up (D-01 … D-03, D-07).

use serde_json::Value;

use super::name::{is_digits, member, normalized};
use super::path::{Path, Root, Seg, classify};

/// What a reader can see. The engine's scope implements it for a place in a graph; tests implement it over maps.
///
/// Every look-up should cost the same however much is stored (D-13), except [`Layers::names`].
pub trait Layers {
    /// Whether `id` is a step of this scope, run or not.
    fn is_step(&self, id: &str) -> bool;
    /// How far a step has come. Asked only for ids that [`Layers::is_step`] affirms.
    fn step(&self, id: &str) -> StepView<'_>;
    /// What of a step can be seen under `errors`, beside its output: of a join the faults of its paths (W-09).
    fn errors(&self, id: &str) -> Option<&Value> {
        let _ = id;
        None
    }
    /// A top-level value of `runtime_metadata` (D-02).
    fn runtime(&self, name: &str) -> Option<&Value>;
    /// A top-level value of `initial_metadata` (D-01).
    fn initial(&self, name: &str) -> Option<&Value>;
    /// That top-level key's value in the latest retired successful step whose output object has it (D-07).
    fn fallback(&self, name: &str) -> Option<&Value>;
    /// All names that could stand first in a path, for the nearest ones in messages. Only asked on a failure.
    fn names(&self) -> Vec<String>;
}

/// What of a step that failed can be seen: `{{step.error.kind}}`.
const ERROR: &str = "error";
/// What of a join can be seen beside its results: `{{join.errors.path.kind}}`. The result of a path of that id comes first.
const ERRORS: &str = "errors";

/// A step, as its readers see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepView<'a> {
    /// It has not run (yet), or was skipped.
    NotRun,
    /// It ran and failed; where that was handled, the one member `error` says why (W-08).
    Failed(&'a Value),
    /// It succeeded with this output (as E-25 shows it).
    Output(&'a Value),
}

/// Why a look-up found nothing. Cheap; [`Unresolved`](super::Unresolved) is the full story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// The root can only be a step id, and there is no such step.
    UnknownStep,
    /// The step has not run.
    StepNotRun,
    /// The step failed.
    StepFailed,
    /// No layer has a value of this name.
    UnknownName,
    /// There is a value, but the path leads out of it.
    NoField {
        /// Index, in the `rest` of the path's [`Root`], of the first segment that is not there.
        depth: usize,
    },
}

/// Finds the value a path refers to (D-07). The name alone chooses the layer: a path that leads nowhere in
/// `runtime_metadata`'s value is not tried on another layer's value of the same name, which it overrides (D-02).
///
/// # Errors
/// A [`Miss`] when there is no value.
pub fn lookup<'a>(path: &Path, layers: &'a dyn Layers) -> Result<&'a Value, Miss> {
    let (value, rest) = start(&classify(path, |id| layers.is_step(id)), layers)?;
    walk(value, rest).map_err(|(depth, _)| Miss::NoField { depth })
}

/// The value a root stands for, and the path still to go from there.
pub(crate) fn start<'a, 'p>(root: &Root<'p>, layers: &'a dyn Layers) -> Result<(&'a Value, &'p [Seg]), Miss> {
    let (found, rest) = match *root {
        Root::StepOutput { step, .. } if !layers.is_step(step) => return Err(Miss::UnknownStep),
        Root::StepOutput { step, rest } => match layers.step(step) {
            StepView::NotRun => return Err(Miss::StepNotRun),
            StepView::Failed(why) => match rest.split_first() {
                Some((Seg::Key(key), rest)) if &**key == ERROR => {
                    return why.get(ERROR).map(|error| (error, rest)).ok_or(Miss::StepFailed);
                }
                _ => return Err(Miss::StepFailed),
            },
            StepView::Output(value) => match rest.split_first() {
                Some((Seg::Key(key), below)) if &**key == ERRORS && value.get(ERRORS).is_none() => {
                    layers.errors(step).map_or((Some(value), rest), |errors| (Some(errors), below))
                }
                _ => (Some(value), rest),
            },
        },
        Root::Metadata { name, rest } => {
            let name = &*normalized(name);
            (layers.runtime(name).or_else(|| layers.initial(name)), rest)
        }
        Root::Inputs { name, rest } => (layers.initial(&normalized(name)), rest),
        Root::Name { name, rest } => {
            (layers.runtime(name).or_else(|| layers.initial(name)).or_else(|| layers.fallback(name)), rest)
        }
    };
    found.map(|value| (value, rest)).ok_or(Miss::UnknownName)
}

/// Goes down `rest` from `value`. The error holds the index of the segment that is missing and the value that lacks
/// it. Text is not looked into, even if it is JSON (E-25).
pub(super) fn walk<'a>(mut value: &'a Value, rest: &[Seg]) -> Result<&'a Value, (usize, &'a Value)> {
    for (depth, seg) in rest.iter().enumerate() {
        value = child(value, seg).ok_or((depth, value))?;
    }
    Ok(value)
}

fn child<'a>(value: &'a Value, seg: &Seg) -> Option<&'a Value> {
    match (value, seg) {
        (Value::Object(members), Seg::Key(key)) => member(members, key),
        (Value::Array(items), Seg::Key(key)) if is_digits(key) => items.get(key.parse::<usize>().ok()?),
        (Value::Array(items), Seg::Index(index)) => {
            let distance = usize::try_from(index.unsigned_abs()).ok()?;
            items.get(if *index < 0 { items.len().checked_sub(distance)? } else { distance })
        }
        _ => None,
    }
}
