//! What a process printed, for whoever keeps that, and whoever watches (E-15).

use selvedge_runtime::ports::{Delta, Stream, Watch};
use selvedge_sandbox::process::{self, Finished, TAIL};
use std::sync::Arc;

const _: () = assert!(TAIL >= Stream::MOST, "what is kept of a stream is what may be handed on");

/// What it printed beside its answer: the ends of stdout and stderr.
pub(crate) fn printing(finished: &Finished) -> [Stream; 2] {
    [end(&finished.printed.bytes, finished.printed.lost), end(&finished.stderr, finished.stderr_lost)]
}

/// What it printed, of a process whose output is no use: the ends of stdout and stderr.
pub(crate) fn output_printed(finished: &Finished) -> [Stream; 2] {
    [end(&finished.stdout, 0), end(&finished.stderr, finished.stderr_lost)]
}

/// The lines of a process as progress of its call.
pub(crate) fn progress(watch: Watch) -> process::Watch {
    Arc::new(move |line| watch(Delta::Progress(line.to_owned())))
}

/// The end of a stream of these bytes, before which others were lost.
fn end(bytes: &[u8], lost: u64) -> Stream {
    let from = bytes.len().saturating_sub(Stream::MOST);
    let text = String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned();
    Stream { text, lost: lost.saturating_add(from as u64) }
}
