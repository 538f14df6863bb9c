//! The typed step task.

use crate::Source;
use crate::head::Head;
use crate::json::{Node, Span, Spanned, offsets_in_string, place_in_string, places_in_string};
use crate::settings::{Retry, ToolEffects};
use selvedge_engine::template::{JsonTemplate, OnMissing};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A step task as it was written.
#[derive(Clone, Debug)]
pub struct StepsDoc {
    /// What it says besides its steps; its task is for people and for the model that plans.
    pub head: Head,
    /// The steps in list order; `None`: a model plans them (`D-21`).
    pub steps: Option<Vec<Step>>,
    /// How failures are dealt with (`D-23`), as far as the document says.
    pub recovery: Recovery,
    /// Whether every step could be read.
    pub complete: bool,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Position in the list, from 0.
    pub index: usize,
    /// Where the step's object is written.
    pub span: Span,
    /// Its id, unique in the task.
    pub id: Spanned<Arc<str>>,
    /// Its name, for people; without one the id.
    pub name: Arc<str>,
    /// The tool it runs.
    pub tool: Spanned<Arc<str>>,
    /// The tool's arguments.
    pub parameters: Option<Parameters>,
    /// Steps that it comes after although it reads nothing of them (`D-14`).
    pub depends_on: Vec<Spanned<Arc<str>>>,
    /// What is tried in its place, in this order (`D-18`).
    pub alternatives: Vec<Alternative>,
    /// Extra attempts for transient faults, if written (`P-24`).
    pub retry: Option<Spanned<Retry>>,
    /// Time limit of a call, if written.
    pub timeout: Option<Spanned<Duration>>,
    /// What an unresolved placeholder becomes (`D-10`).
    pub on_missing: OnMissing,
    /// Effects that override those of its own tool (`E-22`).
    pub effects: Option<Spanned<ToolEffects>>,
}

/// Another tool for a step (`D-23`).
#[derive(Clone, Debug)]
pub struct Alternative {
    /// The tool.
    pub tool: Spanned<Arc<str>>,
    /// Its arguments; those of the step if it has none of its own.
    pub parameters: Option<Parameters>,
}

/// Arguments of a call: an object whose strings and keys are templates, with the places of all of them.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// The object. If it is written as a JSON string (`D-12`), places in it count in that string's text.
    pub root: Node<'static>,
    /// The string's text, and where each byte of it is written in the document.
    pub string: Option<Arc<Inner>>,
    /// The object as a template (D-13); `None` if a placeholder in it is unfinished.
    template: Option<JsonTemplate>,
}

/// A JSON document inside a string of another one (`D-12`).
#[derive(Debug)]
pub struct Inner {
    /// The text, escapes resolved.
    text: Arc<str>,
    /// For every offset into it, the offset in the document.
    offsets: Vec<u32>,
}

impl Inner {
    /// The text of a string literal of `source`.
    pub(super) fn new(source: &Source, text: &str, literal: Span) -> Self {
        Inner { text: text.into(), offsets: offsets_in_string(source.text(), literal) }
    }

    /// The place in the document of a place in the text.
    pub(super) fn place(&self, inner: Span) -> Span {
        let at = |offset: u32| {
            let known = self.offsets.get(offset as usize).or(self.offsets.last());
            known.copied().unwrap_or_default()
        };
        Span { start: at(inner.start), end: at(inner.end) }
    }
}

impl Parameters {
    /// Arguments written as an object, or as a string that holds one.
    pub(super) fn new(root: Node<'static>, string: Option<Arc<Inner>>) -> Self {
        let template = JsonTemplate::from_value(root.to_value()).ok();
        Self { root, string, template }
    }

    /// The arguments as a template, parsed once (D-13); `None` if a placeholder in it is unfinished.
    pub fn template(&self) -> Option<&JsonTemplate> {
        self.template.as_ref()
    }

    /// The place in the document of a place in the object.
    pub fn place(&self, span: Span) -> Span {
        self.string.as_ref().map_or(span, |inner| inner.place(span))
    }

    /// The place in the document of a part of the string whose literal is at `literal`.
    pub fn part(&self, document: &str, literal: Span, part: Range<usize>) -> Span {
        match &self.string {
            None => place_in_string(document, literal, part),
            Some(inner) => inner.place(place_in_string(&inner.text, literal, part)),
        }
    }

    /// The places of parts of one string, which are in its order and apart from each other.
    pub fn parts(
        &self,
        document: &str,
        literal: Span,
        parts: impl Iterator<Item = Range<usize>>,
    ) -> Vec<Span> {
        match &self.string {
            None => places_in_string(document, literal, parts),
            Some(inner) => {
                let found = places_in_string(&inner.text, literal, parts);
                found.into_iter().map(|span| inner.place(span)).collect()
            }
        }
    }
}

/// What becomes of the later steps when one has failed for good (`D-16`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Siblings {
    /// Those that can't depend on it still run.
    #[default]
    Finish,
    /// None of them runs: a precise fault (`P-20`).
    Hold,
}

impl Siblings {
    /// All kinds with their names.
    pub const NAMES: [(&'static str, Siblings); 2] = [("finish", Siblings::Finish), ("hold", Siblings::Hold)];
}

/// Settings of recovery (`D-19`, `D-23`), as far as somebody says something: a document, or `[recovery]` of the
/// configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether a model may decide; if not, only the ladder of `D-18` is climbed.
    pub model: Option<bool>,
    /// What becomes of later steps.
    pub siblings: Option<Siblings>,
    /// Extra attempts of a step at transient faults, and new tries that a model may decide on.
    pub retries: Option<u32>,
    /// Repairs of a step.
    pub repairs: Option<u32>,
    /// Replans of a run.
    pub replans: Option<u32>,
    /// Steps that may fail for good one after another before the run ends.
    pub consecutive_failures: Option<u32>,
    /// Rounds of reflection of a step.
    pub reflections: Option<u32>,
}

impl Recovery {
    /// These settings, and where they say nothing, `under`'s.
    #[must_use]
    pub fn over(self, under: Recovery) -> Recovery {
        Recovery {
            model: self.model.or(under.model),
            siblings: self.siblings.or(under.siblings),
            retries: self.retries.or(under.retries),
            repairs: self.repairs.or(under.repairs),
            replans: self.replans.or(under.replans),
            consecutive_failures: self.consecutive_failures.or(under.consecutive_failures),
            reflections: self.reflections.or(under.reflections),
        }
    }
}
