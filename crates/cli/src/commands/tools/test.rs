//! `selvedge tools test`: recorded calls, repeated.

use super::args::TestArgs;
use crate::args::{Common, Sources};
use crate::block_on::block_on;
use crate::commands::check;
use crate::failure::Exit;
use crate::inspect::page::{BOLD, DIM, Page, RED, Table, YELLOW};
use crate::signals::Signals;
use crate::ui::Ui;
use selvedge_engine::library::{Change, Command, Library, Report, Sample};
use selvedge_host::Error;
use selvedge_host::library::replay::{Against, Repeating, Verdict, folder_of};
use selvedge_host::library::samples;
use selvedge_host::library::{self, Decided, short};
use selvedge_host::text::counted;
use selvedge_store::{Mode, Store};
use selvedge_tools::Catalogue;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tests that take longer than this say how far they are.
const SILENCE: Duration = Duration::from_secs(2);
/// Reasons of failures that the library keeps, and how long each may be.
const REASONS: (usize, usize) = (10, 300);

/// How many characters of a call's arguments are shown.
const ARGUMENTS: usize = 2_000;

/// One tool and what is known of how it behaves.
struct Subject {
    name: String,
    version: Arc<str>,
    /// Calls, each with the folder that its relative paths start at.
    samples: Vec<(PathBuf, Sample)>,
    /// Calls that are too large to be kept or repeated.
    left_out: u32,
}

/// What came of a tool's calls, in their order.
struct Tested {
    subject: Subject,
    verdicts: Vec<Verdict>,
}

impl Tested {
    fn count(&self, of: fn(&Verdict) -> bool) -> u32 {
        u32::try_from(self.verdicts.iter().filter(|verdict| of(verdict)).count()).unwrap_or(u32::MAX)
    }

    fn report(&self) -> Report {
        let reasons = self.verdicts.iter().filter_map(|verdict| match verdict {
            Verdict::Failed(why) => Some(selvedge_host::text::one_line(why, REASONS.1)),
            _ => None,
        });
        let left_out = (self.subject.left_out > 0).then(|| format!("not repeated: {}", library::TOO_LARGE));
        Report {
            passed: self.count(|verdict| *verdict == Verdict::Passed),
            failed: self.count(|verdict| matches!(verdict, Verdict::Failed(_))),
            skipped: self.count(|verdict| matches!(verdict, Verdict::Skipped(_))) + self.subject.left_out,
            reasons: reasons.chain(left_out).take(REASONS.0).collect(),
        }
    }
}

/// Tests tools.
pub(super) fn test(args: &TestArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let ui = &ui.guarded();
    let from = Sources { grants: args.grants.clone(), ..Sources::default() };
    let check = check::of_tools(&from, common, ui)?;
    let (store, library) = library::open(&check.state_dir)?;
    let here = ui.environment.absolute(Path::new("."));
    let folder = args.dir.as_deref().map(|path| ui.environment.absolute(path));
    if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
        let message = format!("`--dir`: there is no folder {}", folder.display());
        return Err(Error::usage("C-12", "file-not-found", &message).help("check the path"));
    }
    let mut config = check.settings(folder.as_deref().unwrap_or(&here))?;
    // Only the library's, or the folder's: a file of the same name is another tool.
    (config.tool_dirs, config.config_dirs, config.commands) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(folder) = &folder {
        (config.tool_dirs, config.library) = (vec![folder.clone()], None);
    }
    let mut repeating = Repeating::new(config);
    let tested = block_on(0, async {
        let signals = Signals::listen(ui);
        let work = async {
            let catalogue = repeating.catalogue().await?;
            let subjects = match &folder {
                Some(folder) => of_folder(&catalogue, folder, &args.tool, ui)?,
                None => of_library(&library, store.as_ref(), &args.tool, &here)?,
            };
            run(&mut repeating, &catalogue, subjects, ui).await
        };
        tokio::select! {
            biased;
            () = signals.came() => Err(Error::interrupted()),
            tested = work => tested,
        }
    })??;
    if folder.is_none() {
        keep(&check.state_dir, &tested)?;
    }
    let failed = tested.iter().any(|tested| tested.report().failed > 0);
    print(&tested, ui);
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

