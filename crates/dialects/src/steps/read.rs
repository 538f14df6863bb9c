//! Reading a step task from its JSON.

use super::doc::{Recovery, Siblings, Step, StepsDoc};
use super::read_step;
use crate::Capabilities;
use crate::diagnostic::shown;
use crate::fields::{Fields, Shape};
use crate::head::{Head, List, each_once, repeated};
use crate::json::Node;
use crate::{Diagnostics, DocumentLimits, Finding, Source};
use std::sync::Arc;

/// `$schema` is for editors and says nothing to the reader (`C-11`).
pub(super) const TASK: Shape = Shape {
    what: "a step task",
    fields: &["$schema", "budget", "description", "inputs", "metadata", "name", "recovery", "steps", "task"],
};

/// Settings of `recovery` (`D-23`).
pub(super) const RECOVERY: Shape = Shape {
    what: "`recovery`",
    fields: &["consecutive_failures", "model", "reflections", "repairs", "replans", "retries", "siblings"],
};

/// Limits are counts of rounds and tries: more would only hide a slip of the pen.
const MOST: u64 = 1_000;

/// Reads a step task. Everything that could be read is returned, with every finding in `diagnostics`; `None` only if
/// it is no object at all. Go on to run it only if `diagnostics` has no errors.
///
/// `source` is what the document was parsed from.
pub fn read(
    root: &Node<'_>,
    source: &Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<StepsDoc> {
    let fields = Fields::open(root, &TASK, "D-15", diagnostics)?;
    let head = Head::read(
        &fields,
        ("task", Some(("D-15", "say what is to be done: \"task\": \"…\""))),
        source,
        diagnostics,
    );
    let recovery = fields.given("recovery").map(|node| recovery(node, source, diagnostics));
    let (steps, complete) = match fields.given("steps") {
        None => (None, true),
        Some(list) => {
            let (steps, complete) = read_steps(list, source, limits, diagnostics);
            (Some(steps), complete)
        }
    };
    Some(StepsDoc { head, steps, recovery: recovery.unwrap_or_default(), complete })
}

/// `recovery` (`D-23`); the same shape as `[recovery]` of the configuration.
fn recovery(node: &Node<'_>, source: &Source, diagnostics: &mut Diagnostics) -> Recovery {
    let Some(fields) = Fields::open(node, &RECOVERY, "D-23", diagnostics) else { return Recovery::default() };
    let mut count = |field: &'static str, least: u64| {
        let count = fields.count(field, "D-23", source, diagnostics)?;
        if (least..=MOST).contains(&count.value) {
            return u32::try_from(count.value).ok();
        }
        let message = format!("`{field}` must be from {least} to {MOST}");
        let finding = Finding::error("D-19", "out-of-range", count.span, message);
        diagnostics.push(finding.help("leave the field out for the default"));
        None
    };
    let (retries, repairs, replans) = (count("retries", 0), count("repairs", 0), count("replans", 0));
    // With none at all a run would end before anything failed.
    let (consecutive_failures, reflections) = (count("consecutive_failures", 1), count("reflections", 0));
    Recovery {
        model: fields.boolean("model", "D-23", diagnostics).map(|flag| flag.value),
        siblings: fields.choice("siblings", "D-23", &Siblings::NAMES, diagnostics).map(|choice| choice.value),
        retries,
        repairs,
        replans,
        consecutive_failures,
        reflections,
    }
}

fn read_steps(
    list: &Node<'_>,
    source: &Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> (Vec<Step>, bool) {
    const STEPS: List = List {
        field: "steps",
        document: "task",
        rule: "D-15",
        help: "write the list of steps: \"steps\": [ … ], or leave it out to let a model plan them",
    };
    let Some(elements) = STEPS.elements(list, limits, diagnostics) else { return (Vec::new(), false) };
    let read = |(index, node): (usize, &Node<'_>)| read_step::read(index, node, source, limits, diagnostics);
    let steps: Vec<Step> = elements.iter().enumerate().filter_map(read).collect();
    report_duplicate_ids(&steps, source, diagnostics);
    let complete = steps.len() == elements.len();
    (steps, complete)
}

fn report_duplicate_ids(steps: &[Step], source: &Source, diagnostics: &mut Diagnostics) {
    for (first, step) in repeated(steps, |step| &step.id.value) {
        let place = source.place(first.id.span.start as usize);
        let message = format!("two steps have the id {}", shown(&step.id.value));
        let help = format!(
            "the first is at line {}, column {}: give one of them another `step_id`",
            place.line, place.column
        );
        diagnostics.push(Finding::error("D-15", "duplicate-step-id", step.id.span, message).help(help));
    }
}

impl StepsDoc {
    /// The settings of recovery in force: the document's over the configuration's (`D-19`).
    pub(super) fn recovery_with(&self, capabilities: &Capabilities) -> Recovery {
        self.recovery.over(capabilities.recovery)
    }

    /// Every tool that its steps and their alternatives name, each once, in the order of the document.
    pub fn tools(&self) -> Vec<Arc<str>> {
        each_once(self.steps.iter().flatten().flat_map(|step| {
            let others = step.alternatives.iter().map(|alternative| &alternative.tool.value);
            std::iter::once(&step.tool.value).chain(others)
        }))
    }
}
