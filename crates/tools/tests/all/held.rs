//! E-13: a program that is to end with the process that starts it does nothing before somebody sees to that.

use crate::world::{World, isolation};
use selvedge_sandbox::reaper::Reaper;
use selvedge_sandbox::spawn::Handed;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

/// What a launcher comes to that holds a program, and is told this before whoever started it is gone. Its stdin and stderr are
/// the two pipes.
fn held(program: &OsStr, args: &[&OsStr], told: &[u8]) -> Output {
    let launcher = isolation().launcher().unwrap();
    let mut command = Command::new(&launcher.program);
    command.args(&launcher.args).args(["--held", "0", "2", "--"]).arg(program).args(args);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(told).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_held_begins_when_it_is_told_to_and_never_by_itself() {
    let world = World::new();
    let made = world.path("made");
    let untold = held("touch".as_ref(), &[made.as_os_str()], b"");
    assert!(untold.status.code() == Some(126) && untold.stderr.is_empty(), "{untold:?}");
    assert!(!made.exists(), "it has run, and nobody would have ended it");
    let told = held("touch".as_ref(), &[made.as_os_str()], b"1");
    assert!(told.status.success() && made.exists(), "{told:?}");
    let missing = held("/nowhere/to/be/found".as_ref(), &[], b"1");
    assert_eq!(missing.stderr, 2_i32.to_ne_bytes(), "ENOENT, and nothing else: {missing:?}");
}

#[tokio::test]
async fn what_is_held_is_started_like_anything_else() {
    let world = World::new();
    let script = r#"echo "$0 $1 $A $PWD $(ls /proc/$$/fd | tr '\n' ' ')"; kill -PIPE $$"#;
    let mut seen = Vec::new();
    for launcher in [None, isolation().launcher()] {
        let set = |command: &mut tokio::process::Command| {
            command.current_dir(world.path("")).env_clear().env("A", "b c").stdout(Stdio::piped());
        };
        let args = ["-c", script, "zero", "one two"];
        let reaper = Arc::new(Reaper::new(launcher));
        let (child, _watched) = reaper.start("/bin/sh".as_ref(), args, Handed::default(), set).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        seen.push((String::from_utf8(output.stdout).unwrap(), output.status));
    }
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].0.starts_with("zero one two b c /"), "{seen:?}");
    let reaper = Arc::new(Reaper::new(isolation().launcher()));
    for (program, kind) in
        [("/nowhere/to/be/found", ErrorKind::NotFound), ("/etc/passwd", ErrorKind::PermissionDenied)]
    {
        let nothing: [&str; 0] = [];
        let started = reaper.start(program.as_ref(), nothing, Handed::default(), |_| {}).await;
        assert_eq!(started.err().map(|error| error.kind()), Some(kind), "{program}");
    }
}
