//! Types of what placeholders bring (D-15, D-24): what the tools that give it declare, against what the tool that takes it
//! wants in that place.
//!
//! Only what can't fit is told. A declaration that says nothing of a value fits, and of several tools that may give it,
//! one that fits is enough.

use super::super::doc::{Parameters, Step};
use super::Check;
use super::placeholders::places_of;
use crate::Finding;
use crate::diagnostic::shown;
use crate::types::{Types, Way, types_at, ways_of};
use selvedge_engine::template::{OnMissing, Path, Placeholder, Root, Seg, classify};
use selvedge_engine::{Outputs, ToolDef};
use std::sync::Arc;

/// Most declarations of one name that are told apart.
const TOLD_APART: usize = 8;
/// The way out where a placeholder stands in a longer text.
const AS_TEXT: &str = "let the placeholder stand alone in its string: its value then keeps its type";
/// Most other fields that are named as a way out.
const NAMED: usize = 3;

/// What may bring the value of a name: fields of tools' outputs whose types are declared. `None`: also something of which
/// nothing is known.
pub(super) struct Brought(Option<Vec<(Arc<ToolDef>, Arc<str>)>>);

impl Brought {
    /// By one field of a tool, if it says of what type it is.
    pub(super) fn by(field: Option<(&Arc<ToolDef>, &Arc<str>)>) -> Self {
        Self(field.map(|(def, field)| vec![(def.clone(), field.clone())]))
    }

    /// Or by another one.
    pub(super) fn or(&mut self, field: Option<(&Arc<ToolDef>, &Arc<str>)>) {
        let (Some(known), Some((def, field))) = (&mut self.0, field) else {
            self.0 = None;
            return;
        };
        if known.iter().any(|(other, same)| Arc::ptr_eq(other, def) && same == field) {
            return;
        }
        match known.len() < TOLD_APART {
            true => known.push((def.clone(), field.clone())),
            false => self.0 = None,
        }
    }

    fn types(&self, rest: &[Seg]) -> Types {
        let of = |(def, field): &(Arc<ToolDef>, Arc<str>)| types_of(def, field, rest);
        self.0
            .as_ref()
            .map_or(Types::ANY, |known| known.iter().map(of).reduce(Types::or).unwrap_or(Types::ANY))
    }
}

/// The types of what stands in a field of a tool's output, at the end of a path into it.
fn types_of(def: &ToolDef, field: &str, rest: &[Seg]) -> Types {
    let schema = def.output_params.as_ref().and_then(|outputs| outputs.schema(field));
    let way = |seg: &'_ Seg| match seg {
        Seg::Key(key) => Way::Key(key.to_string().into()),
        Seg::Index(index) => Way::Index(*index),
    };
    schema.map_or(Types::ANY, |schema| types_at(schema, &rest.iter().map(way).collect::<Vec<_>>()))
}

/// The types of what stands at the end of a path into a tool's output.
fn output_of(def: Option<&ToolDef>, path: &[Seg]) -> Types {
    // Without types nobody knows whether it is an object at all.
    let Some(def) = def.filter(|def| def.output_params.as_ref().is_some_and(Outputs::is_typed)) else {
        return Types::ANY;
    };
    match path.split_first() {
        None => Types::OBJECT,
        Some((Seg::Key(field), rest)) => types_of(def, field, rest),
        Some((Seg::Index(_), _)) => Types::ANY,
    }
}

impl<'p> Check<'p, '_> {
    /// Holds what placeholders in arguments become against the schema of the tool that is given them.
    pub(super) fn types(&mut self, step: &Step, def: &ToolDef, parameters: &'p Parameters) {
        let Some(template) = parameters.template() else { return };
        let (mut placeholders, mut at) = (template.placeholders(), 0);
        for text in template.templates() {
            let count = text.placeholders().count();
            if count == 0 {
                continue;
            }
            let Some((pointer, first)) = placeholders.next() else { break };
            placeholders.by_ref().take(count - 1).for_each(drop);
            let nth = at;
            at += count;
            // Below a key that is not known yet, nobody knows what is wanted.
            if pointer.contains("{{") || pointer.contains("${") {
                continue;
            }
            let alone = first.raw.len() == text.source().len();
            let given = match (alone, step.on_missing) {
                (false, _) => Types::STRING,
                (true, OnMissing::Fault) => self.brought(step, &first.path),
                (true, OnMissing::Null) => self.brought(step, &first.path).or(Types::NULL),
                (true, OnMissing::Keep) => self.brought(step, &first.path).or(Types::STRING),
            };
            if given == Types::ANY {
                continue;
            }
            let wanted = types_at(&def.input_schema, &ways_of(pointer));
            if !given.meets(wanted) {
                let place = places_of(parameters, self.source.text()).get(nth).copied();
                let place = place.unwrap_or_else(|| parameters.place(parameters.root.span));
                let (said, help) = match alone {
                    true => (format!("{} is {given}", first.raw), self.fitting(first, wanted)),
                    false => (format!("a text with {} is a string", first.raw), AS_TEXT.to_owned()),
                };
                let message = format!("{said}, and tool {} wants {wanted} for `{pointer}`", shown(&def.name));
                let finding = Finding::error("D-15", "type-mismatch", place, message).help(help);
                self.diagnostics.push(finding);
            }
        }
    }

    /// The types of what a placeholder brings, as far as those who bring it declare them.
    fn brought(&self, step: &Step, path: &Path) -> Types {
        match classify(path, |id| self.is_step(id)) {
            Root::StepOutput { step: id, rest } => {
                // What comes later in the list is another error.
                let earlier = self.ids.get(id).is_none_or(|index| *index < step.index);
                let tools = self.results.get(id).filter(|_| earlier).map(Vec::as_slice).unwrap_or_default();
                let types = tools.iter().map(|def| output_of(def.as_deref(), rest));
                types.reduce(Types::or).unwrap_or(Types::ANY)
            }
            Root::Metadata { name, rest } | Root::Name { name, rest } => {
                // Values of the first layer are known only once it runs; a tool that declares nothing may bring any name.
                let first_layer = self.names.as_ref().is_none_or(|names| names.contains(name));
                if first_layer || self.unknown {
                    return Types::ANY;
                }
                let bare = self.supplied.get(name).map(|known| known.types(rest));
                let prefixed = self.prefixed(name).map(|(def, field)| types_of(def, field, rest));
                bare.into_iter().chain(prefixed).reduce(Types::or).unwrap_or(Types::ANY)
            }
            Root::Inputs { .. } => Types::ANY,
        }
    }

    /// A way out: other fields of the same step that would do.
    fn fitting(&self, placeholder: &Placeholder, wanted: Types) -> String {
        let correct = "correct what the tool that gives it declares of its output";
        let Root::StepOutput { step: id, .. } = classify(&placeholder.path, |id| self.is_step(id)) else {
            return format!("use a value that is {wanted}, or {correct}");
        };
        let tools = self.results.get(id).map(Vec::as_slice).unwrap_or_default();
        let typed = tools.iter().flatten().filter_map(|def| Some((def, def.output_params.as_ref()?)));
        let fields = typed.flat_map(|(def, outputs)| outputs.names().iter().map(move |field| (def, field)));
        let fits = fields.filter(|(def, field)| {
            let types = types_of(def, field, &[]);
            types != Types::ANY && types.meets(wanted)
        });
        let named: Vec<String> = fits.take(NAMED).map(|(_, field)| shown(field)).collect();
        match named.is_empty() {
            true => format!("use a value that is {wanted}, or {correct}"),
            false => format!("use {} of step {}, or {correct}", named.join(" or "), shown(id)),
        }
    }
}
