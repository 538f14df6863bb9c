//! What tools are worth (V-13): the same tasks with the library and without a tool, or with two libraries, compared by pairs.
//!
//! Each way to do them is an *arm*: an evolution whose library stays as it is, in a state folder of its own. So its tasks are the runs that those
//! of every evolution are, nothing of them is learnt, and the library that is judged is not changed by that.

use crate::dataset::DataSet;
use crate::evolution::{Evolution, LIBRARY, Prepared, left};
use crate::key::Key;
use crate::projections::{of_another, replace};
use crate::standing::{Heard, Stopped, Summary};
use selvedge_engine::library::{Library, Place};
use selvedge_host::evolve::statistics::{Comparison, Pair, compare};
use selvedge_host::library::import::Meeting;
use selvedge_host::library::{self, export};
use selvedge_host::{Error, Host, RunOptions, WayOut};
use selvedge_runtime::Stop;
use selvedge_store::{BlobHash, DriverLock};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What says of which evaluation a folder is.
const MARK: &str = "evaluation.json";

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// The library as it is, and without each of these tools.
    Without(Vec<String>),
    /// Two folders of tools.
    Libraries(PathBuf, PathBuf),
}

/// An evaluation that may begin.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Its tasks, and how they are done. Its library is not optimised, whatever this says.
    pub evolution: Evolution,
    /// What is compared.
    pub compared: Compared,
}

/// The mark of a folder.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    data_set: PathBuf,
    compared: Compared,
}

/// Which predictions are right, by task; a task that is not scored is not there.
pub(crate) type Scores = BTreeMap<Key, (String, bool)>;

/// A way in which the tasks were done.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Its name, which is that of its folder.
    pub name: String,
    /// What it came to.
    pub summary: Summary,
}

/// A tool, or one library before the other, and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The tool; of two libraries the first one.
    pub name: String,
    /// The arms with it and without it, or with the one and the other.
    pub arms: [String; 2],
    /// How they compare; nothing where no task is scored.
    pub comparison: Option<Comparison>,
    /// Tasks that are right with it only.
    pub better: Vec<String>,
    /// Tasks that are right without it only.
    pub worse: Vec<String>,
}

/// What an evaluation came to.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The arms that were begun.
    pub arms: Vec<Arm>,
    /// One for each tool, or one; nothing if it has stopped before the end.
    pub differences: Vec<Difference>,
    /// Where all of it is.
    pub out: PathBuf,
    /// Why it has stopped before the end, if it has.
    pub stopped: Option<Stopped>,
}

/// An evaluation whose arms are ready, and which nobody else goes on with.
pub struct Evaluating {
    out: PathBuf,
    compared: Compared,
    arms: Vec<(String, Prepared)>,
    _lock: DriverLock,
}

impl Evaluation {
    /// Gives each arm its library and finds what the tasks need. An arm that has its library already keeps it: an evaluation that goes on judges what
    /// it began with.
    ///
    /// # Errors
    /// A tool or folder is not there, the folder is of something else, another process goes on with this evaluation, or whatever an agent could not
    /// begin with.
    pub async fn prepare(self, host: &Host) -> Result<Evaluating, Error> {
        let (open, store) = host.in_open_store()?;
        let id = self.id(&open)?;
        let lock = store.drive(&id).map_err(|error| {
            Error::from(error)
                .help("wait for the end of the process that evaluates the same, or stop it there")
        })?;
        let out = match &self.evolution.out {
            Some(out) => host.environment.absolute(out),
            None => host.state_dir()?.join("evaluations").join(&id),
        };
        self.mark(&out)?;
        let mut arms = Vec::new();
        for (name, library) in self.libraries() {
            let dir = out.join(&name);
            let host = host.clone().in_state_dir(Some(&dir.join("state")));
            if library::count(&host.state_dir()?)? == 0 {
                self.give(&open, &host, &dir, library).await?;
            }
            let evolution = Evolution { out: Some(dir), optimise: None, ..self.evolution.clone() };
            arms.push((name, evolution.prepare(&host).await?));
        }
        Ok(Evaluating { out, compared: self.compared, arms, _lock: lock })
    }

