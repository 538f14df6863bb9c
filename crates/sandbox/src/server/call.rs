//! One call of a server.

use super::Server;
use crate::isolation::Isolation;
use crate::process::{
    Before, End, Finished, Note, OwnershipRestore, Pipes, Room, Scratch, Talk, Until, attend, talking,
};
use serde_json::{Map, Value, json};
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::chown;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

/// How long the processes of a call that is to end may take.
const REAP: Duration = Duration::from_secs(5);

/// A call with a scratch folder below its server's.
pub struct Call {
    server: Arc<Server>,
    scratch: Scratch,
    user: Option<u32>,
    /// The numbers that only tools have.
    tools: Range<u32>,
}

impl Call {
    /// A call that has not begun yet.
    ///
    /// # Errors
    /// Its scratch folder cannot be made.
    pub async fn new(server: Arc<Server>, isolation: &Isolation) -> io::Result<Self> {
        let user = isolation.user(isolation.found().await);
        let scratch = Scratch::within(server.base().to_owned()).await?;
        if user.is_some() {
            chown(scratch.path(), user, user)?;
        }
        Ok(Self { server, scratch, user, tools: isolation.unassigned_uids() })
    }

    /// The folder that is its own, removed with it.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs it to its end, and the end of all that it started: in `folder`, with these variables, for this tool.
    ///
    /// The server is sent the `version`, in as many characters as it expects, and an object with `scratch`, `folder`, `user`, `environment` and `cpu`, and with them the
    /// descriptors of what it reads and answers on, of stdout, of stderr, and of the socket on which it tells how the call
    /// went.
    ///
    /// # Errors
    /// When the server is gone, before the call has begun.
    pub async fn run(
        self,
        folder: &Path,
        environment: &[(OsString, OsString)],
        version: &str,
        tool: &str,
        talk: Talk,
    ) -> io::Result<Finished> {
        let _busy = self.server.busy();
        let (talk_end, its) = talking()?;
        let (printed, stdout) = io::pipe()?;
        let (words, stderr) = io::pipe()?;
        let (status, told) = std::os::unix::net::UnixStream::pair()?;
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        let variables: Map<String, Value> =
            environment.iter().map(|(name, value)| (text(name), text(value).into())).collect();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let packet = json!({
            "scratch": self.scratch.path(),
            "folder": folder,
            "user": self.user,
            "environment": variables,
            "cpu": (talk.timeout.as_secs() + 2).saturating_mul(cores),
        });
        let descriptors = [its.as_fd(), stdout.as_fd(), stderr.as_fd(), told.as_fd()];
        let packet = format!("{version}{packet}");
        let told_here = || status.try_clone().ok().map(Until::Told);
        let before = Before::now(self.server.policy());
        let note = Note::of(&before, self.user, &self.tools, tool)?;
        let owed = OwnershipRestore::new(before, self.user, self.tools.clone(), note, told_here);
        let group = self.server.call(packet.as_bytes(), descriptors).await?;
        drop((its, stdout, stderr, told));
        status.set_nonblocking(true)?;
        let status = UnixStream::from_std(status)?;
        let (answer, input) = talk_end.into_split();
        let pipes = Pipes {
            stdin: Some(input),
            stdout: Some(answer),
            printed: Some(Receiver::from_owned_fd(OwnedFd::from(printed))?),
            stderr: Some(Receiver::from_owned_fd(OwnedFd::from(words))?),
        };
        let ending = ended(&status);
        // The end of this direction asks for the end of the call; dropping the socket does as well (E-13).
        let kill = || {
            // An error means that it has ended already.
            let _ = rustix::net::shutdown(&status, rustix::net::Shutdown::Write);
        };
        let room = Room::of(self.server.policy(), self.scratch.path());
        let mut finished = attend(talk, pipes, room, ending, kill).await;
        if matches!(finished.end, End::Dismissed | End::TimedOut | End::TooMuchOutput | End::TooMuchScratch) {
            // Its processes are gone when the caller goes on.
            let _ = timeout(REAP, ended(&status)).await;
        } else if finished.end == End::Exited(-1) {
            self.server.give_up();
            if finished.stderr.is_empty() {
                finished.stderr = b"the warm interpreter has ended".to_vec();
            }
            // Whoever ended it, it was not the tool.
            finished.end = End::Signalled(9);
        }
        drop(group);
        finished.made = owed.settle().await;
        Ok(finished)
    }
}

/// Waits for the wait status of a call, which comes when all of its processes are gone.
async fn ended(status: &UnixStream) -> End {
    loop {
        let mut word = [0; 4];
        match status.readable().await.and_then(|()| status.try_read(&mut word)) {
            Ok(4) => {
                let code = i32::from_ne_bytes(word);
                return match code & 0x7f {
                    0 => End::Exited(code >> 8 & 0xff),
                    signal => End::Signalled(signal),
                };
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            _ => return End::Exited(-1),
        }
    }
}
