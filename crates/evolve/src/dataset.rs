//! A data set: JSON lines `{task_id, question, answer?, files?}` (V-03), read line by line so that its length does not matter.

use crate::checked::Checked;
use crate::key::Key;
use selvedge_dialects::diagnostic::shown;
use selvedge_dialects::json::{self, Kind, Node};
use selvedge_dialects::{Diagnostic, Diagnostics, DocumentLimits, Finding, Source};
use selvedge_host::{Error, ErrorKind};
use selvedge_store::BlobHash;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// Bytes of a line.
const LONGEST: u64 = 8 << 20;
/// Bytes of a task's id.
const LONGEST_ID: usize = 500;
/// Findings that are told.
const TOLD: usize = 20;

/// A file of tasks.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// The file as it was named.
    name: String,
    /// The file, and the folder that no file of a task leaves.
    path: PathBuf,
    folder: PathBuf,
}

/// Which lines of it are meant, and what is done about wrong ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// The first line, from 1 on.
    pub start: Option<u64>,
    /// How many lines from there on.
    pub limit: Option<u64>,
    /// Whether lines that are wrong are left out.
    pub skip_bad: bool,
}

fn as_text<S: Serializer>(key: &Key, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(key)
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Task {
    /// What the data set calls it.
    pub task_id: String,
    /// Of the id and the line: an edited line is another task.
    #[serde(serialize_with = "as_text")]
    pub key: Key,
    /// What is asked.
    pub question: String,
    /// What a prediction is held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Files that it is about, from the folder of the data set on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl Part {
    pub(crate) fn has(&self, line: u64) -> bool {
        let first = self.start.unwrap_or(1);
        line >= first && self.limit.is_none_or(|limit| line - first < limit)
    }
}

impl DataSet {
    /// The data set in a file, which is called `name`.
    ///
    /// # Errors
    /// `Usage` if there is none.
    pub fn open(file: &Path, name: &Path) -> Result<Self, Error> {
        let name = name.display().to_string();
        let wrong = |why: &str| {
            let help =
                "name a file of lines like {\"task_id\": \"t1\", \"question\": \"…\", \"answer\": \"…\"}";
            Error::about_file(
                &name,
                "V-03",
                "data-set-unreadable",
                &format!("the data set can't be read: {why}"),
            )
            .help(help)
        };
        let path = file.canonicalize().map_err(|error| wrong(&error.to_string()))?;
        if !path.is_file() {
            return Err(wrong("it is no file"));
        }
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { name, path, folder })
    }

    /// The file, by its full path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that it is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Looks at every line of it that was not looked at before, as `dir` says, the folder of its projections.
    ///
    /// # Errors
    /// `Usage` with the places of what is wrong, unless such lines are to be left out; if nothing else is there, all the same.
    pub fn check(&self, part: Part, dir: Option<&Path>) -> Result<Checked, Error> {
        let mut checked = Checked::known(&self.path, dir, part);
        let mut lines = self.lines(checked.end())?;
        let mut known: Option<HashMap<u64, u32>> = None;
        while let Some((number, line)) = lines.next()? {
            let known = known.get_or_insert_with(|| checked.ids());
            let found = self.read(number, &line).and_then(|task| {
                let Some(task) = task else { return Ok(None) };
                let id = digest(task.task_id.as_bytes());
                match known.get(&id) {
                    Some(first) => Err(vec![self.doubled(&task, number, *first)]),
                    None => Ok(Some((task.key, id))),
                }
            });
            let task = found.as_ref().ok().copied().flatten();
            known.extend(task.map(|(_, id)| (id, u32::try_from(number).unwrap_or(u32::MAX))));
            checked.push(task, line.len() as u64, line.last() == Some(&b'\n'));
            if let Err(wrong) = found {
                checked.bad += 1;
                let room = TOLD.saturating_sub(checked.left_out.len());
                checked.left_out.extend(wrong.into_iter().take(room));
            }
        }
        if checked.bad > 0 && !part.skip_bad {
            return Err(self.refused(checked));
        }
        if checked.tasks == 0 {
            let message = "there is no task in these lines of the data set";
            return Err(Error::about_file(&self.name, "V-03", "no-tasks", message)
                .help("each line is a task: {\"task_id\": \"t1\", \"question\": \"…\"}; look at --start and --limit"));
        }
        Ok(checked)
    }

    /// The tasks of the part that was checked, in the order of their lines.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn tasks<'s>(&'s self, checked: &'s Checked) -> Result<Tasks<'s>, Error> {
        Ok(Tasks { set: self, checked, lines: self.lines((0, 0))? })
    }

    fn refused(&self, checked: Checked) -> Error {
        let Checked { mut left_out, bad, .. } = checked;
        if left_out.len() >= TOLD {
            let message = format!("{bad} lines are wrong; the first are told");
            left_out.push(Diagnostic::about_file(&self.name, "V-03", "more-bad-lines", &message));
        }
        if let Some(first) = left_out.first_mut() {
            first.help = format!("{}; --skip-bad leaves such lines out", first.help);
        }
        Error::findings(ErrorKind::Usage, left_out)
    }

    fn doubled(&self, task: &Task, number: u64, first: u32) -> Diagnostic {
        let message = format!("the task {} is in line {first} already", shown(&task.task_id));
        let mut found = Diagnostic::about_file(&self.name, "V-03", "doubled-task", &message);
        found.help = "give each task an id of its own".to_owned();
        placed(found, number)
    }

    /// The lines behind so many bytes, which are so many lines.
    fn lines(&self, (bytes, number): (u64, u64)) -> Result<Lines, Error> {
        let file =
            File::open(&self.path).and_then(|mut file| file.seek(SeekFrom::Start(bytes)).map(|_| file));
        let file = BufReader::with_capacity(1 << 16, file.map_err(|error| unreadable(&self.name, &error))?);
        Ok(Lines { name: self.name.clone(), file, number })
    }

    /// The task of a line; `None` for an empty one.
    fn read(&self, number: u64, line: &[u8]) -> Result<Option<Task>, Vec<Diagnostic>> {
        let whole = |code: &'static str, message: &str, help: &str| {
            let mut found = Diagnostic::about_file(&self.name, "V-03", code, message);
            found.help = help.to_owned();
            vec![placed(found, number)]
        };
        if line.len() as u64 > LONGEST {
            let message = format!("the line has more than {LONGEST} bytes");
            return Err(whole(
                "line-too-long",
                &message,
                "put what is long into a file, and name it in `files`",
            ));
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return Err(whole("not-utf8", "the line is no UTF-8", "write the data set as UTF-8"));
        };
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return Ok(None);
        }
        let source = Source::new(self.name.as_str(), text);
        let mut found = Diagnostics::new();
        let root = json::parse(&source, &DocumentLimits::default(), &mut found);
        let task = root.and_then(|root| self.task(&root, text, &mut found));
        match task {
            Some(task) if !found.has_errors() => Ok(Some(task)),
            _ => Err(found.report(&source).into_iter().map(|found| placed(found, number)).collect()),
        }
    }

    fn task(&self, root: &Node<'_>, text: &str, found: &mut Diagnostics) -> Option<Task> {
        let wrong = |code, at: &Node<'_>, message: String, help: &str| {
            Finding::error("V-03", code, at.span, message).help(help)
        };
        if root.as_object().is_none() {
            let message = format!("a line must be an object, not {}", root.type_in_words());
            found.push(wrong(
                "wrong-type",
                root,
                message,
                "write {\"task_id\": \"t1\", \"question\": \"…\"}",
            ));
            return None;
        }
        let task_id = match root.get("task_id").map(|id| (id, &id.kind)) {
            Some((id, Kind::String(text))) if !text.trim().is_empty() && text.len() <= LONGEST_ID => {
                id.as_str().map(str::to_owned)
            }
            Some((id, Kind::Number(_))) => Some(id.to_value().to_string()),
            Some((id, _)) => {
                let message = format!("`task_id` must be a text of 1 to {LONGEST_ID} bytes or a number");
                found.push(wrong("bad-task-id", id, message, "give each task an id of its own"));
                None
            }
            None => {
                let message = "the task has no `task_id`".to_owned();
                found.push(wrong(
                    "missing-task-id",
                    root,
                    message,
                    "give each task an id of its own: \"task_id\": \"t1\"",
                ));
                None
            }
        };
        let question = root.get("question").and_then(Node::as_str).filter(|text| !text.trim().is_empty());
        if question.is_none() {
            let at = root.get("question").unwrap_or(root);
            let message = "the task has no question".to_owned();
            found.push(wrong("missing-question", at, message, "say what is asked: \"question\": \"…\""));
        }
        let answer = root.get("answer").filter(|answer| !answer.is_null());
        if let Some(answer) =
            answer.filter(|answer| !matches!(answer.kind, Kind::String(_) | Kind::Number(_) | Kind::Bool(_)))
        {
            let message =
                format!("`answer` must be a text, a number or a boolean, not {}", answer.type_in_words());
            found.push(wrong("wrong-type", answer, message, "write the answer as a text"));
        }
        let files = self.files(root, found);
        Some(Task {
            task_id: task_id.clone()?,
            key: Key::of(&task_id?, text),
            question: question?.to_owned(),
            answer: answer.map(Node::to_value),
            files: files?,
        })
    }

    /// The files of a task, all of which are there and in the folder of the data set.
    fn files(&self, root: &Node<'_>, found: &mut Diagnostics) -> Option<Vec<String>> {
        let Some(node) = root.get("files").filter(|files| !files.is_null()) else { return Some(Vec::new()) };
        let help = "name them from the data set's folder on: \"files\": [\"data/a.csv\"]";
        let Some(list) = node.as_array() else {
            let message = format!("`files` must be a list, not {}", node.type_in_words());
            found.push(Finding::error("V-03", "wrong-type", node.span, message).help(help));
            return None;
        };
        let mut files = Vec::new();
        for one in list {
            let Some(name) = one.as_str() else {
                let message = format!("a file's name must be a text, not {}", one.type_in_words());
                found.push(Finding::error("V-03", "wrong-type", one.span, message).help(help));
                continue;
            };
            match self.inside(name) {
                Ok(()) => files.push(name.to_owned()),
                Err((code, message)) => {
                    found.push(Finding::error("V-03", code, one.span, message).help(help))
                }
            }
        }
        Some(files)
    }

    fn inside(&self, name: &str) -> Result<(), (&'static str, String)> {
        let path = Path::new(name);
        let outside =
            || ("file-outside", format!("the file {} is not in the folder of the data set", shown(name)));
        if name.is_empty()
            || !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return Err(outside());
        }
        // A link in the folder may lead out of it.
        let real = self.folder.join(path).canonicalize();
        let real =
            real.map_err(|error| ("file-not-found", format!("there is no file {}: {error}", shown(name))))?;
        if real.starts_with(&self.folder) { Ok(()) } else { Err(outside()) }
    }
}

