//! What only the whole workflow can tell: placeholders, expressions, tools, threads, and what looks like a mistake.

use super::before::Point;
use super::doc::{Ask, Cut, Does, ForkOf, Llm, Rounds, Text, WorkNode, Worth};
use super::links::Take;
use super::placeholders::Texts;
use super::scope::{At, Scope};
use super::{joins, loops};
use crate::ToolSource;
use crate::arguments::{self, Arguments};
use crate::checks::Kind;
use crate::diagnostic::shown;
use crate::json::{Node, Span};
use crate::{Diagnostics, Finding, Source};
use selvedge_engine::schema::Schema;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What was looked at of tools, for the whole document and those in it.
#[derive(Default)]
pub(super) struct Looked {
    /// Tools whose schema was looked at.
    schemas: HashSet<Arc<str>>,
    /// Tools whose missing effects were told.
    told: HashSet<Arc<str>>,
    /// The schemas of tools whose arguments were checked.
    read: HashMap<Arc<str>, Option<Schema>>,
}

/// Checks a workflow that nests, inner documents aside.
pub(super) fn check(
    scope: &Scope<'_>,
    source: &Source,
    schema_steps: u64,
    looked: &mut Looked,
    diagnostics: &mut Diagnostics,
) {
    let mut check = Check { scope, source, schema_steps, looked, diagnostics };
    for (at, region) in scope.regions.all.iter().enumerate() {
        for (number, vertex) in region.vertices.iter().enumerate() {
            let begun = At { region: at, point: Point::Begun(number) };
            let succeeded = At { region: at, point: Point::Succeeded(number) };
            if let Some(node) = scope.doc.nodes.get(vertex.node) {
                check.node(node, begun);
            }
            if vertex.end != vertex.node
                && let Some(node) = scope.doc.nodes.get(vertex.end)
            {
                check.common(node);
            }
            for way in &vertex.ways {
                if let Take::If(formula) = way.when {
                    check.texts().formula(formula, succeeded);
                }
            }
            joins::check(scope, vertex, check.diagnostics);
            loops::hidden_names(scope, vertex, at, check.diagnostics);
            if let Some(formula) = loops::until(scope, vertex)
                && let Some(region) = vertex.inner.first()
            {
                check.texts().formula(formula, At { region: *region, point: Point::Over });
            }
        }
    }
    if !scope.doc.head.task.value.is_empty() {
        check.task();
    }
}

/// What a subgraph hands out: said where it is a node, of what is there when it is over.
pub(super) fn outputs<'s>(
    scope: &'s Scope<'s>,
    values: impl Iterator<Item = &'s Node<'static>>,
    source: &'s Source,
    diagnostics: &mut Diagnostics,
) {
    let over = At { region: 0, point: Point::Over };
    for value in values {
        value.each_string(&mut |text, span| {
            Texts { scope, source, diagnostics: &mut *diagnostics }.template(text, span, over);
        });
    }
}

struct Check<'s, 'x> {
    scope: &'s Scope<'s>,
    source: &'s Source,
    schema_steps: u64,
    looked: &'x mut Looked,
    diagnostics: &'x mut Diagnostics,
}