    /// The same data set, compared in the same way, into the same folder goes on.
    fn id(&self, host: &Host) -> Result<String, Error> {
        let out = self.evolution.out.as_ref().map(|out| host.environment.absolute(out));
        let of = json!([self.evolution.data_set.path(), out, self.compared]);
        let hash = BlobHash::of(of.to_string().as_bytes()).to_string();
        Ok(format!("eval{}", hash.get(..8).unwrap_or(&hash)))
    }

    fn mark(&self, out: &Path) -> Result<(), Error> {
        let data_set: &DataSet = &self.evolution.data_set;
        let mark = Mark { data_set: data_set.path().to_owned(), compared: self.compared.clone() };
        match std::fs::read(out.join(MARK)) {
            Ok(bytes) if serde_json::from_slice::<Mark>(&bytes).is_ok_and(|found| found == mark) => Ok(()),
            Ok(_) => Err(of_another(out, "another evaluation")),
            Err(_) if out.join(crate::projections::MARK).exists() => Err(of_another(out, "an evolution")),
            Err(_) => {
                std::fs::create_dir_all(out).map_err(|error| crate::projections::unwritable(out, &error))?;
                replace(out, MARK, format!("{:#}\n", json!(mark)).as_bytes())
            }
        }
    }

    /// The arms, each with its library.
    fn libraries(&self) -> Vec<(String, Of<'_>)> {
        match &self.compared {
            Compared::Without(tools) => {
                let without = tools.iter().map(|tool| (without(tool), Of::Without(tool)));
                std::iter::once(("with".to_owned(), Of::All)).chain(without).collect()
            }
            Compared::Libraries(a, b) => {
                vec![("a".to_owned(), Of::Folder(a)), ("b".to_owned(), Of::Folder(b))]
            }
        }
    }

    /// Gives an arm its library.
    async fn give(&self, from: &Host, host: &Host, dir: &Path, of: Of<'_>) -> Result<(), Error> {
        let own = dir.join(LIBRARY);
        let folder = match of {
            Of::Folder(folder) => folder,
            Of::All | Of::Without(_) => {
                let (store, library) = library::open(&from.state_dir()?)?;
                let left_out = match of {
                    Of::Without(tool) => Some(in_use(&library, tool)?),
                    _ => None,
                };
                export::replace(&own, (store.as_ref(), &library), |name| left_out.as_deref() != Some(name))?;
                &own
            }
        };
        let options = RunOptions { tools: Vec::new(), ..self.evolution.options.clone() };
        host.check(options)?.import(folder, Meeting::GoesOn).await.map(drop)
    }
}

