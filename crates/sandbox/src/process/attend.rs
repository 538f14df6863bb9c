//! Feeding a process, reading it and ending it in time (E-12, E-13).

use super::Watch;
use super::collect::{Collected, Keep, Lines, TAIL, Tail, collect};
use super::{DRAIN, End, Finished, Made, Room};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout_at};

/// How long a process may stay after it has closed its result.
const LINGER: Duration = Duration::from_secs(2);

/// The ends of a process's streams.
pub(crate) struct Pipes<W, R, P, E> {
    pub(crate) stdin: Option<W>,
    /// The output, or the answer.
    pub(crate) stdout: Option<R>,
    /// What is printed to stdout, where that is not the output.
    pub(crate) printed: Option<P>,
    pub(crate) stderr: Option<E>,
}

/// What is said to a process and heard from it: see [`super::Launch`].
pub struct Talk {
    /// What it reads.
    pub stdin: Vec<u8>,
    /// Its time limit.
    pub timeout: Duration,
    /// The most bytes of output.
    pub output_bytes: u64,
    /// Whether stderr is output too.
    pub stderr_is_output: bool,
    /// Whether it answers on what it reads from.
    pub answers: bool,
    /// Who watches the lines it prints.
    pub watch: Option<Watch>,
}

/// Attends a process that has been started until it ends, by itself or by `kill`.
pub(crate) async fn attend<W, R, P, E>(
    talk: Talk,
    pipes: Pipes<W, R, P, E>,
    room: Option<Room>,
    ending: impl Future<Output = End>,
    kill: impl Fn(),
) -> Finished
where
    W: AsyncWrite + Unpin,
    R: AsyncRead + Unpin,
    P: AsyncRead + Unpin,
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
    let tail = Keep::Tail(TAIL);
    let errors_kept = if talk.stderr_is_output { Keep::Head(talk.output_bytes) } else { tail };
    let printed = Collected::shared();
    let lines = || talk.watch.clone().map(Lines::new);
    let reading_output = collect(pipes.stdout, output.clone(), Keep::Head(talk.output_bytes), None);
    let reading_printed = collect(pipes.printed, printed.clone(), tail, lines());
    let reading_errors = collect(pipes.stderr, errors.clone(), errors_kept, lines());
    let streams = async { tokio::join!(feed, reading_output, reading_printed, reading_errors) };
    let closed = async {
        if !talk.answers {
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
    let Tail { bytes: stderr, lost: stderr_lost } = errors.take();
    Finished {
        end: if over { End::TooMuchOutput } else { end },
        stdout: output.take().bytes,
        printed: printed.take(),
        stderr,
        stderr_lost,
        made: Made::default(),
    }
}
