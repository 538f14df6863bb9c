//! Placeholders of steps: what they name, and whether anything can bring it (D-15, P-25).

use super::super::doc::{Parameters, Step};
use super::{Check, Place};
use crate::checks::{self, Kind};
use crate::diagnostic::shown;
use crate::json::{Span, Spanned, place_in_string, places_in_string};
use crate::outputs::Undeclared;
use crate::{Finding, Severity};
use selvedge_engine::ToolDef;
use selvedge_engine::template::{Placeholder, Root, Seg, Template, classify};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::HashSet;
use std::sync::Arc;

/// The places of all placeholders in arguments without an unfinished one, in their order.
pub(super) fn places_of(parameters: &Parameters, document: &str) -> Vec<Span> {
    let mut places = Vec::new();
    parameters.root.each_string(&mut |text, literal| {
        let Ok(template) = Template::parse(text) else { return };
        let parts = template.placeholders().map(|p| p.offset..p.offset + p.raw.len());
        places.extend(parameters.parts(document, literal, parts));
    });
    places
}

impl<'p> Check<'p, '_> {
    pub(super) fn parameters(&mut self, step: &'p Step, parameters: &'p Parameters) {
        let text = self.source.text();
        let Some(template) = parameters.template() else { return self.broken_parameters(step, parameters) };
        // Found only when there is something to say: in a task that is right nobody asks for them.
        let places = LazyCell::new(|| places_of(parameters, text));
        for (at, (_, placeholder)) in template.placeholders().enumerate() {
            let place = || places.get(at).copied().unwrap_or(parameters.root.span);
            self.placeholder(Some(step), placeholder, &place);
        }
        parameters.root.each_string(&mut |written, literal| {
            self.slips(written, |part| parameters.part(text, literal, part));
        });
    }

    fn slips(&mut self, text: &str, place: impl Fn(std::ops::Range<usize>) -> Span) {
        let means = |name: &str| self.is_step(name) || self.has(name);
        let found = checks::slips(text, means, place);
        found.into_iter().for_each(|finding| self.diagnostics.push(finding));
    }

    /// Arguments with at least one placeholder that is unfinished.
    fn broken_parameters(&mut self, step: &'p Step, parameters: &'p Parameters) {
        let mut texts = Vec::new();
        parameters.root.each_string(&mut |text, span| texts.push((text, span)));
        let document = self.source.text();
        for (text, literal) in texts {
            match Template::parse(text) {
                Err(error) => {
                    let place = |part| parameters.part(document, literal, part);
                    self.diagnostics.push(checks::unfinished(error, place));
                }
                Ok(template) => {
                    let parts = template.placeholders().map(|p| p.offset..p.offset + p.raw.len());
                    let places = parameters.parts(document, literal, parts);
                    for (placeholder, place) in template.placeholders().zip(places) {
                        self.placeholder(Some(step), placeholder, &|| place);
                    }
                }
            }
        }
    }

    /// A text of the task itself, or of a step.
    pub(super) fn text(&mut self, step: Option<&Step>, text: &Spanned<Arc<str>>) {
        let document = self.source.text();
        match Template::parse(&text.value) {
            Err(error) => {
                let place = |part| place_in_string(document, text.span, part);
                self.diagnostics.push(checks::unfinished(error, place));
            }
            Ok(template) => {
                let parts = template.placeholders().map(|p| p.offset..p.offset + p.raw.len());
                let places = places_in_string(document, text.span, parts);
                for (placeholder, place) in template.placeholders().zip(places) {
                    self.placeholder(step, placeholder, &|| place);
                }
                self.slips(&text.value, |part| place_in_string(document, text.span, part));
            }
        }
    }

    /// `step`: where it stands; `None` is the task, which is said before any step has run.
    fn placeholder(&mut self, step: Option<&Step>, placeholder: &Placeholder, place: Place<'_>) {
        match classify(&placeholder.path, |id| self.is_step(id)) {
            Root::StepOutput { step: id, rest } => {
                self.output_of(step, id, placeholder, place);
                self.fields_of(step, id, rest, placeholder, place);
            }
            Root::Inputs { name, .. } => {
                if self.names.as_ref().is_some_and(|names| !names.contains(name)) {
                    self.unsupplied(placeholder, name, place(), false);
                }
            }
            Root::Metadata { name, .. } => {
                self.supplied(step, placeholder, name, place);
            }
            Root::Name { name, .. } => {
                if checks::names_output(&placeholder.path) && !self.has(name) {
                    let message =
                        format!("{} names no step: there is no step {}", placeholder.raw, shown(name));
                    self.unknown_step(name, place(), message);
                } else if self.supplied(step, placeholder, name, place)
                    && let Some(by) = step.and_then(|step| self.shadows(step, name))
                {
                    let finding = checks::shadowed(&Kind::STEP, &placeholder.raw, name, by, place());
                    self.diagnostics.push(finding);
                }
            }
        }
    }

    /// The last step before one that declares a name of the first layer. Searched only while somebody will see it.
    fn shadows(&self, step: &Step, name: &str) -> Option<&'p str> {
        let both = self.names.as_ref().is_some_and(|names| names.contains(name))
            && (self.supplied.contains_key(name) || self.prefixed(name).next().is_some());
        if !both || self.diagnostics.is_full(Severity::Warning, "name-shadowed") {
            return None;
        }
        let declares = |def: &Option<Arc<ToolDef>>, field: &str| {
            let outputs = def.as_ref().and_then(|def| def.output_params.as_ref());
            outputs.is_some_and(|outputs| outputs.has(field))
        };
        let brings = |id: &str| {
            let own = name.strip_prefix(id).and_then(|rest| rest.strip_prefix('_'));
            let defs = self.results.get(id).map(Vec::as_slice).unwrap_or_default();
            defs.iter().any(|def| declares(def, name) || own.is_some_and(|field| declares(def, field)))
        };
        let listed = self.steps.iter().rev().filter(|other| other.index < step.index);
        let found = listed.map(|other| &*other.id.value).find(|id| brings(id));
        // Of those that had run before the list, any will do, but always the same.
        found.or_else(|| self.earlier.iter().copied().filter(|id| brings(id)).min())
    }

    fn output_of(&mut self, step: Option<&Step>, id: &str, placeholder: &Placeholder, place: Place<'_>) {
        if self.names.as_ref().is_some_and(|names| names.contains(id)) {
            self.diagnostics.push(Kind::STEP.hidden_name(id, place()));
        }
        match (self.ids.get(id), step) {
            (Some(_), None) => {
                let message =
                    format!("{} in the task: no step has run when the task is said", placeholder.raw);
                let finding = Finding::error("D-15", "later-step", place(), message);
                self.diagnostics.push(finding.help("use metadata or an input there"));
            }
            (Some(&to), Some(step)) => self.link(step.index, to, place, || placeholder.raw.to_string()),
            (None, _) if self.earlier.contains(id) => {}
            (None, _) => {
                let message = format!("{} names no step: there is no step {}", placeholder.raw, shown(id));
                self.unknown_step(id, place(), message);
            }
        }
    }

    /// D-24: a path into an earlier step's output that none of the tools that may have given it declares.
    fn fields_of(
        &mut self,
        step: Option<&Step>,
        id: &str,
        path: &[Seg],
        raw: &Placeholder,
        place: Place<'_>,
    ) {
        let later = |index: &usize| step.is_none_or(|step| *index >= step.index);
        if self.ids.get(id).is_some_and(later) {
            return;
        }
        let tools = self.results.get(id).map(Vec::as_slice).unwrap_or_default();
        let outputs = |def: &'_ Option<Arc<ToolDef>>| def.as_ref().and_then(|def| def.output_params.clone());
        let outputs: Vec<_> = tools.iter().map(outputs).collect();
        let found = outputs.iter().map(|outputs| Undeclared::find(outputs.as_ref()?, path));
        if let Some(found) = Undeclared::in_all(found) {
            let names = tools.iter().flatten().map(|def| shown(&def.name)).collect::<Vec<_>>().join(" or ");
            self.diagnostics.push(found.finding(raw, &format!("tool {names}"), place()));
        }
    }

    /// Whether an id is that of a step of the list, or of one that has run.
    pub(super) fn is_step(&self, id: &str) -> bool {
        self.ids.contains_key(id) || self.earlier.contains(id)
    }

    /// Whether something is known to bring the name.
    fn has(&self, name: &str) -> bool {
        self.supplied.contains_key(name)
            || self.names.as_ref().is_none_or(|names| names.contains(name))
            || self.prefixed(name).next().is_some()
    }

    /// P-25: whether something may bring the name; a finding if nothing may, or if it is almost another name.
    fn supplied(
        &mut self,
        step: Option<&Step>,
        placeholder: &Placeholder,
        name: &str,
        place: Place<'_>,
    ) -> bool {
        let (has, may) = (self.has(name), step.is_some() && self.unknown);
        if !has {
            self.unsupplied(placeholder, name, place(), may);
        }
        has || may
    }

    /// A name that nothing is known to bring; `may`: a result of unknown fields could.
    fn unsupplied(&mut self, placeholder: &Placeholder, name: &str, place: Span, may: bool) {
        let Self { names, supplied, results, ids, earlier, for_model, diagnostics, .. } = self;
        let count = names.as_ref().map_or(0, HashSet::len) + supplied.len() + 2 * ids.len() + earlier.len();
        let known = || {
            let mut known: Vec<Cow<'_, str>> =
                names.iter().flatten().map(|name| Cow::Borrowed(*name)).collect();
            known.extend(supplied.keys().map(|name| Cow::Borrowed(&**name)));
            known.extend(ids.keys().chain(earlier.iter()).map(|id| Cow::Borrowed(*id)));
            for (id, tools) in results.iter() {
                let outputs = tools.iter().flatten().filter_map(|def| def.output_params.as_ref());
                let fields = outputs.flat_map(|outputs| outputs.names());
                known.extend(fields.map(|field| Cow::Owned(format!("{id}_{field}"))));
            }
            known
        };
        if may {
            checks::hardly_supplied(placeholder, name, place, (count, known), diagnostics);
        } else {
            checks::nothing_supplies(placeholder, name, place, (count, known), *for_model, diagnostics);
        }
    }
}
