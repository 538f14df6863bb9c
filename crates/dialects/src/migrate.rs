//! Documents in older forms, and the same documents in the form that is written today (W-01).
//!
//! What is edited are stretches of the text: everything else of it stays as it is, to the byte.

use crate::json::{self, Span};
use crate::recognise::{Choice, recognise};
use crate::{Diagnostics, Dialect, DocumentLimits, Source, workflow};

/// One place of a document that is in an older form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The node that it is in.
    pub node: String,
    /// Where the older field is written: its name.
    pub span: Span,
    /// The older field.
    pub from: &'static str,
    /// The fields in its place; none where it said nothing more.
    pub to: Vec<&'static str>,
}

/// What is older in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migration {
    /// The places, in the order of the text.
    pub changes: Vec<Change>,
    edits: Vec<Edit>,
}

/// A stretch of the text, and what stands there afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) span: Span,
    pub(crate) text: String,
}

impl Migration {
    pub(crate) fn add(&mut self, change: Change, edits: Vec<Edit>) {
        self.changes.push(change);
        self.edits.extend(edits);
    }

    /// The text in today's form; `text` is that of the source which was looked at.
    pub fn apply(&self, text: &str) -> String {
        let mut edits: Vec<&Edit> = self.edits.iter().collect();
        edits.sort_by_key(|edit| edit.span);
        let mut out = String::with_capacity(text.len() + 64 * edits.len());
        let mut at = 0;
        for edit in edits {
            let range = edit.span.range();
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(&edit.text);
            at = range.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        out
    }
}

/// Finds what is older in a document. `None`, with errors among the findings, if it can't be read, or if its forks and joins
/// are not pairs: then nobody knows what the older form means. Documents of dialects that have no older form need nothing.
pub fn migrate(source: &Source, limits: &DocumentLimits, diagnostics: &mut Diagnostics) -> Option<Migration> {
    let root = json::parse(source, limits, diagnostics)?;
    // Which of several plans would be run does not matter: no plan has an older form.
    let mut aside = Diagnostics::new();
    let dialect = match recognise(&root, Choice::default(), &mut aside) {
        Some(recognised) => recognised.dialect,
        None if aside.findings().iter().any(|finding| finding.code == "plan-not-chosen") => Dialect::Plan,
        None => {
            aside.findings().iter().for_each(|finding| diagnostics.push(finding.clone()));
            return None;
        }
    };
    if dialect != Dialect::Workflow {
        return Some(Migration::default());
    }
    let (workflow, _) = workflow::read(&root, source, limits, diagnostics)?;
    if diagnostics.has_errors() {
        return None;
    }
    let mut migration = Migration::default();
    workflow::older::find(&workflow, &root, (source, limits), &mut migration, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    migration.changes.sort_by_key(|change| change.span);
    Some(migration)
}

#[cfg(test)]
mod tests;
