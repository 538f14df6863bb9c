//! With `-v`, what placeholders became and what a result brought to the metadata (D-05, D-06): a line for each
//! resolution, with the text as it was written, and one for each sync. Read off events and the timeline after them.

use selvedge_engine::graph::{Act, Leaf, Node};
use selvedge_engine::template::{JsonTemplate, Template};
use selvedge_engine::{Asked, Body, EffectId, Event, State};
use selvedge_host::timeline::Timeline;
use serde_json::Value;

/// A text of the document with placeholders, and what came of it.
#[derive(Debug, PartialEq)]
pub(super) struct Resolved {
    /// Where the node is in the timeline in which it stands; nowhere for the task, which no node says.
    pub(super) node: Option<usize>,
    /// What it is: `parameters`, `prompt`.
    pub(super) what: &'static str,
    /// As it was written.
    pub(super) source: String,
    /// As it was used.
    pub(super) value: String,
}

/// What an event resolved, if it resolved anything.
pub(super) fn resolved(timeline: &Timeline, event: &Event) -> Option<Resolved> {
    match event {
        Event::Requested { effect, args: Some(args), .. }
        | Event::Reused { effect, args: Some(args), .. }
        | Event::Refused { effect, args: Some(args), .. } => parameters(timeline, effect, args),
        Event::Appended { node, thread, body: Body::Text(_, text) } if node.is_empty() => {
            let graph = timeline.nodes_of(0)?.graph();
            let def = graph.threads.values().find(|def| def.name == *thread)?;
            of_text(None, "task", def.first.as_ref()?, text)
        }
        Event::Appended { node, body: Body::Text(_, text), .. } => {
            let (row, said) =
                template(
                    timeline,
                    node,
                    |act| {
                        if let Act::AppendText(text) = act { Some(text) } else { None }
                    },
                )?;
            of_text(Some(row), "prompt", said, text)
        }
        Event::Published { node, description, .. } => {
            let (row, said) = template(timeline, node, |act| match act {
                Act::Publish { description, .. } => Some(description),
                _ => None,
            })?;
            of_text(Some(row), "description", said, description)
        }
        Event::Asked(asked) => {
            let Asked { node, prompt, .. } = &**asked;
            let (row, said) =
                template(
                    timeline,
                    node,
                    |act| {
                        if let Act::Ask(_, text, _) = act { Some(text) } else { None }
                    },
                )?;
            of_text(Some(row), "question", said, prompt)
        }
        _ => None,
    }
}

/// The fields that a node's result brought to the second data layer, with their values.
pub(super) fn synced<'s>(state: &'s State, node: &str) -> Option<Vec<(&'s str, &'s Value)>> {
    let mut fields: Vec<_> = state.live_view().synced(node).collect();
    fields.sort_by_key(|(name, _)| *name);
    (!fields.is_empty()).then_some(fields)
}

fn parameters(timeline: &Timeline, effect: &EffectId, args: &Value) -> Option<Resolved> {
    let (row, ..) = timeline.attempt(effect)?;
    let (node, leaf) = leaf(timeline, row, &effect.place()?.leaf)?;
    let own = || {
        node.body.leaves.values().find_map(|leaf| match &leaf.act {
            Act::Call(call) => Some(call.args.clone()),
            _ => None,
        })
    };
    let written = match &leaf.act {
        Act::Call(call) => call.args.clone(),
        // What a recovery decided on (D-17); without parameters of its own, those of the step.
        Act::Retry => match timeline.recovery().parameters(&node.id) {
            Some(parameters) => JsonTemplate::parse(parameters).ok()?,
            None => own()?,
        },
        _ => return None,
    };
    (!written.is_literal()).then(|| Resolved {
        node: Some(row),
        what: "parameters",
        source: written.source().to_string(),
        value: args.to_string(),
    })
}

/// A node by the graph of its frame, and a leaf of it.
fn leaf<'t>(timeline: &'t Timeline, row: usize, name: &str) -> Option<(&'t Node, &'t Leaf)> {
    let node = timeline.nodes().get(row)?;
    let (graph, def) = (timeline.nodes_of(node.within)?.graph(), timeline.def(node)?);
    Some((def, graph.leaves(def).find(|known| *known.name == *name)?))
}

fn of_text(node: Option<usize>, what: &'static str, source: &Template, text: &str) -> Option<Resolved> {
    source.literal().is_none().then(|| Resolved {
        node,
        what,
        source: source.source().to_owned(),
        value: text.to_owned(),
    })
}

/// The text of a kind that a node has, if it has one of them, with where the node is in the timeline.
fn template<'t>(
    timeline: &'t Timeline,
    node: &str,
    of: impl Fn(&Act) -> Option<&Template>,
) -> Option<(usize, &'t Template)> {
    let row = timeline.named(node)?;
    let def = timeline.def(timeline.nodes().get(row)?)?;
    let mut texts = def.body.leaves.values().filter_map(|leaf| of(&leaf.act));
    texts.next().filter(|_| texts.next().is_none()).map(|text| (row, text))
}
