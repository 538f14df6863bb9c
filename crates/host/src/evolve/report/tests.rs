//! V-11: the page says what the measures say, whatever is in them.

use super::*;
use crate::evolve::measures::{Change, How, RoleUsage, Separate};
use selvedge_engine::Tokens;

fn measured(batches: u32) -> Vec<Measures> {
    let mut all: Vec<Measures> = Vec::new();
    for batch in 1..=batches {
        let n = u64::from(batch);
        let usage = |input| RoleUsage {
            calls: 3,
            tokens: Tokens { input, output: 10 * n, cost: 0.001 * n as f64, ..Tokens::default() },
        };
        let own = Figures {
            done: 5,
            failed: n % 2,
            scored: 5,
            right: (n + 1).min(5),
            tools: ToolCounts {
                created: 6u64.saturating_sub(n),
                reused: n,
                enhanced: n % 3,
                merged: n % 2,
                retired: 1,
            },
            calls: 10 + n,
            succeeded: 8 + n,
            roles: ["basic", "coder", "judge", "tool_analyze", "summarize", "cluster"]
                .map(|role| (role.into(), usage(100 * n)))
                .into(),
            seconds: 12.5,
            ..Figures::default()
        };
        let mut next = Measures::after(all.last(), own);
        let version = |n: u32| Arc::from(format!("{n:064x}"));
        next.changes = vec![
            Change {
                name: "parse_date".into(),
                version: version(batch),
                how: if batch == 1 { How::Created } else { How::Enhanced },
                from: if batch > 1 { vec![version(batch - 1)] } else { Vec::new() },
                names: if batch > 1 { vec!["parse_date".into()] } else { Vec::new() },
                aliases: Vec::new(),
            },
            Change {
                name: format!("tool_{batch}").into(),
                version: version(1_000 + batch),
                how: How::Created,
                from: Vec::new(),
                names: Vec::new(),
                aliases: vec![],
            },
        ];
        if batch > 2 {
            next.changes.push(Change {
                name: "table".into(),
                version: version(2_000 + batch),
                how: How::Merged,
                from: vec![version(1_000 + batch - 1), version(1_000 + batch - 2)],
                names: vec![format!("tool_{}", batch - 1).into(), format!("tool_{}", batch - 2).into()],
                aliases: vec!["rows".into()],
            });
        }
        next.separate = vec![Separate {
            name: "<b>".into(),
            members: vec!["a&b".into(), "\u{202e}<script>alert(1)</script>".into()],
            why: "\"quoted\" </td>".into(),
        }];
        all.push(next);
    }
    all
}

#[test]
fn v11_the_page_is_one_file_that_needs_nothing_else() {
    let page = report("dates <&> more", &measured(9));
    for foreign in ["<script", "http:", "https:", "src=", "href=", "@import", "url(", "<b>", "\u{202e}"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for part in [
        "dates &lt;&amp;&gt; more",
        "prefers-color-scheme: dark",
        "Accuracy, with its 95 % interval",
        "class=\"band s0\"",
        "EGL",
        "Cost by role",
        "Lineage of tools",
        "a&amp;b",
        "also called rows",
        ">others<",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let total = &measured(9)[8].total;
    assert!(page.contains(&format!("{} of {}, 95 %", total.right, total.scored)));
    // What is opened is closed.
    for tag in ["svg", "figure", "section", "table", "tr", "td", "div", "ul", "g", "text"] {
        let (open, closed) = (format!("<{tag}"), format!("</{tag}>"));
        let opened = page.matches(&open).filter(|_| true).count();
        let longer = page
            .match_indices(&open)
            .filter(|(at, _)| page[at + open.len()..].starts_with(|c: char| c.is_ascii_alphabetic()));
        assert_eq!(opened - longer.count(), page.matches(&closed).count(), "{tag}");
    }
    if let Some(file) = std::env::var_os("SELVEDGE_REPORT") {
        std::fs::write(file, page).unwrap();
    }
}

#[test]
fn v11_no_batch_and_very_many_batches_are_a_page_too() {
    assert!(report("x", &[]).contains("no batch yet"));
    let bare = report("x", &[Measures::after(None, Figures::default())]);
    assert!(bare.contains("no task has an answer") && !bare.contains("NaN") && !bare.contains("inf"));
    let many = report("x", &measured(3_000));
    assert!(many.len() < 600_000, "{}", many.len());
    assert!(many.contains(">1–25<") && many.contains("are left out"));
}

/// V-11: what a tool was made of stands beside it with its name and a line, also what no batch had made public before.
#[test]
fn v11_the_lineage_says_what_came_of_what() {
    let merged = |name: &str, version: &str, from: [&str; 2], names: &[&str]| Change {
        name: name.into(),
        version: version.into(),
        how: How::Merged,
        from: from.map(Into::into).to_vec(),
        names: names.iter().map(|name| Arc::from(*name)).collect(),
        aliases: Vec::new(),
    };
    let mut first = Measures::after(None, Figures::default());
    first.changes = vec![
        merged("dates", "v1", ["m1", "m2"], &["days_between_1", "days_between_2"]),
        merged("areas", "v2", ["m3", "m4"], &["polygon_area_1", "<b>"]),
    ];
    let mut second = Measures::after(Some(&first), Figures::default());
    // One that the first batch has made, and one of the second batch's tasks; as an earlier version has written it, without names.
    second.changes = vec![merged("times", "v3", ["v1", "m5"], &[])];
    let page = report("x", &[first, second]);
    for name in ["days_between_1", "days_between_2", "polygon_area_1", "&lt;b&gt;", "m5", "dates", "times"] {
        assert_eq!(page.matches(&format!("\">{name}</text>")).count(), 1, "{name}");
    }
    assert_eq!(page.matches("class=\"edge\"").count(), 6);
    assert!(page.contains("of days_between_1, days_between_2</title>"));
    // Each box has a place of its own.
    let boxes = page.split("</title><rect ").skip(1).filter_map(|rest| rest.split(" width").next());
    let (all, places): (Vec<&str>, BTreeSet<&str>) = (boxes.clone().collect(), boxes.collect());
    assert_eq!((all.len(), places.len()), (8, 8), "{all:?}");
}
