//! Messages as servers take them that are older than tools: an assistant's message has one `function_call` at most, and its
//! result is a message of `function`, with a name in the place of an id.

use super::{Function, role};
use crate::protocol::WireQuirks;
use selvedge_engine::{Message, Role, ToolCall};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// The messages of a request. Of many calls in one message each becomes a message of its own, before its result.
pub(super) struct Messages<'r>(pub(super) &'r [Arc<Message>], pub(super) WireQuirks);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut calls: &[ToolCall] = &[];
        for message in self.0 {
            let said = |text, call| Said { role: role(message.role), text, call, quirks: self.1 };
            if message.role != Role::Tool {
                calls = &message.tool_calls;
                list.serialize_element(&said(&message.content, calls.first()))?;
                continue;
            }
            let id = message.tool_call_id.as_ref();
            let at = calls.iter().position(|call| Some(&call.id) == id);
            let call = at.and_then(|at| calls.get(at));
            if let Some(call) = call.filter(|_| at != Some(0)) {
                list.serialize_element(&Said { role: "assistant", ..said("", Some(call)) })?;
            }
            let name = call.map_or("function", |call| &*call.name);
            list.serialize_element(&Answer { role: "function", name, content: &message.content })?;
        }
        list.end()
    }
}

struct Said<'r> {
    role: &'static str,
    text: &'r str,
    call: Option<&'r ToolCall>,
    quirks: WireQuirks,
}

impl Serialize for Said<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", self.role)?;
        map.serialize_entry("content", self.text)?;
        if let Some(call) = self.call {
            map.serialize_entry("function_call", &Function(call, self.quirks))?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Answer<'r> {
    role: &'static str,
    name: &'r str,
    content: &'r str,
}
