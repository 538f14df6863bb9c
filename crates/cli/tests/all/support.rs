//! A folder of its own for each test, and the binary in it with nothing configured.

use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long any command may take.
const PATIENCE: Duration = Duration::from_secs(40);

/// What a command printed, and its exit code; a signal's death is -1.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// C-02's object on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The error that is stderr's last line (C-04).
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        let error: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {self:#?}"));
        error["error"].clone()
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        Self { dir }
    }

    /// The current folder of commands.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A plan of these nodes.
    pub(crate) fn plan(&self, name: &str, nodes: Value) {
        self.write(name, &json!({"task": "the task", "nodes": nodes}).to_string());
    }

    /// The binary with nothing configured, in the folder, with a state folder of its own.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.env_clear().env("HOME", self.dir.path().join("home"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // What tests write is theirs; those of trust say otherwise.
        command.env("SELVEDGE_TRUST", "1");
        // Pages as a terminal of that width has them; a pipe alone gets lines whole.
        command.env("COLUMNS", "100");
        command.env("SELVEDGE_STATE_DIR", self.dir.path().join("state"));
        command.current_dir(self.work()).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        finish(self.command(args).spawn().unwrap())
    }

    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }
}

/// Waits for a command to end, and takes what it printed.
#[track_caller]
pub(crate) fn finish(mut child: Child) -> Done {
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(&mut bytes).unwrap();
            }
            String::from_utf8(bytes).unwrap()
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the command took too long: {:?}", stderr.join());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Done { code: status.code().unwrap_or(-1), stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Waits until `path` exists.
#[track_caller]
pub(crate) fn wait_for(path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} never appeared", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A model's node.
pub(crate) fn says(id: &str, prompt: &str) -> Value {
    json!({"node_id": id, "node_type": "llm-first", "node_name": id, "thread_id": "main", "task_prompt": prompt})
}

/// A node that runs one tool.
pub(crate) fn calls(id: &str, tool: &str, args: Value) -> Value {
    json!({"node_id": id, "node_type": "tool-first", "node_name": id, "thread_id": "main",
           "initial_tool_name": tool, "initial_tool_args": args})
}
