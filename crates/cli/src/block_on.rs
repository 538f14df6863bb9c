//! Async code, run to its end by a command.

use selvedge_host::Error;
use selvedge_host::text::one_line;
use selvedge_sandbox::process::finish_dropped_calls;
use selvedge_tools::leftovers::of_a_dropped_call;
use std::future::Future;
use std::time::Duration;

/// Documents of at least so many bytes get more than one thread; smaller ones start faster without.
const LARGE_DOCUMENT: usize = 64 * 1024;

/// How long the end of a process waits until what interrupted tools have made is looked through.
const LOOK_THROUGH: Duration = Duration::from_secs(30);

/// Runs async code to its end. A run waits more than it computes, so one thread is enough for all but large
/// documents.
pub(crate) fn block_on<T>(document_bytes: usize, work: impl Future<Output = T>) -> Result<T, Error> {
    let builder = match document_bytes >= LARGE_DOCUMENT {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    run(builder, work)
}

/// Runs what serves many at the same time to its end.
pub(crate) fn serving<T>(work: impl Future<Output = T>) -> Result<T, Error> {
    run(tokio::runtime::Builder::new_multi_thread(), work)
}

fn run<T>(mut builder: tokio::runtime::Builder, work: impl Future<Output = T>) -> Result<T, Error> {
    let runtime = builder.enable_all().build().map_err(|error| {
        Error::environment("C-03", "no-runtime", &format!("the system refuses what a run needs: {error}"))
            .help("raise the limits on threads and open files")
    })?;
    let result = runtime.block_on(work);
    // What still runs in the background (a signal handler, a slow look-up) must not delay the exit; what tools have left whose
    // calls were dropped must.
    runtime.shutdown_background();
    for made in finish_dropped_calls(LOOK_THROUGH) {
        crate::ui::stderr(&format!("warning: {}\n", one_line(&of_a_dropped_call(&made), usize::MAX)));
    }
    Ok(result)
}
