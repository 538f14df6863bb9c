//! Findings that the checkers of all dialects have in common: about tools and about placeholders.

use crate::ToolSource;
use crate::diagnostic::listed;
use crate::diagnostic::shown;
use crate::fields::meant;
use crate::json::{Span, Spanned};
use crate::{Diagnostics, Finding, Severity};
use selvedge_engine::schedule::Schedule;
use selvedge_engine::schema::{self, Unchecked};
use selvedge_engine::template::{
    self, NAMES, Path, Placeholder, RESERVED_ROOTS, Seg, Slip, TemplateError, is_name,
};
use selvedge_engine::{Graph, ToolDef};
use std::borrow::Cow;
use std::sync::Arc;

/// Why a pattern is not checked.
pub(crate) const BEYOND: &str =
    "it looks ahead or behind, or refers back, which takes an engine whose time has no limit";

/// How a dialect calls what its documents are a list of.
pub(crate) struct Kind {
    /// One of them: "node", "step".
    pub(crate) one: &'static str,
    /// The rule that a tool that is named must be there.
    pub(crate) unknown_tool: &'static str,
    /// The field of its id.
    id: &'static str,
    /// The codes of an id that means something else, and of one that no placeholder can name.
    reserved: &'static str,
    unnameable: &'static str,
}

impl Kind {
    /// Nodes of a plan.
    pub(crate) const NODE: Kind = Kind {
        one: "node",
        unknown_tool: "P-15",
        id: "node_id",
        reserved: "reserved-node-id",
        unnameable: "unnameable-node-id",
    };
    /// Nodes of a workflow.
    pub(crate) const WORK: Kind = Kind { unknown_tool: "W-14", id: "id", ..Self::NODE };
    /// An agent.
    pub(crate) const AGENT: Kind = Kind { one: "agent", unknown_tool: "A-25", ..Self::NODE };
    /// Steps of a task.
    pub(crate) const STEP: Kind = Kind {
        one: "step",
        unknown_tool: "D-15",
        id: "step_id",
        reserved: "reserved-step-id",
        unnameable: "unnameable-step-id",
    };

    /// Whether an id may be one: a finding if it means something else (D-07), or if no placeholder can name it (D-09).
    pub(crate) fn may_be_id(&self, id: &str, place: Span, diagnostics: &mut Diagnostics) -> bool {
        if RESERVED_ROOTS.contains(&id) {
            let message = format!(
                "a {} can't have the id {}: placeholders mean something else by it",
                self.one,
                shown(id)
            );
            let finding = Finding::error("D-07", self.reserved, place, message);
            diagnostics.push(finding.help(format!("choose another `{}`", self.id)));
            return false;
        }
        if !is_name(id) {
            let message = format!("no placeholder can name the id {}", shown(id));
            let finding = Finding::error("D-09", self.unnameable, place, message);
            diagnostics.push(finding.help(format!("use {NAMES}")));
            return false;
        }
        true
    }

    /// A tool that there is not. A model is told of the tools that it may choose, and of no command line.
    pub(crate) fn no_tool(
        &self,
        tool: &Spanned<Arc<str>>,
        tools: &dyn ToolSource,
        for_model: bool,
        diagnostics: &mut Diagnostics,
    ) {
        if let Some(trouble) = tools.trouble(&tool.value) {
            return diagnostics.push(trouble.at(tool.span));
        }
        let message = format!("there is no tool {}", shown(&tool.value));
        let finding = Finding::error(self.unknown_tool, "unknown-tool", tool.span, message);
        if diagnostics.is_full(Severity::Error, "unknown-tool") {
            return diagnostics.push(finding);
        }
        let names = if for_model { tools.available() } else { tools.names() };
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let help = match meant(&tool.value, &known) {
            Some(near) => format!("did you mean {}?", shown(near)),
            None if for_model => format!("the tools are {}", known.join(", ")),
            None => format!("known tools: {}; a folder of tools is given with --tools DIR", known.join(", ")),
        };
        diagnostics.push(finding.help(help));
    }

    /// E-22: a tool that does not say what it does to the world, where nobody else says it.
    pub(crate) fn undeclared_effects(&self, tool: &str, place: Span) -> Finding {
        let (one, tool) = (self.one, shown(tool));
        let message = format!(
            "tool {tool} declares no effects and is treated as `write`: its calls wait for all earlier {one}s"
        );
        let finding = Finding::warning("E-22", "undeclared-effects", place, message);
        finding.help(format!(
            "declare \"effects\" (pure, read, idempotent or write) in the tool, or at the {one}"
        ))
    }

