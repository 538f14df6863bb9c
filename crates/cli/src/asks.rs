//! What a person is asked, in words: also what the approved call would do (E-21).

use crate::ways::{Way, listed};
use selvedge_dialects::{Diagnostics, DocumentLimits, Source, json};
use selvedge_engine::{AskKind, Asking, State, done};
use selvedge_host::hints::command;
use selvedge_host::text::one_line;
use serde_json::Value;
use std::fmt::Write;

/// Characters of a call's arguments from which on long texts in them are shortened.
const ARGUMENTS: usize = 1_000;
/// Characters that stay of a long text: of its beginning and of its end, as either may be what matters.
const KEPT: (usize, usize) = (160, 80);
/// Characters of what is said of an output that does not fit.
const MISFIT: usize = 400;
/// Characters of a prompt that a line shows.
pub(crate) const LINE: usize = 4_000;

/// The question of an open ask, with the tool and the arguments that it is about: nobody can approve what he can't see.
pub(crate) fn prompt(state: &State, ask: &Asking) -> String {
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
pub(crate) fn words(state: &State, ask: &Asking) -> &'static [&'static str] {
    match ask.kind {
        AskKind::Approve if state.doubted_call(ask).is_some() => &["yes", "no", "done"],
        AskKind::Approve => &["yes", "no"],
        AskKind::Answer | AskKind::Edit => &[],
    }
}

/// The command that answers an ask.
pub(crate) fn answers(state: &State, run: &str, id: &str) -> String {
    let words = state.asks().get(id).map_or(&[][..], |ask| words(state, ask)).join("|");
    command(&["answer", run, id, if words.is_empty() { "TEXT" } else { &words }])
}

/// Why what is said to have come back from a call can't be taken, and what to type instead.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) why: String,
    pub(crate) help: String,
}

/// The answer that the call of an ask happened, and this JSON came back, else null (C-13): exact, as what tools give is (A-21), and
/// with the fields that the tool declares. `typed` is how a JSON text is given where the answer is.
pub(crate) fn happened(
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

/// A JSON text of one line as the value that it is, or why there is none.
fn exact(text: &str, typed: &impl Fn(&str) -> String) -> Result<Value, Unfit> {
    let source = Source::new("", text);
    let mut found = Diagnostics::new();
    let node = json::parse_exactly(&source, &DocumentLimits::default(), &mut found);
    if let Some(node) = node.filter(|_| !found.has_errors()) {
        return Ok(node.to_value());
    }
    let findings = found.report(&source);
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
pub(crate) const SAME_QUESTION: &str = "a resume alone would come to the same question; what can be done:";

/// What can be done about a run that has failed as somebody said no to a write in doubt (E-05).
pub(crate) fn ways(run: &str, ask: &str) -> Vec<Way> {
    let happened = format!("{} --output JSON", command(&["answer", run, ask, "done"]));
    let other = format!("{} --document FILE", command(&["fork", run]));
    vec![
        Way { command: happened, when: "it happened, and JSON came back" },
        Way { command: command(&["answer", run, ask, "yes"]), when: "run it after all" },
        Way { command: other, when: "another document from here on" },
    ]
}

/// The same in a line.
pub(crate) fn ways_in_line(run: &str, ask: &str) -> String {
    let ways: Vec<String> =
        ways(run, ask).iter().map(|way| format!("`{}` ({})", way.command, way.when)).collect();
    format!("{SAME_QUESTION} {}", ways.join(", "))
}

/// The same as advice on stderr.
pub(crate) fn advice(run: &str, ask: &str) -> String {
    let columns = crate::ui::columns().unwrap_or(usize::MAX);
    format!("{SAME_QUESTION}\n{}", listed(&ways(run, ask), 4, columns).join("\n"))
}

/// All of what an ask is about, line by line: a call with its whole arguments, or what the node is to do.
pub(crate) fn whole(state: &State, ask: &Asking) -> String {
    let (tool, arguments) = match (state.call_to_approve(ask), state.asked_call(ask)) {
        (Some(call), _) => (call.name, Ok(call.arguments)),
        (None, Some(asked)) => asked,
        (None, None) => {
            return "  it lets the node begin, which asks a model: there is no call to show yet\n".to_owned();
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
