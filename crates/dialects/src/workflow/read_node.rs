//! Reading one node of a workflow: what all have, and what each type has.

use super::doc::{Ask, Cut, Does, Json, Llm, Own, Repeat, Rounds, Text, WorkNode, Worth};
use super::read::{Reader, named, sub};
use super::read_fork;
use crate::Finding;
use crate::checks;
use crate::diagnostic::shown;
use crate::fields::{Fields, Shape, TypeError, choice_of, count_of, meant, type_error};
use crate::json::{Kind, Node, Span, Spanned};
use crate::settings::{self, ModelSettings, ToolEffects, ToolLimit};
use selvedge_engine::template::Template;
use selvedge_engine::{AskKind, Role};
use std::sync::Arc;

pub(super) const NODE: Shape = Shape { what: "a node", fields: &["config", "id", "name", "type"] };
const COMMON: [&str; 5] = ["budget", "effects", "model", "retry", "timeout"];

/// The configuration of each type, by type; all have what every node may have.
pub(super) const CONFIGS: [(&str, Shape); 15] = [
    ("START", Shape { what: "the config of a START node", fields: &COMMON }),
    (
        "END",
        Shape {
            what: "the config of an END node",
            fields: &["budget", "effects", "model", "output", "retry", "timeout"],
        },
    ),
    (
        "LLM",
        Shape {
            what: "the config of an LLM node",
            fields: &[
                "budget",
                "effects",
                "enable_tool_loop",
                "extra",
                "max_rounds",
                "max_tokens",
                "model",
                "output_schema",
                "prompt",
                "retry",
                "seed",
                "stop",
                "system",
                "temperature",
                "thread",
                "timeout",
                "tools",
                "tools_limit",
                "top_p",
            ],
        },
    ),
    (
        "TOOL",
        Shape {
            what: "the config of a TOOL node",
            fields: &["args", "budget", "effects", "model", "retry", "thread", "timeout", "tool"],
        },
    ),
    (
        "AGENT",
        Shape {
            what: "the config of an AGENT node",
            fields: &[
                "budget",
                "effects",
                "extra",
                "max_steps",
                "max_tokens",
                "model",
                "query",
                "retry",
                "seed",
                "stop",
                "temperature",
                "thread",
                "timeout",
                "tools",
                "top_p",
            ],
        },
    ),
    (
        "FORK",
        Shape {
            what: "the config of a FORK node",
            fields: &[
                "as",
                "budget",
                "childNodeIds",
                "effects",
                "forEach",
                "forkId",
                "forkPathIds",
                "forkPaths",
                "forkStrategy",
                "model",
                "retry",
                "timeout",
            ],
        },
    ),
    (
        "JOIN",
        Shape {
            what: "the config of a JOIN node",
            fields: &[
                "budget",
                "effects",
                "exports",
                "forkId",
                "forkPathIds",
                "joinStrategy",
                "mainPathId",
                "model",
                "retry",
                "threshold",
                "timeout",
            ],
        },
    ),
    (
        "ROUTE",
        Shape {
            what: "the config of a ROUTE node",
            fields: &["branches", "budget", "default", "effects", "model", "retry", "timeout"],
        },
    ),
    (
        "LOOP_START",
        Shape {
            what: "the config of a LOOP_START node",
            fields: &[
                "as", "budget", "count", "effects", "limit", "model", "over", "retry", "timeout", "until",
                "while",
            ],
        },
    ),
    (
        "LOOP_END",
        Shape {
            what: "the config of a LOOP_END node",
            fields: &["budget", "effects", "loop", "model", "retry", "timeout"],
        },
    ),
    (
        "VARIABLE",
        Shape {
            what: "the config of a VARIABLE node",
            fields: &["budget", "effects", "expression", "model", "name", "retry", "timeout", "value"],
        },
    ),
    (
        "CONTEXT",
        Shape {
            what: "the config of a CONTEXT node",
            fields: &[
                "budget",
                "effects",
                "extra",
                "keep",
                "max_tokens",
                "model",
                "op",
                "retry",
                "roles",
                "seed",
                "stop",
                "temperature",
                "thread",
                "timeout",
                "top_p",
            ],
        },
    ),
    (
        "USER_INTERACTION",
        Shape {
            what: "the config of a USER_INTERACTION node",
            fields: &[
                "budget", "effects", "kind", "model", "prompt", "retry", "schema", "thread", "timeout",
                "value",
            ],
        },
    ),
    (
        "SUBGRAPH",
        Shape {
            what: "the config of a SUBGRAPH node",
            fields: &[
                "budget", "effects", "file", "inputs", "model", "outputs", "retry", "timeout", "workflow",
            ],
        },
    ),
    (
        "PLAN",
        Shape {
            what: "the config of a PLAN node",
            fields: &["budget", "effects", "file", "inputs", "model", "plan", "retry", "timeout"],
        },
    ),
];

