//! Painting: whatever happens, what is above stays as it was written, once, and the terminal is left as it was.

use super::super::frame::Line;
use super::super::screen::Screen;
use super::terminal::Terminal;

fn block(lines: &[&str]) -> Vec<Line> {
    lines.iter().map(|line| Line(vec![("36", (*line).to_owned())])).collect()
}

/// Feeds a picture, and checks that the terminal is left in order.
#[track_caller]
fn show(terminal: &mut Terminal, screen: &mut Screen, above: &str, lines: &[&str]) {
    let painted = screen.paint(above, block(lines), (terminal.columns, terminal.rows));
    terminal.feed(&painted);
    assert!(terminal.wraps && terminal.cursor && !terminal.waits, "left in disorder by {painted:?}");
}

#[test]
fn pictures_replace_each_other_and_lines_above_stay() {
    for colour in [false, true] {
        let (mut terminal, mut screen) = (Terminal::new(20, 6), Screen::new(colour));
        terminal.feed("$ run\r\n");
        show(&mut terminal, &mut screen, "", &["head 1", "a", "b"]);
        assert_eq!(terminal.text(), "$ run\nhead 1\na\nb");
        show(&mut terminal, &mut screen, "", &["head 2", "a"]);
        assert_eq!(terminal.text(), "$ run\nhead 2\na");
        show(&mut terminal, &mut screen, "done x\ndone y\n", &["head 3", "long", "c", "d", "e"]);
        assert_eq!(terminal.text(), "$ run\ndone x\ndone y\nhead 3\nlong\nc\nd\ne");
        let wide = "done with a line that is wider than the terminal\n";
        show(&mut terminal, &mut screen, wide, &["head 4", "a", "b", "c", "d"]);
        show(&mut terminal, &mut screen, "", &[]);
        assert_eq!(
            terminal.text(),
            "$ run\ndone x\ndone y\ndone with a line tha\nt is wider than the\nterminal"
        );
        terminal.feed("result");
        assert!(terminal.text().ends_with("terminal\nresult"), "{}", terminal.text());
    }
}

#[test]
fn an_unchanged_picture_writes_nothing_and_a_changed_one_only_what_changed() {
    let mut screen = Screen::new(false);
    assert_eq!(screen.paint("", Vec::new(), (80, 24)), "", "no picture, nothing to take away");
    assert!(!screen.paint("", block(&["head", "same", "last"]), (80, 24)).is_empty());
    assert_eq!(screen.paint("", block(&["head", "same", "last"]), (80, 24)), "");
    let changed = screen.paint("", block(&["HEAD", "same", "last"]), (80, 24));
    assert!(changed.contains("HEAD") && !changed.contains("same"), "{changed:?}");
    assert!(!changed.contains("\u{1b}[36m"), "no colours");
}

#[test]
fn a_terminal_that_becomes_narrower_wider_or_lower_keeps_no_remains() {
    for (columns, rows) in [(10, 8), (7, 8), (60, 8), (30, 4), (12, 30)] {
        let (mut terminal, mut screen) = (Terminal::new(30, 8), Screen::new(true));
        terminal.feed("$ run\r\n");
        show(&mut terminal, &mut screen, "done x\n", &["head that is rather long", "lane with text", "tail"]);
        terminal.resize(columns, rows);
        show(&mut terminal, &mut screen, "done y\n", &["head", "lane", "tail"]);
        assert_eq!(terminal.text(), "$ run\ndone x\ndone y\nhead\nlane\ntail", "{columns}x{rows}");
    }
}

#[test]
fn after_a_pause_a_new_block_begins() {
    let (mut terminal, mut screen) = (Terminal::new(30, 8), Screen::new(true));
    show(&mut terminal, &mut screen, "", &["head", "lane"]);
    terminal.feed("\r\n[1]+ Stopped\r\n$ fg\r\n");
    screen.forget();
    show(&mut terminal, &mut screen, "", &["head 2", "lane 2"]);
    assert_eq!(terminal.text(), "head\nlane\n[1]+ Stopped\n$ fg\nhead 2\nlane 2");
}
