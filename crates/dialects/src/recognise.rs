//! Which dialect a document is written in (`C-11`), and which of several plans in it is meant.

use crate::diagnostic::shown;
use crate::fields::misspelt;
use crate::json::{Member, Node};
use crate::{Diagnostics, Finding};

/// The document formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Nodes on threads: `nodes` without `edges`, or an object of several such plans.
    Plan,
    /// A task with `steps`, or a task alone, which is to be planned.
    Steps,
    /// A graph: `nodes` and `edges`.
    Workflow,
    /// A task for the self-evolving agent: `query`.
    Agent,
}

impl Dialect {
    /// All dialects, in the order in which documents are recognised.
    pub const ALL: [Dialect; 4] = [Dialect::Workflow, Dialect::Plan, Dialect::Steps, Dialect::Agent];

    /// The name that `--dialect` takes.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Plan => "plan",
            Dialect::Steps => "steps",
            Dialect::Workflow => "workflow",
            Dialect::Agent => "agent",
        }
    }

    /// The dialect that `--dialect` names so.
    pub fn from_name(name: &str) -> Option<Self> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// What a document of this dialect has, in words.
    fn marks(self) -> &'static str {
        match self {
            Dialect::Plan => "`nodes` and no `edges`, or is an object of plans",
            Dialect::Steps => "`task`, with `steps` or without",
            Dialect::Workflow => "`nodes` and `edges`",
            Dialect::Agent => "`query`",
        }
    }

    fn fits(self, node: &Node<'_>) -> bool {
        let has = |key: &str| node.get(key).is_some();
        match self {
            Dialect::Plan => has("nodes") && !has("edges") || named_plans(node).is_some(),
            Dialect::Steps => has("steps") || has("task") && !has("nodes"),
            Dialect::Workflow => has("nodes") && has("edges"),
            Dialect::Agent => has("query"),
        }
    }
}

/// What the caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice<'c> {
    /// The value of `--dialect`.
    pub dialect: Option<Dialect>,
    /// The value of `--plan`.
    pub plan: Option<&'c str>,
}

/// A recognised document.
#[derive(Clone, Copy, Debug)]
pub struct Recognised<'n, 's> {
    /// Its dialect.
    pub dialect: Dialect,
    /// The document itself: the chosen plan, if the file is an object of plans, else the file's root.
    pub root: &'n Node<'s>,
    /// The member of the file that holds the plan, if the file is an object of plans.
    pub member: Option<&'n Member<'s>>,
}

/// The members that are plans, if this is an object of plans: no key of a dialect at the top, and at least one
/// member that is an object with `nodes`.
pub fn named_plans<'n, 's>(root: &'n Node<'s>) -> Option<Vec<&'n Member<'s>>> {
    let members = root.as_object()?;
    if ["nodes", "edges", "steps", "query"].iter().any(|key| root.get(key).is_some()) {
        return None;
    }
    // A task's own objects are not plans, whatever they hold; a plan may be called "task".
    if root.get("task").is_some_and(|task| task.as_object().is_none()) {
        return None;
    }
    let plans: Vec<_> = members.iter().filter(|member| is_plan(&member.value)).collect();
    (!plans.is_empty()).then_some(plans)
}

fn is_plan(node: &Node<'_>) -> bool {
    node.get("nodes").is_some() && node.get("edges").is_none()
}