/// The tools of a folder, or those of them that are named.
fn of_folder(catalogue: &Catalogue, folder: &Path, names: &[String], ui: &Ui) -> Result<Vec<Subject>, Error> {
    let mut subjects = Vec::new();
    let python = |name: &&Arc<str>| catalogue.metadata(name).is_some();
    let known: Vec<&Arc<str>> = catalogue.names().filter(python).collect();
    let (_, broken) = selvedge_host::tools::broken(catalogue, std::iter::empty());
    if !broken.is_empty() {
        return Err(Error::findings(selvedge_host::ErrorKind::Usage, broken));
    }
    unknown(names, |name| known.iter().any(|known| ***known == *name), &format!("in {}", folder.display()))?;
    for name in
        known.into_iter().filter(|name| names.is_empty() || names.iter().any(|named| **named == ***name))
    {
        let Some(tool) = catalogue.sketch(name) else { continue };
        let file = samples::beside(Path::new(&*tool.source));
        let lines = samples::read(&file, |line| too_large(ui, &file, line))?;
        let calls = lines.into_iter().map(|line| (folder.to_owned(), line.sample)).collect();
        let (name, version) = (name.to_string(), tool.version.clone());
        subjects.push(Subject { name, version, samples: calls, left_out: 0 });
    }
    Ok(subjects)
}

/// Says that a call is left out.
fn too_large(ui: &Ui, file: &Path, line: usize) {
    ui.note(&format!("{}: {}", ui.paint("1;33", "warning"), samples::too_large(file, line)));
}

/// The public tools of the library, or those of them that are named.
fn of_library(
    library: &Library,
    store: Option<&Store>,
    names: &[String],
    here: &Path,
) -> Result<Vec<Subject>, Error> {
    unknown(names, |name| library.public(name).is_some(), "in the library")?;
    let (mut subjects, mut room) = (Vec::new(), library::CallRoom::default());
    for (name, version) in library.offered(None) {
        let wanted = if names.is_empty() {
            library.resolve(&name) == &*name
        } else {
            names.contains(&name.to_string())
        };
        let Some(store) = store.filter(|_| wanted) else { continue };
        let (mut calls, mut left_out) = (Vec::new(), version.left_out);
        for call in &version.calls {
            match room.load(store, call)? {
                Some(sample) => calls.push((folder_of(call, here), sample)),
                None => left_out += 1,
            }
        }
        let (name, version) = (name.to_string(), Arc::clone(&version.hash));
        subjects.push(Subject { name, version, samples: calls, left_out });
    }
    Ok(subjects)
}

fn unknown(names: &[String], known: impl Fn(&str) -> bool, place: &str) -> Result<(), Error> {
    match names.iter().find(|name| !known(name)) {
        None => Ok(()),
        Some(name) => {
            Err(Error::usage("A-17", "unknown-tool", &format!("there is no tool `{name}` {place}"))
                .help("`selvedge tools list` lists the tools; `--dir DIR` takes those of a folder"))
        }
    }
}

async fn run(
    repeating: &mut Repeating,
    catalogue: &Catalogue,
    subjects: Vec<Subject>,
    ui: &Ui,
) -> Result<Vec<Tested>, Error> {
    let names: Vec<&str> =
        subjects.iter().filter(|subject| !subject.samples.is_empty()).map(|subject| &*subject.name).collect();
    catalogue.prepare(&names).await?;
    let (start, all) = (Instant::now(), subjects.len());
    let mut done = Vec::with_capacity(all);
    for subject in subjects {
        let verdicts = repeating.repeat(&subject.name, &subject.samples, &Against::Same).await?;
        done.push(Tested { subject, verdicts });
        if start.elapsed() > SILENCE && done.len() < all {
            ui.note(&format!("tested {} of {}", done.len(), counted(all, "tool")));
        }
    }
    Ok(done)
}

