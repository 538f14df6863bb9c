//! What tools need: Python, uv, isolation; and the tools themselves.

use super::{Report, Verdict, settings};
use crate::ui::Ui;
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::library;
use selvedge_host::options::RunOptions;
use selvedge_host::places;
use selvedge_host::text::counted;
use selvedge_sandbox::isolation::{Layer, Missing};
use selvedge_tools::Catalogue;
use selvedge_tools::python::environment::{Stored, stored};
use selvedge_tools::python::interpreter::{self, OLDEST};
use std::path::{Path, PathBuf};

/// Names of tools that a line shows.
const NAMES: usize = 20;

/// Looks at what tools need, and reads the configured ones; nothing of theirs is run or installed.
pub(super) async fn look(chosen: &RunOptions, config: &Config, state: Option<&Path>, report: &mut Report) {
    let folders: Vec<&PathBuf> = chosen.tools.iter().chain(&config.tool_dirs).collect();
    let cache = places::shared_cache(&config.environment, state.unwrap_or(Path::new(".")));
    let asked_for = config.environment.path("SELVEDGE_PYTHON").or_else(|| config.python.clone());
    let needed = asked_for.is_some() || !folders.is_empty();
    // A folder that can't be made keeps nothing: only what is there is looked at.
    let python =
        interpreter::find(asked_for.as_deref(), Path::new("/dev/null/none"), config.environment.process())
            .await;
    match &python {
        Ok(found) => {
            let (major, minor) = found.version;
            report.add("python", Verdict::Ok, format!("{major}.{minor} at {}", found.path.display()));
        }
        Err(error) => {
            let verdict = if needed { Verdict::Broken } else { Verdict::Missing };
            report.add("python", verdict, error.message.as_str());
            let (major, minor) = OLDEST;
            report.help(format!("install Python {major}.{minor} or newer, or name one with SELVEDGE_PYTHON"));
        }
    }
    uv(&cache, python.is_ok(), report);
    environments(&cache, report);
    isolation(config, report).await;
    let kept = state.and_then(|state| library::count(state).ok()).unwrap_or_default();
    match kept {
        0 => {}
        1 => report.add("library", Verdict::Ok, "1 tool; `selvedge tools list` has it"),
        many => report.add("library", Verdict::Ok, format!("{many} tools; `selvedge tools list` has them")),
    }
    if folders.is_empty() && config.commands.is_empty() {
        if kept == 0 {
            report.add("tools", Verdict::Missing, "none configured besides the built-in ones");
            report.help("name folders in [tools] dirs, or with --tools DIR");
        }
        return;
    }
    // Without Python, each file would say once more that there is none.
    if folders.is_empty() || python.is_ok() {
        tools(chosen, config, report).await;
    }
}

fn uv(cache: &Path, python: bool, report: &mut Report) {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&search).filter(|folder| folder.is_absolute()).map(|folder| folder.join("uv"));
    let runs =
        |file: &PathBuf| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    match on_path.chain([cache.join("uv/bin/uv")]).find(runs) {
        Some(found) => report.add("uv", Verdict::Ok, found.display().to_string()),
        None if python => {
            report.add(
                "uv",
                Verdict::Missing,
                "not here: it is fetched from PyPI when a Python tool first needs it",
            );
            report.help("install uv beforehand where PyPI can't be reached");
        }
        None => {
            report.add("uv", Verdict::Missing, "not here, and without Python it can't be fetched");
            report.help("install Python or uv");
        }
    }
}

/// what is kept for Python tools.
fn environments(cache: &Path, report: &mut Report) {
    let Stored { count, bytes } = stored(cache);
    if count > 0 {
        let mib = bytes.div_ceil(1 << 20);
        report.add(
            "environments",
            Verdict::Ok,
            format!("{count} of Python tools, {mib} MiB, in {}", cache.display()),
        );
    }
}

/// which layers of isolation work, tried now, and what the missing ones would hold.
async fn isolation(config: &Config, report: &mut Report) {
    let isolation = selvedge_host::tools::isolation(&config.environment);
    let found = isolation.found().await;
    if !found.held.is_empty() {
        let held: Vec<_> = found.held.iter().map(|layer| layer.name()).collect();
        report.add(
            "isolation",
            Verdict::Ok,
            format!("Python tools, `python` and `shell`: {}", held.join(", ")),
        );
    }
    for Missing { layer, why } in &found.missing {
        let message = format!("the layer `{layer}` is missing: {why}. It keeps tools from {}", layer.holds());
        report.add("isolation", Verdict::Warning, message);
        report.help(match layer {
            Layer::Namespaces => {
                "install bubblewrap and allow it to make namespaces; --require-isolation refuses to run"
            }
            _ => "run only tools that you trust; --require-isolation refuses to run",
        });
    }
    for Missing { layer, why } in &found.optional {
        let message =
            format!("the optional layer `{layer}` is missing: {why}. It keeps tools from {}", layer.holds());
        report.add("isolation", Verdict::Missing, message);
        report.help(match layer {
            Layer::Cgroups => {
                "start selvedge alone in a control group: systemd-run --user --scope -p Delegate=yes selvedge …"
            }
            _ => "the other layers hold without it",
        });
    }
    if let (true, Some(why)) = (found.enforced(), &found.warm) {
        report.add("isolation", Verdict::Warning, format!("each call starts an interpreter: {why}"));
    }
}

async fn tools(chosen: &RunOptions, config: &Config, report: &mut Report) {
    // What is kept about tools belongs to runs; the state folder stays as it is.
    let scratch = match tempfile::tempdir() {
        Ok(scratch) => scratch,
        Err(error) => {
            report.add("tools", Verdict::Broken, format!("there is no place for temporary files: {error}"));
            return report.help("set TMPDIR to a folder that can be written");
        }
    };
    let quiet = Ui { quiet: true, environment: config.environment.clone(), ..Ui::default() };
    let here = config.environment.cwd().to_owned();
    let catalogue =
        match selvedge_host::tools::catalogue(chosen, config, scratch.path(), &here, &quiet.observer()).await
        {
            Ok(catalogue) => catalogue,
            Err(Error { diagnostics, .. }) => {
                return diagnostics.iter().for_each(|found| settings::finding(found, "tools", report));
            }
        };
    let own: Vec<&str> =
        catalogue.names().map(|name| &**name).filter(|name| is_own(&catalogue, name)).collect();
    let mut names = own.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
    if own.len() > NAMES {
        names.push_str(&format!(" and {} more", own.len() - NAMES));
    }
    match own.len() {
        0 => report.add("tools", Verdict::Warning, "the configured folders hold no tool"),
        count => report.add("tools", Verdict::Ok, format!("{}: {names}", counted(count, "tool"))),
    }
    selvedge_host::tools::broken(&catalogue, std::iter::empty())
        .1
        .iter()
        .for_each(|found| settings::finding(found, "tools", report));
    for warning in catalogue.warnings().iter().filter(|warning| &*warning.code != "tool-left-out") {
        report.add("tools", Verdict::Warning, warning.message.as_str());
    }
    for refusal in own.iter().filter_map(|name| catalogue.refusal(name)) {
        report.add("tools", Verdict::Warning, refusal.message);
        report.help(refusal.help);
    }
}

/// Whether a tool is no built-in one; a Python tool whose schema nobody asked for yet has no definition.
fn is_own(catalogue: &Catalogue, name: &str) -> bool {
    catalogue.def(name).is_none_or(|def| &*def.source != "built-in")
}
