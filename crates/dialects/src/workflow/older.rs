//! Older forms of forks and joins, and how they are written today (W-01).

use super::doc::{Does, Fork, ForkOf, InnerBody, Join, JoinOf, WorkflowDoc};
use super::links::Links;
use crate::json::{Member, Node, Span};
use crate::migrate::{Change, Edit, Migration};
use crate::{Diagnostics, DocumentLimits, Source};

/// Finds what is older in a workflow that could be read, and in those that are written in it. Files that it names are documents
/// of their own.
pub(crate) fn find(
    doc: &WorkflowDoc,
    root: &Node<'_>,
    (source, limits): (&Source, &DocumentLimits),
    migration: &mut Migration,
    diagnostics: &mut Diagnostics,
) {
    let Some(links) = Links::of(doc, limits, diagnostics) else { return };
    let written = root.get("nodes").and_then(Node::as_array).unwrap_or_default();
    for (at, (node, json)) in doc.nodes.iter().zip(written).enumerate() {
        let Some(config) = json.get("config") else { continue };
        let partner = || links.partner.get(at).copied().flatten().and_then(|other| doc.nodes.get(other));
        let mut edited = Config { node: &node.id.value, json: config, source, migration };
        match &node.does {
            Does::Fork(fork) => edited.fork(fork),
            Does::Join(join) => {
                if let Some(Does::Fork(fork)) = partner().map(|partner| &partner.does) {
                    edited.join(join, fork);
                }
            }
            Does::Sub(sub) if sub.inner.source.is_none() => {
                if let (InnerBody::Workflow(inner), Some(json)) = (&*sub.inner.body, config.get("workflow")) {
                    find(inner, json, (source, limits), migration, diagnostics);
                }
            }
            _ => {}
        }
    }
}

/// The config of a fork or a join.
struct Config<'c, 's> {
    node: &'c str,
    json: &'c Node<'s>,
    source: &'c Source,
    migration: &'c mut Migration,
}

impl<'c, 's> Config<'c, 's> {
    fn fork(&mut self, fork: &Fork) {
        let ForkOf::Listed(paths) = &fork.of else { return self.drop("forkId") };
        let ids = || paths.iter().map(|(id, _)| quoted(&id.value)).collect();
        if self.has("forkPaths") {
            let literal = |span: Span| self.source.slice(span).to_owned();
            let lists = [
                ("forkPathIds", paths.iter().map(|(id, _)| literal(id.span)).collect()),
                ("childNodeIds", paths.iter().map(|(_, child)| literal(child.span)).collect()),
            ];
            self.replace("forkPaths", &lists, &["forkId", "forkPathIds", "childNodeIds"]);
        } else if self.has("forkPathIds") {
            self.drop("forkId");
        } else if self.has("forkId") {
            self.replace("forkId", &[("forkPathIds", ids())], &["forkPathIds"]);
        }
    }

    fn join(&mut self, join: &Join, fork: &Fork) {
        match (&join.of, &fork.of) {
            (JoinOf::Old(_), ForkOf::Listed(paths)) => {
                let ids = paths.iter().map(|(id, _)| quoted(&id.value)).collect();
                self.replace("forkId", &[("forkPathIds", ids)], &["forkPathIds"]);
            }
            _ => self.drop("forkId"),
        }
    }

