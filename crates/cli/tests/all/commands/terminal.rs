//! The live view on a terminal, what becomes of a run whose terminal goes away, and lines (C-01, C-04, C-05, P-20).

use crate::support::{Place, calls, finish, says};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SCRIPT: &str = "
- when: {node: b}
  reply: {text: the second reply in pieces, delay_ms: 1500, usage: {input_tokens: 10, output_tokens: 5}}
- when: {}
  reply: {text: first, delay_ms: 300}
";

/// A terminal that nobody sits at.
pub(crate) struct Terminal {
    master: File,
    slave: OwnedFd,
}

impl Terminal {
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        // Whoever is started does not hold the other end: it would outlive a test that fails.
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).unwrap();
        Self { master: File::from(master), slave }
    }

    /// Starts a command whose questions come here, and whose answers are written here.
    pub(crate) fn ask(self, command: &mut Command) -> (Child, File) {
        command.env_remove("COLUMNS");
        command.stdin(Stdio::from(self.slave.try_clone().unwrap())).stderr(Stdio::from(self.slave));
        (command.spawn().unwrap(), self.master)
    }

    /// Starts a command whose results are read here.
    pub(crate) fn read(self, command: &mut Command) -> (Child, File) {
        command.env_remove("COLUMNS").env("TERM", "xterm").stdout(Stdio::from(self.slave));
        (command.spawn().unwrap(), self.master)
    }

    /// Starts a command with its stderr here; who closes the result closes the terminal.
    pub(crate) fn start(self, place: &Place, args: &[&str], environment: &[(&str, &str)]) -> (Child, File) {
        let mut command = place.command(args);
        command.env_remove("COLUMNS").envs(environment.iter().copied()).stderr(Stdio::from(self.slave));
        (command.spawn().unwrap(), self.master)
    }
}

/// What comes out of a terminal, as it comes.
pub(crate) fn watch(mut master: File) -> (Arc<Mutex<String>>, std::thread::JoinHandle<()>) {
    let seen = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&seen);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        // The end of a terminal without writers is an error on Linux.
        while let Ok(read) = master.read(&mut buffer)
            && read > 0
        {
            bytes.extend_from_slice(&buffer[..read]);
            *kept.lock().unwrap() = String::from_utf8_lossy(&bytes).into_owned();
        }
    });
    (seen, reader)
}

#[track_caller]
pub(crate) fn wait_until(seen: &Mutex<String>, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(40);
    while !seen.lock().unwrap().contains(what) {
        assert!(Instant::now() < deadline, "{what:?} never came: {:?}", seen.lock().unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "A"), says("b", "B")]));
    place.write("s.yaml", SCRIPT);
    place
}

pub(crate) const RUN: [&str; 6] = ["run", "plan.json", "--script", "s.yaml", "--run-id", "r"];

/// Whatever was switched off was switched on again after it.
#[track_caller]
pub(crate) fn left_in_order(text: &str) {
    for (off, on) in
        [("\u{1b}[?25l", "\u{1b}[?25h"), ("\u{1b}[?7l", "\u{1b}[?7h"), ("\u{1b}[?2026h", "\u{1b}[?2026l")]
    {
        assert!(text.rfind(on) >= text.rfind(off), "{off:?} stays: {text:?}");
    }
}

#[test]
fn a_run_is_shown_live_and_its_result_alone_is_on_stdout() {
    let place = place();
    let (child, master) = Terminal::new(80, 24).start(&place, &RUN, &[]);
    let (seen, reader) = watch(master);
    let done = finish(child).exits(0);
    reader.join().unwrap();
    assert_eq!(done.stdout, "the second reply in pieces\n");
    let seen = seen.lock().unwrap();
    assert!(seen.contains("1/2 nodes") && seen.contains('▸'), "no lanes: {seen:?}");
    assert!(seen.contains("the second reply"), "no streamed text: {seen:?}");
    left_in_order(&seen);
    // The picture is gone; what is left are plain lines.
    let end = seen.rsplit("\u{1b}[?2026h").next().unwrap();
    assert!(end.contains("total") && end.contains("2 nodes ran, 2 model calls, 10+5 tokens"), "{end:?}");
    assert!(!end.contains('▸'), "{end:?}");
}

