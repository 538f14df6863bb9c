//! The page that `selvedge diff` prints for people.

use super::Compared;
use super::inline::texts;
use crate::durations::duration_cell;
use crate::inspect::page::{BOLD, CYAN, DIM, GREEN, Page, RED, Table, YELLOW, clean};
use crate::inspect::runs;
use crate::output::plain;
use crate::ui::Ui;
use selvedge_engine::{Message, Role, StepResult};
use selvedge_host::diff::{Change, Cost, Data, Is, Node, Side, Thread};
use selvedge_host::text::counted;
use std::borrow::Cow;
use std::sync::Arc;

/// Rows of the table, threads and values that are shown, messages of each thread, and lines of each text.
const ROWS: usize = 50;
const THREADS: usize = 20;
const MESSAGES: usize = 10;
const LINES: usize = 8;
/// Where texts begin.
const INDENT: usize = 16;

pub(super) fn print(compared: &Compared<'_>, ui: &Ui) {
    let mut page = Page::new();
    let diff = &compared.diff;
    head(&mut page, compared);
    threads(&mut page, &diff.threads);
    table(&mut page, &diff.results);
    results(&mut page, &diff.results);
    values(&mut page, "inputs", &diff.initial);
    values(&mut page, "metadata", &diff.runtime);
    usage(&mut page, compared);
    page.print(ui);
}

fn head(page: &mut Page, compared: &Compared<'_>) {
    for (label, side) in [("A", compared.a), ("B", compared.b)] {
        let name = page.short(&side.info.name, 40);
        let (status, style) = runs::status(runs::stored(side.state.status()), true);
        let status = page.paint(style, status);
        let id = page.paint(BOLD, &side.info.id);
        page.line(&format!(
            "{label}  {id}  {name}  {status}, {}{}",
            counted(side.state.events(), "event"),
            of_fork(side)
        ));
    }
    if let Some(shared) = compared.shared {
        let events =
            if shared.events == 1 { "event 1".to_owned() } else { format!("events 1–{}", shared.events) };
        let text = format!("   both share {events} of {}, which were read once", clean(&shared.run));
        page.line(&page.paint(DIM, &text));
    }
    let diff = &compared.diff;
    let of = |what: &str, of: &[Is]| {
        let same = of.iter().filter(|is| **is == Is::Same).count();
        format!("{same} of {}", counted(of.len(), what))
    };
    let threads: Vec<Is> = diff.threads.iter().map(|thread| thread.messages.is).collect();
    let results: Vec<Is> = diff.results.iter().map(|node| node.is).collect();
    let values: Vec<Is> = diff.initial.iter().chain(&diff.runtime).map(|value| value.is).collect();
    page.line("");
    let text =
        format!("the same: {}, {}, {}", of("thread", &threads), of("result", &results), of("value", &values));
    page.line(&text);
}

/// Behind a fork, what it is a fork of.
fn of_fork(side: &Side) -> String {
    let fork = side.info.fork.as_ref();
    fork.map(|point| format!(", a fork of {} at event {}", clean(&point.run), point.events))
        .unwrap_or_default()
}

fn heading(page: &mut Page, text: &str) {
    page.gap();
    page.line(&page.paint(CYAN, text));
}

fn more(page: &mut Page, all: usize, shown: usize) {
    if all > shown {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", all - shown)));
    }
}

fn word(is: Is) -> (&'static str, &'static str) {
    match is {
        Is::Same => ("same", DIM),
        Is::Differs => ("differs", YELLOW),
        Is::OnlyA => ("only in A", RED),
        Is::OnlyB => ("only in B", GREEN),
    }
}

