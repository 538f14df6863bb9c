//! What only the whole plan can tell: threads, placeholders, tools (P-04, P-07, P-19, P-25), and what looks
//! like a mistake.

use super::doc::{NodeKind, PlanDoc, PlanNode};
use super::lower::MAIN;
use crate::ToolSource;
use crate::arguments::{self, Arguments};
use crate::checks::{self, Kind};
use crate::diagnostic::listed;
use crate::diagnostic::shown;
use crate::fields::meant;
use crate::json::{Span, Spanned, place_in_string, places_in_string};
use crate::outputs::Undeclared;
use crate::{Diagnostics, Finding, Severity, Source};
use selvedge_engine::schema::Schema;
use selvedge_engine::template::{Placeholder, Root, Seg, Template, classify, normalized};
use selvedge_engine::{Outputs, ToolDef};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Checks a plan whose nodes could all be read.
pub(super) fn check(
    plan: &PlanDoc,
    source: &Source,
    tools: &dyn ToolSource,
    initial: &Map<String, Value>,
    schema_steps: u64,
    diagnostics: &mut Diagnostics,
) {
    let ids = plan.nodes.iter().map(|node| (node.id.value.as_ref(), node.index)).collect();
    let mut check = Check {
        plan,
        source,
        tools,
        known: plan.head.names(initial),
        ids,
        threads: HashMap::from([(MAIN, None)]),
        spoken: HashSet::new(),
        supplied: HashMap::new(),
        unknown_sync: false,
        unknown_result: false,
        read_results: HashSet::new(),
        unknown_nodes: Vec::new(),
        told: HashSet::new(),
        looked: HashSet::new(),
        schemas: HashMap::new(),
        schema_steps,
        diagnostics,
    };
    if !plan.head.task.value.is_empty() {
        check.template(None, &plan.head.task);
        check.spoken.insert(MAIN);
    }
    for node in &plan.nodes {
        check.node(node);
    }
    super::unused::check(plan, &check.read_results, check.diagnostics);
}

struct Check<'p, 'd> {
    plan: &'p PlanDoc,
    source: &'p Source,
    tools: &'p dyn ToolSource,
    /// Names of the first data layer.
    known: HashSet<&'p str>,
    ids: HashMap<&'p str, usize>,
    /// Threads so far, with the node that created them; `main` has none.
    threads: HashMap<&'p str, Option<&'p PlanNode>>,
    /// Threads that may hold a message by now.
    spoken: HashSet<&'p str>,
    /// Names that earlier nodes declare, with the last node that does.
    supplied: HashMap<String, usize>,
    /// An earlier node may bring any name to `runtime_metadata`.
    unknown_sync: bool,
    /// An earlier node's result may have any field (D-07's last look-up).
    unknown_result: bool,
    /// Nodes whose result some placeholder reads.
    read_results: HashSet<usize>,
    /// Nodes whose fields nobody knows, as long as no placeholder may have read them.
    unknown_nodes: Vec<usize>,
    /// Tools whose missing effects were told.
    told: HashSet<Arc<str>>,
    /// Tools whose schema was looked at.
    looked: HashSet<Arc<str>>,
    /// The schemas of tools whose arguments were checked.
    schemas: HashMap<Arc<str>, Option<Schema>>,
    /// `schema_steps` of `[limits]`.
    schema_steps: u64,
    diagnostics: &'d mut Diagnostics,
}