/// The thread that nodes work on that name none.
const MAIN: &str = "main";

/// Reads a node; `None`, with an error among the findings, if it is not whole.
pub(super) fn read(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<WorkNode> {
    let fields = Fields::open(node, &NODE, "W-01", reader.diagnostics)?;
    let id = fields.required_name("id", "W-01", "give the node an id: \"id\": \"…\"", reader.diagnostics);
    let id = id
        .map(Spanned::normalized)
        .filter(|id| checks::Kind::WORK.may_be_id(&id.value, id.span, reader.diagnostics));
    let name = fields.text("name", "W-01", reader.diagnostics);
    let (kind, shape) = kind_of(&fields, reader)?;
    let empty = Node { span: fields.span().opening(), kind: Kind::Object(Vec::new()) };
    let config = Fields::open(fields.given("config").unwrap_or(&empty), shape, "W-01", reader.diagnostics)?;
    let d = &mut *reader.diagnostics;
    let retry = config.given("retry").and_then(|node| settings::retry(node, reader.source, d));
    let budget = config.given("budget").map(|node| settings::budget(node, reader.source, d));
    let effects = config.choice("effects", "E-22", &ToolEffects::NAMES, d);
    let model = config.name("model", "P-10", d);
    let settings = match kind {
        "LLM" | "AGENT" | "CONTEXT" => settings::model_settings(&config, reader.source, d),
        _ => ModelSettings::default(),
    };
    // The time of a join is its own.
    let timeout = if kind == "JOIN" { None } else { config.seconds("timeout", "E-37", false, d) };
    let does = reader.does(kind, &config, id.as_ref());
    let id = id?;
    let name = name.map_or_else(|| id.value.clone(), |name| name.value);
    Some(WorkNode {
        name,
        id,
        span: fields.span(),
        does: does?,
        retry,
        timeout,
        effects,
        model,
        settings,
        budget,
    })
}

fn kind_of(fields: &Fields<'_, '_>, reader: &mut Reader<'_, '_>) -> Option<(&'static str, &'static Shape)> {
    static SHAPES: [(&str, Shape); 15] = CONFIGS;
    let help = "say what the node does: \"type\": \"LLM\"";
    let node = fields.required("type", "W-01", help, reader.diagnostics)?;
    let known = node.as_str().and_then(|text| SHAPES.iter().find(|(name, _)| *name == text));
    if let Some((name, shape)) = known {
        return Some((name, shape));
    }
    let names: Vec<&str> = SHAPES.iter().map(|(name, _)| *name).collect();
    let upper = node.as_str().map(str::to_uppercase).unwrap_or_default();
    let near = names.iter().copied().find(|name| *name == upper).or_else(|| meant(&upper, &names));
    let help = match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the types are {}", names.join(", ")),
    };
    let error = TypeError { field: "type", expected: "a type of node", rule: "W-01", help: &help };
    reader.push(Finding { code: "unknown-value", ..type_error(node, error) });
    None
}

