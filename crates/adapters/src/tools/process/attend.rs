//! Feeding a process, reading it and ending it in time (E-12, E-13).

use super::collect::{Collected, Keep, Lines, collect};
use super::{DRAIN, End, Finished, Made, Room};
use selvedge_runtime::ports::Watch;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout_at};

/// How long a process may stay after it has closed its result.
const LINGER: Duration = Duration::from_secs(2);
/// How much of a diagnostic stream is kept: its end.
const TAIL: usize = 16 << 10;

/// The ends of a process's streams.
pub(crate) struct Pipes<W, R, E> {
    pub(crate) stdin: Option<W>,
    pub(crate) stdout: Option<R>,
    pub(crate) stderr: Option<E>,
}

/// What is said to a process and heard from it: see [`super::Launch`].
pub(crate) struct Talk {
    pub(crate) stdin: Vec<u8>,
    pub(crate) timeout: Duration,
    pub(crate) output_bytes: u64,
    pub(crate) stderr_is_output: bool,
    pub(crate) ends_with_stdout: bool,
    pub(crate) watch: Option<Watch>,
}

/// Attends a process that has been started until it ends, by itself or by `kill`.
pub(crate) async fn attend<W, R, E>(
    talk: Talk,
    pipes: Pipes<W, R, E>,
    room: Option<Room>,
    ending: impl Future<Output = End>,
    kill: impl Fn(),
) -> Finished
where
    W: AsyncWrite + Unpin,
    R: AsyncRead + Unpin,
    E: AsyncRead + Unpin,
{
    let deadline = Instant::now() + talk.timeout;
    let (input, stdin) = (talk.stdin, pipes.stdin);
    let feed = async move {
        if let Some(mut pipe) = stdin {
            // A process that does not read its input is its own affair.
            let _ = pipe.write_all(&input).await;
        }
    };
    let output = Collected::shared();
    let errors = if talk.stderr_is_output { output.sibling() } else { Collected::shared() };
    let errors_kept = if talk.stderr_is_output { Keep::Head(talk.output_bytes) } else { Keep::Tail(TAIL) };
    let reading_output = collect(pipes.stdout, output.clone(), Keep::Head(talk.output_bytes), None);
    let reading_errors = collect(pipes.stderr, errors.clone(), errors_kept, talk.watch.map(Lines::new));
    let streams = async { tokio::join!(feed, reading_output, reading_errors) };
    let closed = async {
        if !talk.ends_with_stdout {
            std::future::pending::<()>().await;
        }
        output.closed().await;
        sleep(LINGER).await;
    };
    tokio::pin!(streams);
    let mut streams_done = false;
    let end = {
        let mut waiting = std::pin::pin!(async {
            tokio::select! {
                biased;
                () = output.overflowed() => End::TooMuchOutput,
                () = errors.overflowed() => End::TooMuchOutput,
                end = ending => end,
                () = closed => End::Dismissed,
                () = Room::exceeded(room) => End::TooMuchScratch,
            }
        });
        loop {
            tokio::select! {
                end = timeout_at(deadline, &mut waiting) => break end.unwrap_or(End::TimedOut),
                _ = &mut streams, if !streams_done => streams_done = true,
            }
        }
    };
    kill();
    if !streams_done {
        let _ = timeout_at(Instant::now() + DRAIN, &mut streams).await;
    }
    // What was still in the pipes counts too.
    let over = end != End::TimedOut && (output.is_over() || errors.is_over());
    Finished {
        end: if over { End::TooMuchOutput } else { end },
        stdout: output.take(),
        stderr: errors.take(),
        made: Made::default(),
    }
}
