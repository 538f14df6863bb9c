//! What placeholders and expressions of a workflow name: nodes that have run by then, and values that there may be.

use super::before::Before;
use super::doc::{Does, Formula};
use super::ends;
use super::names::Supply;
use super::result;
use super::scope::{At, Scope, Seen};
use crate::checks::{self, Kind, names_output};
use crate::diagnostic::shown;
use crate::fields::meant;
use crate::json::{Span, place_in_string, places_in_string};
use crate::outputs::Undeclared;
use crate::{Diagnostics, Finding, Source};
use selvedge_engine::template::{Path, Placeholder, Root, Seg, Template, classify};

/// Checks what is said at places of one document.
pub(super) struct Texts<'s, 'x> {
    pub(super) scope: &'s Scope<'s>,
    pub(super) source: &'s Source,
    pub(super) diagnostics: &'x mut Diagnostics,
}

impl<'s> Texts<'s, '_> {
    /// A template.
    pub(super) fn template(&mut self, text: &str, literal: Span, at: At) {
        let place = |part| place_in_string(self.source.text(), literal, part);
        match Template::parse(text) {
            Err(error) => self.diagnostics.push(checks::unfinished(error, place)),
            Ok(template) => {
                let parts = template.placeholders().map(|found| found.offset..found.offset + found.raw.len());
                let spans = places_in_string(self.source.text(), literal, parts);
                for (placeholder, span) in template.placeholders().zip(spans) {
                    self.reads(placeholder, span, at, false);
                }
                let scope = self.scope;
                let means = |name: &str| {
                    !matches!(scope.see(name, at), Seen::Value)
                        || scope.supply(name, at, true) == Supply::Known
                        || scope.runs(name).is_some()
                };
                let found = checks::slips(text, means, place);
                found.into_iter().for_each(|finding| self.diagnostics.push(finding));
            }
        }
    }

    /// An expression.
    pub(super) fn formula(&mut self, formula: &Formula, at: At) {
        let source = formula.expression.source();
        let asks = source.contains("has(");
        for (offset, path) in formula.expression.reads() {
            let span = self.place_of(formula, offset, path);
            if let Some(id) = self.spelt_out(formula.expression.source(), offset, path, at) {
                let message = format!(
                    "{} is no name in an expression: of it only {} is read as one",
                    shown(id),
                    shown(&path.root)
                );
                let finding = Finding::error("E-46", "bad-expression", span, message);
                self.diagnostics.push(finding.help(format!("the node is results[{}]", shown(id))));
                return;
            }
            let placeholder = Placeholder { raw: path.to_string().into(), path: path.clone(), offset };
            // `results["id"]` is the node of that id and nothing else.
            let of_results = source.get(offset..).is_some_and(|text| text.starts_with("results"));
            if of_results && *path.root != *"results" && matches!(self.scope.see(&path.root, at), Seen::Value)
            {
                self.no_node(&placeholder, &path.root, span, at);
                continue;
            }
            self.reads(&placeholder, span, at, asks);
        }
    }

    /// The node whose id stands there as it is and is no name of CEL, where nothing has the name that it begins with: `fetch-a`
    /// is a difference.
    fn spelt_out(&self, source: &str, offset: usize, path: &Path, at: At) -> Option<&'s str> {
        let (text, root) = (source.get(offset..)?, &*path.root);
        let whole = |id: &&&str| {
            let rest = text.strip_prefix(**id);
            let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            id.len() > root.len() && id.starts_with(root) && rest.is_some_and(|rest| !goes_on(rest))
        };
        let id = self.scope.links.ids.keys().filter(whole).max_by_key(|id| id.len())?;
        let known = self.scope.has_initial(root) || self.scope.all_names(at).iter().any(|name| name == root);
        (matches!(self.scope.see(root, at), Seen::Value) && !known).then_some(*id)
    }

    /// W: a `while` sees variables only.
    pub(super) fn condition_of_loop(&mut self, formula: &Formula, at: At) {
        for (offset, path) in formula.expression.reads() {
            let span = self.place_of(formula, offset, path);
            if !matches!(self.scope.see(&path.root, at), Seen::Value) {
                let message = format!("`{path}` is a node's result, and `while` sees variables only");
                let finding = Finding::error("W-14", "while-reads-node", span, message);
                self.diagnostics
                    .push(finding.help("set a variable in the loop, and before it, with VARIABLE nodes"));
                continue;
            }
            let placeholder = Placeholder { raw: path.to_string().into(), path: path.clone(), offset };
            self.reads(&placeholder, span, at, true);
        }
    }

    fn place_of(&self, formula: &Formula, offset: usize, path: &Path) -> Span {
        let source = formula.expression.source();
        let end = source.floor_char_boundary((offset + path.root.len()).min(source.len()));
        place_in_string(self.source.text(), formula.span, offset.min(end)..end)
    }

    /// `asks`: whether it is asked for before it is used, so that it need not be there.
    fn reads(&mut self, placeholder: &Placeholder, span: Span, at: At, asks: bool) {
        let scope = self.scope;
        let is_node = |name: &str| matches!(scope.see(name, at), Seen::Node { .. } | Seen::Outside);
        match classify(&placeholder.path, is_node) {
            Root::StepOutput { step, rest } => self.node(placeholder, step, rest, (span, at), asks),
            Root::Inputs { name, .. } => {
                if !scope.has_initial(name) {
                    self.nothing_supplies(placeholder, name, span, at);
                }
            }
            Root::Metadata { name, .. } => self.value(placeholder, name, (span, at), false),
            Root::Name { name, .. } => self.value(placeholder, name, (span, at), true),
        }
    }

    /// A name of no node that is seen (P-25, W-03); `fields`: fields of results are looked at, too.
    fn value(&mut self, placeholder: &Placeholder, name: &str, (span, at): (Span, At), fields: bool) {
        let scope = self.scope;
        match scope.supply(name, at, fields) {
            Supply::Known => {}
            _ if fields && scope.runs(name).is_some() => self.no_node(placeholder, name, span, at),
            Supply::Unknown if !(names_output(&placeholder.path) && self.means_node(name, at)) => {
                let names = || scope.all_names(at);
                checks::hardly_supplied(placeholder, name, span, (scope.count(), names), self.diagnostics);
            }
            Supply::Unknown | Supply::Nothing => self.nothing_supplies(placeholder, name, span, at),
        }
    }

    /// Whether a name that nobody is known to set is almost a node's. A result may bring any name, but hardly that.
    fn means_node(&self, name: &str, at: At) -> bool {
        let names = self.scope.all_names(at);
        let ids: Vec<&str> = self.scope.links.ids.keys().copied().collect();
        names.iter().all(|known| known != name) && meant(name, &ids).is_some()
    }

    /// A node that there is not, or that is inside of a document which another node runs (W-03).
    fn no_node(&mut self, placeholder: &Placeholder, id: &str, span: Span, at: At) {
        let Some(by) = self.scope.runs(id) else {
            return self.nothing_supplies(placeholder, id, span, at);
        };
        let raw = &placeholder.raw;
        let (id, by) = (shown(id), shown(by));
        let message =
            format!("{raw} looks into {by} from outside: {id} is a node of the document that {by} runs");
        let finding = Finding::error("W-03", "looks-inside", span, message);
        self.diagnostics.push(finding.help(format!(
            "read the result of {by}; a `SUBGRAPH` that runs a workflow can hand out values with `outputs`"
        )));
    }

    fn nothing_supplies(&mut self, placeholder: &Placeholder, name: &str, span: Span, at: At) {
        let scope = self.scope;
        let names = || scope.all_names(at);
        checks::nothing_supplies(placeholder, name, span, (scope.count(), names), false, self.diagnostics);
    }

    fn node(
        &mut self,
        placeholder: &Placeholder,
        step: &str,
        rest: &[Seg],
        (span, at): (Span, At),
        asks: bool,
    ) {
        let raw = &placeholder.raw;
        let (scope, node, vertex, passed, failed) = match self.scope.see(step, at) {
            Seen::Node { scope, node, vertex, passed, failed } => (scope, node, vertex, passed, failed),
            Seen::Outside => {
                let message = format!(
                    "{raw} looks into a path or a loop from outside: {} is not seen here",
                    shown(step)
                );
                let help = "a path's result is in its join's, and what a loop comes to in its end's; `exports` hands out variables";
                self.diagnostics.push(Finding::error("W-03", "looks-inside", span, message).help(help));
                return;
            }
            Seen::Value => return self.no_node(placeholder, step, span, at),
        };
        let set = |at: &At| scope.sets(at.region, step);
        let own = std::ptr::eq(scope, self.scope);
        if scope.initial.contains(step) || (own && scope.outwards(at).any(|at| set(&at))) {
            self.diagnostics.push(Kind::WORK.hidden_name(step, span));
        }
        let Some(written) = scope.doc.nodes.get(node) else { return };
        if vertex.node != vertex.end && node == vertex.node {
            let end = scope.doc.nodes.get(vertex.end).map(|end| shown(&end.id.value)).unwrap_or_default();
            let what = if matches!(written.does, Does::Fork(_)) { "a fork" } else { "the start of a loop" };
            let message = format!("{raw}: {what} has no result of its own");
            let finding = Finding::error("W-09", "no-result", span, message);
            return self.diagnostics.push(finding.help(format!("name what ends it: {end}")));
        }
        let opener = scope.doc.nodes.get(vertex.node).filter(|_| vertex.node != vertex.end);
        if let Some(finding) = ends::missing_place(placeholder, (written, opener), rest, failed, span) {
            return self.diagnostics.push(finding);
        }
        if failed && ends::is_error(rest) {
            return;
        }
        match passed {
            Before::Never => {
                let message =
                    format!("{raw} is the result of {}, which can't have succeeded by then", shown(step));
                let help = if failed {
                    "behind an edge with \"when\": \"error\" there is only its `error`"
                } else {
                    "refer to a node that comes before"
                };
                self.diagnostics.push(Finding::error("W-14", "later-node", span, message).help(help));
            }
            Before::Perhaps if !asks => {
                let message = format!("{raw}: not every way here leads past {}", shown(step));
                let finding = Finding::warning("W-14", "may-not-have-run", span, message);
                self.diagnostics
                    .push(finding.help("set a variable on each way, or let all ways lead past it"));
            }
            _ => {}
        }
        if ends::is_errors(written, opener, rest) {
            return;
        }
        if let Some((outputs, whose)) = result::declared(written, opener, scope.tools)
            && let Some(found) = Undeclared::find(&outputs, rest)
        {
            self.diagnostics.push(found.finding(placeholder, &whose, span));
        }
    }
}