#[test]
fn a_terminal_that_can_t_or_shall_not_shows_lines_or_nothing() {
    let place = place();
    for (environment, quiet, lines) in [([("TERM", "dumb")], false, true), ([("TERM", "xterm")], true, false)]
    {
        let args = [&["run", "plan.json", "--script", "s.yaml"][..], if quiet { &["--quiet"] } else { &[] }]
            .concat();
        let (child, master) = Terminal::new(80, 24).start(&place, &args, &environment);
        let (seen, reader) = watch(master);
        finish(child).exits(0);
        reader.join().unwrap();
        let seen = seen.lock().unwrap();
        assert!(!seen.contains('\u{1b}'), "{seen:?}");
        assert_eq!(seen.contains("start a"), lines, "{seen:?}");
    }
    // Without colours the picture is there all the same.
    let (child, master) = Terminal::new(20, 10).start(&place, &RUN, &[("NO_COLOR", "1")]);
    let (seen, reader) = watch(master);
    finish(child).exits(0);
    reader.join().unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.contains('▸') && !seen.contains("\u{1b}[36m"), "{seen:?}");
}

/// A line of progress takes one row of a terminal, with its times; a pipe gets it whole.
#[test]
fn lines_are_cut_to_the_terminal() {
    let place = place();
    let name = format!("long {}", "name ".repeat(30));
    let mut node = says("a", "A");
    node["node_name"] = json!(name);
    place.plan("long.json", json!([node]));
    for term in ["dumb", "", "xterm"] {
        let args = ["run", "long.json", "--script", "s.yaml"];
        let (child, master) =
            Terminal::new(60, 24).start(&place, &args, &[("TERM", term), ("NO_COLOR", "1")]);
        let (seen, reader) = watch(master);
        finish(child).exits(0);
        reader.join().unwrap();
        let seen = seen.lock().unwrap();
        let done = seen.lines().find(|line| line.contains(" done  a")).unwrap_or_else(|| panic!("{seen:?}"));
        let done = done.trim_end().rsplit('\u{1b}').next().unwrap();
        assert!(
            done.chars().count() <= 70
                && done.contains('…')
                && [" s", " ms"].iter().any(|unit| done.ends_with(unit)),
            "{term}: {done:?}"
        );
        assert_eq!(seen.contains('▸'), term == "xterm", "nothing is known of a terminal without a name");
    }
    let told = place.run(&["run", "long.json", "--script", "s.yaml"]).exits(0).stderr;
    assert!(told.contains(&format!("done  a {name}")), "{told}");
    // What has to be read to its end is broken between words.
    let place = approvals();
    let (child, master) =
        Terminal::new(60, 24).start(&place, &["run", "plan.json"], &[("TERM", "dumb"), ("NO_COLOR", "1")]);
    let (seen, reader) = watch(master);
    finish(child).exits(3);
    reader.join().unwrap();
    let seen = seen.lock().unwrap();
    let lines = || {
        seen.lines().skip_while(|line| !line.contains(" ask ")).take_while(|line| !line.starts_with("run "))
    };
    assert!(lines().count() > 6 && lines().all(|line| line.trim_end().chars().count() <= 60), "{seen}");
    let parts = ["l", "lo", "lon", "ong", "ng", "g"];
    assert!(lines().flat_map(str::split_whitespace).all(|word| !parts.contains(&word)), "{seen}");
}

#[test]
fn a_run_goes_on_when_its_terminal_is_gone_or_takes_nothing() {
    for close in [true, false] {
        let place = place();
        // Much to say: a terminal that is not read is full long before the end.
        let nodes = (0..150).map(|n| says(&format!("n{n}"), &"word ".repeat(40)));
        place.plan("plan.json", nodes.collect());
        place.write("s.yaml", &SCRIPT.replace("300", "10"));
        let (child, master) = Terminal::new(200, 50).start(&place, &[&RUN[..], &["-v"]].concat(), &[]);
        std::thread::sleep(Duration::from_millis(700));
        let kept = (!close).then_some(master);
        let done = finish(child).exits(0);
        assert_eq!(done.stdout, "first\n", "closed: {close}");
        drop(kept);
    }
}

#[test]
fn an_interrupt_counts_down_and_says_how_to_resume() {
    let place = place();
    place.write("s.yaml", &SCRIPT.replace("1500", "30000"));
    let (child, master) = Terminal::new(80, 24).start(&place, &RUN, &[]);
    let (seen, reader) = watch(master);
    wait_until(&seen, "1/2 nodes");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    wait_until(&seen, "stopping: 1 call may end within 5 s");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = finish(child).exits(130);
    reader.join().unwrap();
    let seen = seen.lock().unwrap();
    left_in_order(&seen);
    assert!(seen.trim_end().ends_with("go on with: selvedge resume r"), "{seen:?}");
    assert_eq!(done.stdout, "");
}

