//! What a person is asked, in words: also what the approved call would do (E-21).

use crate::hints::command;
use crate::ui::one_line;
use selvedge_engine::{AskKind, Asking, State};
use serde_json::Value;
use std::fmt::Write;

/// Characters of a call's arguments from which on long texts in them are shortened.
const ARGUMENTS: usize = 1_000;
/// Characters that stay of a long text: of its beginning and of its end, as either may be what matters.
const KEPT: (usize, usize) = (160, 80);
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

/// What can be done about a run that has failed as somebody said no to a write in doubt, line by line (E-05).
pub(crate) fn ways(run: &str, ask: &str) -> String {
    let ways = [
        (
            format!("{} --output JSON", command(&["answer", run, ask, "done"])),
            "it happened, and JSON came back",
        ),
        (command(&["answer", run, ask, "yes"]), "run it after all"),
        (format!("{} --document FILE", command(&["fork", run])), "another document from here on"),
    ];
    let width = ways.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    let lines = ways.iter().map(|(command, what)| format!("    {command:width$}  {what}"));
    format!("a resume would ask the same again; what can be done:\n{}", lines.collect::<Vec<_>>().join("\n"))
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
