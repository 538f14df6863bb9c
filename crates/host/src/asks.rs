//! What a person is asked, in words, also what the approved call would do, and what an answer may be (E-21).

use crate::closed;
use crate::error::Error;
use crate::text::one_line;
use crate::ways::{Output, WayOut};
use selvedge_dialects::{Diagnostic, Diagnostics, DocumentLimits, Source, json};
use selvedge_engine::place::Place;
use selvedge_engine::{AskKind, AskPlace, Asking, Input, State, done};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

/// Characters of a call's arguments from which on long texts in them are shortened.
const ARGUMENTS: usize = 1_000;
/// Characters that stay of a long text: of its beginning and of its end, as either may be what matters.
const KEPT: (usize, usize) = (160, 80);
/// Characters of what is said of an output that does not fit.
const MISFIT: usize = 400;
/// Characters of a prompt that a line shows.
pub const LINE: usize = 4_000;

/// "approve", "answer" or "edit".
pub fn ask_kind(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Approve => "approve",
        AskKind::Answer => "answer",
        AskKind::Edit => "edit",
    }
}

/// The question of an open ask, with the tool and the arguments that it is about: nobody can approve what he can't see.
pub fn prompt(state: &State, ask: &Asking) -> String {
    if state.doubted_call(ask).is_some() {
        return format!("{} Done says that it happened.", ask.prompt);
    }
    let Some((tool, arguments)) = state.asked_call(ask) else { return ask.prompt.clone() };
    let mut text = format!("{} It calls `{tool}` ", ask.prompt);
    let _ = match arguments {
        Ok(arguments) => write!(text, "with {}", shown(arguments)),
        Err(fault) => write!(text, "with arguments that can't be had: {}", fault.message),
    };
    text
}

/// What an open ask takes, where only certain words do.
pub fn words(state: &State, ask: &Asking) -> &'static [&'static str] {
    match ask.kind {
        AskKind::Approve if state.doubted_call(ask).is_some() => &["yes", "no", "done"],
        AskKind::Approve => &["yes", "no"],
        AskKind::Answer | AskKind::Edit => &[],
    }
}

/// The command that answers an ask.
pub fn answers(state: &State, run: &str, id: &str) -> String {
    let value = state.asks().get(id).map(|ask| value(state, ask));
    let (said, ask) = (value.as_deref().unwrap_or("TEXT"), called(state, id));
    WayOut::Answer { run, ask: &ask, said, output: Output::None }.to_string()
}

/// What people call an ask: the node that asks, as progress calls it (W-03), where that stands for one ask for ever; else its id.
pub fn called<'a>(state: &State, id: &'a str) -> Cow<'a, str> {
    by_node(state, id).map_or(Cow::Borrowed(id), Cow::Owned)
}

/// The open ask that is called so, by its id or its node.
pub fn open<'a>(state: &'a State, called: &str) -> Option<&'a Arc<str>> {
    let known = state.asks().get_key_value(called).map(|(id, _)| id);
    known.or_else(|| state.asks().keys().find(|id| by_node(state, id).as_deref() == Some(called)))
}

/// The name of the node whose only act is this ask, if it is its first visit, and that of all that is around it: what was said to
/// one visit reaches no other (E-21).
fn by_node(state: &State, id: &str) -> Option<String> {
    let AskPlace::Leaf { place, leaf } = AskPlace::parse(id)? else { return None };
    let around = place.frames.to_path();
    let first = place.visit == 1 && around == around.without_visits();
    (first && leaf == "ask").then(|| match around.is_root() {
        true => place.node.to_string(),
        false => state.told_name(&place.to_string()).into_owned(),
    })
}

/// Whether the question is over once that timer has fired.
pub(crate) fn ends(timer: &str, id: &str) -> bool {
    let place = |id: &str| AskPlace::parse(id).map(AskPlace::into_place).map(|place| place.to_string());
    let around = || AskPlace::parse(id).map(|ask| openers(ask.into_place())).unwrap_or_default();
    timer == id || place(timer).is_some_and(|timer| around().contains(&timer))
}

/// Refuses an answer that comes too late: the time of its question, or of what is around it, was up while no process drove the run
/// (E-37).
pub(crate) fn in_time(run: &str, state: &State, inputs: &[Input], now: i64) -> Result<(), Error> {
    for input in inputs {
        if let Input::Answer(ask, _) = input
            && let Some(at) = state.expires(ask).filter(|at| *at <= now)
        {
            let help = format!("{} goes on with the run, as its document says for that", WayOut::Resume(run));
            return Err(closed::expired(&called(state, ask), at, &help));
        }
    }
    Ok(())
}