/// P-20: what nodes wait for is told, once each, where another thread is what keeps them.
#[test]
fn verbose_lines_say_what_a_node_waits_for() {
    let place = Place::new();
    let mut load = says("load", "L");
    load["thread_id"] = json!("fetch");
    place.plan(
        "plan.json",
        json!([says("open", "O"), load, says("report", "Use {{load.output}}"), says("end", "E")]),
    );
    place.write(
        "s.yaml",
        "[{when: {node: load}, reply: {text: l, delay_ms: 300}}, {when: {}, reply: {text: x}}]",
    );
    let done = place.run(&["run", "plan.json", "--script", "s.yaml", "-v"]).exits(0);
    let waits: Vec<&str> = done.stderr.lines().filter(|line| line.contains(" wait ")).collect();
    let told = waits.iter().filter(|line| line.ends_with("report waits for load (reads its result)")).count();
    assert_eq!((told, waits.len()), (1, 1), "{}", done.stderr);
    let quiet = place.run(&["run", "plan.json", "--script", "s.yaml"]).exits(0);
    assert!(!quiet.stderr.contains(" wait "), "{}", quiet.stderr);
}

/// A place whose plan sends twice, each after a person's word.
fn approvals() -> Place {
    let place = Place::new();
    place.write(
        "selvedge.toml",
        "[tools.command.send]\ndescription = \"d\"\ncommand = [\"cat\"]\ninput_schema = {type = \"object\"}\n",
    );
    let send = |id: &str| {
        let text = format!("{}\u{1b}[2J END", "long ".repeat(400));
        let mut node = calls(id, "send", json!({"to": id, "text": text}));
        (node["require_approval"], node["thread_id"]) = (json!(true), json!(id));
        node
    };
    place.plan("plan.json", json!([send("a"), send("b")]));
    place
}

pub(crate) fn asked(place: &Place, args: &[&str]) -> (Child, Arc<Mutex<String>>, File) {
    let mut command = place.command(args);
    command.env("NO_COLOR", "1");
    let (child, master) = Terminal::new(200, 30).ask(&mut command);
    let (seen, _) = watch(master.try_clone().unwrap());
    (child, seen, master)
}

pub(crate) fn says_line(mut terminal: &File, line: &str) {
    terminal.write_all(line.as_bytes()).unwrap();
}

