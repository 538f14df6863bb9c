//! Configuration files and variables.

use super::{Report, Verdict};
use crate::inspect::config_files;
use crate::ui::Ui;
use selvedge_dialects::steps::Siblings;
use selvedge_dialects::{Diagnostic, Severity};
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::environment::VARIABLES;
use selvedge_host::options::RunOptions;
use selvedge_host::trust::Gate;

/// Reads everything that configures; what is wrong is reported, and the rest counts.
pub(super) fn look(gate: Gate, ui: &Ui, report: &mut Report) -> (Config, RunOptions) {
    let mut config = Config::new(&ui.environment);
    let files = config_files(&ui.environment);
    if files.all().next().is_none() {
        report.add("config", Verdict::Missing, "no configuration file: the defaults hold");
        report.help("write a selvedge.toml to configure models and tools");
    }
    for file in files.all() {
        let mut with = config.clone();
        let added = match files.project.as_ref() == Some(file) {
            true => with.add_project(file, gate, ui),
            false => with.add(file).map(|added| added.findings),
        };
        match added {
            Ok(warnings) => {
                config = with;
                report.add("config", Verdict::Ok, file.display().to_string());
                warnings.iter().for_each(|warning| finding(warning, "config", report));
            }
            Err(failure) => findings(&failure, "config", report),
        }
    }
    let chosen = selvedge_host::options::from_variables(&ui.environment).unwrap_or_else(|failure| {
        findings(&failure, "variables", report);
        RunOptions::default()
    });
    if let Some(off) = &config.off {
        finding(&off.untrusted.finding(), "trust", report);
    }
    recovery(&config, report);
    variables(report);
    (Config { files, ..config }, chosen)
}

/// What `[recovery]` sets (D-19, D-23); nothing where the defaults hold.
fn recovery(config: &Config, report: &mut Report) {
    let set = &config.recovery;
    let siblings = set.siblings.and_then(|chosen| Siblings::NAMES.into_iter().find(|(_, s)| *s == chosen));
    let values = [
        ("model", set.model.map(|model| model.to_string())),
        ("siblings", siblings.map(|(name, _)| name.to_owned())),
        ("retries", set.retries.map(|count| count.to_string())),
        ("repairs", set.repairs.map(|count| count.to_string())),
        ("replans", set.replans.map(|count| count.to_string())),
        ("consecutive_failures", set.consecutive_failures.map(|count| count.to_string())),
        ("reflections", set.reflections.map(|count| count.to_string())),
    ];
    let values: Vec<String> =
        values.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?))).collect();
    if !values.is_empty() {
        let message =
            format!("of steps that fail, where their task says nothing else: {}", values.join(", "));
        report.add("recovery", Verdict::Ok, message);
    }
}

fn findings(failure: &Error, check: &'static str, report: &mut Report) {
    failure.diagnostics.iter().for_each(|diagnostic| finding(diagnostic, check, report));
}

/// A finding with its place.
pub(super) fn finding(diagnostic: &Diagnostic, check: &'static str, report: &mut Report) {
    let verdict = match diagnostic.severity {
        Severity::Error => Verdict::Broken,
        Severity::Warning => Verdict::Warning,
    };
    let place = match (diagnostic.line, diagnostic.column) {
        _ if diagnostic.file.is_empty() => String::new(),
        (Some(line), Some(column)) => format!("{}:{line}:{column}: ", diagnostic.file),
        _ => format!("{}: ", diagnostic.file),
    };
    report.add(check, verdict, format!("{place}{}", diagnostic.message));
    report.help(match (verdict, diagnostic.help.as_str()) {
        (Verdict::Broken, "") => "correct it, or leave it out",
        (_, help) => help,
    });
}

/// Which variables are set, never their values (C-06); one that nobody reads is probably misspelt.
fn variables(report: &mut Report) {
    let known = |name: &str| VARIABLES.iter().any(|(known, _)| *known == name);
    let set: Vec<&str> = VARIABLES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    if !set.is_empty() {
        report.add("variables", Verdict::Ok, format!("set: {}", set.join(", ")));
    }
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| name.starts_with("SELVEDGE_") && !known(name)) {
        report.add("variables", Verdict::Warning, format!("{name} is set, and nothing reads it"));
        report.help("selvedge help environment lists the variables");
    }
}
