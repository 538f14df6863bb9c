//! What came of joins (W-09).

use crate::inspect::page::{BOLD, DIM, GREEN, Page, RED, Table, YELLOW};
use selvedge_engine::event::JoinOutcome;
use selvedge_engine::{JoinView, PathEnd, Tokens, View};

/// Rows of the table.
const JOINS: usize = 30;
/// Paths of a kind that a row names.
const NAMED: usize = 3;

/// Adds a table of all joins that are decided, if there are some.
pub(super) fn table(page: &mut Page, view: View<'_>) {
    let mut table = Table::new(&["JOIN", "OUTCOME", "STRATEGY", "MAIN", "TOKENS", "PATHS"], 5);
    table.whole = vec![1];
    (table.spare, table.optional) = (vec![0, 3], vec![2, 4]);
    let (mut joins, mut any) = (view.joins(), false);
    for join in joins.by_ref().take(JOINS) {
        any = true;
        let (outcome, style) = match join.outcome {
            JoinOutcome::Met => ("met", GREEN),
            JoinOutcome::Unmet => ("unmet", RED),
            JoinOutcome::Timeout => ("timeout", YELLOW),
        };
        table.row([
            (page.short(&join.name, 24), BOLD),
            (outcome.to_owned(), style),
            (join.strategy.to_string(), DIM),
            (page.short(join.main.as_deref().unwrap_or_default(), 20), ""),
            (tokens(&join), DIM),
            (paths(&join), ""),
        ]);
    }
    if !any {
        return;
    }
    page.gap();
    page.table(&table);
    let more = joins.count();
    if more > 0 {
        page.line(&page.paint(DIM, &format!("… {more} more: --json has all")));
    }
}

/// `2 completed: pro, con; 1 failed: third`.
fn paths(join: &JoinView<'_>) -> String {
    let of = |end: fn(&PathEnd<'_>) -> bool, what: &str| {
        let ids: Vec<&str> = join.paths.iter().filter(|path| end(&path.end)).map(|path| &*path.id).collect();
        let named = ids.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if ids.len() > NAMED { ", …" } else { "" };
        (!ids.is_empty()).then(|| format!("{} {what}: {named}{more}", ids.len()))
    };
    let kinds = [
        of(|end| matches!(end, PathEnd::Completed(_)), "completed"),
        of(|end| matches!(end, PathEnd::Failed(_)), "failed"),
        of(|end| matches!(end, PathEnd::Cancelled), "cut off"),
    ];
    let told: Vec<String> = kinds.into_iter().flatten().collect();
    if told.is_empty() { "none".to_owned() } else { told.join("; ") }
}

/// What all paths have used.
fn tokens(join: &JoinView<'_>) -> String {
    let mut all = Tokens::default();
    join.paths.iter().for_each(|path| all.add(&path.usage.tokens));
    if all.input + all.output == 0 { String::new() } else { format!("{}+{}", all.input, all.output) }
}
