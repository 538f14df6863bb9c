//! From the options of the command line to what a run is started with (C-01, C-10).

use crate::args::{Exec, Grants, Sources};
use selvedge_host::config::not_a_variable;
use selvedge_host::options::{
    base_url, budget, from_variables, input_texts, number_text, seconds, there, tools_there,
};
use selvedge_host::{Environment, Error, RunOptions};
use std::path::PathBuf;

/// What the options of a command choose; relative paths start at the current folder.
pub(crate) fn from_options(environment: &Environment, exec: &Exec) -> Result<RunOptions, Error> {
    let mut chosen = RunOptions {
        plan: exec.plan.clone(),
        dialect: exec.dialect.clone(),
        base_url: exec.base_url.as_deref().map(|url| base_url(url, "--base-url")).transpose()?,
        script: exec.script.as_deref().map(|path| environment.absolute(path)),
        require_isolation: exec.require_isolation,
        sequential: exec.sequential,
        max_parallel: exec.max_parallel,
        ..from_sources(environment, &exec.from)?
    };
    for model in &exec.model {
        chosen.add_model(model, "--model")?;
    }
    if let Some(text) = &exec.budget {
        chosen.budget = budget(text, "--budget")?;
    }
    if let Some(given) = exec.timeout {
        chosen.timeout_s = Some(seconds(Some(given), &number_text(given), "--timeout")?);
    }
    Ok(chosen)
}

/// The same of those about tools.
fn from_sources(environment: &Environment, from: &Sources) -> Result<RunOptions, Error> {
    let all = |paths: &[PathBuf]| paths.iter().map(|path| environment.absolute(path)).collect();
    let Grants { allow_read, allow_write, allow_network, allow_env } = &from.grants;
    // What is to be written may come into being later; what is to be read must be there (C-12).
    if let Some(path) = allow_read.iter().find(|path| !path.exists()) {
        let message = format!("`--allow-read`: there is no {}", path.display());
        return Err(Error::usage("C-12", "file-not-found", &message)
            .help("check the path; relative paths start at the current folder"));
    }
    if let Some(why) = allow_env.iter().find_map(|name| not_a_variable(environment, name)) {
        // What stands there may be the key itself: it is not shown (C-06).
        let message = format!("`--allow-env` takes the name of a variable, and what stands there {why}");
        return Err(Error::usage("C-06", "bad-variable-name", &message)
            .help("write --allow-env NAME, and set the variable NAME to the key"));
    }
    Ok(RunOptions {
        tools: all(&from.tools),
        mcp: from.mcp.as_deref().map(|path| environment.absolute(path)),
        allow_read: all(allow_read),
        allow_write: all(allow_write),
        allow_network: allow_network.unwrap_or_default(),
        allow_env: allow_env.clone(),
        ..RunOptions::default()
    })
}

/// Options over variables, to look at documents and tools in the current folder (C-10).
pub(crate) fn for_reading(environment: &Environment, from: &Sources) -> Result<RunOptions, Error> {
    let mut chosen = from_variables(environment)?.under(from_sources(environment, from)?);
    tools_there(&chosen, !from.tools.is_empty())?;
    chosen.cwd = environment.cwd().to_owned();
    Ok(chosen)
}

/// Options over variables, for a new run (C-06).
pub(crate) fn for_run(environment: &Environment, exec: &Exec) -> Result<RunOptions, Error> {
    let mut chosen = from_variables(environment)?.under(from_options(environment, exec)?);
    there(&chosen, exec.script.is_some(), !exec.from.tools.is_empty())?;
    chosen.cwd = environment.cwd().to_owned();
    chosen.input_texts = input_texts(&exec.input)?;
    chosen.recordable()
}

/// Options over what the run was started with (C-10).
pub(crate) fn for_resume(environment: &Environment, exec: &Exec) -> Result<RunOptions, Error> {
    for (given, option) in [
        (exec.plan.is_some(), "--plan"),
        (exec.dialect.is_some(), "--dialect"),
        (!exec.input.is_empty(), "--input"),
        (exec.run_id.is_some(), "--run-id"),
    ] {
        if given {
            let message =
                format!("`{option}` belongs to the beginning of a run: it can't change in the middle");
            return Err(Error::usage("C-10", "option-of-run", &message).help(
                "start a new run with it (`selvedge run`, or `selvedge fork` of this one), or leave it out",
            ));
        }
    }
    from_options(environment, exec)
}

/// Options over what the source was started with (C-10, C-13). Which plan and dialect belongs to a document.
pub(crate) fn for_fork(environment: &Environment, exec: &Exec, document: bool) -> Result<RunOptions, Error> {
    for (given, option) in [(exec.plan.is_some(), "--plan"), (exec.dialect.is_some(), "--dialect")] {
        if given && !document {
            let message = format!("`{option}` says how to read a document, and there is no `--document`");
            return Err(Error::usage("C-13", "option-of-run", &message)
                .help("name the document, or leave the option out"));
        }
    }
    Ok(RunOptions { input_texts: input_texts(&exec.input)?, ..from_options(environment, exec)? })
}

#[cfg(test)]
mod tests;
