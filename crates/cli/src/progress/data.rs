//! With `-v`, what placeholders became and what a result brought to the metadata (D-05, D-06): a line for each
//! resolution, with the text as it was written, and one for each sync. Read off events and the state after them.

use crate::look::events::node_of;
use selvedge_engine::graph::Act;
use selvedge_engine::template::{JsonTemplate, Template};
use selvedge_engine::{Asked, Body, EffectId, Event, State};
use selvedge_host::timeline::{Ladder, Nodes};
use serde_json::Value;
use std::sync::Arc;

/// A text of the document with placeholders, and what came of it.
#[derive(Debug, PartialEq)]
pub(super) struct Resolved {
    /// Where it stands; empty for the task, which no node says.
    pub(super) node: Arc<str>,
    /// What it is: `parameters`, `prompt`.
    pub(super) what: &'static str,
    /// As it was written.
    pub(super) source: String,
    /// As it was used.
    pub(super) value: String,
}

/// What an event resolved, if it resolved anything.
pub(super) fn resolved(nodes: &Nodes, ladder: &Ladder, event: &Event) -> Option<Resolved> {
    match event {
        Event::Requested { effect, args: Some(args), .. }
        | Event::Reused { effect, args: Some(args), .. }
        | Event::Refused { effect, args: Some(args), .. } => parameters(nodes, ladder, effect, args),
        Event::Appended { node, thread, body: Body::Text(_, text) } if node.is_empty() => {
            let def = nodes.graph().threads.values().find(|def| def.name == *thread)?;
            of_text(node, "task", def.first.as_ref()?, text)
        }
        Event::Appended { node, body: Body::Text(_, text), .. } => {
            let said =
                template(nodes, node, |act| if let Act::AppendText(text) = act { Some(text) } else { None })?;
            of_text(node, "prompt", said, text)
        }
        Event::Published { node, description, .. } => {
            let said = template(nodes, node, |act| match act {
                Act::Publish { description, .. } => Some(description),
                _ => None,
            })?;
            of_text(node, "description", said, description)
        }
        Event::Asked(asked) => {
            let Asked { node, prompt, .. } = &**asked;
            let said =
                template(nodes, node, |act| if let Act::Ask(_, text, _) = act { Some(text) } else { None })?;
            of_text(node, "question", said, prompt)
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

fn parameters(nodes: &Nodes, ladder: &Ladder, effect: &EffectId, args: &Value) -> Option<Resolved> {
    let node = nodes.get(&node_of(&effect.0))?;
    let leaf = effect.place()?.leaf;
    let leaf = nodes.graph().leaves(node).find(|known| *known.name == *leaf)?;
    let own = || {
        node.body.leaves.values().find_map(|leaf| match &leaf.act {
            Act::Call(call) => Some(call.args.clone()),
            _ => None,
        })
    };
    let written = match &leaf.act {
        Act::Call(call) => call.args.clone(),
        // What a recovery decided on (D-17); without parameters of its own, those of the step.
        Act::Retry => match ladder.parameters(&node.id) {
            Some(parameters) => JsonTemplate::parse(parameters).ok()?,
            None => own()?,
        },
        _ => return None,
    };
    (!written.is_literal()).then(|| Resolved {
        node: node.id.clone(),
        what: "parameters",
        source: written.source().to_string(),
        value: args.to_string(),
    })
}

fn of_text(node: &Arc<str>, what: &'static str, source: &Template, text: &str) -> Option<Resolved> {
    source.literal().is_none().then(|| Resolved {
        node: node.clone(),
        what,
        source: source.source().to_owned(),
        value: text.to_owned(),
    })
}

/// The text of a kind that a node has, if it has one of them.
fn template<'n>(
    nodes: &'n Nodes,
    node: &str,
    of: impl Fn(&Act) -> Option<&Template>,
) -> Option<&'n Template> {
    let mut texts = nodes.get(node)?.body.leaves.values().filter_map(|leaf| of(&leaf.act));
    texts.next().filter(|_| texts.next().is_none())
}
