use super::{Dependencies, normal};

#[test]
fn equal_sets_written_differently_are_one_environment() {
    let listed =
        |entries: &[&str]| Dependencies::new(&entries.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>());
    let one = listed(&["Typing_Extensions >= 4", "httpx[http2]"]);
    let two = listed(&["httpx[http2]", " typing-extensions>=4 ", "typing.extensions>=4", "pydantic>=2"]);
    assert!(one.is_ok());
    assert_eq!(one, two);
}

#[test]
fn markers_keep_their_spaces() {
    let entry = r#"tomli >= 2 ; python_version < "3.11" and sys_platform == "linux""#;
    assert_eq!(normal(entry).unwrap(), r#"tomli>=2; python_version < "3.11" and sys_platform == "linux""#);
}

#[test]
fn options_paths_and_addresses_are_no_dependencies() {
    for entry in [
        "--index-url http://127.0.0.1/",
        "-e .",
        "./local",
        "/abs/path",
        "../up",
        "pkg @ https://example.org/x.whl",
        "git+https://example.org/x",
        "a b",
        "ok\n--pre",
        "name # comment",
        "",
        "-r other.txt",
        "file:x",
    ] {
        assert_eq!(normal(entry), None, "{entry:?}");
    }
}