/// How often a text is on the terminal by now; waited for.
#[track_caller]
pub(crate) fn times(seen: &Mutex<String>, what: &str, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(40);
    while seen.lock().unwrap().matches(what).count() < count {
        assert!(Instant::now() < deadline, "{what:?}: {:?}", seen.lock().unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
    // The question stands before its answer is read; what is typed before that counts for nothing.
    std::thread::sleep(Duration::from_millis(200));
}

/// C-13: who sits at the terminal approves there, sees the whole call if he wants to, and gives reasons; the picture is gone
/// while he is asked.
#[test]
fn approvals_are_asked_for_on_a_terminal() {
    const QUESTION: &str = "a reason may follow y or n: ";
    let place = approvals();
    let (child, seen, terminal) = asked(&place, &["run", "plan.json", "--run-id", "r"]);
    times(&seen, QUESTION, 1);
    assert!(seen.lock().unwrap().contains(" characters …"), "long texts lose their middle: {seen:?}");
    says_line(&terminal, "show\n");
    times(&seen, QUESTION, 2);
    says_line(&terminal, "perhaps\n");
    times(&seen, QUESTION, 3);
    says_line(&terminal, "y it is right\n");
    times(&seen, QUESTION, 4);
    says_line(&terminal, "n\n");
    finish(child).exits(1);
    let text = seen.lock().unwrap().clone();
    let shown = text.split(QUESTION).nth(1).unwrap();
    assert!(shown.matches("long ").count() == 400, "{shown:?}");
    assert!(shown.contains(r#""to": "a""#) && shown.contains(r"\u001b[2J END"), "{shown:?}");
    assert!(text.contains("\"perhaps\" is none of them"), "{text:?}");
    for question in text.split("approve").skip(1).take(2) {
        let (said, _) = question.split_once(QUESTION).unwrap();
        assert!(!said.contains('▸') && !said.contains("\u{1b}[2J"), "{said:?}");
    }
    left_in_order(&text);
    let journal = place.run(&["export", "r"]).exits(0).stdout;
    assert!(journal.contains(r#"{"answer":"yes","why":"it is right"}"#), "{journal}");
    place.run(&["replay", "r"]).exits(0);
}

/// What is left open waits as ever; with `--quiet` and `--json` nobody is asked.
#[test]
fn an_approval_may_be_left_open() {
    let place = approvals();
    let (child, seen, terminal) = asked(&place, &["run", "plan.json", "--run-id", "r"]);
    times(&seen, "leave it open", 1);
    says_line(&terminal, "\n");
    times(&seen, "leave it open", 2);
    says_line(&terminal, "\n");
    finish(child).exits(3);
    assert!(seen.lock().unwrap().contains("selvedge answer r a/"), "{seen:?}");
    for option in ["--quiet", "--json"] {
        let (child, seen, _terminal) = asked(&place, &["resume", "r", option]);
        finish(child).exits(3);
        assert!(!seen.lock().unwrap().contains("leave it open"), "{option}: {seen:?}");
    }
    let (child, seen, _terminal) = asked(&place, &["resume", "r"]);
    times(&seen, "leave it open", 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    finish(child).exits(3);
    assert_eq!(place.run(&["show", "r", "--json"]).exits(0).json()["status"], "waiting");
}

/// C-15: pages that a terminal has no room for go through PAGER, others and JSON do not.
#[test]
fn long_pages_go_through_a_pager() {
    let place = place();
    place.run(&RUN).exits(0);
    let shown = |args: &[&str], rows: u16, pager: &[(&str, &str)]| {
        let mut command = place.command(args);
        command.envs(pager.iter().copied());
        let (child, master) = Terminal::new(80, rows).read(&mut command);
        let (seen, reader) = watch(master);
        // The handle of this process is gone with the command's.
        drop(command);
        finish(child).exits(0);
        reader.join().unwrap();
        seen.lock().unwrap().clone()
    };
    let pager = ("PAGER", "sed 's/^/| /'");
    for (args, rows, environment, paged) in [
        (&["show", "r"][..], 5, &[pager][..], true),
        (&["show", "r"], 200, &[pager], false),
        (&["show", "r", "--json"], 2, &[pager], false),
        (&["show", "r", "--no-pager"], 5, &[pager], false),
        (&["show", "r"], 5, &[pager, ("NO_PAGER", "1")], false),
        (&["show", "r"], 5, &[("PAGER", "")], false),
        (&["show", "r", "--events"], 5, &[pager], true),
        (&["explain", "r"], 3, &[pager], true),
        (&["export", "r"], 3, &[pager], false),
    ] {
        let text = shown(args, rows, environment);
        let begins = text.lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(begins > 0, paged, "{args:?} {rows}: {text}");
        assert!(!paged || begins == text.lines().count(), "{text}");
    }
}

/// A pipe gets lines whole, unless COLUMNS says how wide they are; so does a terminal.
#[test]
fn pages_are_as_wide_as_is_said() {
    let place = Place::new();
    let mut node = says("a", "A");
    node["node_name"] = json!("a name of many words ".repeat(12).trim_end());
    place.plan("plan.json", json!([node]));
    place.write("s.yaml", &format!("- reply: {{text: {}end}}\n", "word ".repeat(60)));
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r"]).exits(0);
    for args in [&["show", "r"][..], &["explain", "r"]] {
        let with = |columns: Option<&str>| {
            let mut command = place.command(args);
            match columns {
                Some(columns) => command.env("COLUMNS", columns),
                None => command.env_remove("COLUMNS"),
            };
            finish(command.spawn().unwrap()).exits(0).stdout
        };
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
        let (whole, narrow) = (with(None), with(Some("60")));
        assert!(widest(&whole) > 250 && !whole.contains('…'), "{whole}");
        assert!(widest(&narrow) <= 62, "{narrow}");
    }
    let mut command = place.command(&["explain", "r"]);
    command.env("NO_COLOR", "1");
    let (child, master) = Terminal::new(70, 200).read(&mut command);
    let (seen, reader) = watch(master);
    drop(command);
    finish(child).exits(0);
    reader.join().unwrap();
    assert!(seen.lock().unwrap().lines().all(|line| line.chars().count() <= 70), "{seen:?}");
}