impl<'p> Check<'p, '_> {
    fn node(&mut self, node: &'p PlanNode) {
        self.data_in(node);
        self.node_tools(node);
        if let NodeKind::ToolFirst { args: Some(args), .. } = &node.kind {
            let mut texts = Vec::new();
            args.each_string(&mut |text, span| texts.push((text, span)));
            for (text, span) in texts {
                self.text(Some(node), text, span);
            }
        }
        for text in node.task_prompt.iter().chain(&node.data_out_description) {
            self.template(Some(node), text);
        }
        self.threads.entry(node.thread.value.as_ref()).or_insert(Some(node));
        if node.task_prompt.is_some() || matches!(node.kind, NodeKind::ToolFirst { .. }) {
            self.spoken.insert(node.thread.value.as_ref());
        }
        self.data_out(node);
        self.supply(node);
    }

    fn data_in(&mut self, node: &'p PlanNode) {
        let thread = node.thread.value.as_ref();
        if let Some(creator) = self.threads.get(thread) {
            let by = match creator {
                Some(creator) => format!("node {}", shown(&creator.id.value)),
                None if self.plan.head.task.value.is_empty() => "the plan".to_owned(),
                None => "the plan's task".to_owned(),
            };
            for (field, written, span) in [
                ("data_in_thread", node.data_in_thread.is_written(), node.data_in_thread.span),
                ("data_in_slice", node.data_in_slice.is_written(), node.data_in_slice.span),
            ] {
                if written {
                    let message =
                        format!("`{field}` has no effect: thread {} was created by {by}", shown(thread));
                    let help = "remove it, or give the node a thread of its own";
                    self.diagnostics
                        .push(Finding::warning("P-04", "data-in-ignored", span, message).help(help));
                }
            }
            return;
        }
        let from = node.data_in_thread.value.as_ref();
        if !self.threads.contains_key(from) {
            let message =
                format!("thread {} does not exist when node {} starts", shown(from), shown(&node.id.value));
            let finding = Finding::error("P-07", "unknown-thread", node.data_in_thread.span, message);
            self.diagnostics.push(finding.help(self.thread_help(from)));
        } else if node.data_in_slice.is_written() && node.data_in_slice.value.is_always_empty() {
            let message = "this slice can only be empty: the thread starts without messages";
            let finding = Finding::warning("P-05", "empty-slice", node.data_in_slice.span, message);
            self.diagnostics
                .push(finding.help("[0, 1] is the first message, [-1, null] the last, [null, null] all"));
        } else if !self.spoken.contains(from) {
            let message = format!(
                "thread {} is empty when node {} starts: it takes no message over",
                shown(from),
                shown(&node.id.value)
            );
            let written = [
                (node.data_in_slice.is_written(), node.data_in_slice.span),
                (node.data_in_thread.is_written(), node.data_in_thread.span),
            ];
            let span = written
                .iter()
                .find(|(is_written, _)| *is_written)
                .map_or(node.thread.span, |(_, span)| *span);
            let finding = Finding::warning("P-05", "empty-slice", span, message);
            let help = match from == MAIN {
                true => "give the plan a `task`, or let an earlier node work on `main`",
                false => "take another thread, or let an earlier node work on that one",
            };
            self.diagnostics.push(finding.help(help));
        } else if !node.data_in_slice.value.is_always_empty() {
            self.spoken.insert(thread);
        }
    }

    fn thread_help(&self, name: &str) -> String {
        if self.diagnostics.is_full(Severity::Error, "unknown-thread") {
            return String::new();
        }
        let later = self.plan.nodes.iter().find(|node| node.thread.value.as_ref() == name);
        if let Some(later) = later {
            return format!("node {} creates it: move that node up in the list", shown(&later.id.value));
        }
        if !self.diagnostics.worth_searching("unknown-thread", self.threads.len()) {
            return "write the name of a thread that an earlier node runs on".to_owned();
        }
        let mut known: Vec<&str> = self.threads.keys().copied().collect();
        known.sort_unstable();
        match meant(name, &known) {
            Some(near) => format!("did you mean {}?", shown(near)),
            None => {
                format!("threads so far: {}", listed(&known))
            }
        }
    }

    fn data_out(&mut self, node: &'p PlanNode) {
        let to = node.data_out_thread.value.as_ref();
        if node.data_out && to != node.thread.value.as_ref() {
            self.spoken.insert(to);
        }
        if node.data_out && !self.threads.contains_key(to) {
            let message = format!("`data_out_thread` {} does not exist by then", shown(to));
            let finding = Finding::error("P-19", "unknown-thread", node.data_out_thread.span, message);
            let help = format!(
                "{}; an empty node (no task_prompt) on that thread, earlier in the list, creates it",
                self.thread_help(to)
            );
            self.diagnostics.push(finding.help(help));
        }
    }

    fn node_tools(&mut self, node: &'p PlanNode) {
        if let NodeKind::ToolFirst { tool, args } = &node.kind
            && let Some(def) = self.tool(node, tool)
        {
            self.arguments(&def, tool.span, args.as_ref());
        }
        let has_model = node.task_prompt.is_some();
        for tool in &node.tools {
            self.tool(node, tool);
        }
        if let (false, Some(first)) = (has_model, node.tools.first()) {
            let message = "`tools` has no effect: without a `task_prompt` no model is called";
            let finding = Finding::warning("P-12", "tools-unused", first.span, message);
            self.diagnostics.push(finding.help("write a `task_prompt`, or remove `tools`"));
        }
        let initial = match &node.kind {
            NodeKind::ToolFirst { tool, .. } => Some(&tool.value),
            NodeKind::LlmFirst => None,
        };
        for limit in &node.tools_limit {
            let name = &limit.tool.value;
            if !node.tools.iter().any(|tool| &tool.value == name) && initial != Some(name) {
                let message =
                    format!("`tools_limit` for {}, which is not among the node's `tools`", shown(name));
                let finding = Finding::warning("P-14", "limit-without-tool", limit.tool.span, message);
                self.diagnostics.push(finding.help("add it to `tools`, or remove the limit"));
            }
        }
        if has_model && !node.tools.is_empty() && !node.enable_tool_loop {
            let more =
                node.tools_limit.iter().find(|limit| limit.limit.value > 1).map(|limit| limit.limit.span);
            if let Some(span) = more.or(node.max_rounds.as_ref().map(|rounds| rounds.span)) {
                let message = "without `enable_tool_loop` there is one round of calls: a second can't happen";
                let finding = Finding::warning("P-11", "no-loop", span, message);
                self.diagnostics.push(finding.help("write \"enable_tool_loop\": true, or remove this limit"));
            }
        }
    }

    /// The tool's definition; findings if there is none, or if it does not say what it does to the world.
    fn tool(&mut self, node: &PlanNode, tool: &Spanned<Arc<str>>) -> Option<Arc<ToolDef>> {
        let Some(def) = self.tools.def(&tool.value) else {
            Kind::NODE.no_tool(tool, self.tools, false, self.diagnostics);
            return None;
        };
        if self.looked.insert(tool.value.clone()) {
            Kind::NODE.tool_schema(&def, tool.span, self.schema_steps, self.diagnostics);
        }
        if def.effects.is_none() && node.effects.is_none() && self.told.insert(tool.value.clone()) {
            self.diagnostics.push(Kind::NODE.undeclared_effects(&tool.value, tool.span));
        }
        Some(def)
    }

    /// D-15: arguments against the tool's schema.
    fn arguments(&mut self, def: &ToolDef, tool: Span, args: Option<&crate::Node<'static>>) {
        let steps = self.schema_steps;
        let read = || Schema::new(&def.input_schema, steps).ok();
        let Some(schema) = self.schemas.entry(def.name.clone()).or_insert_with(read) else { return };
        let given = args.map(|root| Arguments { root, template: None });
        let found = arguments::refusals(def, schema, given, tool, |span| span, false);
        found.into_iter().for_each(|finding| self.diagnostics.push(finding));
    }

    fn template(&mut self, node: Option<&PlanNode>, text: &Spanned<Arc<str>>) {
        self.text(node, &text.value, text.span);
    }

    fn text(&mut self, node: Option<&PlanNode>, text: &str, literal: Span) {
        match Template::parse(text) {
            Err(error) => {
                let place = |part| place_in_string(self.source.text(), literal, part);
                let finding = checks::unfinished(error, place);
                self.diagnostics.push(finding);
            }
            Ok(template) => {
                let parts = template.placeholders().map(|found| found.offset..found.offset + found.raw.len());
                let spans = places_in_string(self.source.text(), literal, parts);
                for (placeholder, span) in template.placeholders().zip(spans) {
                    self.placeholder(node, placeholder, span);
                }
                let means = |name: &str| self.ids.contains_key(name) || self.has(name);
                let place = |part| place_in_string(self.source.text(), literal, part);
                let found = checks::slips(text, means, place);
                found.into_iter().for_each(|finding| self.diagnostics.push(finding));
            }
        }
    }

    fn placeholder(&mut self, node: Option<&PlanNode>, placeholder: &Placeholder, span: Span) {
        match classify(&placeholder.path, |id| self.ids.contains_key(id)) {
            Root::StepOutput { step, rest } => {
                let Some(&index) = self.ids.get(step) else {
                    // A node around the plan is among the known names.
                    if !self.known.contains(step) {
                        self.unsupplied(placeholder, step, span, false);
                    }
                    return;
                };
                if self.known.contains(step) {
                    self.diagnostics.push(Kind::NODE.hidden_name(step, span));
                }
                if node.is_some_and(|node| index < node.index) {
                    self.read_results.insert(index);
                    self.fields_of(index, rest, placeholder, span);
                    return;
                }
                let (message, help) = match node {
                    Some(node) if node.index == index => (
                        format!("{} is this node's own result, which does not exist yet", placeholder.raw),
                        "refer to an earlier node".to_owned(),
                    ),
                    Some(_) => (
                        format!("{} is the result of a later node", placeholder.raw),
                        format!(
                            "move node {} up in the list: list order is the order of meaning",
                            shown(step)
                        ),
                    ),
                    None => (
                        format!("{} in the task: no node has run when the task is said", placeholder.raw),
                        "use metadata or an input there".to_owned(),
                    ),
                };
                self.diagnostics.push(Finding::error("P-20", "later-node", span, message).help(help));
            }
            Root::Inputs { name, .. } => {
                if !self.known.contains(name) {
                    self.unsupplied(placeholder, name, span, false);
                }
            }
            Root::Metadata { name, .. } => {
                self.reads(name);
                if !self.has(name) {
                    self.unsupplied(placeholder, name, span, node.is_some() && self.unknown_sync);
                }
            }
            Root::Name { name, .. } => {
                self.reads(name);
                let by = self.supplied.get(name).filter(|_| self.known.contains(name));
                if let Some(node) = by.and_then(|index| self.plan.nodes.get(*index)) {
                    let finding = checks::shadowed(&Kind::NODE, &placeholder.raw, name, &node.id.value, span);
                    self.diagnostics.push(finding);
                }
                let unknown = node.is_some() && (self.unknown_sync || self.unknown_result);
                if !self.has(name) {
                    self.unsupplied(placeholder, name, span, unknown);
                }
            }
        }
    }

    /// D-24: a path into an earlier node's result that the tool or the schema that it comes from does not declare.
    fn fields_of(&mut self, index: usize, path: &[Seg], placeholder: &Placeholder, span: Span) {
        let Some(node) = self.plan.nodes.get(index) else { return };
        let (outputs, whose) = match (&node.kind, &node.task_prompt, &node.output_schema) {
            (_, Some(_), Some(schema)) => {
                (Outputs::of_schema(&schema.value), "its `output_schema`".to_owned())
            }
            (NodeKind::ToolFirst { tool, .. }, None, _) => {
                let def = self.tools.def(&tool.value);
                (def.and_then(|def| def.output_params.clone()), format!("tool {}", shown(&tool.value)))
            }
            _ => return,
        };
        if let Some(found) = outputs.as_ref().and_then(|outputs| Undeclared::find(outputs, path)) {
            self.diagnostics.push(found.finding(placeholder, &whose, span));
        }
    }

    /// A name that a result may have brought: whoever declares it is read, and, where no metadata has it, all whose
    /// fields are unknown (P-17).
    fn reads(&mut self, name: &str) {
        self.read_results.extend(self.supplied.get(name));
        if !self.known.contains(name) {
            self.read_results.extend(self.unknown_nodes.drain(..));
        }
    }

    /// Whether something is known to bring the name.
    fn has(&self, name: &str) -> bool {
        self.known.contains(name) || self.supplied.contains_key(name)
    }

    /// A name that nothing is known to bring; `may`: a result of unknown fields could (P-25).
    fn unsupplied(&mut self, placeholder: &Placeholder, name: &str, span: Span, may: bool) {
        let Self { known, supplied, ids, diagnostics, .. } = self;
        let count = known.len() + supplied.len() + ids.len();
        let names = || {
            let names = known.iter().chain(ids.keys()).map(|name| Cow::Borrowed(*name));
            names.chain(supplied.keys().map(|name| Cow::Borrowed(name.as_str()))).collect()
        };
        if may {
            checks::hardly_supplied(placeholder, name, span, (count, names), diagnostics);
        } else {
            checks::nothing_supplies(placeholder, name, span, (count, names), false, diagnostics);
        }
    }

    /// What the node's result can bring to later placeholders (D-05, D-07).
    fn supply(&mut self, node: &PlanNode) {
        let mut names: Vec<String> = Vec::new();
        let mut unknown = false;
        let calls = match &node.kind {
            NodeKind::ToolFirst { tool, .. } => Some(&tool.value),
            NodeKind::LlmFirst => None,
        };
        let offered = node.tools.iter().map(|tool| &tool.value).filter(|_| node.task_prompt.is_some());
        for tool in calls.into_iter().chain(offered) {
            match self.tools.def(tool).and_then(|def| def.output_params.clone()) {
                Some(fields) => names.extend(fields.names().iter().map(ToString::to_string)),
                None => (self.unknown_sync, unknown) = (true, true),
            }
        }
        if node.task_prompt.is_some() {
            match &node.output_schema {
                Some(schema) => {
                    let fields = schema.value.get("properties").and_then(Value::as_object);
                    names.extend(fields.into_iter().flat_map(|fields| fields.keys().cloned()));
                }
                None => (self.unknown_result, unknown) = (true, true),
            }
        } else if calls.is_none() {
            // An empty node passes on a message, which may be JSON of any shape.
            (self.unknown_result, unknown) = (true, true);
        }
        if unknown {
            self.unknown_nodes.push(node.index);
        }
        for name in names.iter().map(|name| normalized(name).into_owned()) {
            self.supplied.insert(format!("{}_{name}", node.id.value), node.index);
            self.supplied.insert(name, node.index);
        }
    }
}
