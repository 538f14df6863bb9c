//! What an evolution came to, as a page in one file (V-11): no server, no script, nothing from elsewhere; light and dark.

mod chart;
mod lineage;

use super::measures::{Figures, Measures, ToolCounts};
use crate::text::{counted, harmless};
use chart::{Chart, Kind, Series};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

/// Points of a chart and lines of a table, at most: of more batches several are shown together.
const MOST: usize = 120;
/// Roles that have a colour of their own; the others are shown together.
const ROLES: usize = 5;
const STYLE: &str = include_str!("report/style.css");

/// The page of an evolution: its name, and its batches in order.
pub fn report(name: &str, measures: &[Measures]) -> String {
    let batches = together(measures);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
        escaped(name)
    );
    let Some(last) = measures.last() else {
        page.push_str("<p>There is no batch yet.</p>\n</main>\n</body>\n</html>\n");
        return page;
    };
    tiles(&mut page, measures, &last.total);
    for chart in charts(&batches, &last.total) {
        page.push_str(&chart.svg());
    }
    page.push_str(&lineage::section(measures));
    separate(&mut page, measures);
    table(&mut page, &batches);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// A text in HTML, whoever wrote it.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// One batch, or several that are shown together.
struct Batches {
    first: u32,
    last: u32,
    own: Figures,
    total: Figures,
}

impl Batches {
    fn name(&self) -> String {
        if self.first == self.last {
            self.last.to_string()
        } else {
            format!("{}–{}", self.first, self.last)
        }
    }
}

fn together(measures: &[Measures]) -> Vec<Batches> {
    let size = measures.len().div_ceil(MOST).max(1);
    let one = |some: &[Measures]| {
        let (first, last) = (some.first()?, some.last()?);
        let own = some.iter().skip(1).fold(first.own.clone(), |sum, next| sum.and(&next.own));
        Some(Batches { first: first.batch, last: last.batch, own: own.derived(), total: last.total.clone() })
    };
    measures.chunks(size).filter_map(one).collect()
}

fn tiles(page: &mut String, measures: &[Measures], total: &Figures) {
    let accuracy = match total.accuracy {
        Some(it) => {
            let (low, high) = (percent(it.interval.low), percent(it.interval.high));
            (percent(it.value), format!("{} of {}, 95 %: {low} to {high}", total.right, total.scored))
        }
        None => ("–".to_owned(), "no task has an answer".to_owned()),
    };
    let ToolCounts { created, reused, enhanced, merged, retired } = total.tools;
    let cost: f64 = total.roles.values().map(|usage| usage.tokens.cost).sum();
    let tokens: u64 = total.roles.values().map(|usage| usage.tokens.input + usage.tokens.output).sum();
    let rate = share(total.succeeded, total.calls).map_or("–".to_owned(), percent);
    let tiles = [
        ("Accuracy", accuracy),
        (
            "Tasks",
            (
                total.done.to_string(),
                format!("{} failed, in {}", total.failed, counted(measures.len(), "batch")),
            ),
        ),
        (
            "New tools",
            (
                created.to_string(),
                format!("{reused} reused, {enhanced} enhanced, {merged} merged, {retired} retired"),
            ),
        ),
        (
            "EGL",
            (
                total.egl.map_or("–".to_owned(), |egl| format!("{egl:.3}")),
                "new tools for each call of a tool".to_owned(),
            ),
        ),
        ("Calls of tools that worked", (rate, format!("{} of {}", total.succeeded, total.calls))),
        ("Tokens", (grouped(tokens), format!("cost {cost:.4}, {}", duration(total.seconds)))),
    ];
    page.push_str("<section class=\"tiles\">\n");
    for (title, (value, more)) in tiles {
        let _ = writeln!(page, "<div><h2>{title}</h2><strong>{value}</strong><p>{more}</p></div>");
    }
    page.push_str("</section>\n");
}

