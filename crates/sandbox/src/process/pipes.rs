//! The streams of a process that was started, and the socket on which it answers.

use super::Pipes;
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout};

/// A socket on which a process is given its input and answers: our end, and its own, which blocks.
pub(crate) fn talking() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, its) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, its.into()))
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The streams of a process, with ours of the socket on which it answers if it does.
pub(super) fn pipes(
    child: &mut Child,
    talk: Option<UnixStream>,
) -> Pipes<Writer, Reader, ChildStdout, ChildStderr> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    match talk.map(UnixStream::into_split) {
        Some((answer, input)) => {
            Pipes { stdin: Some(Box::new(input)), stdout: Some(Box::new(answer)), printed: stdout, stderr }
        }
        None => Pipes {
            stdin: stdin.map(|stdin| Box::new(stdin) as Writer),
            stdout: stdout.map(|stdout| Box::new(stdout) as Reader),
            printed: None,
            stderr,
        },
    }
}
