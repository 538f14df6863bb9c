//! What is wrong with an agent as a whole: tools that are not there, and placeholders of its query that nothing can supply.

use super::AgentDoc;
use crate::checks::{self, Kind};
use crate::json::place_in_string;
use crate::{Diagnostics, Source, ToolSource};
use selvedge_engine::template::{Path, Seg, Template};
use serde_json::{Map, Value};
use std::borrow::Cow;

pub(super) fn check(
    agent: &AgentDoc,
    source: &Source,
    tools: &dyn ToolSource,
    initial: &Map<String, Value>,
    diagnostics: &mut Diagnostics,
) {
    for tool in agent.tools.iter().filter(|tool| tools.def(&tool.value).is_none()) {
        Kind::AGENT.no_tool(tool, tools, false, diagnostics);
    }
    let query = &agent.head.task;
    let known = agent.head.names(initial);
    let template = match Template::parse(&query.value) {
        Ok(template) => template,
        Err(error) => {
            return diagnostics
                .push(checks::unfinished(error, |range| place_in_string(source.text(), query.span, range)));
        }
    };
    let place = |part| place_in_string(source.text(), query.span, part);
    let found = checks::slips(&query.value, |name| known.contains(name), place);
    found.into_iter().for_each(|finding| diagnostics.push(finding));
    for placeholder in template.placeholders() {
        let name = named(&placeholder.path);
        if !known.contains(name) {
            let range = placeholder.offset..placeholder.offset + placeholder.raw.len();
            let place = place_in_string(source.text(), query.span, range);
            let names = || known.iter().map(|name| Cow::Borrowed(*name)).collect();
            checks::nothing_supplies(placeholder, name, place, (known.len(), names), false, diagnostics);
        }
    }
}

/// The name in the first data layer that a path begins with.
fn named(path: &Path) -> &str {
    match (&*path.root, path.rest.first()) {
        ("inputs" | "metadata", Some(Seg::Key(name))) => name,
        (root, _) => root,
    }
}