impl<'s> Check<'s, '_> {
    fn texts(&mut self) -> Texts<'s, '_> {
        Texts { scope: self.scope, source: self.source, diagnostics: self.diagnostics }
    }

    fn tools(&self) -> &'s dyn ToolSource {
        self.scope.tools
    }

    fn warn(&mut self, rule: &'static str, code: &'static str, at: Span, message: String, help: &str) {
        self.diagnostics.push(Finding::warning(rule, code, at, message).help(help));
    }

    /// The task is said before any node has run.
    fn task(&mut self) {
        let task = &self.scope.doc.head.task;
        let begin = At { region: 0, point: Point::Begun(0) };
        self.texts().template(&task.value, task.span, begin);
    }

    fn node(&mut self, node: &'s WorkNode, at: At) {
        self.common(node);
        for tool in node.tools() {
            self.tool(node, tool);
        }
        match &node.does {
            Does::Start | Does::Join(_) | Does::LoopEnd(_) | Does::Route { .. } | Does::End(None) => {}
            Does::End(Some(output)) => self.json(output, at),
            Does::Llm(llm) => self.llm(llm, at),
            Does::Tool { tool, args, .. } => {
                if let Some(args) = args {
                    self.json(args, at);
                }
                self.arguments(tool, args.as_ref());
            }
            Does::Fork(fork) => {
                if let ForkOf::Each { over, .. } = &fork.of {
                    self.json(over, at);
                }
            }
            Does::LoopStart(repeat) => {
                match (&repeat.times, at.point) {
                    (Rounds::Over(value) | Rounds::Count(value), _) => self.json(value, at),
                    // It is asked after each iteration, too, and sees what that has set.
                    (Rounds::While(formula), Point::Begun(vertex)) => {
                        let after = At { point: Point::Succeeded(vertex), ..at };
                        self.texts().condition_of_loop(formula, after);
                    }
                    (Rounds::While(formula), _) => self.texts().condition_of_loop(formula, at),
                }
                loops::limit(node, repeat, self.diagnostics);
            }
            Does::Variable(_, Worth::Value(value)) => self.json(value, at),
            Does::Variable(_, Worth::Of(formula)) => self.texts().formula(formula, at),
            Does::Context { cut, .. } => {
                if matches!(cut, Cut::Trim(_) | Cut::Filter(_) | Cut::Clear) {
                    let model = node.model.as_ref().map(|model| ("model", model.span));
                    for (field, at) in model.into_iter().chain(node.settings.written()) {
                        let message = format!("`{field}` has no effect: no model is asked");
                        self.warn("E-09", "no-effect", at, message, "remove it");
                    }
                }
            }
            Does::Ask(ask) => self.ask(ask, at),
            Does::Sub(sub) => sub.inputs.iter().for_each(|(_, value)| self.json(value, at)),
        }
    }

    /// What every node may have, and what it has of that without an effect.
    fn common(&mut self, node: &WorkNode) {
        let (calls, asks) = (node.tools().next().is_some(), node.asks_model());
        let kind = node.kind();
        let composite = matches!(node.does, Does::LoopStart(_) | Does::Sub(_));
        let timed = calls || asks || composite || matches!(node.does, Does::Ask(_) | Does::Fork(_));
        let unused = [
            (
                "retry",
                node.retry.as_ref().map(|retry| retry.span),
                calls || matches!(node.does, Does::Sub(_)),
            ),
            ("effects", node.effects.as_ref().map(|effects| effects.span), calls),
            ("timeout", node.timeout.as_ref().map(|time| time.span), timed),
            (
                "model",
                node.model.as_ref().map(|model| model.span),
                asks || matches!(node.does, Does::Context { .. }),
            ),
        ];
        for (field, at, used) in unused {
            if let Some(at) = at.filter(|_| !used) {
                let message = format!("`{field}` has no effect on a {kind} node");
                self.warn(
                    "E-32",
                    "no-effect",
                    at,
                    message,
                    "remove it, or write it at the node that it is meant for",
                );
            }
        }
    }

    fn llm(&mut self, llm: &Llm, at: At) {
        self.template(&llm.prompt, at);
        if let Some(system) = &llm.system {
            self.template(system, at);
        }
        for limit in &llm.tools_limit {
            if llm.tools.iter().all(|tool| tool.value != limit.tool.value) {
                let message = format!(
                    "`tools_limit` for {}, which is not among the node's `tools`",
                    shown(&limit.tool.value)
                );
                self.warn(
                    "P-14",
                    "limit-without-tool",
                    limit.tool.span,
                    message,
                    "add it to `tools`, or remove the limit",
                );
            }
        }
        if !llm.enable_tool_loop && !llm.tools.is_empty() {
            let more =
                llm.tools_limit.iter().find(|limit| limit.limit.value > 1).map(|limit| limit.limit.span);
            if let Some(span) = more.or(llm.max_rounds.as_ref().map(|rounds| rounds.span)) {
                let message = "without `enable_tool_loop` there is one round of calls: a second can't happen"
                    .to_owned();
                self.warn(
                    "P-11",
                    "no-loop",
                    span,
                    message,
                    "write \"enable_tool_loop\": true, or remove this limit",
                );
            }
        }
    }

    fn ask(&mut self, ask: &'s Ask, at: At) {
        self.template(&ask.prompt, at);
        if let Some(value) = &ask.value {
            self.json(value, at);
        }
    }

    fn template(&mut self, text: &Text, at: At) {
        self.texts().template(&text.value, text.span, at);
    }

    fn json(&mut self, value: &'s Node<'static>, at: At) {
        let mut texts = Vec::new();
        value.each_string(&mut |text, span| texts.push((text, span)));
        for (text, span) in texts {
            self.texts().template(text, span, at);
        }
    }

    /// Findings if there is no such tool, or if it does not say what it does to the world.
    fn tool(&mut self, node: &WorkNode, tool: &Text) {
        let Some(def) = self.tools().def(&tool.value) else {
            Kind::WORK.no_tool(tool, self.tools(), false, self.diagnostics);
            return;
        };
        if self.looked.schemas.insert(tool.value.clone()) {
            Kind::WORK.tool_schema(&def, tool.span, self.schema_steps, self.diagnostics);
        }
        if def.effects.is_none() && node.effects.is_none() && self.looked.told.insert(tool.value.clone()) {
            let message =
                format!("tool {} declares no effects and is treated as `write`", shown(&tool.value));
            let help = "declare \"effects\" (pure, read, idempotent or write) in the tool, or at the node";
            self.warn("E-22", "undeclared-effects", tool.span, message, help);
        }
    }

    /// D-15: arguments against the tool's schema.
    fn arguments(&mut self, tool: &Text, args: Option<&Node<'static>>) {
        let Some(def) = self.tools().def(&tool.value) else { return };
        let steps = self.schema_steps;
        let read = || Schema::new(&def.input_schema, steps).ok();
        let Some(schema) = self.looked.read.entry(def.name.clone()).or_insert_with(read) else { return };
        let given = args.map(|root| Arguments { root, template: None });
        let found = arguments::refusals(&def, schema, given, tool.span, |span| span, false);
        found.into_iter().for_each(|finding| self.diagnostics.push(finding));
    }
}
