//! Reading one node of a plan.

use std::sync::Arc;

use super::Slice;
use super::doc::{Given, NodeKind, OnError, Origin, PlanNode};
use crate::checks;
use crate::diagnostic::shown;
use crate::fields::{Fields, Shape, TypeError, count_of, type_error};
use crate::json::{Kind, Node, Span, Spanned};
use crate::settings::{self, ModelSettings, ToolEffects, ToolLimit};
use crate::{Diagnostics, DocumentLimits, Finding, Source};
use selvedge_engine::template::normalized;

/// The 14 fields of the seed, those beyond it, and those that editors draw with (`P-26`).
pub(super) const NODE: Shape = Shape {
    what: "a plan node",
    fields: &[
        "data_in_slice",
        "data_in_thread",
        "data_out",
        "data_out_description",
        "data_out_thread",
        "effects",
        "enable_search",
        "enable_thinking",
        "enable_tool_loop",
        "extra",
        "fixed",
        "id",
        "initial_tool_args",
        "initial_tool_name",
        "max_rounds",
        "max_tokens",
        "model",
        "node_id",
        "node_name",
        "node_type",
        "on_error",
        "output_schema",
        "parent_id",
        "parent_thread_id",
        "require_approval",
        "retry",
        "seed",
        "stop",
        "task_prompt",
        "temperature",
        "thread_id",
        "thread_view_index",
        "timeout",
        "tools",
        "tools_limit",
        "top_p",
        "x",
        "y",
    ],
};

/// What all readers of one node share.
struct Reader<'a> {
    source: &'a Source,
    diagnostics: &'a mut Diagnostics,
}

