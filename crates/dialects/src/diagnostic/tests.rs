use super::*;

fn rendered(text: &str, part: &str) -> Vec<String> {
    let source = Source::new("plan.json", text);
    let at = text.find(part).expect("the part");
    let mut diagnostics = Diagnostics::new();
    diagnostics
        .push(Finding::error("P-05", "bad-slice", Span::new(at, at + part.len()), "wrong").help("do so"));
    let report = diagnostics.report(&source);
    render(&report[0], RenderOptions::default()).lines().map(str::to_owned).collect()
}

/// The terminal columns under which the underline stands must be those of the part.
fn assert_underlined(lines: &[String], part: &str) {
    use unicode_width::UnicodeWidthStr;
    let (shown, caret) = (&lines[1], &lines[2]);
    let at = shown.find(part).unwrap_or_else(|| panic!("{part:?} is not shown in {shown:?}"));
    let columns = shown[..at].width();
    assert_eq!(caret.find('^'), Some(columns), "{lines:#?}");
    assert_eq!(caret.matches('^').count(), part.width(), "{lines:#?}");
}

#[test]
fn c04_shows_the_place_the_line_and_the_way_out() {
    let lines = rendered("{\n  \"data_in_slice\": [0, 1, 2],\n}", "[0, 1, 2]");
    assert_eq!(
        lines,
        [
            "plan.json:2:20: error[P-05]: wrong",
            "    2 |   \"data_in_slice\": [0, 1, 2],",
            "      |                    ^^^^^^^^^",
            "  help: do so",
        ]
    );
}

#[test]
fn underlines_stand_under_the_place_with_tabs_and_wide_characters() {
    assert_underlined(&rendered("\t\t{\"数据\":\t\"✓é\", \"b\": nul}", "nul"), "nul");
    assert_underlined(&rendered("{\"a\": \"数据驱动\"}", "\"数据驱动\""), "\"数据驱动\"");
    assert_underlined(&rendered("{\"e\u{301}\": bad}\r\n", "bad"), "bad");
}

#[test]
fn long_lines_are_cut_around_the_place() {
    use unicode_width::UnicodeWidthStr;
    for filler in ["x", "数", "\t"] {
        let text = format!("[{}, here, {}]", filler.repeat(5_000), filler.repeat(5_000));
        let lines = rendered(&text, "here");
        assert_underlined(&lines, "here");
        assert!(lines[1].width() < 120, "{}", lines[1].width());
        assert!(lines[1].contains('…'));
    }
    let long = "y".repeat(10_000);
    let lines = rendered(&format!("[{long}]"), &long);
    assert!(lines[2].len() < 120);
}

#[test]
fn a_place_over_several_lines_is_underlined_to_the_end_of_its_first() {
    let lines = rendered("  {\n \"a\": 1\n}", "{\n \"a\": 1\n}");
    assert_eq!(lines[1..3], ["    1 |   {".to_owned(), "      |   ^".to_owned()]);
}

/// C-04: a terminal that would wrap a line would show the mark elsewhere.
#[test]
fn a_source_line_is_cut_to_the_terminal() {
    for (before, name, behind) in
        [(0, "x", 200), (30, "bad name", 3), (90, "数据", 90), (5, "long", 0), (300, "z", 300)]
    {
        let text = format!("{}\"{name}{}", "a".repeat(before), "b".repeat(behind));
        let source = Source::new("f", &text);
        let mut diagnostics = Diagnostics::new();
        let start = before + 1;
        diagnostics.push(Finding::error("P-01", "x", Span::new(start, start + name.len()), "m"));
        for columns in [20, 40, 41, 80, 100, 120] {
            let options = RenderOptions { colour: false, columns: Some(columns) };
            let rendered = render(&diagnostics.report(&source)[0], options);
            let lines: Vec<&str> = rendered.lines().collect();
            let width = |text: &str| unicode_width::UnicodeWidthStr::width(text);
            assert!(lines[1..3].iter().all(|line| width(line) <= columns), "{columns}: {rendered}");
            let mark = lines[2].find('^').unwrap();
            let mut at = 0;
            let under: String = lines[1]
                .chars()
                .filter(|c| {
                    let here = at >= mark && at < lines[2].len();
                    at += width(&c.to_string());
                    here
                })
                .collect();
            let under = under.trim_end_matches('…');
            assert!(name.starts_with(under) && !under.is_empty(), "{columns}: {rendered}");
        }
    }
}