/// The tasks of a data set, one after the other.
#[derive(Debug)]
pub struct Tasks<'s> {
    set: &'s DataSet,
    checked: &'s Checked,
    lines: Lines,
}

impl Tasks<'_> {
    /// The next task that is wanted. A line that has changed since it was checked is none.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn next_task(&mut self, wanted: impl Fn(Key) -> bool) -> Result<Option<Task>, Error> {
        while let Some((number, line)) = self.lines.next()? {
            let Some(key) = self.checked.key(number).filter(|key| wanted(*key)) else { continue };
            if let Ok(Some(task)) = self.set.read(number, &line)
                && task.key == key
            {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }
}

#[derive(Debug)]
struct Lines {
    name: String,
    file: BufReader<File>,
    number: u64,
}

impl Lines {
    /// The next line with its number. Of one that is too long only so much that this shows.
    fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let mut line = Vec::new();
        let read = (&mut self.file).take(LONGEST + 2).read_until(b'\n', &mut line);
        let read = read.map_err(|error| unreadable(&self.name, &error))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if line.last() != Some(&b'\n') && line.len() as u64 > LONGEST {
            self.rest().map_err(|error| unreadable(&self.name, &error))?;
        }
        Ok(Some((self.number, line)))
    }

    /// Leaves out the rest of a line.
    fn rest(&mut self) -> std::io::Result<()> {
        loop {
            let buffer = self.file.fill_buf()?;
            let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.file.consume(used);
            if ended {
                return Ok(());
            }
        }
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Error {
    let message = format!("the data set {name} can't be read: {error}");
    Error::environment("V-03", "data-set-unreadable", &message)
        .help("check the file and the disk that it is on")
}

/// What stands for an id among those that are known: a million of them are to fit.
fn digest(bytes: &[u8]) -> u64 {
    let hash = BlobHash::of(bytes).to_string();
    hash.get(..16).and_then(|half| u64::from_str_radix(half, 16).ok()).unwrap_or_default()
}

fn placed(mut found: Diagnostic, line: u64) -> Diagnostic {
    found.line = u32::try_from(line).ok();
    found.column = found.column.or(Some(1));
    found
}