impl Reader<'_, '_> {
    fn does(&mut self, kind: &str, config: &Fields<'_, '_>, id: Option<&Text>) -> Option<Does> {
        Some(match kind {
            "START" => Does::Start,
            "END" => Does::End(config.given("output").map(|node| node.clone().into_owned())),
            "LLM" => Does::Llm(Box::new(self.llm(config)?)),
            "TOOL" => {
                let help = "name the tool: \"tool\": \"…\"";
                let tool = config.required_name("tool", "P-13", help, self.diagnostics);
                let args = self.object(config, "args");
                Does::Tool { tool: tool?, args, thread: config.name("thread", "P-13", self.diagnostics) }
            }
            "AGENT" => Does::Llm(Box::new(self.agent(config, id)?)),
            "FORK" => Does::Fork(Box::new(read_fork::fork(config, self)?)),
            "JOIN" => Does::Join(Box::new(read_fork::join(config, self)?)),
            "ROUTE" => self.route(config)?,
            "LOOP_START" => Does::LoopStart(Box::new(self.repeat(config)?)),
            "LOOP_END" => {
                let help = "name the LOOP_START node: \"loop\": \"…\"";
                Does::LoopEnd(config.required_name("loop", "W-14", help, self.diagnostics)?.normalized())
            }
            "VARIABLE" => self.variable(config)?,
            "CONTEXT" => self.context(config)?,
            "USER_INTERACTION" => Does::Ask(Box::new(self.ask(config)?)),
            "SUBGRAPH" => Does::Sub(Box::new(sub(config, "workflow", self)?)),
            _ => Does::Sub(Box::new(sub(config, "plan", self)?)),
        })
    }

    fn llm(&mut self, config: &Fields<'_, '_>) -> Option<Llm> {
        let help = "write what the model is asked: \"prompt\": \"…\"";
        let prompt = config.required_name("prompt", "P-10", help, self.diagnostics);
        let schema = config.given("output_schema").and_then(|node| {
            settings::output_schema(node, "output_schema", self.limits.schema_steps, self.diagnostics)
        });
        let tools =
            config.given("tools").map(|node| settings::names(node, "tools", "P-15", self.diagnostics));
        let tools_limit = self.tools_limit(config);
        let max_rounds = config.count("max_rounds", "P-14", self.source, self.diagnostics);
        let in_rounds = config.boolean("enable_tool_loop", "P-11", self.diagnostics);
        Some(Llm {
            system: config.text("system", "E-23", self.diagnostics),
            thread: self.thread(config),
            tools: tools.unwrap_or_default(),
            enable_tool_loop: in_rounds.is_some_and(|flag| flag.value),
            tools_limit,
            max_rounds: max_rounds
                .map(|rounds| Spanned::new(u32::try_from(rounds.value).unwrap_or(u32::MAX), rounds.span)),
            output_schema: schema,
            prompt: prompt?,
            agent: None,
        })
    }

    /// The executor of an agent, in rounds with its tools. Without a thread it has one of its own, which nobody can name.
    fn agent(&mut self, config: &Fields<'_, '_>, id: Option<&Text>) -> Option<Llm> {
        let help = "write what is to be done: \"query\": \"…\"";
        let query = config.required_name("query", "A-09", help, self.diagnostics);
        let tools =
            config.given("tools").map(|node| settings::names(node, "tools", "P-15", self.diagnostics));
        let steps = config.count("max_steps", "A-09", self.source, self.diagnostics);
        let thread = config.name("thread", "P-03", self.diagnostics);
        let own = if thread.is_some() { Own::Nothing } else { Own::Thread };
        let of_its_own = || {
            let id = id.map_or("", |id| &*id.value);
            Spanned::new(format!("{id}/executor").into(), config.span().opening())
        };
        Some(Llm {
            system: None,
            thread: thread.unwrap_or_else(of_its_own),
            tools: tools.unwrap_or_default(),
            enable_tool_loop: true,
            tools_limit: Vec::new(),
            max_rounds: steps
                .map(|steps| Spanned::new(u32::try_from(steps.value).unwrap_or(u32::MAX), steps.span)),
            output_schema: None,
            prompt: query?,
            agent: Some(own),
        })
    }