/// Which tools an arm has.
#[derive(Clone, Copy)]
enum Of<'e> {
    All,
    Without(&'e str),
    Folder(&'e Path),
}

fn without(tool: &str) -> String {
    format!("without-{tool}")
}

/// The name of a public tool, which another name may lead to.
fn in_use(library: &Library, tool: &str) -> Result<Arc<str>, Error> {
    let name = library.resolve(tool);
    if library.head(&Place::Library, name).is_some() {
        return Ok(name.into());
    }
    library::of_name(library, tool)?;
    let message = format!("`{tool}` is not in use: nothing would be different without it");
    Err(Error::usage("V-13", "tool-not-public", &message)
        .help(&format!("`{}` says what became of it", WayOut::ToolVersions(tool))))
}

impl Evaluating {
    /// The arms, with what their tasks are run with.
    pub fn arms(&self) -> impl Iterator<Item = &Prepared> {
        self.arms.iter().map(|(_, arm)| arm)
    }

    /// Does the tasks in each arm, one after the other, or goes on with that, and compares.
    ///
    /// # Errors
    /// Those of an evolution.
    pub async fn go(&mut self, heard: &Arc<dyn Heard>, stop: &Stop) -> Result<Evaluated, Error> {
        let (mut arms, mut scores): (Vec<Arm>, BTreeMap<String, Scores>) = (Vec::new(), BTreeMap::new());
        let mut stopped = None;
        for (name, arm) in &mut self.arms {
            let totals = arms.iter().filter_map(|arm: &Arm| arm.summary.measures.as_ref());
            let used = totals.flat_map(|measures| measures.total.roles.values());
            // The budget is that of all arms together.
            let Some(budget) = left(arm.evolution().options.budget, used) else {
                stopped = Some(Stopped::Budget);
                break;
            };
            arm.cap(budget);
            heard.arm(name);
            let (summary, meant) = arm.gone(heard, stop).await?;
            stopped.clone_from(&summary.stopped);
            arms.push(Arm { name: name.clone(), summary });
            if stopped.is_some() {
                break;
            }
            scores.insert(name.clone(), arm.scores(&meant)?);
        }
        let differences = if stopped.is_none() { self.compared.differences(&scores) } else { Vec::new() };
        Ok(Evaluated { arms, differences, out: self.out.clone(), stopped })
    }
}

impl Compared {
    fn differences(&self, scores: &BTreeMap<String, Scores>) -> Vec<Difference> {
        let of = |name: String, arms: [String; 2]| {
            let [with, without] = arms.each_ref().map(|arm| scores.get(arm));
            difference(name, arms, with.zip(without))
        };
        match self {
            Self::Without(tools) => {
                tools.iter().map(|tool| of(tool.clone(), ["with".to_owned(), without(tool)])).collect()
            }
            Self::Libraries(a, _) => {
                vec![of(a.display().to_string(), ["a".to_owned(), "b".to_owned()])]
            }
        }
    }
}

/// Compares two arms by the tasks that are scored in both.
fn difference(name: String, arms: [String; 2], scores: Option<(&Scores, &Scores)>) -> Difference {
    let (mut pairs, mut better, mut worse) = (Vec::new(), Vec::new(), Vec::new());
    for (key, (task, with)) in scores.iter().flat_map(|(with, _)| with.iter()) {
        let Some((_, without)) = scores.and_then(|(_, without)| without.get(key)) else { continue };
        pairs.push(Pair { with: f64::from(u8::from(*with)), without: f64::from(u8::from(*without)) });
        match (with, without) {
            (true, false) => better.push(task.clone()),
            (false, true) => worse.push(task.clone()),
            _ => {}
        }
    }
    better.sort_unstable();
    worse.sort_unstable();
    Difference { name, arms, comparison: compare(&pairs), better, worse }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_host::evolve::statistics::Verdict;

    fn scores(right: impl Iterator<Item = (u64, bool)>) -> Scores {
        right.map(|(n, right)| (Key::from_number(n), (format!("t{n}"), right))).collect()
    }

    /// V-13: only tasks that both arms have count, and which of them differ is told.
    #[test]
    fn v13_arms_are_compared_by_the_tasks_of_both() {
        let with = scores((1..=20).map(|n| (n, n != 3)));
        let without = scores((1..=18).map(|n| (n, n > 9)));
        let arms = BTreeMap::from([("with".to_owned(), with), ("without-t".to_owned(), without)]);
        let found = &Compared::Without(vec!["t".to_owned()]).differences(&arms)[0];
        let comparison = found.comparison.unwrap();
        assert_eq!((comparison.tasks, comparison.verdict), (18, Verdict::Keeps));
        assert_eq!((found.better.len(), found.worse.len(), &*found.better[0]), (8, 0, "t1"));
        // The other way round it harms.
        let turned = BTreeMap::from([
            ("a".to_owned(), arms["without-t"].clone()),
            ("b".to_owned(), arms["with"].clone()),
        ]);
        let found = &Compared::Libraries("x".into(), "y".into()).differences(&turned)[0];
        assert_eq!(found.comparison.map(|found| found.verdict), Some(Verdict::Harmful));
        assert_eq!((found.better.len(), found.worse.len()), (0, 8));
        // Nothing that is scored says nothing.
        let none = BTreeMap::from([("a".to_owned(), Scores::new()), ("b".to_owned(), Scores::new())]);
        assert_eq!(Compared::Libraries("x".into(), "y".into()).differences(&none)[0].comparison, None);
    }
}