/// Reads the node at position `index`. `None`, with an error among the findings, if what identifies it (its id,
/// its thread, what it starts with) can't be read; wrong optional fields leave their defaults.
pub(super) fn read(
    index: usize,
    node: &Node<'_>,
    source: &Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<PlanNode> {
    let fields = Fields::open(node, &NODE, "P-01", diagnostics)?;
    let mut reader = Reader { source, diagnostics };
    let id = reader.id(index, &fields);
    let kind = reader.kind(&fields);
    let d = &mut *reader.diagnostics;
    let name = fields.required_text("node_name", "P-01", "give the node a name: \"node_name\": \"…\"", d);
    let thread_help = "say on which thread the node runs: \"thread_id\": \"main\"";
    let thread = fields.required_name("thread_id", "P-01", thread_help, d);
    let parent_thread = fields.name("parent_thread_id", "P-09", d);
    let data_in_slice = reader.slice(&fields, parent_thread.as_ref());
    let tools_limit = reader.tools_limit(&fields);
    let settings = reader.settings(&fields);
    let max_rounds = reader.max_rounds(&fields);
    let d = &mut *reader.diagnostics;
    let truth = |flag: Option<Spanned<bool>>| flag.is_some_and(|flag| flag.value);
    let not_empty = |text: &Spanned<Arc<str>>| !text.value.is_empty();
    let parent = parent_thread.as_ref();
    let rest = PlanNode {
        index,
        span: fields.span(),
        // Placeholders, replaced below: the findings of the optional fields are wanted even if these failed.
        id: Given { value: "".into(), span: fields.span(), origin: Origin::Default },
        name: Spanned::new("".into(), fields.span()),
        thread: Spanned::new("".into(), fields.span()),
        kind: NodeKind::LlmFirst,
        task_prompt: fields.text("task_prompt", "P-10", d).filter(not_empty),
        tools: fields
            .given("tools")
            .map(|node| settings::names(node, "tools", "P-15", d))
            .unwrap_or_default(),
        enable_tool_loop: truth(fields.boolean("enable_tool_loop", "P-11", d)),
        tools_limit,
        plan_limit: Vec::new(),
        max_rounds,
        data_in_thread: thread_or(fields.name("data_in_thread", "P-03", d), parent, fields.span()),
        data_in_slice,
        data_out: truth(fields.boolean("data_out", "P-18", d)),
        data_out_thread: thread_or(fields.name("data_out_thread", "P-18", d), parent, fields.span()),
        data_out_description: fields.text("data_out_description", "P-18", d).filter(not_empty),
        model: fields.name("model", "P-10", d),
        settings,
        on_error: on_error(&fields, d),
        retry: fields.given("retry").and_then(|node| settings::retry(node, source, d)),
        timeout: fields.seconds("timeout", "P-24", false, d),
        output_schema: fields
            .given("output_schema")
            .and_then(|node| settings::output_schema(node, "output_schema", limits.schema_steps, d)),
        require_approval: truth(fields.boolean("require_approval", "E-33", d)),
        effects: fields.choice("effects", "E-22", &ToolEffects::NAMES, d),
        parent_thread: None,
    };
    Some(PlanNode { id: id?, kind: kind?, name: name?, thread: thread?, parent_thread, ..rest })
}

/// `P-14`: the plan's own `tools_limit` holds for each node that has none: for those of its tools that it names, or, where it
/// is a number, for each of them.
pub(super) fn limit_all(
    node: &Node<'_>,
    nodes: &mut [PlanNode],
    source: &Source,
    diagnostics: &mut Diagnostics,
) {
    let every = match node.kind {
        Kind::Number(_) => match count_of(node, "tools_limit", "P-14", source, diagnostics) {
            Some(limit) => Some(limit),
            None => return,
        },
        _ => None,
    };
    let named = match every {
        Some(_) => Vec::new(),
        None => Reader { source, diagnostics: &mut *diagnostics }.limits_in(node),
    };
    for limit in &named {
        if !nodes.iter().any(|node| node.own_tools().any(|tool| tool.value == limit.tool.value)) {
            let message = format!(
                "`tools_limit` for {}, which no node has among its `tools`",
                shown(&limit.tool.value)
            );
            let finding = Finding::warning("P-14", "limit-without-tool", limit.tool.span, message);
            diagnostics.push(finding.help("add it to `tools` of a node, or remove the limit"));
        }
    }
    for node in nodes.iter_mut().filter(|node| node.tools_limit.is_empty()) {
        let limit = |tool: &Spanned<Arc<str>>| match &every {
            Some(limit) => Some(limit.clone()),
            None => {
                named.iter().find(|known| known.tool.value == tool.value).map(|known| known.limit.clone())
            }
        };
        let limits =
            node.own_tools().filter_map(|tool| Some(ToolLimit { tool: tool.clone(), limit: limit(tool)? }));
        node.plan_limit = limits.collect();
    }
}

fn on_error(fields: &Fields<'_, '_>, diagnostics: &mut Diagnostics) -> OnError {
    const CHOICES: [(&str, OnError); 2] = [("fail", OnError::Fail), ("continue", OnError::Continue)];
    fields.choice("on_error", "P-16", &CHOICES, diagnostics).map(|choice| choice.value).unwrap_or_default()
}

/// `P-09`: a thread as written, else the parent, else `main`.
fn thread_or(
    written: Option<Spanned<Arc<str>>>,
    parent: Option<&Spanned<Arc<str>>>,
    node: Span,
) -> Given<Arc<str>> {
    match (written, parent) {
        (Some(text), _) => Given { value: text.value, span: text.span, origin: Origin::Written },
        (None, Some(parent)) => {
            Given { value: parent.value.clone(), span: parent.span, origin: Origin::Parent }
        }
        (None, None) => Given { value: "main".into(), span: node.opening(), origin: Origin::Default },
    }
}

impl Reader<'_> {
    fn push(&mut self, finding: Finding) {
        self.diagnostics.push(finding);
    }

    /// `node_id`, a string or an integer (`P-26`); default `n1`, `n2`, … by position.
    fn id(&mut self, index: usize, fields: &Fields<'_, '_>) -> Option<Given<Arc<str>>> {
        let Some(node) = fields.given("node_id") else {
            let value = format!("n{}", index + 1).into();
            return Some(Given { value, span: fields.span().opening(), origin: Origin::Default });
        };
        let value: Arc<str> = match &node.kind {
            Kind::String(text) => text.as_ref().into(),
            Kind::Number(_) if node.as_integer(self.source).is_some() => self.source.slice(node.span).into(),
            _ => {
                let help = "write a name such as \"fetch\", or an integer";
                let expected = "a string or an integer";
                let error = TypeError { field: "node_id", expected, rule: "P-26", help };
                self.push(type_error(node, error));
                return None;
            }
        };
        if value.is_empty() {
            self.push(
                Finding::error("P-26", "empty-name", node.span, "`node_id` must not be empty")
                    .help("write a name, or leave the field out: the id is then the node's position"),
            );
            return None;
        }
        let value: Arc<str> = normalized(&value).into();
        if !checks::Kind::NODE.may_be_id(&value, node.span, self.diagnostics) {
            return None;
        }
        Some(Given { value, span: node.span, origin: Origin::Written })
    }

    /// `P-01`: what the node starts with.
    fn kind(&mut self, fields: &Fields<'_, '_>) -> Option<NodeKind> {
        const CHOICES: [(&str, bool); 2] = [("llm-first", false), ("tool-first", true)];
        let help = "write \"node_type\": \"llm-first\" or \"node_type\": \"tool-first\"";
        let written = fields.required("node_type", "P-01", help, self.diagnostics);
        let tool_first = written
            .and_then(|node| crate::fields::choice_of(node, "node_type", "P-01", &CHOICES, self.diagnostics));
        let tool = fields.name("initial_tool_name", "P-01", self.diagnostics);
        let args = self.initial_args(fields);
        if !tool_first?.value {
            for name in ["initial_tool_name", "initial_tool_args"] {
                if let Some(node) = fields.given(name) {
                    let message = format!("an llm-first node must not have `{name}`");
                    self.push(
                        Finding::error("P-01", "initial-tool-of-llm-first", node.span, message)
                            .help("remove it, or make the node \"tool-first\""),
                    );
                }
            }
            return Some(NodeKind::LlmFirst);
        }
        if fields.given("initial_tool_name").is_none() {
            let help = "name the tool that the node starts with: \"initial_tool_name\": \"…\"";
            match fields.required("initial_tool_name", "P-01", help, self.diagnostics) {
                None => {}
                Some(null) => {
                    let message = "a tool-first node needs `initial_tool_name`; it is null";
                    self.push(Finding::error("P-01", "missing-field", null.span, message).help(help));
                }
            }
        }
        Some(NodeKind::ToolFirst { tool: tool?, args })
    }

    fn initial_args(&mut self, fields: &Fields<'_, '_>) -> Option<Node<'static>> {
        let node = fields.given("initial_tool_args")?;
        if matches!(node.kind, Kind::Object(_)) {
            return Some(node.clone().into_owned());
        }
        let help = "write the arguments by name: {\"name\": value}";
        let error = TypeError { field: "initial_tool_args", expected: "an object", rule: "P-13", help };
        self.push(type_error(node, error));
        None
    }

    /// `P-05`, `P-08`, `P-09`: the slice of the source thread.
    fn slice(&mut self, fields: &Fields<'_, '_>, parent: Option<&Spanned<Arc<str>>>) -> Given<Slice> {
        let default = match parent {
            Some(parent) => Given { value: Slice::LAST, span: parent.span, origin: Origin::Parent },
            None => Given { value: Slice::FIRST, span: fields.span().opening(), origin: Origin::Default },
        };
        let Some(member) = fields.member("data_in_slice") else { return default };
        let node = &member.value;
        let written = |value| Given { value, span: node.span, origin: Origin::Written };
        if node.is_null() {
            return written(Slice::LAST);
        }
        if let Some([start, end]) = node.as_array()
            && let (Some(start), Some(end)) = (self.slice_end(start), self.slice_end(end))
        {
            return written(Slice { start, end });
        }
        let what = match node.as_array() {
            Some(ends) if ends.len() != 2 => format!("an array of {}", ends.len()),
            Some(_) => self.shortened(node.span),
            None => node.type_in_words().to_owned(),
        };
        let message = format!("`data_in_slice` must be two integers or nulls, not {what}");
        self.push(
            Finding::error("P-05", "bad-slice", node.span, message)
                .help("write [start, end], such as [0, 1] for the first message or [-1, null] for the last"),
        );
        written(default.value)
    }

    /// One end of a slice: `Some(None)` is open, `None` is neither an integer nor null.
    fn slice_end(&self, node: &Node<'_>) -> Option<Option<i64>> {
        if node.is_null() { Some(None) } else { Some(Some(node.as_integer(self.source)?.value)) }
    }

    fn shortened(&self, span: Span) -> String {
        let text = self.source.slice(span);
        let mut short: String =
            text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(40).collect();
        if short.chars().count() == 40 {
            short.push('…');
        }
        short
    }

    /// `P-14`: `{tool: limit}`; 0 means never, a negative limit is an error.
    fn tools_limit(&mut self, fields: &Fields<'_, '_>) -> Vec<ToolLimit> {
        fields.given("tools_limit").map(|node| self.limits_in(node)).unwrap_or_default()
    }

    fn limits_in(&mut self, node: &Node<'_>) -> Vec<ToolLimit> {
        let Some(members) = node.as_object() else {
            let help = "write the most calls of each tool: {\"tool\": 5}";
            let error = TypeError { field: "tools_limit", expected: "an object", rule: "P-14", help };
            self.push(type_error(node, error));
            return Vec::new();
        };
        let mut limits = Vec::with_capacity(members.len());
        for member in members {
            let what = format!("tools_limit[{}]", shown(&member.key));
            let Some(limit) = count_of(&member.value, &what, "P-14", self.source, self.diagnostics) else {
                continue;
            };
            let tool = Spanned::new(Arc::from(member.key.as_ref()), member.key_span);
            limits.push(ToolLimit { tool, limit });
        }
        limits
    }

    fn max_rounds(&mut self, fields: &Fields<'_, '_>) -> Option<Spanned<u32>> {
        let rounds = fields.count("max_rounds", "P-14", self.source, self.diagnostics)?;
        Some(Spanned::new(u32::try_from(rounds.value).unwrap_or(u32::MAX), rounds.span))
    }

    fn settings(&mut self, fields: &Fields<'_, '_>) -> ModelSettings {
        // `P-26`: they go to providers that know them, whatever their type.
        let known = ["enable_search", "enable_thinking"].into_iter().filter_map(|name| {
            let node = fields.given(name)?;
            Some((name, Spanned::new(node.to_value(), node.span)))
        });
        let settings = settings::model_settings(fields, self.source, self.diagnostics);
        ModelSettings { known: known.collect(), ..settings }
    }
}
