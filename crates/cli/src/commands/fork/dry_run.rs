//! `selvedge fork --dry-run`: what a fork would take from the recording, what it would ask for again and why, and what that saves
//! (C-13, E-29).

use crate::afresh;
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::inspect::page::{BOLD, CYAN, DIM, GREEN, MAGENTA, Page, Table, YELLOW};
use crate::ui::Ui;
use selvedge_host::reused::{Fate, Row};
use selvedge_host::{Asked, DryRun, Error, Host, report};

/// Rows that are shown: what runs comes first where there are more.
const ROWS: usize = 60;
/// Columns of a reason that are worth more than what a node saves.
const REASON: usize = 60;

/// Says what a fork would do.
pub(super) fn dry_run(host: &Host, asked: Asked, ui: &Ui) -> Result<Exit, Error> {
    let found = block_on(asked.bytes(), host.dry_run(asked))??;
    let ui = ui.guarded();
    match ui.json {
        true => ui.result(&format!("{}\n", report::forecast(&found))),
        false => page(&found, &ui),
    }
    Ok(Exit::Completed)
}

fn word(fate: Fate) -> (&'static str, &'static str) {
    match fate {
        Fate::Kept => ("stands", GREEN),
        Fate::Reused => ("is taken", CYAN),
        Fate::Ran => ("would run", YELLOW),
        Fate::Asks => ("would ask", MAGENTA),
        Fate::Depends => ("may run", DIM),
        Fate::Skipped => ("is skipped", DIM),
    }
}

fn page(found: &DryRun, ui: &Ui) {
    let mut page = Page::new();
    let events =
        if found.shared == 1 { "event 1".to_owned() } else { format!("events 1–{}", found.shared) };
    let begins = if found.anew { ", and begin its document anew" } else { "" };
    page.line(&format!("a fork would share {events} of {} of {}{begins}", found.events, found.run));
    page.line("");
    let mut table = Table::new(&["NODE", "WHAT", "TAKEN", "SAVES", "WHY"], 4);
    (table.spare, table.whole, table.optional) = (vec![3], vec![1, 2], vec![3]);
    // What is saved is summed up below; a reason that is cut is none.
    table.enough = Some(REASON);
    let mut rows: Vec<&Row> = found.account.rows.iter().collect();
    if rows.len() > ROWS {
        rows.sort_by_key(|row| !matches!(row.fate, Fate::Ran | Fate::Asks));
    }
    for row in rows.iter().take(ROWS) {
        let (told, style) = word(row.fate);
        let taken = if row.reused == 0 { "-".to_owned() } else { row.reused.to_string() };
        table.row([
            (row.name.clone(), BOLD),
            (told.to_owned(), style),
            (taken, ""),
            (afresh::saved(&row.saved), ""),
            (because(found, row), ""),
        ]);
    }
    page.table(&table);
    if rows.len() > ROWS {
        page.line(&page.paint(DIM, &format!("… {} more: --json has all", rows.len() - ROWS)));
    }
    page.gap();
    page.line(&sum(found));
    page.print(ui);
}

/// Why a node runs, what it asks, or that it takes another text than was recorded.
fn because(found: &DryRun, row: &Row) -> String {
    let name = |node: &str| found.state.told_name(node).into_owned();
    let why = row.afresh.iter().map(|request| {
        format!("{}: {}", report::call_of(&request.kind), afresh::why(&request.why, &row.name, name))
    });
    let asked = found.asks().filter(|(_, asking)| {
        row.fate == Fate::Asks && name(&found.state.event_name(asking.node)) == row.name
    });
    let edited = (row.edited > 0).then(|| "its message was edited".to_owned());
    edited
        .into_iter()
        .chain(why)
        .chain(asked.map(|(_, asking)| asking.prompt.clone()))
        .collect::<Vec<_>>()
        .join("; ")
}

fn sum(found: &DryRun) -> String {
    let count = |fate| found.account.count(fate);
    let parts = [
        (count(Fate::Kept), "that stand"),
        (count(Fate::Reused), "taken"),
        (count(Fate::Ran), "that would run"),
        (count(Fate::Asks), "that would ask"),
        (count(Fate::Depends), "that may run, as what these come to decides"),
    ];
    let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let runs = count(Fate::Ran) + count(Fate::Asks) + count(Fate::Depends);
    let saved = match afresh::saved(&found.account.saved) {
        saved if saved.is_empty() => "nothing is saved".to_owned(),
        saved => format!("saved: {saved}"),
    };
    match (parts.is_empty(), runs) {
        (true, _) => format!("there are no nodes; {saved}"),
        (false, 0) => format!("nodes: {parts}, and nothing would run; {saved}"),
        (false, _) => format!("nodes: {parts}; {saved}"),
    }
}