fn threads(page: &mut Page, threads: &[Thread<'_>]) {
    let differ: Vec<&Thread<'_>> = threads.iter().filter(|thread| thread.messages.is != Is::Same).collect();
    for (at, thread) in differ.iter().take(THREADS).enumerate() {
        if at == 0 {
            heading(page, "threads");
        }
        let messages = &thread.messages;
        let name = page.short(&thread.name, 40);
        let text = match messages.is {
            Is::OnlyA | Is::OnlyB => {
                let own = thread.a.as_ref().or(thread.b.as_ref()).map_or(0, |thread| thread.len());
                format!("{}, {}", word(messages.is).0, counted(own, "message"))
            }
            _ => format!("{} the same, {} not", messages.same, messages.changes.len()),
        };
        page.line(&format!("  {}  {text}", page.paint(BOLD, &name)));
        for change in messages.changes.iter().take(MESSAGES) {
            message(page, thread, *change);
        }
        more(page, messages.changes.len(), MESSAGES);
    }
    more(page, differ.len(), THREADS);
}

fn message(page: &mut Page, thread: &Thread<'_>, change: Change) {
    let at = |thread: &Option<selvedge_engine::ThreadView<'_>>, at: Option<usize>| {
        let at = i64::try_from(at?).ok()?;
        thread.as_ref()?.slice(selvedge_engine::Slice(Some(at), Some(at + 1))).iter().next().cloned()
    };
    let (a, b) = (at(&thread.a, change.a), at(&thread.b, change.b));
    let role = a.as_ref().or(b.as_ref()).map_or("", |message| role(message.role));
    let number = change.a.or(change.b).map_or(0, |at| at + 1);
    let text = |message: Option<Arc<Message>>| message.map(|message| said(&message)).unwrap_or_default();
    texts(page, &format!("    {number} {role}"), INDENT, (&text(a), &text(b)), LINES);
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// What a message says, with its calls.
fn said(message: &Message) -> String {
    let calls = message.tool_calls.iter().map(|call| format!("{} {}", call.name, call.arguments));
    let text = (!message.content.is_empty()).then(|| message.content.to_string());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

/// All nodes with what they cost; where they are many, those that differ first.
fn table(page: &mut Page, results: &[Node<'_>]) {
    if results.is_empty() {
        return;
    }
    page.gap();
    let header = ["NODE", "RESULT", "CALLS A", "B", "TOKENS A", "B", "WORKED A", "B", "REUSED"];
    let mut table = Table::new(&header, 0);
    (table.spare, table.whole, table.optional) = (vec![7, 6], vec![2, 3, 4, 5, 6, 7], vec![4, 5, 6, 7, 8]);
    let mut rows: Vec<&Node<'_>> = results.iter().collect();
    if rows.len() > ROWS {
        rows.sort_by_key(|node| node.is == Is::Same);
    }
    for node in rows.iter().take(ROWS) {
        let (is, style) = word(node.is);
        let (a, b) = (&node.cost_a, &node.cost_b);
        let plain = |text: String| (text, "");
        table.row([
            (node.name.to_string(), BOLD),
            (is.to_owned(), style),
            plain(calls(a)),
            plain(calls(b)),
            plain(tokens(a)),
            plain(tokens(b)),
            plain(worked(a)),
            plain(worked(b)),
            (reused(a, b), CYAN),
        ]);
    }
    page.table(&table);
    more(page, results.len(), ROWS);
}

fn calls(cost: &Cost) -> String {
    let calls = cost.usage.model_calls + cost.usage.tool_calls;
    calls.to_string()
}

fn tokens(cost: &Cost) -> String {
    let tokens = cost.usage.tokens.input.saturating_add(cost.usage.tokens.output);
    if tokens == 0 { String::new() } else { tokens.to_string() }
}

fn worked(cost: &Cost) -> String {
    match cost.worked_ms {
        0..10 => String::new(),
        worked => duration_cell(i64::try_from(worked).unwrap_or(i64::MAX)),
    }
}

/// Which of them took what was recorded.
fn reused(a: &Cost, b: &Cost) -> String {
    let took = |label: &str, cost: &Cost| Some(format!("{label} from {}", cost.reused_from.as_ref()?));
    [took("A", a), took("B", b)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn results(page: &mut Page, results: &[Node<'_>]) {
    let differ: Vec<&Node<'_>> = results.iter().filter(|node| node.is != Is::Same).collect();
    for (at, node) in differ.iter().take(THREADS).enumerate() {
        if at == 0 {
            heading(page, "results");
        }
        let label = format!("  {}", page.short(&node.name, INDENT.saturating_sub(4)));
        texts(page, &label, INDENT, (&came_of(node.a.as_ref()), &came_of(node.b.as_ref())), LINES);
    }
    more(page, differ.len(), THREADS);
}

fn came_of(result: Option<&StepResult<'_>>) -> Cow<'static, str> {
    match result {
        None => "".into(),
        Some(StepResult { error: Some(error), .. }) => {
            format!("fault[{}]: {}", error.kind.name(), error.message).into()
        }
        Some(result) => plain(result.output).trim_end().to_owned().into(),
    }
}

fn values(page: &mut Page, what: &str, values: &[Data<'_>]) {
    let differ: Vec<&Data<'_>> = values.iter().filter(|value| value.is != Is::Same).collect();
    for (at, value) in differ.iter().take(THREADS).enumerate() {
        if at == 0 {
            heading(page, what);
        }
        let text = |value: Option<&serde_json::Value>| value.map(|value| plain(value).trim_end().to_owned());
        let (a, b) = (text(value.a).unwrap_or_default(), text(value.b).unwrap_or_default());
        let label = format!("  {}", page.short(&value.name, INDENT.saturating_sub(4)));
        texts(page, &label, INDENT, (&a, &b), LINES);
    }
    more(page, differ.len(), THREADS);
}

fn usage(page: &mut Page, compared: &Compared<'_>) {
    page.gap();
    let (a, b) = (compared.a.state.usage(), compared.b.state.usage());
    let mut table = Table::new(&["USED", "A", "B"], 0);
    table.whole = vec![1, 2];
    let rows = [
        ("model calls", a.model_calls, b.model_calls),
        ("tool calls", a.tool_calls, b.tool_calls),
        ("input tokens", a.tokens.input, b.tokens.input),
        ("output tokens", a.tokens.output, b.tokens.output),
    ];
    for (what, a, b) in rows {
        table.row([(what.to_owned(), ""), (a.to_string(), ""), (b.to_string(), "")]);
    }
    if a.tokens.cost > 0.0 || b.tokens.cost > 0.0 {
        let cost = |tokens: &selvedge_engine::Tokens| tokens.shown_cost().to_string();
        table.row([("cost".to_owned(), ""), (cost(&a.tokens), ""), (cost(&b.tokens), "")]);
    }
    page.table(&table);
    let forked = [("A", compared.a), ("B", compared.b)];
    for (label, _) in forked.iter().filter(|(_, side)| side.info.fork.is_some()) {
        page.line(&page.paint(DIM, &format!("{label} is a fork: what it used since it left its source")));
    }
}
