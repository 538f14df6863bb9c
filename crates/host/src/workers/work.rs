//! What such a process does.

use super::{Answer, Job};
use crate::child::{Child, Children};
use crate::error::Error;
use crate::host::Host;
use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// Drives run after run, as they are asked for, until nobody asks any more.
///
/// # Errors
/// The state folder can't be opened. Who asks hears what becomes of a run.
pub async fn work(
    host: &Host,
    asked: impl tokio::io::AsyncRead + Unpin,
    mut answers: impl AsyncWrite + Unpin,
) -> Result<(), Error> {
    let (host, store) = host.in_open_store()?;
    let host = host.within(&store);
    let mut asked = BufReader::new(asked).lines();
    while let Ok(Some(line)) = asked.next_line().await {
        let Job { id, name, parent, options } = serde_json::from_str(&line)
            .map_err(|error| Error::internal(&format!("this is nothing that a process is asked: {error}")))?;
        if !said(&mut answers, &Answer::Taken).await? {
            return Ok(());
        }
        let ended = tokio::select! {
            biased;
            // Nobody waits for it any more: the run stays as it is, and is gone on with elsewhere.
            _ = asked.next_line() => return Ok(()),
            ended = Children::run(&host, Child { id, name, parent, options }) => ended,
        };
        let answer = match ended {
            Ok(Some(_)) => Answer::Ended,
            // Nothing interrupts a run here.
            Ok(None) => return Ok(()),
            Err(error) => {
                let state = error.is_of_machine();
                let first = error.diagnostics.into_iter().next();
                let (message, help) = first.map(|first| (first.message, first.help)).unwrap_or_default();
                Answer::Failed { message, help, state }
            }
        };
        if !said(&mut answers, &answer).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Answers; whether somebody reads that.
async fn said(answers: &mut (impl AsyncWrite + Unpin), answer: &Answer) -> Result<bool, Error> {
    let line = serde_json::to_string(answer).map_err(|error| Error::internal(&error.to_string()))? + "\n";
    Ok(answers.write_all(line.as_bytes()).await.is_ok() && answers.flush().await.is_ok())
}
