//! Where examples run.

use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The folder of all examples.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap()
}

/// How long an example may take, the first build of its Python environment included.
const PATIENCE: Duration = Duration::from_secs(240);

/// An example and a state folder for its runs.
pub(crate) struct Example {
    pub(crate) folder: PathBuf,
    pub(crate) state: tempfile::TempDir,
    /// `--tools`, as the example's README has it.
    tools: Vec<String>,
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// C-02's object on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// What a check has found, but that it could not look at some arguments: whether the environment of a tool is there
/// depends on what ran before.
#[track_caller]
pub(crate) fn findings(done: &Done) -> Vec<Value> {
    let found = done.json()["diagnostics"].as_array().cloned().unwrap_or_default();
    found.into_iter().filter(|found| found["code"] != "schema-unknown").collect()
}

impl Example {
    pub(crate) fn new(name: &str) -> Self {
        let own = matches!(
            name,
            "two-sources" | "inventory" | "squares" | "load-forecast" | "debate" | "invoices" | "fastest"
        )
        .then(|| "tools".to_owned());
        let shared = matches!(name, "review" | "inventory" | "load-forecast");
        let shared = shared.then(|| examples().join("tools").display().to_string());
        let tools = own.into_iter().chain(shared).flat_map(|folder| ["--tools".to_owned(), folder]).collect();
        Self { folder: examples().join(name), state: tempfile::tempdir().unwrap(), tools }
    }

    /// The example in a folder of its own, for those that write.
    pub(crate) fn copy(name: &str) -> Self {
        let mut example = Self::new(name);
        let copy = example.state.path().join("example").join(name);
        copied(&example.folder, &copy);
        example.folder = copy;
        example
    }

    /// The binary with nothing configured; Python environments are kept for the next time.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_selvedge")), args)
    }

    /// Another program, which may call the binary, in the same surroundings.
    pub(crate) fn command_of(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("SELVEDGE_") || text.ends_with("_API_KEY") {
                command.env_remove(&name);
            }
        }
        command.env("SELVEDGE_STATE_DIR", self.state.path()).env("COLUMNS", "100");
        command.env("SELVEDGE_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared"));
        command.current_dir(&self.folder).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn call(&self, args: &[&str]) -> Done {
        finish(self.command(args).spawn().unwrap())
    }

    /// Runs `command` on `document` with the example's tools and `more` options.
    pub(crate) fn with_tools(&self, command: &str, document: &str, more: &[&str]) -> Done {
        let tools: Vec<_> = self.tools.iter().map(String::as_str).collect();
        self.call(&[&[command, document, "--json"], &tools[..], more].concat())
    }

    /// Runs `document` with `more` options.
    pub(crate) fn run(&self, document: &str, more: &[&str]) -> Done {
        self.with_tools("run", document, more)
    }
}

/// Copies a folder, but what runs have left in it.
pub(crate) fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == "out" => {}
            true => copied(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

pub(crate) fn finish(mut child: Child) -> Done {
    // Both pipes are drained while waiting: a full one would stop the child.
    let mut streams = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let stderr = std::thread::spawn(move || {
        let mut text = String::new();
        streams.1.read_to_string(&mut text).unwrap();
        text
    });
    let stdout = std::thread::spawn(move || {
        let mut text = String::new();
        streams.0.read_to_string(&mut text).unwrap();
        text
    });
    let start = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Done { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// The contents of a thread's messages.
pub(crate) fn contents<'r>(result: &'r Value, thread: &str) -> Vec<&'r str> {
    let messages = result["threads"][thread].as_array().unwrap();
    messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
}
