//! Cases of the command line: files, commands, and what they print and return.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long one command may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The same for a case with `$SHARED`, whose first command may have to wait for an environment.
const LIMIT_SHARED: Duration = Duration::from_secs(60);

/// A case of the command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CliCase {
    /// Unique in its file.
    pub name: String,
    /// The rules it shows.
    pub rules: Vec<String>,
    /// What it shows, in one sentence.
    pub about: String,
    /// Files to lay down: a text as it is, anything else as JSON.
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
    /// Environment variables; nothing else but `PATH` and a `HOME` of its own is passed on. `$SHARED` stands for a folder
    /// that all cases share, for environments of Python tools.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Commands, one after another in one folder.
    pub steps: Vec<CliStep>,
}

/// One command and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CliStep {
    /// Arguments of `selvedge`; `$RUN` and `$ASK` stand for the last run and its first ask that were printed.
    pub run: Vec<String>,
    /// Files that are written first.
    #[serde(default)]
    pub files: BTreeMap<String, Value>,
    /// When Ctrl-C is pressed, in milliseconds from the start.
    #[serde(default)]
    pub interrupts_ms: Vec<u64>,
    /// The exit code.
    pub exit: i32,
    /// JSON on stdout, as far as it is written here.
    #[serde(default)]
    pub stdout: Option<Value>,
    /// What stdout contains; an empty list says that it is empty.
    #[serde(default)]
    pub stdout_contains: Option<Vec<String>>,
    /// JSON on each line of stdout that is written here, in order, as far as it is written.
    #[serde(default)]
    pub lines: Option<Vec<Value>>,
    /// What stderr contains.
    #[serde(default)]
    pub stderr: Vec<String>,
    /// What neither stdout nor stderr nor any file of the state contains.
    #[serde(default)]
    pub nowhere: Vec<String>,
    /// `error` of the JSON object on stderr's last line, as far as it is written here.
    #[serde(default)]
    pub error: Option<Value>,
    /// Files and their contents afterwards; null for none.
    #[serde(default)]
    pub leaves: BTreeMap<String, Option<String>>,
}

/// The program: `SELVEDGE_BIN`, or the one that was built beside this test.
pub fn binary() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("SELVEDGE_BIN") {
        return Some(path.into());
    }
    let test = std::env::current_exe().ok()?;
    let name = format!("selvedge{}", std::env::consts::EXE_SUFFIX);
    test.ancestors().skip(1).take(2).map(|folder| folder.join(&name)).find(|path| path.is_file())
}

/// Runs a case.
///
/// # Errors
/// Everything that is not as the case says.
pub fn check(case: &CliCase) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    run_in(case, folder.path(), home.path())
}

