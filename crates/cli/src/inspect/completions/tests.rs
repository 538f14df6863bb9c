use super::*;

/// The values offered behind these words; nothing is recorded.
fn offered(words: &[&str]) -> Vec<String> {
    let mut cli = Cli::command();
    cli.build();
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let empty = tempfile::tempdir().unwrap();
    let place = words::place(&cli, &words);
    candidates::of(&place, &selvedge_host::Environment::default(), Some(empty.path()))
        .into_iter()
        .map(|candidate| candidate.value)
        .collect()
}

/// The name of the argument that the last word is a value of.
fn argument(words: &[&str]) -> Option<String> {
    let mut cli = Cli::command();
    cli.build();
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words::place(&cli, &words).argument.map(|argument| argument.get_id().to_string())
}

#[test]
fn commands_and_options() {
    let commands = offered(&["r"]);
    assert!(
        ["run", "resume", "runs", "replay"].iter().all(|name| commands.contains(&(*name).to_owned())),
        "{commands:?}"
    );
    assert!(!offered(&[""]).contains(&"__complete".to_owned()));
    assert_eq!(offered(&["run", "--scr"]), ["--script"]);
    assert!(offered(&["run", "--"]).contains(&"--state-dir".to_owned()), "what every command takes too");
    assert!(!offered(&["run", "--script", "x", "--"]).contains(&"--script".to_owned()), "once is enough");
    assert!(
        offered(&["run", "--tools", "x", "--"]).contains(&"--tools".to_owned()),
        "may stand several times"
    );
    assert!(!offered(&["run", "--"]).contains(&"--mcp".to_owned()) || !is_hidden("run", "mcp"));
}

fn is_hidden(command: &str, argument: &str) -> bool {
    let cli = Cli::command();
    let command = cli.find_subcommand(command).unwrap();
    command.get_arguments().any(|known| known.get_id() == argument && known.is_hide_set())
}

#[test]
fn values_of_arguments() {
    assert_eq!(offered(&["runs", "--status", "c"]), ["completed", "cancelled"]);
    assert_eq!(offered(&["runs", "--status=c"]), ["--status=completed", "--status=cancelled"]);
    assert_eq!(offered(&["runs", "--status", "=", "f"]), ["failed"], "as bash takes words apart");
    assert_eq!(offered(&["runs", "--status", "="]).len(), 5);
    assert_eq!(offered(&["completions", "f"]), ["fish"]);
    assert_eq!(offered(&["graph", "plan.json", "--format", ""]), ["mermaid", "dot"]);
    assert!(offered(&["help", "env"]).contains(&"environment".to_owned()));
    assert_eq!(
        offered(&["--quiet", "--state-dir", "runs", "che"]),
        ["check"],
        "an option's value is no command"
    );
}

/// For files the shell knows better.
#[test]
fn files_are_left_to_the_shell() {
    for words in
        [&["run", ""][..], &["check", "a.json", ""], &["run", "--script", ""], &["run", "p.json", ""]]
    {
        assert_eq!(offered(words), [] as [&str; 0], "{words:?}");
    }
}

#[test]
fn arguments_are_counted() {
    assert_eq!(argument(&["answer", ""]).as_deref(), Some("run"));
    assert_eq!(argument(&["answer", "r1", ""]).as_deref(), Some("ask"));
    assert_eq!(argument(&["answer", "-q", "r1", "--json", ""]).as_deref(), Some("ask"));
    assert_eq!(argument(&["answer", "--", "r1", "-"]).as_deref(), Some("ask"));
    assert_eq!(argument(&["show", "runs", ""]), None, "a run may be called like a command");
    assert_eq!(argument(&["check", "a", "b", ""]).as_deref(), Some("files"));
    assert_eq!(argument(&["nonsense", ""]), None);
    assert_eq!(argument(&[]), None);
}
