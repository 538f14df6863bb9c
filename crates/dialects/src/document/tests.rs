use std::fs;

use super::*;
use crate::diagnostic::render;

fn limits(document_bytes: u64) -> DocumentLimits {
    DocumentLimits { document_bytes, ..Default::default() }
}

fn first_line(diagnostic: &Diagnostic) -> String {
    render(diagnostic, Default::default()).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn counts_lines_and_columns_from_1_and_columns_in_characters() {
    let source = Source::new("f", "ab\r\nc数d\n\n😀x");
    let place = |offset| {
        let place = source.place(offset);
        (place.line, place.column)
    };
    assert_eq!(place(0), (1, 1));
    assert_eq!(place(2), (1, 3));
    assert_eq!(place(4), (2, 1));
    assert_eq!(place(5), (2, 2));
    assert_eq!(place(6), (2, 2), "inside a character is at the character");
    assert_eq!(place(8), (2, 3));
    assert_eq!(place(10), (3, 1));
    assert_eq!(place(11), (4, 1));
    assert_eq!(place(15), (4, 2));
    assert_eq!(place(999), (4, 3), "beyond the end is the end");
}

#[test]
fn places_agree_with_counting_from_the_start() {
    let line = "äb数\t😀 ".repeat(30);
    let text: String =
        (0..400).map(|n| format!("{}\n", &line.chars().take(n % 97).collect::<String>())).collect();
    let source = Source::new("f", &text);
    assert!(text.len() > 5 * STRIDE);
    for offset in (0..=text.len()).step_by(13).chain([STRIDE - 1, STRIDE, STRIDE + 1, text.len()]) {
        let offset = text.floor_char_boundary(offset);
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        assert_eq!(source.place(offset), Place { line: line as u32, column: column as u32 }, "at {offset}");
    }
    let exact = "x".repeat(2 * STRIDE);
    assert_eq!(Source::new("f", &exact).place(2 * STRIDE).column as usize, 2 * STRIDE + 1);
}

#[test]
fn e28_a_byte_order_mark_is_accepted() {
    let source = load("f", b"\xef\xbb\xbf{}".to_vec(), &limits(100)).expect("accepted");
    assert_eq!(source.text(), "{}");
    assert_eq!(source.place(0), Place { line: 1, column: 1 });
}

#[test]
fn e28_size_is_checked_before_reading_further() {
    assert!(load("f", vec![b' '; 9], &limits(8)).is_err());
    let error = load("f", vec![b'1'; 9], &limits(8)).expect_err("too large");
    assert_eq!(first_line(&error), "f: error[E-28]: the document has more than 8 bytes");
    assert!(error.help.contains("`document_bytes`"));
    assert!(load("f", vec![b'1'; 8], &limits(8)).is_ok());
}

#[test]
fn e28_a_file_one_byte_over_64_mib_is_refused_without_reading_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.json");
    // A sparse file: it takes no space, and reading it would take long enough to notice.
    File::create(&path).and_then(|file| file.set_len(64 * 1024 * 1024 + 1)).expect("a file");
    let error = read_file(&path, &DocumentLimits::default()).expect_err("too large");
    assert_eq!((error.code, error.rule), ("document-too-large", "E-28"));
    assert!(error.message.contains("67108864"));
}

#[cfg(unix)]
#[test]
fn e28_a_file_without_a_size_is_cut_off_at_the_limit() {
    let error = read_file(Path::new("/dev/zero"), &limits(1000)).expect_err("endless");
    assert_eq!(error.code, "document-too-large");
}

#[test]
fn invalid_utf8_is_one_error_with_its_place() {
    let error = load("f.json", b"{\n  \"a\": \"\xc3\xa9\xff\"}".to_vec(), &limits(100)).expect_err("invalid");
    assert_eq!(
        render(&error, Default::default()),
        "f.json:2:10: error[E-28]: the document is not valid UTF-8: byte 0xFF at offset 12\n\
         \u{20}   2 |   \"a\": \"é\n\
         \u{20}     |          ^\n\
         \u{20} help: save the file as UTF-8\n"
    );
    let utf16 = load("f", b"\xff\xfe{\0}\0".to_vec(), &limits(100)).expect_err("invalid");
    assert!(utf16.help.contains("UTF-16"));
    // Offsets count in the file, its byte-order mark included; columns do not.
    let marked = load("f", b"\xef\xbb\xbf{\xff".to_vec(), &limits(100)).expect_err("invalid");
    assert!(marked.message.ends_with("at offset 4") && marked.column == Some(2));
}

#[test]
fn c12_missing_files_folders_and_empty_files_are_one_clear_error_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let code = |path: &Path| {
        let error = read_file(path, &DocumentLimits::default()).expect_err("refused");
        assert!(!error.help.is_empty());
        let file = path.display().to_string();
        (first_line(&error).replace(&file, "FILE"), error.code)
    };
    assert_eq!(
        code(folder.path()),
        ("FILE: error[C-12]: this is a folder, not a document file".into(), "not-a-file")
    );
    assert_eq!(
        code(&folder.path().join("none.json")),
        ("FILE: error[C-12]: there is no such file".into(), "file-not-found")
    );
    // A pipe without a writer would be waited for without end.
    #[cfg(unix)]
    {
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        let expected = "FILE: error[C-12]: this is a named pipe, not a document file";
        assert_eq!(code(&pipe), (expected.into(), "not-a-file"));
    }
    for (name, content) in [("empty.json", ""), ("space.json", " \n"), ("mark.json", "\u{feff}")] {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("a file");
        assert_eq!(code(&path), ("FILE:1:1: error[C-11]: the document is empty".into(), "empty-document"));
    }
}