fn charts(batches: &[Batches], total: &Figures) -> Vec<Chart> {
    let names: Vec<String> = batches.iter().map(Batches::name).collect();
    let line = |name: &str, of: &dyn Fn(&Batches) -> Option<f64>| Series {
        name: name.to_owned(),
        values: batches.iter().map(of).collect(),
    };
    let chart = |title: &str, kind, series| Chart {
        title: title.to_owned(),
        kind,
        names: names.clone(),
        series,
        band: Vec::new(),
        shown: |value| format!("{value:.2}"),
        most: None,
    };
    let mut charts = Vec::new();
    if total.accuracy.is_some() {
        let of = |figures: &Figures| figures.accuracy.map(|it| it.value);
        let series =
            vec![line("all batches so far", &|it| of(&it.total)), line("this batch", &|it| of(&it.own))];
        let band = batches.iter().map(|it| it.total.accuracy.map(|it| (it.interval.low, it.interval.high)));
        charts.push(Chart {
            band: band.collect(),
            shown: percent,
            most: Some(1.0),
            ..chart("Accuracy, with its 95 % interval", Kind::Lines, series)
        });
    }
    let count = |name: &str, of: fn(&ToolCounts) -> u64| {
        line(name, &move |it: &Batches| Some(of(&it.own.tools) as f64))
    };
    let tools = vec![
        count("created", |it| it.created),
        count("enhanced", |it| it.enhanced),
        count("merged", |it| it.merged),
        count("retired", |it| it.retired),
    ];
    charts.push(Chart { shown: whole, ..chart("Tools, by batch", Kind::Bars, tools) });
    charts.push(Chart {
        shown: |value| format!("{value:.3}"),
        ..chart(
            "EGL: new tools for each call of a tool, so far",
            Kind::Lines,
            vec![line("EGL", &|it| it.total.egl)],
        )
    });
    let rate = |figures: &Figures| share(figures.succeeded, figures.calls);
    charts.push(Chart {
        shown: percent,
        most: Some(1.0),
        ..chart(
            "Calls of tools that worked",
            Kind::Lines,
            vec![line("all batches so far", &|it| rate(&it.total)), line("this batch", &|it| rate(&it.own))],
        )
    });
    charts.push(by_role(&chart("", Kind::Bars, Vec::new()), batches, total));
    charts.push(Chart {
        shown: duration,
        ..chart("Time, by batch", Kind::Bars, vec![line("time", &|it| Some(it.own.seconds))])
    });
    charts
}

/// What each role used: its cost, or its tokens where nothing has a price.
fn by_role(base: &Chart, batches: &[Batches], total: &Figures) -> Chart {
    let priced = total.roles.values().any(|usage| usage.tokens.cost > 0.0);
    let used = |figures: &Figures, role: &str| {
        let tokens = figures.roles.get(role).map(|usage| usage.tokens).unwrap_or_default();
        if priced { tokens.cost } else { (tokens.input + tokens.output) as f64 }
    };
    let mut roles: Vec<&Arc<str>> = total.roles.keys().collect();
    roles.sort_by(|a, b| used(total, b).total_cmp(&used(total, a)));
    let (own, others) = roles.split_at(roles.len().min(ROLES));
    let of = |name: &str, roles: &[&Arc<str>]| Series {
        name: escaped(name),
        values: batches.iter().map(|it| Some(roles.iter().map(|role| used(&it.own, role)).sum())).collect(),
    };
    let mut series: Vec<Series> = own.iter().map(|role| of(role, &[role])).collect();
    if !others.is_empty() {
        series.push(of("others", others));
    }
    let title = if priced { "Cost by role, by batch" } else { "Tokens by role, by batch" };
    let shown: fn(f64) -> String = if priced { |value| format!("{value:.4}") } else { whole };
    Chart {
        title: title.to_owned(),
        series,
        shown,
        names: base.names.clone(),
        kind: Kind::Bars,
        band: Vec::new(),
        most: None,
    }
}

fn separate(page: &mut String, measures: &[Measures]) {
    let all: Vec<_> =
        measures.iter().flat_map(|it| it.separate.iter().map(move |one| (it.batch, one))).collect();
    if all.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Tools that look alike and stay apart</h2>\n<table>\n<thead><tr><th>Batch</th><th>Tools</th><th>Why</th></tr></thead>\n<tbody>\n");
    for (batch, one) in all.iter().rev().take(MOST) {
        let members: BTreeSet<&str> = one.members.iter().map(|name| &**name).collect();
        let members = members.into_iter().collect::<Vec<_>>().join(", ");
        let why = crate::text::one_line(&one.why, 300);
        let _ = writeln!(
            page,
            "<tr><td>{batch}</td><td>{}</td><td>{}</td></tr>",
            escaped(&members),
            escaped(&why)
        );
    }
    page.push_str("</tbody>\n</table>\n</section>\n");
}

fn table(page: &mut String, batches: &[Batches]) {
    page.push_str(
        "<section>\n<h2>Batches</h2>\n<table class=\"figures\">\n<thead><tr><th>Batch</th><th>Tasks</th><th>Failed</th><th>Right</th>\
         <th>Accuracy so far</th><th>New tools</th><th>Reused</th><th>Merged</th><th>Calls</th><th>Worked</th><th>EGL</th><th>Time</th></tr></thead>\n<tbody>\n",
    );
    for it in batches {
        let (own, total) = (&it.own, &it.total);
        let accuracy = total.accuracy.map_or("–".to_owned(), |it| percent(it.value));
        let egl = total.egl.map_or("–".to_owned(), |egl| format!("{egl:.3}"));
        let cells = [
            it.name(),
            own.done.to_string(),
            own.failed.to_string(),
            format!("{} of {}", own.right, own.scored),
            accuracy,
            own.tools.created.to_string(),
            own.tools.reused.to_string(),
            own.tools.merged.to_string(),
            own.calls.to_string(),
            own.succeeded.to_string(),
            egl,
            duration(own.seconds),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        let _ = writeln!(page, "<tr>{cells}</tr>");
    }
    page.push_str("</tbody>\n</table>\n</section>\n");
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn whole(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value as u64) } else { format!("{value:.1}") }
}

/// With a thin space between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.1} s"),
        s if s < 5_400.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

#[cfg(test)]
mod tests;
