//! Names of tools as an endpoint takes them (E-23).
//!
//! Tools may have any name, and models call tools that never were: `functions.search`. Most endpoints refuse a whole
//! request for one such name, in its definitions and in its history alike. So an odd name goes out as another one,
//! always the same, and comes back as what it was.

use crate::protocol::NameRule;
use selvedge_engine::{Message, ModelReply, ModelRequest, ToolDef};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The longest name that every provider takes.
const LONGEST: usize = 64;
/// Hexadecimal digits of the hash that tells odd names apart.
const DIGITS: usize = 8;

/// The names of a request that are not sent as they are.
#[derive(Debug, Default)]
pub(super) struct Names {
    wire: BTreeMap<Arc<str>, Arc<str>>,
    real: BTreeMap<Arc<str>, Arc<str>>,
}

impl Names {
    /// What becomes of the names of `request`.
    pub(super) fn of(request: &ModelRequest, rule: Option<NameRule>) -> Self {
        let Some(rule) = rule else { return Self::default() };
        let all: BTreeSet<&Arc<str>> = names(request).collect();
        let mut names = Self::default();
        for name in all.iter().filter(|name| !rule.fits(name)) {
            let mut salt = 0_u32;
            let mut short: Arc<str> = plain(name, salt).into();
            // Another tool may have that very name.
            while all.contains(&short) || names.real.contains_key(&short) {
                salt += 1;
                short = plain(name, salt).into();
            }
            names.real.insert(Arc::clone(&short), Arc::clone(name));
            names.wire.insert(Arc::clone(name), short);
        }
        names
    }

    /// The request with the names that are sent.
    pub(super) fn sent<'r>(&self, request: &'r ModelRequest) -> Cow<'r, ModelRequest> {
        if self.wire.is_empty() {
            return Cow::Borrowed(request);
        }
        let message = |message: &Arc<Message>| {
            let odd = |name: &Arc<str>| self.wire.contains_key(name);
            let calls = message.tool_calls.iter().any(|call| odd(&call.name));
            if !calls && !message.name.as_ref().is_some_and(odd) {
                return Arc::clone(message);
            }
            let mut message = Message::clone(message);
            for call in &mut message.tool_calls {
                call.name = self.out(&call.name);
            }
            message.name = message.name.as_ref().map(|name| self.out(name));
            Arc::new(message)
        };
        let tool = |tool: &Arc<ToolDef>| match self.wire.get(&tool.name) {
            Some(name) => Arc::new(ToolDef { name: Arc::clone(name), ..ToolDef::clone(tool) }),
            None => Arc::clone(tool),
        };
        let mut sent = request.clone();
        sent.messages = request.messages.iter().map(message).collect::<Vec<_>>().into();
        sent.tools = request.tools.iter().map(tool).collect();
        sent.known = request.known.iter().map(tool).collect();
        Cow::Owned(sent)
    }

    fn out(&self, name: &Arc<str>) -> Arc<str> {
        Arc::clone(self.wire.get(name).unwrap_or(name))
    }

    /// The reply with the names that tools have.
    pub(super) fn received(&self, mut reply: ModelReply) -> ModelReply {
        for call in &mut reply.calls {
            if let Some(name) = self.real.get(&call.name) {
                call.name = Arc::clone(name);
            }
        }
        reply
    }
}

/// Every name of a tool that a request can carry.
fn names(request: &ModelRequest) -> impl Iterator<Item = &Arc<str>> {
    let defined = request.tools.iter().chain(&request.known).map(|tool| &tool.name);
    let told = request
        .messages
        .iter()
        .flat_map(|message| message.tool_calls.iter().map(|call| &call.name).chain(&message.name));
    defined.chain(told)
}

/// A name of letters, digits, `_` and `-` that begins with a letter or `_`, and ends with a hash of the odd one.
fn plain(name: &str, salt: u32) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let mut text: String = name.chars().take(LONGEST - DIGITS - 2).map(fits).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert(0, '_');
    }
    let mut hash = Sha256::new();
    hash.update(name.as_bytes());
    if salt > 0 {
        hash.update(salt.to_be_bytes());
    }
    let digits: String = hash.finalize().iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
    format!("{text}_{digits}")
}

#[cfg(test)]
mod tests;
