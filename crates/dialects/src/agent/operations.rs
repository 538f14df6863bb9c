//! The operations that the graph of an agent calls (E-40): what it needs of the tool library and of coders. Whoever drives a run
//! implements them; here is what they are given and what they answer.
//!
//! All but [`requests`], [`codex`] and [`measure`] take `depth`: how many frames the call is below the agent's own, whose place is the task that
//! private tools belong to (A-18). `calls` and `texts` of those that work between rounds are told beside their arguments
//! ([`selvedge_engine::graph::Told`]).

use crate::tool_source::BUILT_IN;
use selvedge_engine::graph::INTERNAL;
use selvedge_engine::{Effects, Outputs, ToolDef};
use serde_json::{Value, json};
use std::sync::Arc;

/// An operation's definition, made once.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident, $effects:ident, $description:literal, $schema:expr) => {
        $(#[$doc])*
        pub fn $name() -> Arc<ToolDef> {
            static TOOL: std::sync::LazyLock<Arc<ToolDef>> = std::sync::LazyLock::new(|| {
                $crate::agent::operations::define(
                    stringify!($name),
                    selvedge_engine::Effects::$effects,
                    $description,
                    $schema,
                )
            });
            TOOL.clone()
        }
    };
}
pub(crate) use operation;

operation! {
    /// Which tools there are: `{depth}` gives `{"tools": [{"name", "description", "from": "task" | "library" | "configured"}], "allowed":
    /// text}`, private ones first (A-01); `allowed` tells a coder what a tool may declare in this run (A-08).
    tools, Read, "Lists the tools that a task may use.", json!({})
}
operation! {
    /// What is to be built (A-06, A-08): `{requests, required}` (a manager's words, so anything) gives `{"build": [{"name", "description",
    /// "input_schema", "output_schema"}], "required": [name], "refused": [{"name", "why"}]}`: names are safe, and each is there once.
    requests, Pure, "Reads what a manager asks for.", json!({"requests": {}, "required": {}})
}
operation! {
    /// The codex CLI writes a file (A-07): `{name, prompt}` gives `{"file": text | null, "words": text}`, with the tokens it used.
    codex, Idempotent, "Has codex write a tool.", json!({"name": {"type": "string"}, "prompt": {"type": "string"}})
}
operation! {
    /// A coder's file becomes a version of the task's (A-08, A-28): `{depth, name, reply | file, coder, model?, request, replaces?}` gives
    /// `{"ok": bool, "errors": [text], "version", "tool", "long": bool}`. `reply` is a model's words with one ```python fence, `file` the text itself
    /// (null: nothing was written); `long`: it is too long to stand before its author again. `replaces` is the version that it is to mend; without one the new version is the task's own from
    /// then on.
    draft, Idempotent, "Takes a coder's file in.", json!({"name": {"type": "string"}})
}
operation! {
    /// What names mean to the task (A-01, A-18): `{depth, names}` gives `{"tools": {name: definition}, "missing": [name], "refused": {name:
    /// why}}`, with the texts kept by the run. What can't be used in this run is missing, and refused with the reason.
    bindings, Read, "Says what names of tools mean.", json!({"names": {"type": "array"}})
}
operation! {
    /// Which calls say something about a tool that is not proven (A-14): `{depth, calls: [{"id", "tool", "version", "arguments",
    /// "output" | "error": {"type", "message"}}]}`, outputs whole and not as they are cut for a thread, gives, besides the ids in `keep` of
    /// calls that are only to be recorded, `{"ask": [{"id", "tool", "question"}], "failed": [id], "misused": [id]}`: those
    /// whose class a model is asked for, and those of which it is clear.
    calls, Read, "Looks at what became of calls.", json!({"calls": {"type": "array"}})
}
operation! {
    /// What the classes of calls mean for the tools (A-15): `{depth, calls, looked: {"ask": [id], "failed", "misused"}, classes: {index
    /// of ask: {"class", "reason"}}}`, or a list of them in which null stands for what nobody could say, gives
    /// `{"say": text, "proven": [name], "mend": [{"name", "version", "calls": [id], "brief"}]}`. The calls are recorded; `say` tells the model
    /// of calls that violated their schema, `brief` a coder what failed, with the file as it is.
    settle, Idempotent, "Records calls, and says which tools are to be mended.", json!({"calls": {"type": "array"}})
}
operation! {
    /// A version in the place of another, tried with the calls that are recorded (A-15): `{depth, name, version, replaces}` gives
    /// `{"passed": n, "skipped": n, "failing": [text], "unsure": [{"question"}]}`. Of the last a judge says whether what came out is
    /// equal.
    replay, Idempotent, "Repeats recorded calls with a new version.", json!({"version": {"type": "string"}})
}
operation! {
    /// The end of an attempt to mend a tool: `{depth, name, version, replaces, replayed, equal: {index of unsure: {"equal", "reason"}}}` gives
    /// `{"accepted": bool, "tool": definition | null, "errors": [text]}`; an accepted version has the place of the old one in the task (A-16).
    accept, Idempotent, "Takes a better version in, if it is one.", json!({"version": {"type": "string"}})
}
operation! {
    /// A tool that could not be mended is not used any more by the task (A-15): `{depth, name, version, reason}` gives `{"retired": bool}`.
    retire, Idempotent, "Retires a tool.", json!({"version": {"type": "string"}, "reason": {"type": "string"}})
}
operation! {
    /// How large a conversation has become (A-11 … A-13): `{calls, used, texts, counted?, tool_output_tokens, context_tokens, encoding}`, where `used` are the
    /// tokens of the last request with its reply by the provider's figures (0: not told), and `texts`, where it said none, all that is said in it behind
    /// what came to `counted`, and of calls those are `sent` that this request had,
    /// gives `{"tokens": n, "long": [{"id", "tokens", "cut", "text"}], "counted"?: n}`: of each output that is too long its
    /// beginning and end, and as much of it as a model can read that sums it up; `counted` is what all texts come to as they are.
    measure, Pure, "Counts tokens.", json!({"calls": {"type": "array"}})
}
operation! {
    /// The end of the task (A-19): `{depth, publish}` gives `{"tools": [{"name", "version", "state", "how": "built" | "enhanced" | "used"}]}`.
    end, Idempotent, "Ends a task.", json!({"publish": {"type": "boolean"}})
}

/// All of them.
pub fn all() -> [Arc<ToolDef>; 12] {
    [
        tools(),
        requests(),
        codex(),
        draft(),
        bindings(),
        calls(),
        settle(),
        replay(),
        accept(),
        retire(),
        measure(),
        end(),
    ]
}

/// The name of an operation in a graph.
fn name(operation: &str) -> Arc<str> {
    format!("{INTERNAL}{operation}").into()
}

pub(crate) fn define(
    operation: &str,
    effects: Effects,
    description: &str,
    properties: Value,
) -> Arc<ToolDef> {
    Arc::new(ToolDef {
        name: name(operation),
        description: description.into(),
        input_schema: json!({"type": "object", "properties": properties}),
        output_params: Some(Outputs::default()),
        effects: Some(effects),
        version: "selvedge-agent-1".into(),
        source: BUILT_IN.into(),
        timeout_s: None,
        approval: false,
    })
}