/// The visits that opened the frames around a place.
fn openers(place: Place<'_>) -> Vec<String> {
    let mut openers = Vec::new();
    let mut path = place.frames.to_path();
    while let Some((around, step)) = path.parent() {
        let opener = Place { frames: around.frames(), node: step.node, visit: step.visit };
        openers.push(opener.to_string());
        path = around;
    }
    openers
}

/// What stands for the answer in a command: the words there are, or of what kind it is.
fn value(state: &State, ask: &Asking) -> String {
    /// Words at most, and characters of all of them.
    const WORDS: (usize, usize) = (6, 60);
    let words = words(state, ask);
    if !words.is_empty() {
        return words.join("|");
    }
    let schema = state.answer_schema(ask);
    let of = |name: &str| schema.and_then(|schema| schema.get(name));
    let listed: Option<Vec<&str>> = of("enum")
        .and_then(Value::as_array)
        .filter(|values| (1..=WORDS.0).contains(&values.len()))
        .and_then(|values| values.iter().map(Value::as_str).collect());
    if let Some(words) = listed.map(|words| words.join("|")).filter(|words| words.len() <= WORDS.1) {
        return words;
    }
    let text = match (of("type"), schema, ask.value.as_deref()) {
        (Some(kind), ..) => kind == "string",
        (None, None, Some(edited)) if ask.kind == AskKind::Edit => edited.is_string(),
        (None, schema, _) => schema.is_none(),
    };
    if text { "TEXT" } else { "JSON" }.to_owned()
}

/// Why what is said to have come back from a call can't be taken, and what to type instead.
#[derive(Debug)]
pub struct Unfit {
    /// Why not.
    pub why: String,
    /// What to give.
    pub help: String,
}

/// The answer that the call of an ask happened, and this JSON came back, else null (C-13): exact, as what tools give is (A-21), and
/// with the fields that the tool declares. `typed` is how a JSON text is given where the answer is.
pub fn happened(
    state: &State,
    tool: &str,
    output: Option<&str>,
    typed: impl Fn(&str) -> String,
) -> Result<Value, Unfit> {
    let value = output.map(|text| exact(text, &typed)).transpose()?.unwrap_or_default();
    let Some(misfit) = state.output_misfit(tool, &value) else { return Ok(done(&value)) };
    let declared = state.graph().tools.get(tool).and_then(|tool| tool.output_params.as_ref());
    let names = declared.into_iter().flat_map(|outputs| outputs.names());
    let names: Vec<String> = names.map(|name| format!("{name:?}: …")).collect();
    let why = match output {
        Some(_) => format!("that can't be what `{tool}` gives: {}", one_line(&misfit, MISFIT)),
        None => format!("`{tool}` declares what it gives: say what came back"),
    };
    Err(Unfit { why, help: typed(&format!("{{{}}}", names.join(", "))) })
}

/// What a question is answered with: JSON if it is some, else a text (C-13). JSON that can't be kept as it stands (A-21) is no
/// text either.
pub fn answer_of(text: &str) -> Result<Value, String> {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => strict(text),
        Err(_) => Ok(Value::from(text.trim_end_matches('\n'))),
    }
}

/// A text as the JSON value that it is, or what is wrong with it and where.
pub fn strict(text: &str) -> Result<Value, String> {
    let why = |first: &Diagnostic| {
        let place = match (first.line, first.column) {
            (Some(1) | None, column) => format!("character {}", column.unwrap_or(1)),
            (Some(line), column) => format!("line {line}, character {}", column.unwrap_or(1)),
        };
        format!("at {place} {}", first.message)
    };
    parsed(text).map_err(|found| found.first().map_or_else(|| "that is no JSON".to_owned(), why))
}

fn parsed(text: &str) -> Result<Value, Vec<Diagnostic>> {
    let source = Source::new("", text);
    let mut found = Diagnostics::new();
    let node = json::parse_exactly(&source, &DocumentLimits::default(), &mut found);
    let read = node.filter(|_| !found.has_errors()).map(|node| node.to_value());
    read.ok_or_else(|| found.report(&source))
}

