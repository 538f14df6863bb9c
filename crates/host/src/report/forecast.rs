//! What a fork would do (C-13), and what was asked for again (E-29).

use super::saved_json;
use crate::DryRun;
use crate::reused::{Fate, Request, Row};
use crate::timeline::CallKind;
use selvedge_engine::RunStatus;
use serde_json::{Value, json};

/// C-13's object of a fork that is not made.
pub fn forecast(found: &DryRun) -> Value {
    let name = |node: &str| found.state.told_name(node).into_owned();
    let row = |row: &Row| {
        json!({
            "node": row.name,
            "would": would(row.fate),
            "reused": row.reused,
            "edited": row.edited,
            "saved": saved_json(&row.saved),
            "afresh": row.afresh.iter().map(|request| afresh(request, name)).collect::<Vec<_>>(),
        })
    };
    json!({
        "fork_of": {"run": found.run, "events": found.events, "shared": found.shared},
        "anew": found.anew,
        "ends": matches!(found.state.status(), RunStatus::Completed | RunStatus::Failed),
        "nodes": found.account.rows.iter().map(row).collect::<Vec<_>>(),
        "asks": found.asks().map(|(ask, asking)| json!({"ask": ask, "node": name(&found.state.event_name(asking.node)), "prompt": asking.prompt})).collect::<Vec<_>>(),
        "saved": saved_json(&found.account.saved),
    })
}

fn would(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "stand",
        Fate::Reused => "reuse",
        Fate::Ran => "run",
        Fate::Asks => "ask",
        Fate::Depends => "depend",
        Fate::Skipped => "skip",
    }
}

/// A request that was made afresh; nodes are called as `name` says.
pub fn afresh(request: &Request, name: impl Fn(&str) -> String) -> Value {
    let mut object = json!(request.why);
    if let Some(fields) = object.as_object_mut() {
        if let Some(node) = fields.get_mut("node")
            && let Some(known) = node.as_str()
        {
            *node = name(known).into();
        }
        fields.insert("effect".to_owned(), json!(request.effect));
        fields.insert("call".to_owned(), call_of(&request.kind).into());
    }
    object
}

/// What a request is of.
pub fn call_of(kind: &CallKind) -> String {
    match kind {
        CallKind::Model => "model".to_owned(),
        CallKind::Tool(name) | CallKind::Operation(name) => name.to_string(),
        CallKind::Unknown => "call".to_owned(),
    }
}
