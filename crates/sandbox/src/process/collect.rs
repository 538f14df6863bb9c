//! Reading a child's stream without bound on what it writes and with a bound on what is kept.

use super::Watch;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

/// How much of the end of a stream is kept where it is no output, at least.
pub const TAIL: usize = 32 << 10;

/// Which part of a stream is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keep {
    /// The first so many bytes; one more is an overflow.
    Head(u64),
    /// The last so many bytes.
    Tail(usize),
}

/// The end of a stream.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// What is kept.
    pub bytes: Vec<u8>,
    /// How many bytes came before.
    pub lost: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Signs {
    over: bool,
    closed: bool,
}

/// What has been read so far. A sibling shares the count of bytes, for limits over two streams.
#[derive(Clone, Debug)]
pub(super) struct Collected {
    kept: Arc<Mutex<Tail>>,
    total: Arc<Mutex<u64>>,
    signs: watch::Sender<Signs>,
}

impl Collected {
    pub(super) fn shared() -> Self {
        Self { kept: Arc::default(), total: Arc::default(), signs: watch::Sender::new(Signs::default()) }
    }

    /// Another stream under the same limit.
    pub(super) fn sibling(&self) -> Self {
        Self { total: self.total.clone(), ..Self::shared() }
    }

    /// Waits until more came than may be kept; forever if it never does.
    pub(super) async fn overflowed(&self) {
        if self.signs.subscribe().wait_for(|signs| signs.over).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the stream has ended.
    pub(super) async fn closed(&self) {
        if self.signs.subscribe().wait_for(|signs| signs.closed).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.signs.borrow().over
    }

    pub(super) fn take(&self) -> Tail {
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, piece: &[u8], keep: Keep) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Tail { bytes, lost } = &mut *kept;
        match keep {
            Keep::Head(most) => {
                let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
                *total = total.saturating_add(piece.len() as u64);
                if *total > most {
                    self.signs.send_modify(|signs| signs.over = true);
                } else {
                    bytes.extend_from_slice(piece);
                }
            }
            Keep::Tail(most) => {
                bytes.extend_from_slice(piece);
                // Cut only now and then: each byte is moved a bounded number of times.
                if bytes.len() > most.saturating_mul(2) {
                    let surplus = bytes.len() - most;
                    bytes.drain(..surplus);
                    *lost = lost.saturating_add(surplus as u64);
                }
            }
        }
    }
}

/// Whether a byte may stand in a key, in base64 or in a URL.
pub(super) fn in_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_-.~%".contains(byte)
}

/// Hands a stream's lines to a watcher: cut where they are long, and no more of them than a person would read.
pub(super) struct Lines {
    watch: Watch,
    line: Vec<u8>,
    /// Whether the line goes on beyond that.
    cut: bool,
    left: usize,
}

impl Lines {
    const LONGEST: usize = 2000;
    const MOST: usize = 10_000;

    pub(super) fn new(watch: Watch) -> Self {
        Self { watch, line: Vec::new(), cut: false, left: Self::MOST }
    }

    fn add(&mut self, piece: &[u8]) {
        for &byte in piece {
            if self.left == 0 {
                return;
            }
            if byte == b'\n' {
                self.end();
            } else if self.line.len() < Self::LONGEST {
                self.line.push(byte);
            } else {
                self.cut = true;
            }
        }
    }

    fn end(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.cut) {
            // The first half of a key would not be seen as one (C-06).
            let half = line.iter().rev().take_while(|byte| in_word(byte)).count();
            line.truncate(line.len() - half);
            line.extend_from_slice("…".as_bytes());
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            self.left = self.left.saturating_sub(1);
            (self.watch)(text.trim_end());
        }
    }
}

/// Reads a stream to its end. After an overflow it goes on reading, so that no writer waits.
pub(super) async fn collect(
    stream: Option<impl AsyncRead + Unpin>,
    into: Collected,
    keep: Keep,
    mut lines: Option<Lines>,
) {
    if let Some(mut stream) = stream {
        let mut buffer = vec![0u8; 64 << 10];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let piece = buffer.get(..count).unwrap_or_default();
            into.add(piece, keep);
            if let Some(lines) = &mut lines {
                lines.add(piece);
            }
        }
        if let Some(lines) = &mut lines {
            lines.end();
        }
    }
    into.signs.send_modify(|signs| signs.closed = true);
}