/// What an answer has to be, if its ask says so: for people.
pub fn takes(state: &State, ask: &Asking) -> Option<String> {
    /// Characters of a schema.
    const SCHEMA: usize = 400;
    let schema = state.answer_schema(ask)?;
    let fields = schema.as_object();
    let only = |name: &str| fields.filter(|fields| fields.len() == 1).and_then(|fields| fields.get(name));
    Some(match (only("enum").and_then(Value::as_array), only("type").and_then(Value::as_str)) {
        (Some(values), _) => {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            format!("it is one of {}", one_line(&values.join(", "), SCHEMA))
        }
        (_, Some(kind)) => format!("it is of type {kind}"),
        _ => format!("it fits {}", one_line(&schema.to_string(), SCHEMA)),
    })
}

/// A JSON text of one line as the value that it is, or why there is none.
fn exact(text: &str, typed: &impl Fn(&str) -> String) -> Result<Value, Unfit> {
    let findings = match parsed(text) {
        Ok(value) => return Ok(value),
        Err(findings) => findings,
    };
    let Some(first) = findings.first() else {
        return Err(Unfit { why: "that is no JSON".into(), help: typed("{}") });
    };
    let column = first.column.unwrap_or(1);
    // What begins like no JSON at all is a text without its quotes.
    let bare = column == 1 && !text.starts_with(|c: char| c.is_ascii_digit() || "{[\"-".contains(c));
    let help =
        if bare { format!("a text stands in quotes: {}", typed("\"sent\"")) } else { first.help.clone() };
    Err(Unfit {
        why: format!("what came back is read as JSON, and at character {column} {}", first.message),
        help,
    })
}

/// What stands before [`ways`].
pub const SAME_QUESTION: &str = "a resume alone would come to the same question; what can be done:";

/// What can be done about a run that has failed as somebody said no to a write in doubt (E-05).
pub fn ways<'a>(run: &'a str, ask: &'a str) -> [(WayOut<'a>, &'static str); 3] {
    let answer = |said, output| WayOut::Answer { run, ask, said, output };
    [
        (answer("done", Output::Any), "it happened, and JSON came back"),
        (answer("yes", Output::None), "run it after all"),
        (WayOut::Fork { run, at: None }, "another document from here on"),
    ]
}

/// The same in a line.
pub fn ways_in_line(run: &str, ask: &str) -> String {
    let ways = ways(run, ask).map(|(way, when)| format!("`{way}` ({when})"));
    format!("{SAME_QUESTION} {}", ways.join(", "))
}

/// All of what an ask is about, line by line: a call with its whole arguments, or what the node is to do.
pub fn whole(state: &State, ask: &Asking) -> String {
    let (tool, arguments) = match (state.call_to_approve(ask), state.asked_call(ask)) {
        (Some(call), _) => (call.name, Ok(call.arguments)),
        (None, Some(asked)) => asked,
        (None, None) => {
            return "  there is no call behind it yet: the question is all there is\n".to_owned();
        }
    };
    let shown = match arguments {
        Ok(arguments) => format!("{arguments:#}"),
        Err(fault) => format!("arguments that can't be had: {}", fault.message),
    };
    let lines = shown.lines().map(|line| format!("  {}\n", one_line(line, usize::MAX)));
    format!("  {}\n{}", one_line(&tool, usize::MAX), lines.collect::<String>())
}

/// Arguments as JSON; where they are long, with the long texts in them shortened.
fn shown(arguments: Value) -> String {
    let whole = arguments.to_string();
    if whole.chars().count() <= ARGUMENTS { whole } else { shortened(arguments).to_string() }
}

fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(middle_left_out(text)),
        Value::Array(items) => items.into_iter().map(shortened).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, shortened(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

fn middle_left_out(text: String) -> String {
    let (before, after) = KEPT;
    let count = text.chars().count();
    // A few characters less are not worth the words.
    let Some(out) = count.checked_sub(before + after).filter(|out| *out > 40) else { return text };
    let begin: String = text.chars().take(before).collect();
    let end: String = text.chars().skip(count - after).collect();
    format!("{begin}… {out} characters …{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_texts_lose_their_middle_and_short_ones_nothing() {
        let short = json!({"path": "out/x.txt", "n": [1, "a\u{1b}[2J"]});
        assert_eq!(shown(short.clone()), short.to_string());
        assert!(!shown(short).contains('\u{1b}'));
        let long = format!("BEGIN{}END", "ä".repeat(5_000));
        let text = shown(json!({"command": [long], "path": "p"}));
        assert!(
            text.contains("BEGIN") && text.contains("… 4768 characters …") && text.contains("END"),
            "{text}"
        );
        assert!(text.ends_with(r#""path":"p"}"#) && text.chars().count() < ARGUMENTS, "{text}");
    }
}