/// The results belong to the history of the versions.
fn keep(state: &Path, tested: &[Tested]) -> Result<(), Error> {
    let reports: Vec<(Arc<str>, Report)> = tested
        .iter()
        .filter(|tested| !tested.verdicts.is_empty() || tested.subject.left_out > 0)
        .map(|tested| (Arc::clone(&tested.subject.version), tested.report()))
        .collect();
    if reports.is_empty() {
        return Ok(());
    }
    let store = Store::open(state, Mode::ReadWrite)?;
    library::change(&store, |library| {
        let mut change = Change::new(library);
        for (version, report) in &reports {
            let command = Command::Test { version: Arc::clone(version), report: report.clone() };
            change.accept(command).map_err(|error| library::refused(&error))?;
        }
        Ok(Decided { events: change.into_events(), contents: Vec::new(), what: () })
    })
}

fn print(all: &[Tested], ui: &Ui) {
    let total = |of: fn(&Report) -> u32| all.iter().map(|tested| of(&tested.report())).sum::<u32>();
    let (passed, failed, skipped) = (total(|r| r.passed), total(|r| r.failed), total(|r| r.skipped));
    if ui.json {
        let tools: Vec<Value> = all.iter().map(object).collect();
        let object = json!({"tools": tools, "passed": passed, "failed": failed, "skipped": skipped});
        ui.result(&format!("{object}\n"));
        return;
    }
    let mut page = Page::new();
    if all.is_empty() {
        ui.note("no tools to test");
        return;
    }
    let mut table = Table::new(&["NAME", "VERSION", "PASSED", "FAILED", "SKIPPED", ""], 5);
    (table.spare, table.whole) = (vec![1], vec![2, 3, 4]);
    for tested in all {
        let Report { passed, failed, skipped, .. } = tested.report();
        let remark = match tested.subject.left_out {
            0 if tested.verdicts.is_empty() => "no recorded calls".to_owned(),
            0 => String::new(),
            calls => format!("{calls} too large"),
        };
        table.row([
            (tested.subject.name.clone(), BOLD),
            (short(&tested.subject.version).to_owned(), DIM),
            (passed.to_string(), ""),
            (failed.to_string(), if failed > 0 { RED } else { "" }),
            (skipped.to_string(), if skipped > 0 { YELLOW } else { "" }),
            (remark, DIM),
        ]);
    }
    page.table(&table);
    for tested in all {
        for (n, (verdict, (_, sample))) in tested.verdicts.iter().zip(&tested.subject.samples).enumerate() {
            let (word, style, why) = match verdict {
                Verdict::Passed => continue,
                Verdict::Failed(why) | Verdict::Unsure(why, _) => ("failed", RED, why),
                Verdict::Skipped(why) => ("skipped", YELLOW, why),
            };
            let note = sample.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            page.gap();
            let label = format!("{word}  {} call {}{note}", tested.subject.name, n + 1);
            let label = page.paint(style, &crate::inspect::page::clean(&label));
            page.line(&label);
            let arguments = selvedge_host::text::one_line(&sample.arguments.to_string(), ARGUMENTS);
            page.labelled("", "", 2, &format!("arguments {arguments}"), 2);
            page.labelled("", "", 2, why, 6);
        }
    }
    page.gap();
    let tools = counted(all.len(), "tool");
    page.line(&format!("{tools}: {passed} passed, {failed} failed, {skipped} skipped"));
    page.print(ui);
}

fn object(tested: &Tested) -> Value {
    let Report { passed, failed, skipped, .. } = tested.report();
    let call = |(verdict, (_, sample)): (&Verdict, &(PathBuf, Sample))| {
        let (result, why) = match verdict {
            Verdict::Passed => ("passed", None),
            Verdict::Failed(why) | Verdict::Unsure(why, _) => ("failed", Some(why)),
            Verdict::Skipped(why) => ("skipped", Some(why)),
        };
        json!({"result": result, "why": why, "note": sample.note, "arguments": sample.arguments})
    };
    json!({
        "name": tested.subject.name,
        "version": tested.subject.version,
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "calls": tested.verdicts.iter().zip(&tested.subject.samples).map(call).collect::<Vec<_>>(),
    })
}
