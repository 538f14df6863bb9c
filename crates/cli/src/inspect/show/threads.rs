//! Threads as conversations.

use crate::inspect::Found;
use crate::inspect::events::role_name;
use crate::inspect::page::{BOLD, CYAN, DIM, GREEN, MAGENTA, Page, YELLOW, clean, cut};
use crate::ui::Ui;
use crate::words::command;
use selvedge_engine::{Message, Role, Slice, State, View};
use selvedge_host::Error;
use selvedge_host::text::{counted, or_meant};
use serde_json::json;
use std::sync::Arc;

/// Where the text of messages begins.
const INDENT: usize = 13;
/// In a summary: threads, messages at a thread's beginning and end, lines of a message, calls of a message.
const THREADS: usize = 8;
const FIRST: usize = 2;
const LAST: usize = 6;
const LINES: usize = 6;
const CALLS: usize = 4;
/// In an error: names of threads, and columns of each.
const NAMES: usize = 20;
const NAME: usize = 60;

/// Prints one thread in full.
pub(super) fn print_one(found: &Found, state: &State, name: &str, ui: &Ui) -> Result<(), Error> {
    let view = state.view();
    let Some(thread) = view.thread(name) else {
        let message = format!("run {} has no thread \"{name}\"", found.run());
        let known: Vec<String> = view.threads().map(|(name, _)| name.into_owned()).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let names: Vec<String> = known.iter().take(NAMES).map(|name| cut(&clean(name), NAME)).collect();
        let help = match names.is_empty() {
            true => "it has no thread yet".to_owned(),
            false => format!("its threads are: {}", names.join(", ")),
        };
        let help = or_meant(name, &known, &help);
        return Err(Error::usage("C-15", "unknown-thread", &message).help(&help));
    };
    if ui.json {
        ui.result(&format!("{}\n", json!({"threads": {name: thread}})));
        return Ok(());
    }
    let mut page = Page::whole();
    heading(&mut page, name, thread.len());
    for message in thread.iter() {
        self::message(&mut page, message, usize::MAX, usize::MAX);
    }
    page.print(ui);
    Ok(())
}

/// Adds all threads, each cut in its middle.
pub(super) fn summary(page: &mut Page, view: View<'_>, run: &str) {
    for (name, thread) in view.threads().take(THREADS) {
        page.gap();
        heading(page, &name, thread.len());
        let left_out = thread.len().saturating_sub(FIRST + LAST);
        let first = if left_out > 0 { FIRST } else { thread.len() };
        for message in thread.slice(Slice(None, i64::try_from(first).ok())).iter() {
            self::message(page, message, LINES, CALLS);
        }
        if left_out > 0 {
            let more = format!("  … {left_out} more: {}", command(&["show", run, "--thread", &name]));
            page.line(&page.paint(DIM, &more));
            for message in thread.last(LAST).iter() {
                self::message(page, message, LINES, CALLS);
            }
        }
    }
    let rest = view.threads().skip(THREADS).map(|(name, thread)| format!("{name} ({})", thread.len()));
    let rest: Vec<String> = rest.collect();
    if !rest.is_empty() {
        page.gap();
        page.labelled("more threads", BOLD, 14, &rest.join(", "), LINES);
    }
}

fn heading(page: &mut Page, name: &str, messages: usize) {
    let count = format!("({})", counted(messages, "message"));
    let heading = format!(
        "{} {}",
        page.paint(BOLD, &format!("thread {}", cut(&clean(name), page.width.saturating_sub(30)))),
        page.paint(DIM, &count)
    );
    page.line(&heading);
}

fn message(page: &mut Page, message: &Arc<Message>, lines: usize, calls: usize) {
    let style = match message.role {
        Role::System => YELLOW,
        Role::User => CYAN,
        Role::Assistant => GREEN,
        Role::Tool => MAGENTA,
    };
    let label = format!("  {}", role_name(message.role));
    let tool = message.name.as_deref().map(|name| format!("{name} → ")).unwrap_or_default();
    let silent = message.content.is_empty() && !message.tool_calls.is_empty();
    if !silent {
        page.labelled(&label, style, INDENT, &format!("{tool}{}", message.content), lines);
    }
    for (at, call) in message.tool_calls.iter().take(calls).enumerate() {
        let label = if silent && at == 0 { label.as_str() } else { "" };
        page.labelled(label, style, INDENT, &format!("calls {} {}", call.name, call.arguments), lines);
    }
    if message.tool_calls.len() > calls {
        page.labelled("", "", INDENT, &format!("… {} more calls", message.tool_calls.len() - calls), lines);
    }
}