    /// E-45: what can't be used of a tool's schema, or is not checked.
    pub(crate) fn tool_schema(&self, def: &ToolDef, place: Span, steps: u64, diagnostics: &mut Diagnostics) {
        let tool = shown(&def.name);
        match schema::look(&def.input_schema, steps) {
            Ok(unchecked) => {
                for part in unchecked {
                    let message = unchecked_pattern(&def.name, &part);
                    let finding = Finding::warning("E-45", "unchecked-pattern", place, message);
                    diagnostics.push(finding.help("the tool has to check it; or say it without"));
                }
            }
            Err(limit) => {
                let message = format!("the input schema of tool {tool} can't be used: {limit}");
                let finding = Finding::error("E-45", "schema-too-large", place, message);
                diagnostics.push(finding.help("make the tool's schema simpler, or call another tool"));
            }
        }
    }

    /// D-07: an id hides a name of metadata.
    pub(crate) fn hidden_name(&self, id: &str, place: Span) -> Finding {
        let message = format!("{} {} hides the metadata of the same name", self.one, shown(id));
        let finding = Finding::warning("D-07", "hidden-name", place, message);
        finding.help(format!("write {{{{metadata.{id}}}}} for the metadata"))
    }
}

/// A document's graph, if no two of its nodes race (E-11). That holds by construction; a graph for which it did not must never run.
pub(crate) fn proved(graph: Graph, document: Span, diagnostics: &mut Diagnostics) -> Option<Graph> {
    if let Err(race) = Schedule::derive(&graph, false).prove(&graph) {
        let finding = Finding::error("E-11", "race", document.opening(), race.to_string());
        diagnostics.push(finding.help("this is a bug of Selvedge: please report it with the document"));
        return None;
    }
    Some(graph)
}

/// What is said of a pattern in a tool's schema that nothing is held against (E-45).
pub fn unchecked_pattern(tool: &str, Unchecked { place, pattern }: &Unchecked) -> String {
    let (tool, place, pattern) = (shown(tool), shown(place), shown(pattern));
    format!("the pattern {pattern} in the input schema of tool {tool}, at {place}, is not checked: {BEYOND}")
}

/// D-07: a bare name that the first layer has, and that an earlier step may bring, too: then the step's counts.
pub(crate) fn shadowed(kind: &Kind, raw: &str, name: &str, step: &str, place: Span) -> Finding {
    let (one, by) = (kind.one, shown(step));
    let message = format!("{raw} is what {one} {by} brings, and not the input or metadata of that name");
    let finding = Finding::warning("D-07", "name-shadowed", place, message);
    let first = Path { root: "inputs".into(), rest: vec![Seg::Key(name.into())] };
    let second = Path { root: step.into(), rest: vec![Seg::Key("output".into()), Seg::Key(name.into())] };
    finding.help(format!("write {{{{{first}}}}} for the input, or {{{{{second}}}}} for the {one}'s"))
}

/// D-09: a placeholder that its text ends in. `place_of` finds a part of that text in the document.
pub(crate) fn unfinished(
    error: TemplateError,
    place_of: impl FnOnce(std::ops::Range<usize>) -> Span,
) -> Finding {
    let place = place_of(error.offset..error.offset + 2);
    let finding = Finding::error("D-09", "unfinished-placeholder", place, error.message);
    finding.help("close it, or write \\{{ or \\${ for the characters themselves")
}

/// D-09: texts that are almost placeholders. They would go out word for word, so they are likely slips if their first
/// name means something (`means`: it is a step's or a value's).
pub(crate) fn slips(
    text: &str,
    means: impl Fn(&str) -> bool,
    place_of: impl Fn(std::ops::Range<usize>) -> Span,
) -> Vec<Finding> {
    // Most texts have no opening, and need no second parse.
    if !text.contains("{{") && !text.contains("${") {
        return Vec::new();
    }
    let found = template::slips(text).into_iter();
    let layer = |slip: &Slip| slip.goes_on && matches!(&*slip.root, "inputs" | "metadata");
    let output = |slip: &Slip| slip.is_half_closed && slip.meant.as_ref().is_some_and(names_output);
    let found = found.filter(|slip| means(&slip.root) || layer(slip) || output(slip));
    found.map(|slip| almost_placeholder(&slip, place_of(slip.offset..slip.offset + slip.raw.len()))).collect()
}

