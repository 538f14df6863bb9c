//! E-13, A-39: a program under a supervisor ends with the process that starts it, with all that it has started.
#![cfg(target_os = "linux")]

use crate::world::{World, anyone, eventually, isolation, mark};
use selvedge_sandbox::spawn::Handed;
use selvedge_sandbox::supervisor::{Supervised, Supervisor};
use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

/// What a supervisor comes to, and what it says of the start, if it is told `told` and then waits for more. Its stdin and stderr are the
/// two pipes.
fn supervised(program: &OsStr, args: &[&OsStr], told: Option<&[u8]>) -> (ExitStatus, Vec<u8>) {
    let launcher = isolation().launcher().unwrap();
    let mut command = Command::new(&launcher.program);
    command.args(&launcher.args).args(["--supervise", "0", "2", "--"]).arg(program).args(args);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut life = child.stdin.take();
    match told {
        Some(told) => life.as_mut().unwrap().write_all(told).unwrap(),
        None => drop(life.take()),
    }
    let mut said = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut said).unwrap();
    (child.wait().unwrap(), said)
}

#[test]
fn what_is_supervised_begins_when_it_is_told_to_and_never_by_itself() {
    let world = World::new();
    let made = world.path("made");
    let (status, said) = supervised("touch".as_ref(), &[made.as_os_str()], None);
    assert!(status.code() == Some(126) && said.is_empty(), "{status:?}");
    assert!(!made.exists(), "it has run, and nobody would have ended it");
    let (status, said) = supervised("touch".as_ref(), &[made.as_os_str()], Some(b"1"));
    assert!(status.success() && said.len() == 4 && made.exists(), "{status:?}");
    let (_, said) = supervised("/nowhere/to/be/found".as_ref(), &[], Some(b"1"));
    assert_eq!(said, (-2_i32).to_ne_bytes(), "ENOENT, and nothing else");
}

#[tokio::test]
async fn what_is_supervised_is_started_like_anything_else() {
    let world = World::new();
    let script = r#"echo "$0 $1 $A $PWD $(ls /proc/$$/fd | tr '\n' ' ')"; kill -PIPE $$"#;
    let mut seen = Vec::new();
    for launcher in [None, isolation().launcher()] {
        let set = |command: &mut tokio::process::Command| {
            command.current_dir(world.path("")).env_clear().env("A", "b c").stdout(Stdio::piped());
        };
        let args = ["-c", script, "zero", "one two"];
        let started = Supervisor::new(launcher).start("/bin/sh".as_ref(), args, Handed::default(), set).await;
        let Supervised { child, handle, .. } = started.unwrap();
        let output = child.wait_with_output().await.unwrap();
        drop(handle);
        seen.push((String::from_utf8(output.stdout).unwrap(), output.status));
    }
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].0.starts_with("zero one two b c /"), "{seen:?}");
    assert_eq!(seen[1].1.signal(), Some(13));
    let supervisor = Supervisor::new(isolation().launcher());
    for (program, kind) in
        [("/nowhere/to/be/found", ErrorKind::NotFound), ("/etc/passwd", ErrorKind::PermissionDenied)]
    {
        let nothing: [&str; 0] = [];
        let started = supervisor.start(program.as_ref(), nothing, Handed::default(), |_| {}).await;
        assert_eq!(started.err().map(|error| error.kind()), Some(kind), "{program}");
    }
}

/// Sessions of their own, and processes whose parent has ended, end with the program, however that ends.
#[tokio::test]
async fn a39_what_leaves_its_session_ends_all_the_same() {
    let supervisor = Supervisor::new(isolation().launcher());
    for waits in [false, true] {
        let mark = mark();
        let last = if waits { "wait" } else { "exit 5" };
        let script = format!(
            "setsid sleep {mark} & (setsid sh -c '(setsid sleep {mark} &)' &); sleep {mark} & sleep 0.5; {last}"
        );
        let started =
            supervisor.start("/bin/sh".as_ref(), ["-c", &script], Handed::default(), |_| {}).await.unwrap();
        let Supervised { mut child, handle, .. } = started;
        eventually("they run", || anyone(&mark)).await;
        if waits {
            handle.kill();
        }
        let status = child.wait().await.unwrap();
        assert_eq!((status.code(), status.signal()), if waits { (None, Some(9)) } else { (Some(5), None) });
        assert!(!anyone(&mark), "they are gone when the supervisor is");
    }
}

/// Dropping what keeps a program alive ends it.
#[tokio::test]
async fn a_dropped_program_ends() {
    let mark = mark();
    let script = format!("setsid sleep {mark} & sleep {mark}");
    let supervisor = Supervisor::new(isolation().launcher());
    let started =
        supervisor.start("/bin/sh".as_ref(), ["-c", &script], Handed::default(), |_| {}).await.unwrap();
    eventually("it runs", || anyone(&mark)).await;
    drop(started);
    eventually("all of it is gone", || !anyone(&mark)).await;
}
