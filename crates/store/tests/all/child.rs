//! Other processes: the test binary starts itself again with a role. What a role has to say it prints after an `@`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use selvedge_store::{Entry, InboxEntry, Mode, Store, StoreError};

use crate::support::{event, events, journal, new_run};

const ROLE: &str = "SELVEDGE_STORE_TEST_ROLE";
const DIR: &str = "SELVEDGE_STORE_TEST_DIR";
const ARGUMENT: &str = "SELVEDGE_STORE_TEST_ARGUMENT";

/// The command that runs `role` on the state folder `dir` with the test binary `exe`.
pub(crate) fn command(exe: &Path, role: &str, dir: &Path, argument: &str) -> Command {
    let mut command = Command::new(exe);
    set(&mut command, role, dir, argument);
    command
}

/// The same under a file-size limit (in KiB), with the signal ignored that would end the process at it.
pub(crate) fn limited(role: &str, dir: &Path, argument: &str, kib: u64) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2)]);
    command.arg(std::env::current_exe().unwrap());
    set(&mut command, role, dir, argument);
    command
}

fn set(command: &mut Command, role: &str, dir: &Path, argument: &str) {
    command
        .args(["child::child", "--exact", "--nocapture", "--test-threads=1"])
        .envs([(ROLE, role), (ARGUMENT, argument)])
        .env(DIR, dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
}

/// A running role. Killed when dropped.
pub(crate) struct Role {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Role {
    pub(crate) fn start(role: &str, dir: &Path, argument: &str) -> Self {
        Self::spawn(command(&std::env::current_exe().unwrap(), role, dir, argument))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (said, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Some((_, text)) = line.split_once('@') {
                    let _ = said.send(text.to_owned());
                }
            }
        });
        Self { child, lines }
    }

    /// The next thing it says.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(60)).expect("the child says something")
    }

    /// SIGKILL; then everything it has said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }

    /// Waits for its end; then everything it has said.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let lines: Vec<String> = self.lines.iter().collect();
        let _ = self.child.wait().unwrap();
        lines
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "@{text}").unwrap();
    out.flush().unwrap();
}

/// The name of an error's kind.
pub(crate) fn kind(error: &StoreError) -> String {
    format!("{error:?}").split([' ', '{']).next().unwrap().to_owned()
}

/// Not a test by itself: does nothing unless a test has started this process with a role.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let dir = std::env::var_os(DIR).unwrap();
    let dir = Path::new(&dir);
    let argument = std::env::var(ARGUMENT).unwrap();
    match role.as_str() {
        "append" => append(dir, &argument),
        "burst" => burst(dir, &argument),
        "fill" => fill(dir, &argument),
        "drive" => drive(dir, &argument),
        "put" => put(dir, &argument),
        "places" => places(dir),
        "library" => library(dir),
        "library-dirty" => library_dirty(dir, argument.parse().unwrap()),
        "dirty" => dirty(dir, argument.parse().unwrap()),
        role => panic!("unknown role {role}"),
    }
}

/// Some threads append until the process is killed; says `RUN N` for every acknowledged event.
fn append(dir: &Path, runs: &str) {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    std::thread::scope(|scope| {
        for run in runs.split(',') {
            let store = &store;
            scope.spawn(move || {
                let mut last = match store.last_event(run) {
                    Ok(last) => last,
                    Err(_) => {
                        store.create_run(new_run(run), Vec::new()).wait().unwrap();
                        0
                    }
                };
                let end = Instant::now() + Duration::from_secs(60);
                while Instant::now() < end {
                    let step = 1 + last % 3;
                    store.append(run, events(run, last + 1, last + step)).wait().unwrap();
                    last += step;
                    say(&format!("{run} {last}"));
                }
            });
        }
    });
}

/// Appends 200 events one by one to a new run of its own, then ends.
fn burst(dir: &Path, run: &str) {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    store.create_run(new_run(run), Vec::new()).wait().unwrap();
    for n in 1..=200 {
        store.append(run, vec![event(run, n)]).wait().unwrap();
    }
    say("done");
}

/// Appends until it fails. Says how many events were acknowledged, the error's kind, and whether all events that
/// were acknowledged, and no others, can still be read and small requests be made once there is room.
fn fill(dir: &Path, run: &str) {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    let mut n = store.last_event(run).unwrap();
    let error = loop {
        let json = format!("\"{n} {}\"", format!("{n:08}").repeat(8 * 1024));
        match store.append(run, vec![Entry { n: n + 1, at_ms: 0, json }]).wait() {
            Ok(()) => n += 1,
            Err(error) => break error,
        }
        assert!(n < 10_000, "the limit does not bind");
    };
    say(&n.to_string());
    say(&kind(&error));
    say(&error.to_string());
    say(&store.journal(run, 1).unwrap().map(Result::unwrap).count().to_string());
}

/// Says whether it got to drive the run, and then waits to be killed.
fn drive(dir: &Path, run: &str) {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    let lock = store.drive(run);
    say(&match &lock {
        Ok(_) => format!("driving {}", std::process::id()),
        Err(error) => kind(error),
    });
    if lock.is_ok() {
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// Puts an entry into a run's inbox.
fn put(dir: &Path, run: &str) {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    let entry = InboxEntry { id: "entry".to_owned(), run: run.to_owned(), at_ms: 0, body: "{}".to_owned() };
    store.put_inbox_entry(entry).wait().unwrap();
    say("put");
}

/// Says what becomes of opening the folder for writing, and what can be read.
fn places(dir: &Path) {
    let outcome =
        |result: Result<(), StoreError>| result.map_or_else(|error| kind(&error), |()| "ok".to_owned());
    say(&outcome(Store::open(dir, Mode::ReadWrite).map(drop)));
    match Store::open(dir, Mode::ReadOnly) {
        Ok(store) => {
            say(&format!("reads {}", journal(&store, "r").len()));
            say(&outcome(store.put_blob(b"x".to_vec()).1.wait()));
            say(&outcome(store.drive("r").map(drop)));
        }
        Err(error) => say(&kind(&error)),
    }
}

/// Changes the library again and again, and says each change that is acknowledged.
fn library(dir: &Path) {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    for n in store.last_library_event().unwrap() / 3 + 1.. {
        let (entries, contents) = crate::library::change(n);
        store.append_library(entries, contents).wait().unwrap();
        say(&n.to_string());
    }
}

/// Makes so many changes of the library, and ends without closing anything.
fn library_dirty(dir: &Path, count: u64) {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    for n in 1..=count {
        let (entries, contents) = crate::library::change(n);
        store.append_library(entries, contents).wait().unwrap();
    }
    // No destructor runs, so nothing is closed.
    std::process::exit(0);
}

/// Appends so many events in groups of one to four, and ends without closing anything.
fn dirty(dir: &Path, count: u64) {
    let store = Store::open(dir, Mode::ReadWrite).unwrap();
    store.create_run(new_run("r"), Vec::new()).wait().unwrap();
    let mut n = 0;
    while n < count {
        let to = (n + 1 + n % 4).min(count);
        store.append("r", events("r", n + 1, to)).wait().unwrap();
        n = to;
    }
    // No destructor runs, so nothing is closed.
    std::process::exit(0);
}