/// Runs a case in folders that stay.
///
/// # Errors
/// Everything that is not as the case says.
pub fn run_in(case: &CliCase, folder: &Path, home: &Path) -> Result<(), String> {
    let program = binary().ok_or("there is no program: cargo build -p selvedge-cli, or set SELVEDGE_BIN")?;
    lay_down(folder, &case.files)?;
    let mut known = BTreeMap::new();
    for (at, step) in case.steps.iter().enumerate() {
        lay_down(folder, &step.files)?;
        let arguments: Vec<String> = step.run.iter().map(|argument| filled(argument, &known)).collect();
        let mut command = Command::new(&program);
        command.args(&arguments).current_dir(folder).env_clear();
        let shared = program.ancestors().nth(2).unwrap_or(Path::new(".")).join("tmp/tools-shared");
        let known_to = |value: &String| value.replace("$SHARED", &shared.display().to_string());
        command.env("HOME", home).env("NO_COLOR", "1");
        // What a case writes is trusted, unless it says otherwise.
        command.env("SELVEDGE_TRUST", "1");
        command.envs(case.env.iter().map(|(name, value)| (name, known_to(value))));
        let shares = case.env.values().any(|value| value.contains("$SHARED"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let limit = if shares { LIMIT_SHARED } else { LIMIT };
        let printed = Printed::of(&mut command, &step.interrupts_ms, limit)?;
        learn(&printed, &mut known);
        let mut wrong = differences(step, &printed, folder, home);
        if !wrong.is_empty() {
            wrong.insert(0, format!("step {}: selvedge {}", at + 1, arguments.join(" ")));
            wrong.push(format!(
                "exit {}\nstdout:\n{}\nstderr:\n{}",
                printed.exit, printed.stdout, printed.stderr
            ));
            return Err(wrong.join("\n"));
        }
    }
    Ok(())
}

fn lay_down(folder: &Path, files: &BTreeMap<String, Value>) -> Result<(), String> {
    for (name, content) in files {
        let path = folder.join(name);
        let text = match content {
            Value::String(text) => text.clone(),
            other => format!("{other:#}\n"),
        };
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text)).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn filled(argument: &str, known: &BTreeMap<&'static str, String>) -> String {
    known.iter().fold(argument.to_owned(), |text, (name, value)| text.replace(name, value))
}

fn learn(printed: &Printed, known: &mut BTreeMap<&'static str, String>) {
    let Ok(json) = serde_json::from_str::<Value>(&printed.stdout) else { return };
    for (name, pointer) in [("$RUN", "/run_id"), ("$ASK", "/asks/0/ask")] {
        if let Some(value) = json.pointer(pointer).and_then(Value::as_str) {
            known.insert(name, value.to_owned());
        }
    }
}

/// What a command left.
struct Printed {
    exit: i32,
    stdout: String,
    stderr: String,
}

impl Printed {
    fn of(command: &mut Command, interrupts_ms: &[u64], limit: Duration) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let exit = wait(&mut child, interrupts_ms, limit)?;
        let text = |reader: std::thread::JoinHandle<String>| reader.join().unwrap_or_default();
        Ok(Self { exit, stdout: text(stdout), stderr: text(stderr) })
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what there is.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The exit code; -1 for a signal.
fn wait(child: &mut Child, interrupts_ms: &[u64], limit: Duration) -> Result<i32, String> {
    let start = Instant::now();
    let mut interrupts = interrupts_ms.iter();
    let mut next = interrupts.next();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.code().unwrap_or(-1));
        }
        if let Some(at) = next
            && start.elapsed() >= Duration::from_millis(*at)
        {
            let id = child.id().to_string();
            Command::new("kill").args(["-INT", &id]).status().map_err(|error| error.to_string())?;
            next = interrupts.next();
        }
        if start.elapsed() > limit {
            // It may end by itself at this very moment; then there is nothing to kill.
            let _ = child.kill();
            return Err(format!("not done within {limit:?}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn differences(step: &CliStep, printed: &Printed, folder: &Path, home: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    if printed.exit != step.exit {
        wrong.push(format!("expected exit {}, got {}", step.exit, printed.exit));
    }
    if let Some(expected) = &step.stdout {
        match serde_json::from_str::<Value>(&printed.stdout) {
            Ok(found) => wrong.extend(unlike("stdout", expected, &found)),
            Err(error) => wrong.push(format!("stdout is not JSON: {error}")),
        }
    }
    if let Some(parts) = &step.stdout_contains {
        if parts.is_empty() && !printed.stdout.is_empty() {
            wrong.push("stdout is not empty".into());
        }
        wrong.extend(
            parts
                .iter()
                .filter(|part| !printed.stdout.contains(*part))
                .map(|p| format!("stdout lacks {p:?}")),
        );
    }
    if let Some(expected) = &step.lines {
        let mut found = printed.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for line in expected {
            if !found.any(|found| unlike("", line, &found).is_empty()) {
                wrong.push(format!("stdout has no such line, in this order: {line}"));
            }
        }
    }
    wrong.extend(
        step.stderr
            .iter()
            .filter(|part| !printed.stderr.contains(*part))
            .map(|p| format!("stderr lacks {p:?}")),
    );
    if let Some(expected) = &step.error {
        let last = printed.stderr.lines().last().unwrap_or_default();
        let found: Value = serde_json::from_str(last).unwrap_or_default();
        wrong.extend(unlike("error", expected, &found["error"]));
    }
    for (name, content) in &step.leaves {
        let found = std::fs::read_to_string(folder.join(name)).ok();
        if found != *content {
            wrong.push(format!("{name}: expected {content:?}, got {found:?}"));
        }
    }
    for secret in &step.nowhere {
        if printed.stdout.contains(secret) || printed.stderr.contains(secret) {
            wrong.push(format!("{secret:?} is printed"));
        }
        let kept = [folder.join(".selvedge"), home.to_owned()];
        wrong.extend(
            kept.iter()
                .filter_map(|folder| holder(folder, secret))
                .map(|p| format!("{secret:?} is in {}", p.display())),
        );
    }
    wrong
}

/// A file below a folder that contains a text.
fn holder(folder: &Path, text: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holder(&path, text);
        }
        let bytes = std::fs::read(&path).ok()?;
        bytes.windows(text.len()).any(|window| window == text.as_bytes()).then_some(path)
    })
}

/// Where `found` is not as `expected`: objects may have more fields, arrays not more entries, and
/// `{"contains": […]}` stands for any text with these parts.
fn unlike(place: &str, expected: &Value, found: &Value) -> Vec<String> {
    match (expected, found) {
        (Value::Object(fields), Value::String(text))
            if fields.len() == 1 && fields.contains_key("contains") =>
        {
            if super::messages::fits(expected, text) {
                Vec::new()
            } else {
                vec![format!("{place}: {text:?} lacks {expected}")]
            }
        }
        (Value::Object(fields), Value::Object(all)) => {
            let fields = fields.iter();
            fields
                .flat_map(|(key, value)| {
                    unlike(&format!("{place}/{key}"), value, all.get(key).unwrap_or(&Value::Null))
                })
                .collect()
        }
        (Value::Array(wanted), Value::Array(all)) if wanted.len() == all.len() => {
            let pairs = wanted.iter().zip(all).enumerate();
            pairs.flat_map(|(at, (wanted, found))| unlike(&format!("{place}/{at}"), wanted, found)).collect()
        }
        (Value::Number(wanted), Value::Number(number)) if wanted.as_f64() == number.as_f64() => Vec::new(),
        _ if expected == found => Vec::new(),
        _ => vec![format!("{place}: expected {expected}, got {found}")],
    }
}