    fn tools_limit(&mut self, config: &Fields<'_, '_>) -> Vec<ToolLimit> {
        let mut limits = Vec::new();
        for (tool, node) in named(config, "tools_limit", "P-14", self.diagnostics) {
            let what = format!("tools_limit[{}]", shown(&tool.value));
            let limit = count_of(&node, &what, "P-14", self.source, self.diagnostics);
            limits.extend(limit.map(|limit| ToolLimit { tool, limit }));
        }
        limits
    }

    /// The thread, or `main`.
    fn thread(&mut self, config: &Fields<'_, '_>) -> Text {
        let main = || Spanned::new(MAIN.into(), config.span().opening());
        config.name("thread", "P-03", self.diagnostics).unwrap_or_else(main)
    }

    fn object(&mut self, config: &Fields<'_, '_>, field: &'static str) -> Option<Json> {
        let node = config.given(field)?;
        if matches!(node.kind, Kind::Object(_)) {
            return Some(node.clone().into_owned());
        }
        let help = "write them by name: {\"name\": value}";
        self.push(type_error(node, TypeError { field, expected: "an object", rule: "P-13", help }));
        None
    }

    fn route(&mut self, config: &Fields<'_, '_>) -> Option<Does> {
        const BRANCH: Shape = Shape { what: "a branch", fields: &["to", "when"] };
        let help = "write where it goes on: \"branches\": [{\"when\": \"…\", \"to\": \"…\"}]";
        let list = config.required("branches", "W-01", help, self.diagnostics)?;
        let help = "name the node where it goes on if no condition holds: \"default\": \"…\"";
        let default = config.required_name("default", "W-01", help, self.diagnostics);
        let Some(elements) = list.as_array() else {
            let help = "write a list: [{\"when\": \"…\", \"to\": \"…\"}]";
            self.push(type_error(
                list,
                TypeError { field: "branches", expected: "an array", rule: "W-01", help },
            ));
            return None;
        };
        let mut branches = Vec::with_capacity(elements.len());
        for element in elements {
            let fields = Fields::open(element, &BRANCH, "W-01", self.diagnostics)?;
            let help = "name the node that it leads to: \"to\": \"…\"";
            let to = fields.required_name("to", "W-01", help, self.diagnostics);
            let when =
                fields.required("when", "W-01", "write its condition: \"when\": \"…\"", self.diagnostics)?;
            branches.push((self.formula(when, "when")?, to?.normalized()));
        }
        Some(Does::Route { branches, default: default?.normalized() })
    }

    fn repeat(&mut self, config: &Fields<'_, '_>) -> Option<Repeat> {
        let given = ["over", "count", "while"].map(|field| config.given(field).map(|node| (field, node)));
        let mut given = given.into_iter().flatten();
        let (first, second) = (given.next(), given.next());
        let limit =
            config.required("limit", "E-12", "write the most iterations: \"limit\": 100", self.diagnostics);
        let limit = limit.and_then(|node| count_of(node, "limit", "E-12", self.source, self.diagnostics));
        let item = config.name("as", "W-01", self.diagnostics);
        let item = item.map_or_else(|| "item".into(), |name| name.normalized().value);
        let until = match config.given("until") {
            Some(node) => Some(self.formula(node, "until")?),
            None => None,
        };
        let times = match (first, second) {
            (Some(("over", _)), None) => Rounds::Over(list_or_template(config, "over", "W-16", self)?),
            (Some(("count", node)), None) => Rounds::Count(self.number_or_template(node)?),
            (Some((_, node)), None) => Rounds::While(self.formula(node, "while")?),
            (_, second) => {
                let at = second.map_or(config.span().opening(), |(_, node)| node.span);
                let message = "a loop needs one of `over`, `count` and `while`";
                let help = "write the list that it goes over, how often it goes round, or a condition";
                self.push(Finding::error("W-01", "missing-field", at, message).help(help));
                return None;
            }
        };
        let limit = limit?;
        let limit = Spanned::new(u32::try_from(limit.value).unwrap_or(u32::MAX), limit.span);
        Some(Repeat { times, item, limit, until })
    }

