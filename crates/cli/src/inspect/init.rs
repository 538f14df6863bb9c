//! `selvedge init`: a project that runs at once, with a scripted model in place of a real one (C-14).

use crate::failure::Exit;
use crate::ui::Ui;
use clap::{Args, ValueEnum};
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::trust::Record;
use serde_json::json;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const INIT_HELP: &str = "\
Examples:
  selvedge init
  selvedge init my-project
  selvedge init my-project --dialect workflow

Writes a plan, a task of steps, a workflow that forks, joins and asks a person, or a task for an agent that builds a tool, with a command and a Python file as tools, scripted replies that stand in for a model, and a \
configuration with the choices commented out. Nothing is overwritten. Runs of the project are kept in its folder .selvedge.";

/// `selvedge init`.
#[derive(Args, Debug)]
#[command(after_help = INIT_HELP)]
pub(crate) struct InitArgs {
    /// The project's folder, which need not exist
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// What its document is
    #[arg(long, value_name = "DIALECT", value_enum, default_value_t = Kind::Plan)]
    pub(crate) dialect: Kind,
}

/// The dialects that a project can begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    // Nodes on threads.
    Plan,
    // Calls of tools.
    Steps,
    // Nodes and edges: forks, joins, people.
    Workflow,
    // Tools that are missing are built.
    Agent,
}

impl Kind {
    /// The document and its script.
    fn files(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Plan => [
                ("plan.json", include_str!("init/plan.json")),
                ("script.yaml", include_str!("init/script.yaml")),
            ],
            Self::Steps => [
                ("task.json", include_str!("init/steps/task.json")),
                ("script.yaml", include_str!("init/steps/script.yaml")),
            ],
            Self::Workflow => [
                ("flow.json", include_str!("init/workflow/flow.json")),
                ("script.yaml", include_str!("init/workflow/script.yaml")),
            ],
            Self::Agent => [
                ("agent.json", include_str!("init/agent/agent.json")),
                ("script.yaml", include_str!("init/agent/script.yaml")),
            ],
        }
    }

    fn document(self) -> &'static str {
        let [(document, _), _] = self.files();
        document
    }
}

/// The files of every new project.
const FILES: [(&str, &str); 4] = [
    ("selvedge.toml", include_str!("init/selvedge.toml")),
    ("count_words.py", include_str!("init/count_words.py")),
    ("tools/frequent_words.py", include_str!("init/tools/frequent_words.py")),
    ("notes.md", include_str!("init/notes.md")),
];
/// Written where there is none; one that is there belongs to somebody else.
const IGNORE: (&str, &str) = (".gitignore", ".selvedge/\n");
/// Runs are kept in a folder of this name that is found upwards (C-01).
const STATE: &str = ".selvedge";

/// Writes a project.
pub(crate) fn init(args: &InitArgs, ui: &Ui) -> Result<Exit, Error> {
    let dir = &args.dir;
    let files: Vec<(&str, &str)> = args.dialect.files().into_iter().chain(FILES).collect();
    refuse(dir, &files)?;
    create(dir)?;
    create(&dir.join(STATE))?;
    let mut written: Vec<&str> = Vec::new();
    for (name, text) in files {
        let path = dir.join(name);
        create(path.parent().unwrap_or(dir))?;
        write(&path, text)?;
        written.push(name);
    }
    if dir.join(IGNORE.0).symlink_metadata().is_err() {
        write(&dir.join(IGNORE.0), IGNORE.1)?;
        written.push(IGNORE.0);
    }
    trust(dir, ui);
    let next = next(dir, args.dialect.document());
    if !written.contains(&IGNORE.0) {
        ui.note("note: there is a .gitignore already; add .selvedge/ to it to keep runs out of git");
    }
    if ui.json {
        ui.result(&format!("{}\n", json!({"files": written, "next": next})));
        return Ok(Exit::Completed);
    }
    let mut text = String::new();
    for name in &written {
        text.push_str(&format!("wrote {}\n", dir.join(name).display()));
    }
    text.push_str("\nNext:\n");
    for command in &next {
        text.push_str(&format!("  {command}\n"));
    }
    if args.dialect == Kind::Workflow {
        text.push_str(
            "\nOn a terminal the run asks its question there; elsewhere it waits (exit code 3): selvedge answer @ plain\n",
        );
    }
    text.push_str("\nThe replies come from script.yaml; selvedge.toml says how to choose a model instead.\n");
    ui.result(&selvedge_host::text::harmless(&text));
    Ok(Exit::Completed)
}

/// Who starts a project trusts what was written for it (C-20). That it can't be kept stops nothing: it is asked for later.
fn trust(dir: &Path, ui: &Ui) {
    let file = ui.environment.absolute(&dir.join("selvedge.toml"));
    let parts = Config::new(&ui.environment).add(&file).map(|added| added.parts).unwrap_or_default();
    if let Err(failure) = Record::write(&ui.environment, file.parent().unwrap_or(dir), &parts) {
        let why = failure.diagnostics.first().map(|first| first.message.as_str()).unwrap_or_default();
        ui.note(&format!(
            "note: `selvedge trust` has to be called for the project, as it can't be kept here: {why}"
        ));
    }
}

/// Nothing of what is there is overwritten (exit 2).
fn refuse(dir: &Path, files: &[(&str, &str)]) -> Result<(), Error> {
    if dir.exists() && !dir.is_dir() {
        let message = format!("{} is there, and is no folder", dir.display());
        return Err(Error::usage("C-14", "exists", &message).help("name another folder"));
    }
    let there: Vec<&str> = files
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| dir.join(name).symlink_metadata().is_ok())
        .collect();
    match there.is_empty() {
        true => Ok(()),
        false => {
            let message = format!("{} has {} already; nothing was written", dir.display(), there.join(", "));
            Err(Error::usage("C-14", "exists", &message).help("name another folder: selvedge init DIR"))
        }
    }
}

fn create(dir: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).create(dir).map_err(|error| refused(dir, &error))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    // Whoever was faster keeps what he wrote.
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &std::io::Error) -> Error {
    let message = format!("{} can't be written: {error}", path.display());
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Error::usage("C-14", "exists", &message),
        _ => Error::environment("C-14", "not-written", &message).help("check who may write there"),
    }
}

/// The commands that come next; they work as they stand.
fn next(dir: &Path, document: &str) -> Vec<String> {
    let mut next = Vec::new();
    if dir != Path::new(".") {
        next.push(format!("cd {}", quoted(dir)));
    }
    next.extend(
        [format!("check {document}"), format!("run {document} --script script.yaml"), "runs".to_owned()]
            .map(|rest| format!("selvedge {rest}")),
    );
    next
}

/// A path as a shell takes it in one piece.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | ',');
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
