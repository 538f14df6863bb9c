//! Widths are those of a terminal, and no text can steer it.

use super::*;

#[test]
fn wide_characters_count_twice() {
    assert_eq!(cut("plan", 4), "plan");
    assert_eq!(cut("planner", 5), "plan…");
    assert_eq!(cut("数据分析", 8), "数据分析");
    assert_eq!(cut("数据分析", 6), "数据…");
    assert_eq!(cut("数据分析", 7).width(), 7);
    assert_eq!(pad("数据", 6), "数据  ");
    assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2).width(), 2);
}

#[test]
fn nothing_steers_the_terminal() {
    assert_eq!(clean("a\u{1b}[31mb\r\nc\td\u{7f}"), "a\\u{1b}[31mb  c d\\u{7f}");
    assert_eq!(clean("\u{202e}txt"), "\\u{202e}txt");
    assert!(wrap("a\u{9b}31m", 40, 9).concat().chars().all(|c| !c.is_control()));
}

#[test]
fn lines_keep_to_their_width() {
    assert_eq!(wrap("one two three", 7, 9), ["one two", "three"]);
    assert_eq!(wrap("a\n\nb", 7, 9), ["a", "", "b"]);
    assert_eq!(wrap("", 7, 9), [""]);
    for (text, width) in [("word ".repeat(40), 20), ("无空格的长文本".repeat(20), 21), ("x".repeat(99), 10)]
    {
        let lines = wrap(&text, width, usize::MAX);
        assert!(lines.iter().all(|line| line.width() <= width), "{lines:?}");
        assert_eq!(wrap(&text, width, 2), lines[..2]);
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
    }
}

#[test]
fn a_table_is_aligned_and_fits() {
    let mut table = Table::new(&["RUN", "DIALECT", "NAME"], 2);
    table.spare = vec![1];
    table.row([("r1".into(), ""), ("plan".into(), ""), ("数据".into(), "")]);
    table.row([("r22".into(), ""), ("workflow".into(), ""), ("a rather long name of a run".into(), "")]);
    let plain = |_: &str, text: &str| text.to_owned();
    let wide = table.lines(60, false, plain).0;
    assert_eq!(wide[0].trim_end(), "RUN  DIALECT   NAME");
    assert_eq!(wide[1].trim_end(), "r1   plan      数据");
    let narrow = table.lines(22, false, plain).0;
    assert_eq!(narrow[2], "r22  a rather long na…");
    assert!(narrow.iter().all(|line| line.width() <= 22));
    // A terminal would wrap what is wider: there all columns give way, the first one last.
    for width in [12, 14, 17, 20] {
        let lines = table.lines(width, true, plain).0;
        assert!(lines.iter().all(|line| line.width() <= width), "{lines:?}");
        assert!(lines[2].starts_with("r22"), "{lines:?}");
    }
}

/// What is spare goes in its order, then names give way, and numbers never do.
#[test]
fn a_narrow_table_leaves_out_and_cuts_in_order() {
    let mut table = Table::new(&["NODE", "NAME", "TIME", "TOOK", "AFTER"], 4);
    (table.spare, table.whole) = (vec![1, 2], vec![3]);
    let cells = ["a-long-node-id", "some name", "████████████████", "12.345 s", "another, and more"];
    table.row(cells.map(|text| (text.to_owned(), "")));
    let at = |width: usize| {
        let (lines, out) = table.lines(width, true, |_: &str, text: &str| text.to_owned());
        assert!(lines.iter().all(|line| line.trim_end().width() <= width), "{width}: {lines:?}");
        assert!(lines[1].contains("12.345 s"), "{width}: {lines:?}");
        (lines[1].trim_end().to_owned(), out)
    };
    assert_eq!(at(80).1, [""; 0]);
    assert_eq!(
        at(60),
        ("a-long-node-id  ████████████████  12.345 s  another, and mo…".to_owned(), vec!["NAME"])
    );
    assert_eq!(at(50), ("a-long-node-id  12.345 s  another, and more".to_owned(), vec!["NAME", "TIME"]));
    assert_eq!(at(30).0, "a-long-node-id  12.345 s  ano…");
    assert_eq!(at(20).0, "a-lo…  12.345 s  an…");
}
