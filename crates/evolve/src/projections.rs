//! The folder of what came of an evolution (V-02, V-15). The runs are the truth: whatever is lost here is written anew from them.

use crate::key::Key;
use selvedge_host::Error;
use selvedge_host::evolve::measures::Measures;
use selvedge_host::evolve::report::report;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What says which evolution a folder is of.
pub(crate) const MARK: &str = "evolution.json";
const PREDICTIONS: &str = "predictions.jsonl";
const MEASURES: &str = "measures.jsonl";
const REPORT: &str = "report.html";

/// A folder of projections.
#[derive(Debug)]
pub struct Projections {
    dir: PathBuf,
    predictions: File,
    /// Of each task that has a line there.
    lines: HashMap<Key, Line>,
    measures: File,
    /// How many batches have a line there.
    batches: u64,
    /// How many tasks the last of these lines counts.
    counted: u64,
}

/// What is known of a line of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Whether the task came to an answer.
    pub completed: bool,
    /// Whether the prediction is right, where that is known.
    pub correct: Option<bool>,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    evolution: String,
    data_set: PathBuf,
}

/// What is read of a line.
#[derive(Deserialize)]
struct Written {
    run: String,
    status: String,
    #[serde(default)]
    correct: Option<bool>,
}

impl Projections {
    /// Opens or makes the folder of an evolution. A torn last line of predictions is cut off; a line that is none makes all of them be
    /// written anew.
    ///
    /// # Errors
    /// `Usage` if it is the folder of something else, `Environment` if it can't be read or written.
    pub fn open(dir: &Path, evolution: &str, data_set: &Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| unwritable(dir, &error);
        fs::create_dir_all(dir).map_err(failed)?;
        let mark = dir.join(MARK);
        match fs::read(&mark) {
            Ok(bytes) => match serde_json::from_slice::<Mark>(&bytes) {
                Ok(mark) if mark.evolution == evolution && mark.data_set == data_set => {}
                Ok(mark) => {
                    return Err(of_another(dir, &format!("the data set {}", mark.data_set.display())));
                }
                Err(_) => return Err(not_ours(dir)),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if dir.join(PREDICTIONS).exists() {
                    return Err(not_ours(dir));
                }
                let mark = json!(Mark { evolution: evolution.to_owned(), data_set: data_set.to_owned() });
                replace(dir, MARK, format!("{mark:#}\n").as_bytes())?;
            }
            Err(error) => return Err(failed(error)),
        }
        let file = |name: &str| OpenOptions::new().read(true).append(true).create(true).open(dir.join(name));
        let predictions = file(PREDICTIONS).map_err(failed)?;
        let measures = file(MEASURES).map_err(failed)?;
        let mut lines = HashMap::new();
        let believed = each_line(&predictions, |written: Written| {
            let line = Line { completed: written.status == "completed", correct: written.correct };
            lines.extend(Key::of_run(&written.run).map(|key| (key, line)));
        });
        if !believed.map_err(failed)? {
            lines.clear();
        }
        let (mut batches, mut counted) = (0, 0);
        let count = |measures: Measures| (batches, counted) = (batches + 1, measures.total.done);
        if !each_line(&measures, count).map_err(failed)? {
            (batches, counted) = (0, 0);
        }
        Ok(Self { dir: dir.to_owned(), predictions, lines, measures, batches, counted })
    }

    /// How many batches have their line of measures.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// Adds the line of the next batch.
    ///
    /// # Errors
    /// It can't be written.
    pub fn measured(&mut self, measures: &Measures) -> Result<(), Error> {
        self.add(&self.measures, &json!(measures))?;
        self.batches += 1;
        self.counted = measures.total.done;
        Ok(())
    }

    /// Writes the page of what the batches came to.
    ///
    /// # Errors
    /// It can't be written.
    pub fn report(&self, name: &str) -> Result<(), Error> {
        let mut batches = Vec::new();
        each_line(&self.measures, |measures: Measures| batches.push(measures))
            .map_err(|error| unwritable(&self.dir, &error))?;
        replace(&self.dir, REPORT, report(name, &batches).as_bytes())
    }

    /// Adds a line to a file. What was written of one that could not be written whole is cut off.
    fn add(&self, mut file: &File, line: &Value) -> Result<(), Error> {
        let failed = |error: std::io::Error| unwritable(&self.dir, &error);
        let before = file.metadata().map_err(failed)?.len();
        file.write_all(format!("{line}\n").as_bytes()).map_err(|error| {
            let _ = file.set_len(before);
            failed(error)
        })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether as many tasks have a line as batches have done that have theirs.
    pub fn is_whole(&self) -> bool {
        self.lines.len() as u64 >= self.counted
    }

    /// How many tasks have a line.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is no line yet.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The line of a task, by its key.
    pub fn line(&self, key: Key) -> Option<Line> {
        self.lines.get(&key).copied()
    }

    /// Adds the line of a task, unless it has one.
    ///
    /// # Errors
    /// It can't be written. What was written of it is cut off.
    pub fn predicted(&mut self, said: &Value) -> Result<bool, Error> {
        let text = |name: &str| said.get(name).and_then(Value::as_str).unwrap_or_default();
        let key = Key::of_run(text("run")).ok_or_else(|| Error::internal("a task's run has no key"))?;
        if self.lines.contains_key(&key) {
            return Ok(false);
        }
        let mut line = said.clone();
        if let Some(fields) = line.as_object_mut() {
            // What only measures are made of.
            fields.remove("work");
            fields.remove("reused");
        }
        self.add(&self.predictions, &line)?;
        let correct = said.get("correct").and_then(Value::as_bool);
        self.lines.insert(key, Line { completed: text("status") == "completed", correct });
        Ok(true)
    }
}

/// Reads the lines of a file. A torn last line is cut off. If a line is none, somebody has changed the file: it is emptied, and this is false.
fn each_line<T: DeserializeOwned>(mut file: &File, mut each: impl FnMut(T)) -> std::io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut whole, mut line, mut believed) = (0u64, Vec::new(), true);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        match serde_json::from_slice(&line) {
            Ok(read) => each(read),
            Err(_) => {
                (believed, whole) = (false, 0);
                break;
            }
        }
        whole += read as u64;
    }
    if file.metadata()?.len() != whole {
        file.set_len(whole)?;
    }
    Ok(believed)
}

/// Replaces a file as a whole: whoever reads it sees the old one or the new one.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let failed = |error: std::io::Error| unwritable(dir, &error);
    let new = dir.join(format!(".{name}.new"));
    let mut file = File::create(&new).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&new, dir.join(name)).map_err(failed)
}

pub(crate) fn unwritable(dir: &Path, error: &std::io::Error) -> Error {
    let message = format!("the folder {} of the evolution can't be written: {error}", dir.display());
    Error::environment("V-15", "out-unwritable", &message)
        .help("nothing is lost: the runs are recorded; make room or name another folder with --out, and give the command again")
}

pub(crate) fn of_another(dir: &Path, of: &str) -> Error {
    let message = format!("{} is the folder of {of}", dir.display());
    Error::usage("V-15", "out-of-another", &message).help("name another folder with --out")
}

fn not_ours(dir: &Path) -> Error {
    let message = format!("{} has a {PREDICTIONS} that is of no evolution of this data set", dir.display());
    Error::usage("V-15", "out-of-another", &message).help("name another folder with --out")
}