fn almost_placeholder(slip: &Slip, place: Span) -> Finding {
    let raw = &slip.raw;
    if slip.is_half_closed {
        let message = format!("{raw} is text: one brace is missing at its end");
        let finding = Finding::warning("D-09", "half-closed-placeholder", place, message);
        return finding.help(format!("write {raw}}} for the value, or \\{raw} if it is meant as text"));
    }
    let message =
        format!("{raw} is text: it begins with the name {}, but is no placeholder", shown(&slip.root));
    let finding = Finding::warning("D-09", "almost-placeholder", place, message);
    finding.help(match &slip.meant {
        Some(path) => format!("write {{{{{path}}}}} for the value, or \\{raw} if it is meant as text"),
        None => format!(
            "a placeholder is names with dots and brackets only: {{{{a.b[0][\"c d\"]}}}}; write \\{raw} if it is meant as text"
        ),
    })
}

/// Whether a path goes on with `.output` or `.outputs`, which can only mean a step, unless a value has its first name.
pub(crate) fn names_output(path: &Path) -> bool {
    matches!(path.rest.first(), Some(Seg::Key(key)) if matches!(key.as_ref(), "output" | "outputs"))
}

/// P-25: a name that only a result of unknown fields can bring. A warning if it is almost a name that there is, or goes
/// on with `.output` and so means a node. `names` are those that there are, and about how many.
pub(crate) fn hardly_supplied<'n>(
    placeholder: &Placeholder,
    name: &str,
    place: Span,
    (count, names): (usize, impl FnOnce() -> Vec<Cow<'n, str>>),
    diagnostics: &mut Diagnostics,
) {
    const SHORT: usize = 6;
    let mut near = None;
    let names = if diagnostics.may_search(count) { names() } else { Vec::new() };
    let mut known: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    known.sort_unstable();
    if let Some(found) = meant(name, &known) {
        let letters = found.chars().count();
        let is_near = letters >= SHORT || strsim::osa_distance(name, found) == 1 || alike(name, found);
        near = Some(found).filter(|_| is_near);
    }
    let help = match near {
        Some(near) => format!("did you mean {}?", shown(near)),
        None if names_output(&placeholder.path) => {
            "write the id of an earlier node before `.output`".to_owned()
        }
        None => return,
    };
    let message = format!(
        "nothing is known to supply {}: only a result whose fields are not declared could have {}",
        placeholder.raw,
        shown(name)
    );
    diagnostics.push(Finding::warning("P-25", "unknown-placeholder", place, message).help(help));
}

/// Whether two names differ only in case, `_` and `-`.
fn alike(one: &str, other: &str) -> bool {
    let bare = |text: &str| text.to_lowercase().replace(['_', '-'], "");
    bare(one) == bare(other)
}

/// P-25: no metadata, no input, no declared output, and no earlier result whose fields are unknown. `names` are those
/// that there are, and about how many; they are asked for only if somebody will see the words.
pub(crate) fn nothing_supplies<'n>(
    placeholder: &Placeholder,
    name: &str,
    place: Span,
    (count, names): (usize, impl FnOnce() -> Vec<Cow<'n, str>>),
    for_model: bool,
    diagnostics: &mut Diagnostics,
) {
    // An expression names values without braces (E-46).
    let formula = !placeholder.raw.starts_with('{');
    let message = format!("nothing can supply {}: there is no {} here", placeholder.raw, shown(name));
    let finding = Finding::error("P-25", "unknown-placeholder", place, message);
    let names = if diagnostics.worth_searching("unknown-placeholder", count) { names() } else { Vec::new() };
    let mut known: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    known.sort_unstable();
    let is_id = *placeholder.path.root == *name && name.bytes().all(|byte| byte.is_ascii_digit());
    let help = match meant(name, &known) {
        Some(near) => format!("did you mean {}?", shown(near)),
        None if is_id => {
            format!(
                "digits are the id of an earlier node or step; write \\{} for the text itself",
                placeholder.raw
            )
        }
        None if for_model && !known.is_empty() => format!("names: {}", listed(&known)),
        None if formula => {
            "declare it in `inputs` or `metadata`, or set it in a VARIABLE node before".to_owned()
        }
        None => {
            format!(
                "declare it in `inputs` or `metadata`, or write \\{} for the text itself",
                placeholder.raw
            )
        }
    };
    diagnostics.push(finding.help(help));
}
