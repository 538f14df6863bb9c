//! The protocol over a program's stdin and stdout: one JSON message a line, with limits on what the program writes.

use super::error::line;
use super::framing::{Brought, Framing};
use super::message::{Message, Reader, cancelled};
use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, watch};

/// Messages that were read and not taken yet; a server that writes faster waits.
const WAITING: usize = 64;
/// How much of what is no protocol a server may write to its stdout, in bytes and lines.
const NOISE_BYTES: usize = 1 << 20;
const NOISE_LINES: usize = 10_000;
/// How much of it is kept for messages.
const NOISE_KEPT: usize = 500;

/// The id of the question which generation of the protocol a server speaks; `rmcp` numbers its own.
pub(super) const PROBE: &str = "selvedge-probe";

/// Why a conversation came to its end.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// The server closed its output, or ended.
    Closed,
    /// The server broke a limit, as a sentence about it: it is ended.
    Broken(String),
}

/// Told once: what came first counts.
pub(super) type Ended = watch::Sender<Option<Why>>;

/// Tells it.
pub(super) fn tell(ended: &Ended, why: Why) {
    ended.send_if_modified(|told| {
        let first = told.is_none();
        if first {
            *told = Some(why);
        }
        first
    });
}

/// One end of the conversation. Clones share it, so that a second handshake can follow a failed first one.
#[derive(Clone)]
pub(super) struct Pipe {
    input: Input,
    messages: Arc<tokio::sync::Mutex<mpsc::Receiver<Message>>>,
    /// The answer to the probe, if it came when nobody waited for it any more.
    late: Arc<Mutex<Option<Message>>>,
    reader: Reader,
}

/// The program's stdin, until it is closed.
pub(super) type Input = Arc<tokio::sync::Mutex<Option<ChildStdin>>>;

/// What of a server's stdout was no protocol.
#[derive(Clone, Default)]
pub(super) struct Noise(Arc<Mutex<String>>);

impl Noise {
    /// The beginning of it, for messages.
    pub(super) fn said(&self) -> String {
        line(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, line: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < NOISE_KEPT {
            let cut = line.get(..line.len().min(NOISE_KEPT)).unwrap_or_default();
            kept.push_str(&String::from_utf8_lossy(cut));
            kept.push('\n');
        }
    }
}

impl Pipe {
    /// Begins to read.
    pub(super) fn new(
        input: Input,
        output: impl AsyncRead + Send + Unpin + 'static,
        reader: Reader,
        noise: Noise,
        ended: Ended,
    ) -> Self {
        let (sender, messages) = mpsc::channel(WAITING);
        let reads = reader.clone();
        tokio::spawn(async move {
            tell(&ended, read(output, sender, reads, noise).await);
        });
        Self { input, messages: Arc::new(tokio::sync::Mutex::new(messages)), late: Arc::default(), reader }
    }

    /// The next answer to the probe; `None` if the server's output ends before it.
    pub(super) async fn probed(&mut self) -> Option<Message> {
        loop {
            let message = self.messages.lock().await.recv().await?;
            if is_probe(&message) {
                return Some(message);
            }
        }
    }

    /// An answer to the probe that came later.
    pub(super) fn late(&self) -> Option<Message> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn is_probe(message: &Message) -> bool {
    let id = match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    matches!(id, Some(RequestId::String(id)) if &**id == PROBE)
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let input = Arc::clone(&self.input);
        match (&item, cancelled(&item)) {
            (_, Some(id)) => self.reader.given_up(id),
            (JsonRpcMessage::Request(request), None) => self.reader.asked(&request.id),
            _ => {}
        }
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let gone = || io::Error::new(io::ErrorKind::NotConnected, "the server's stdin is closed");
            let pipe = input.as_mut().ok_or_else(gone)?;
            pipe.write_all(&line).await?;
            pipe.flush().await
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            let message = self.messages.lock().await.recv().await?;
            if !is_probe(&message) {
                return Some(message);
            }
            *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // The process is ended by who holds it; until then another handshake may follow.
        Ok(())
    }
}

/// Reads messages to the end of the output, or until it breaks a limit, and says which.
async fn read(
    output: impl AsyncRead + Unpin,
    sender: mpsc::Sender<Message>,
    reader: Reader,
    noise: Noise,
) -> Why {
    let longest = reader.longest();
    let mut framing = Framing::new(reader);
    let mut lines_in = BufReader::with_capacity(64 << 10, output);
    let mut line = Vec::new();
    let (mut bytes, mut lines) = (0, 0);
    loop {
        line.clear();
        match next_line(&mut lines_in, &mut line, longest).await {
            Line::Whole => {}
            Line::End => return Why::Closed,
            Line::TooLong => {
                let limit = "`tool_output_bytes` in [limits] decides";
                return Why::Broken(format!("it wrote a message of more than {longest} bytes ({limit})"));
            }
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let Brought { messages, noise: other } = framing.line(text);
        for message in messages {
            if sender.send(message).await.is_err() {
                return Why::Closed;
            }
        }
        if !other.is_empty() {
            bytes += other.len();
            lines += 1;
            noise.add(&other);
            if bytes > NOISE_BYTES || lines > NOISE_LINES {
                let flood = "it floods its stdout with what is no message of the protocol";
                return Why::Broken(flood.to_owned());
            }
        }
    }
}

enum Line {
    Whole,
    End,
    TooLong,
}

/// Reads one line, never keeping more than `longest` bytes of it. What stands behind the last line break is no message.
async fn next_line(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    line: &mut Vec<u8>,
    longest: usize,
) -> Line {
    loop {
        let Ok(piece) = reader.fill_buf().await else { return Line::End };
        if piece.is_empty() {
            return Line::End;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        line.extend_from_slice(piece.get(..taken).unwrap_or_default());
        reader.consume(taken);
        match end {
            _ if line.len() > longest => return Line::TooLong,
            Some(_) => return Line::Whole,
            None => {}
        }
    }
}

/// Whether the server's output has ended. What it still says is dropped: nobody will answer it.
pub(super) async fn closed(pipe: &mut Pipe) -> bool {
    let mut messages = pipe.messages.lock().await;
    let ended = async { while messages.recv().await.is_some() {} };
    tokio::time::timeout(std::time::Duration::from_millis(200), ended).await.is_ok()
}
