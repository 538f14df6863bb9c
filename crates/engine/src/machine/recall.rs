//! What a conversation has come to, in its own words, where no model can sum it up.

use super::node::Visit;
use super::state::State;
use crate::message::{Message, Role};

/// The most that is recalled, and of one message, in bytes.
const MOST: usize = 16 << 10;
const PART: usize = 4 << 10;

impl State {
    /// What models said on the thread of a visit, and tools answered: the last of it, in order. Its first message is the task, and is not
    /// repeated; nor is what else was said to the model, but for a summary that stands in the place of what came right behind the task.
    pub(super) fn said_last(&self, visit: &Visit) -> String {
        let thread = &visit.thread;
        let (mut said, mut left) = (Vec::new(), MOST);
        for at in (1..thread.len()).rev() {
            let Some(message) = thread.at(at).map(|ix| &self.messages[ix]) else { break };
            let is_summary = at == 1 && thread.len() > 2;
            if message.role == Role::User && !is_summary || message.content.trim().is_empty() {
                continue;
            }
            let text = part(message);
            let Some(rest) = left.checked_sub(text.len()) else { break };
            left = rest;
            said.push(text);
        }
        said.reverse();
        said.join("\n")
    }
}

/// A message, with the tool that said it, cut in its middle if it is long.
fn part(message: &Message) -> String {
    let text = message.content.trim();
    let half = PART / 2;
    let text = match text.len() <= PART {
        true => text.to_owned(),
        false => {
            let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
            let tail = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
            format!("{head} […] {tail}")
        }
    };
    match &message.name {
        Some(tool) if message.role == Role::Tool => format!("{tool}: {text}"),
        _ => text,
    }
}