/// Finds out what the document is (`C-11`). `None`, with an error among the findings, if it is nothing known,
/// if `--dialect` does not fit it, or if `--plan` does not name one of its plans.
pub fn recognise<'n, 's>(
    root: &'n Node<'s>,
    choice: Choice<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Recognised<'n, 's>> {
    let Some(members) = root.as_object() else {
        let message = format!("a document must be an object, not {}", root.type_in_words());
        diagnostics.push(
            Finding::error("C-11", "not-a-document", root.span, message)
                .help("write its fields in braces, such as {\"task\": \"…\", \"nodes\": []}"),
        );
        return None;
    };
    let found = Dialect::ALL.into_iter().find(|dialect| dialect.fits(root));
    let dialect = match (choice.dialect, found) {
        (Some(forced), _) if forced.fits(root) => forced,
        (Some(forced), found) => {
            diagnostics.push(does_not_fit(root, forced, found));
            return None;
        }
        (None, Some(found)) => found,
        (None, None) => {
            diagnostics.push(unrecognised(root, members));
            return None;
        }
    };
    if dialect == Dialect::Steps && root.get("steps").is_none() && misspelt_mark(root, members, diagnostics) {
        return None;
    }
    if dialect == Dialect::Plan
        && let Some(plans) = named_plans(root)
    {
        return choose_plan(root, members, &plans, choice.plan, diagnostics);
    }
    if let Some(name) = choice.plan
        && root.get("name").and_then(Node::as_str) != Some(name)
    {
        let message = format!("there is no plan {} here: the file is one document", shown(name));
        diagnostics.push(
            Finding::error("C-11", "unknown-plan", root.span.opening(), message).help("leave `--plan` out"),
        );
        return None;
    }
    Some(Recognised { dialect, root, member: None })
}

fn does_not_fit(root: &Node<'_>, forced: Dialect, found: Option<Dialect>) -> Finding {
    let wanted = forced.name();
    let message = match found {
        Some(found) => {
            format!("this is no document of dialect {wanted}: it looks like one of {}", found.name())
        }
        None => format!("this is no document of dialect {wanted}"),
    };
    let help = match found {
        Some(found) => {
            format!(
                "a document of dialect {wanted} has {}; leave `--dialect` out, or give {}",
                forced.marks(),
                found.name()
            )
        }
        None => format!("a document of dialect {wanted} has {}", forced.marks()),
    };
    Finding::error("C-11", "dialect-mismatch", root.span.opening(), message).help(help)
}

fn unrecognised(root: &Node<'_>, members: &[Member<'_>]) -> Finding {
    const MARKS: [&str; 5] = ["nodes", "edges", "steps", "task", "query"];
    if root.get("edges").is_some() {
        return Finding::error("C-11", "unknown-dialect", root.span.opening(), "`edges` without `nodes`")
            .help("a workflow has both `nodes` and `edges`");
    }
    for member in members {
        if let Some(meant) = misspelt(&member.key, &MARKS) {
            let message =
                format!("the document is of no known dialect; it has a field {}", shown(&member.key));
            return Finding::error("C-11", "unknown-dialect", member.key_span, message)
                .help(format!("did you mean `{meant}`?"));
        }
    }
    Finding::error("C-11", "unknown-dialect", root.span.opening(), "the document is of no known dialect")
        .help("a plan has `nodes`, a workflow `nodes` and `edges`, a step task `task` or `steps`, an agent task `query`")
}

/// A document with `task` alone is planned by a model. One whose `nodes` or `steps` are only misspelt is not
/// meant so: that is an error (`E-32`).
fn misspelt_mark(root: &Node<'_>, members: &[Member<'_>], diagnostics: &mut Diagnostics) -> bool {
    const MARKS: [&str; 3] = ["nodes", "steps", "query"];
    const NOT_MEANT: [&str; 3] = ["task", "metadata", "recovery"];
    let mut any = false;
    for member in members.iter().filter(|member| !NOT_MEANT.contains(&member.key.as_ref())) {
        if let Some(meant) = misspelt(&member.key, &MARKS) {
            any = true;
            let message = format!("a task has no field {}", shown(&member.key));
            diagnostics.push(
                Finding::error("E-32", "unknown-field", member.key_span, message)
                    .help(format!("did you mean `{meant}`?")),
            );
        }
    }
    if let Some(edges) = members.iter().find(|member| member.key == "edges")
        && root.get("nodes").is_none()
        && !any
    {
        any = true;
        diagnostics.push(
            Finding::error("C-11", "unknown-dialect", edges.key_span, "`edges` without `nodes`")
                .help("a workflow has both `nodes` and `edges`"),
        );
    }
    any
}

fn choose_plan<'n, 's>(
    root: &'n Node<'s>,
    members: &'n [Member<'s>],
    plans: &[&'n Member<'s>],
    wanted: Option<&str>,
    diagnostics: &mut Diagnostics,
) -> Option<Recognised<'n, 's>> {
    // `$schema` is for editors.
    for member in members.iter().filter(|member| !is_plan(&member.value) && member.key != "$schema") {
        let message = format!("{} is no plan: it has no `nodes`", shown(&member.key));
        diagnostics.push(
            Finding::warning("E-32", "unknown-field", member.key_span, message)
                .help("it is ignored; remove it, or give it `task` and `nodes`"),
        );
    }
    let chosen = match (wanted, plans) {
        (Some(name), plans) => plans.iter().find(|plan| plan.key == name).copied(),
        (None, [only]) => Some(*only),
        (None, _) => None,
    };
    if let Some(member) = chosen {
        return Some(Recognised { dialect: Dialect::Plan, root: &member.value, member: Some(member) });
    }
    let names: Vec<String> = plans.iter().take(20).map(|plan| shown(&plan.key)).collect();
    let more = if plans.len() > names.len() { ", …" } else { "" };
    let list = format!("the plans are {}{more}", names.join(", "));
    let finding = match wanted {
        Some(name) => {
            let message = format!("the file has no plan {}", shown(name));
            Finding::error("C-11", "unknown-plan", root.span.opening(), message).help(list)
        }
        None => {
            let message = format!("the file holds {} plans", plans.len());
            Finding::error("C-11", "plan-not-chosen", root.span.opening(), message)
                .help(format!("choose one with `--plan NAME`; {list}"))
        }
    };
    diagnostics.push(finding);
    None
}

#[cfg(test)]
mod tests;