    fn members(&self) -> &'c [Member<'s>] {
        self.json.as_object().unwrap_or_default()
    }

    /// Whether a field says something; null is as if it were not there.
    fn has(&self, key: &str) -> bool {
        self.json.get(key).is_some_and(|value| !value.is_null())
    }

    fn at(&self, key: &str) -> Option<(usize, &'c Member<'s>)> {
        self.members().iter().enumerate().find(|(_, member)| member.key == key)
    }

    /// Takes away a field that says nothing more.
    fn drop(&mut self, key: &'static str) {
        if let Some((at, member)) = self.at(key).filter(|_| self.has(key)) {
            let edits = self.without(&[at]);
            self.note(member, key, Vec::new(), edits);
        }
    }

    /// Writes lists in the place of a field, and takes away others that would say the same twice.
    fn replace(&mut self, key: &'static str, lists: &[(&'static str, Vec<String>)], others: &[&str]) {
        let Some((at, member)) = self.at(key) else { return };
        let colon = self.between(member.key_span.end, member.value.span.start);
        let style = Style::of(self.json, self.source, colon);
        let written: Vec<String> =
            lists.iter().map(|(key, items)| format!("\"{key}\"{colon}{}", style.list(items))).collect();
        let span = Span { start: member.key_span.start, end: member.value.span.end };
        let mut edits = vec![Edit { span, text: written.join(&self.separator(at)) }];
        let all: Vec<usize> = others.iter().filter_map(|other| self.at(other)).map(|(at, _)| at).collect();
        edits.extend(self.without(&all));
        self.note(member, key, lists.iter().map(|(key, _)| *key).collect(), edits);
    }

    fn note(&mut self, member: &Member<'_>, from: &'static str, to: Vec<&'static str>, edits: Vec<Edit>) {
        let change = Change { node: self.node.to_owned(), span: member.key_span, from, to };
        self.migration.add(change, edits);
    }

    fn between(&self, start: u32, end: u32) -> &'c str {
        self.source.slice(Span { start, end })
    }

    /// What stands between two members around the one at this place: a comma, and the space or the line break behind it.
    fn separator(&self, at: usize) -> String {
        let members = self.members();
        let before = at.checked_sub(1).and_then(|before| members.get(before));
        let pair = before.zip(members.get(at)).or_else(|| members.get(at).zip(members.get(at + 1)));
        match pair {
            Some((one, next)) => self.between(one.value.span.end, next.key_span.start).to_owned(),
            None => {
                let first = members.first().map_or(self.json.span.end, |first| first.key_span.start);
                let opening = self.between(self.json.span.start.saturating_add(1), first);
                if opening.contains('\n') { format!(",{opening}") } else { ", ".to_owned() }
            }
        }
    }

    /// Edits that take members away, each with one comma; `gone` may be in any order.
    fn without(&self, gone: &[usize]) -> Vec<Edit> {
        let members = self.members();
        // Those at the beginning go with the comma behind them, all others with the one before.
        let first = (0..members.len()).take_while(|at| gone.contains(at)).count();
        let mut spans = Vec::new();
        if let (true, Some(begin)) = (first > 0, members.first()) {
            let end = match members.get(first) {
                Some(kept) => kept.key_span.start,
                None => members.last().map_or(begin.value.span.end, |last| last.value.span.end),
            };
            spans.push(Span { start: begin.key_span.start, end });
        }
        for at in gone.iter().copied().filter(|at| *at > first) {
            if let (Some(before), Some(member)) = (members.get(at - 1), members.get(at)) {
                spans.push(Span { start: before.value.span.end, end: member.value.span.end });
            }
        }
        spans.into_iter().map(|span| Edit { span, text: String::new() }).collect()
    }
}

/// How a document writes a list of texts: what is behind the bracket, between two elements, and before the closing one.
struct Style<'t>(&'t str, &'t str, &'t str);

impl<'t> Style<'t> {
    /// As the children are written, which stand beside the path ids; else in a line, as tight as the rest.
    fn of(config: &Node<'_>, source: &'t Source, colon: &str) -> Self {
        let children = config.get("childNodeIds");
        let elements = children.and_then(Node::as_array).unwrap_or_default();
        let between = |start: u32, end: u32| source.slice(Span { start, end });
        match (children, elements) {
            (Some(list), [first, second, ..]) => {
                let last = elements.last().unwrap_or(second);
                Self(
                    between(list.span.start.saturating_add(1), first.span.start),
                    between(first.span.end, second.span.start),
                    between(last.span.end, list.span.end.saturating_sub(1)),
                )
            }
            _ if colon == ":" => Self("", ",", ""),
            _ => Self("", ", ", ""),
        }
    }

    fn list(&self, items: &[String]) -> String {
        let Self(open, between, close) = self;
        format!("[{open}{}{close}]", items.join(between))
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