    /// How often a loop goes round: a number, or a placeholder that stands alone.
    fn number_or_template(&mut self, node: &Node<'_>) -> Option<Json> {
        if !node.as_str().is_some_and(may_be_value) {
            count_of(node, "count", "W-16", self.source, self.diagnostics)?;
        }
        Some(node.clone().into_owned())
    }

    fn variable(&mut self, config: &Fields<'_, '_>) -> Option<Does> {
        let name =
            config.required_name("name", "W-01", "name the variable: \"name\": \"…\"", self.diagnostics);
        let (value, expression) = (config.member("value"), config.given("expression"));
        let worth = match (value, expression) {
            (Some(value), None) => Worth::Value(value.value.clone().into_owned()),
            (None, Some(node)) => Worth::Of(self.formula(node, "expression")?),
            _ => {
                let message = "a variable needs one of `value` and `expression`";
                let help = "write its value, a template, or an expression that is computed";
                self.push(
                    Finding::error("W-01", "missing-field", config.span().opening(), message).help(help),
                );
                return None;
            }
        };
        Some(Does::Variable(name?.normalized(), worth))
    }

    fn context(&mut self, config: &Fields<'_, '_>) -> Option<Does> {
        const OPS: [(&str, u8); 4] = [("trim", 0), ("filter", 1), ("clear", 2), ("summarise", 3)];
        let op = config.required("op", "E-09", "say what is done: \"op\": \"trim\"", self.diagnostics);
        let op = op.and_then(|node| choice_of(node, "op", "E-09", &OPS, self.diagnostics));
        let keep = config.count("keep", "E-09", self.source, self.diagnostics);
        let keep_or =
            |keep: Option<Spanned<u64>>| keep.map_or(0, |keep| u32::try_from(keep.value).unwrap_or(u32::MAX));
        let roles = config.given("roles").map(|node| self.roles(node));
        let thread = self.thread(config);
        let lacks = |reader: &mut Self, field: &str, help: &str| {
            let message = format!("it needs the field `{field}`");
            reader.push(Finding::error("E-09", "missing-field", config.span().opening(), message).help(help));
        };
        let cut = match op?.value {
            0 if keep.is_none() => {
                lacks(self, "keep", "write how many of the last messages stay: \"keep\": 10");
                return None;
            }
            0 => Cut::Trim(keep_or(keep)),
            1 => match roles {
                Some(roles) => Cut::Filter(roles?),
                None => {
                    lacks(self, "roles", "write whose messages stay: \"roles\": [\"user\", \"assistant\"]");
                    return None;
                }
            },
            2 => Cut::Clear,
            _ => Cut::Summarise(keep_or(keep)),
        };
        Some(Does::Context { cut, thread })
    }

    fn roles(&mut self, node: &Node<'_>) -> Option<Vec<Role>> {
        const ROLES: [(&str, Role); 4] = [
            ("system", Role::System),
            ("user", Role::User),
            ("assistant", Role::Assistant),
            ("tool", Role::Tool),
        ];
        let names = settings::names(node, "roles", "E-09", self.diagnostics);
        let mut roles = Vec::with_capacity(names.len());
        for Spanned { value, span } in names {
            let word = Node { span, kind: Kind::String(value.to_string().into()) };
            roles.push(choice_of(&word, "roles", "E-09", &ROLES, self.diagnostics)?.value);
        }
        Some(roles)
    }