#[test]
fn a_document_cannot_steer_the_terminal() {
    let lines = rendered("[\"\u{1b}[31m\u{202e}\", here]", "here");
    assert_underlined(&lines, "here");
    assert!(!lines.concat().contains(['\u{1b}', '\u{202e}']));
    assert_eq!(shown("a\u{1b}[0m\n\"'数"), "\"a\\u{1b}[0m\\n\\\"'数\"");
    assert_eq!(shown(&"x".repeat(100)).chars().count(), 63);
    // What takes no room is an escape; what joins the parts of a picture or carries an accent is not.
    assert_eq!(shown("a\u{200b}👩\u{200d}💻e\u{301}\\"), "\"a\\u{200b}👩\u{200d}💻e\u{301}\\\\\"");
    let about = Diagnostic::about_file("a\u{1b}b", "C-12", "file-not-found", "m");
    assert!(!render(&about, RenderOptions::default()).contains('\u{1b}'));
}

#[test]
fn colour_is_optional_and_leaves_the_start_of_the_line_alone() {
    let source = Source::new("f", "[]");
    let mut diagnostics = Diagnostics::new();
    diagnostics.push(Finding::warning("E-32", "unknown-field", Span::new(0, 1), "m"));
    let text = render(&diagnostics.report(&source)[0], RenderOptions { colour: true, columns: None });
    assert!(text.starts_with("f:1:1: \u{1b}[1;33mwarning[E-32]\u{1b}[0m: m\n"));
}

#[test]
fn c04_json_has_exactly_the_contracts_keys() {
    let source = Source::new("f.json", "{\"a\": [1]}");
    let mut diagnostics = Diagnostics::new();
    diagnostics.push(Finding::error("P-01", "wrong-type", Span::new(7, 8), "m").help("h"));
    let report = diagnostics.report(&source);
    assert_eq!(
        check_json(&report).to_string(),
        "{\"diagnostics\":[{\"severity\":\"error\",\"code\":\"wrong-type\",\"rule\":\"P-01\",\"message\":\"m\",\"file\":\"f.json\",\
         \"line\":1,\"column\":8,\"pointer\":\"/a/0\",\"help\":\"h\"}]}"
    );
    assert_eq!(
        error_json(&report[0]).to_string(),
        "{\"error\":{\"code\":\"wrong-type\",\"rule\":\"P-01\",\"message\":\"m\",\"file\":\"f.json\",\
         \"line\":1,\"column\":8,\"pointer\":\"/a/0\",\"help\":\"h\"}}"
    );
    let about = error_json(&Diagnostic::about_file("f", "C-12", "file-not-found", "m"));
    assert!(about["error"]["line"].is_null() && about["error"]["column"].is_null());
}

#[test]
fn e12_findings_of_one_kind_are_bounded_and_counted() {
    let text = "0".repeat(1_000);
    let source = Source::new("f", &text);
    let mut diagnostics = Diagnostics::new();
    for at in 0..500 {
        diagnostics.push(Finding::warning("E-32", "unknown-field", Span::new(at, at + 1), "odd"));
    }
    diagnostics.push(Finding::error("P-01", "missing-field", Span::new(700, 701), "late"));
    assert_eq!((diagnostics.errors(), diagnostics.warnings()), (1, 500));
    let report = diagnostics.report(&source);
    assert_eq!(report.len(), 202);
    assert_eq!(report[200].message, "odd (and 299 more of this kind)");
    assert_eq!(report[201].message, "late", "an error is never lost behind warnings");
}

#[test]
fn findings_are_reported_in_the_order_of_the_text() {
    let source = Source::new("f", "[1, 2, 3]");
    let mut diagnostics = Diagnostics::new();
    for at in [7, 1, 4] {
        diagnostics.push(Finding::error("P-01", "x", Span::new(at, at + 1), "m"));
    }
    let pointers: Vec<_> = diagnostics.report(&source).into_iter().map(|d| d.pointer).collect();
    assert_eq!(pointers, ["/0", "/1", "/2"]);
}