    fn ask(&mut self, config: &Fields<'_, '_>) -> Option<Ask> {
        const KINDS: [(&str, AskKind); 3] =
            [("approve", AskKind::Approve), ("answer", AskKind::Answer), ("edit", AskKind::Edit)];
        let kind =
            config.required("kind", "E-21", "say what is asked for: \"kind\": \"answer\"", self.diagnostics);
        let kind = kind.and_then(|node| choice_of(node, "kind", "E-21", &KINDS, self.diagnostics));
        let help = "write the question: \"prompt\": \"…\"";
        let prompt = config.required_name("prompt", "E-21", help, self.diagnostics);
        let value = config.given("value").map(|node| node.clone().into_owned());
        let schema = config.given("schema").and_then(|node| {
            settings::output_schema(node, "schema", self.limits.schema_steps, self.diagnostics)
        });
        let thread = config.name("thread", "E-21", self.diagnostics);
        let (kind, prompt) = (kind?.value, prompt?);
        let ignored = |field: &str, at: Span| {
            let message = format!("`{field}` has no effect: an approval is yes or no");
            Finding::warning("E-21", "no-effect", at, message).help("remove it, or ask for an \"answer\"")
        };
        if kind == AskKind::Approve {
            let unused =
                [("schema", schema.as_ref().map(|s| s.span)), ("thread", thread.as_ref().map(|t| t.span))];
            for (field, at) in unused {
                at.into_iter().for_each(|at| self.push(ignored(field, at)));
            }
        }
        if kind == AskKind::Edit && value.is_none() {
            let message = "an `edit` needs the field `value`: what is to be edited";
            let finding = Finding::error("E-21", "missing-field", config.span().opening(), message);
            self.push(finding.help("write what is shown: \"value\": \"{{draft}}\""));
            return None;
        }
        Some(Ask { kind, prompt, value, schema, thread: thread.filter(|_| kind != AskKind::Approve) })
    }
}

/// Whether a text may come to a value that is no text: one placeholder, and nothing else (D-08).
fn may_be_value(text: &str) -> bool {
    // What does not parse is told with the other templates.
    let Ok(template) = Template::parse(text) else { return true };
    let mut placeholders = template.placeholders();
    placeholders.next().is_some_and(|only| only.raw.len() == text.len())
}

/// A list, or a template that may come to one: a placeholder that stands alone.
pub(super) fn list_or_template(
    config: &Fields<'_, '_>,
    field: &'static str,
    rule: &'static str,
    reader: &mut Reader<'_, '_>,
) -> Option<Json> {
    let node = config.given(field)?;
    if node.as_array().is_none() && !node.as_str().is_some_and(may_be_value) {
        let help = "write a list, or the placeholder of one and nothing else: \"{{name}}\"";
        let expected = "a list, or a placeholder that comes to one";
        reader.push(type_error(node, TypeError { field, expected, rule, help }));
        return None;
    }
    Some(node.clone().into_owned())
}

/// A list of names, with where it is written.
pub(super) fn list_of(
    fields: &Fields<'_, '_>,
    field: &'static str,
    rule: &'static str,
    reader: &mut Reader<'_, '_>,
) -> Option<(Vec<Text>, Span)> {
    let node = fields.given(field)?;
    let names: Option<Vec<Text>> = node.as_array().map(|elements| {
        let name = |element: &Node<'_>| {
            let text = element.as_str().filter(|text| !text.is_empty())?;
            Some(Spanned::new(Arc::from(text), element.span))
        };
        elements.iter().map_while(name).collect()
    });
    match (names, node.as_array()) {
        (Some(names), Some(elements)) if names.len() == elements.len() => Some((names, node.span)),
        (names, elements) => {
            let wrong = elements.and_then(|elements| elements.get(names.map_or(0, |names| names.len())));
            let help = "write a list of names in double quotes: [\"a\", \"b\"]";
            let error = TypeError { field, expected: "a list of names", rule, help };
            reader.push(type_error(wrong.unwrap_or(node), error));
            None
        }
    }
}
