//! Reading a reply off the wire: a stream of server-sent events, or one JSON body from servers that don't stream.

use super::mend::mend;
use crate::protocol::{Assembler, Phase, ReplyError, WireQuirks, count_in};
use crate::target::Target;
use crate::text::bounded;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, Stream, StreamExt};
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use selvedge_engine::{Failure, ModelReply, Tokens, Unread};
use selvedge_http::Flow;
use selvedge_http::surrogates::{self, Characters, Said};
use selvedge_runtime::ports::{Delta, Watch};
use sse_stream::{Error as SseError, Sse, SseByteStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a stream may stay open after the provider said why it stopped, before the reply is taken as it is.
const LINGER: Duration = Duration::from_secs(2);
/// How long before the end of the call's time such a reply is taken: it is whole, and must not be lost.
const SPARE: Duration = Duration::from_millis(20);
/// How long the rest of a finished stream may take to arrive, so that its connection can be used again.
const DRAIN: Duration = Duration::from_secs(1);
/// JSON around and escapes within a text of `message_bytes`: what one event or body may have beyond it.
const ENVELOPE: usize = 1 << 20;

/// The limits and listeners of one reply.
pub(super) struct Reading<'c> {
    /// Where it comes from.
    pub(super) target: &'c Target,
    /// `message_bytes`.
    pub(super) limit: usize,
    /// When the reply must have begun, and how long that was.
    pub(super) first: (Instant, Duration),
    /// When the call's time is over.
    pub(super) deadline: Instant,
    /// Who hears the text.
    pub(super) watch: Option<&'c Watch>,
    /// What the reply has taken so far.
    pub(super) spent: &'c Mutex<(Tokens, Unread)>,
}

/// Says the text of a reply to who hears it: whole characters, and no part of a key (C-06).
struct Speaker<'c> {
    watch: Option<&'c Watch>,
    halves: Said,
    keys: Flow,
}

impl Speaker<'_> {
    fn say(&mut self, text: String) {
        let Some(watch) = self.watch.filter(|_| !text.is_empty()) else { return };
        let text = self.keys.more(self.halves.more(text));
        if !text.is_empty() {
            watch(Delta::Text(text));
        }
    }

    /// What was held back, once nothing follows.
    fn end(mut self) {
        let Some(watch) = self.watch else { return };
        let text = self.keys.more(self.halves.rest()) + &self.keys.rest();
        if !text.is_empty() {
            watch(Delta::Text(text));
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Wire(#[from] reqwest::Error),
    #[error("an event is too long")]
    TooLong,
}

type Bytestream = BoxStream<'static, Result<Bytes, Broken>>;

/// What a body turned out to be, by its first characters: content types can't be trusted.
enum Kind {
    Json,
    Events,
    Other,
}

impl Reading<'_> {
    /// The whole reply of a response with a 2xx status, and what it shows of the form that the endpoint wants.
    pub(super) async fn read(
        &self,
        response: Response,
        mut reply: Box<dyn Assembler>,
    ) -> Result<(ModelReply, WireQuirks), Failure> {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut chunks = response.bytes_stream().map(|chunk| chunk.map_err(Broken::Wire)).boxed();
        let head = self.head(&mut chunks, status).await?;
        let keys = Flow::new(&self.target.secrets);
        let mut speaker = Speaker { watch: self.watch, halves: Said::default(), keys };
        match kind(&head) {
            Kind::Events => {
                self.events(status, &headers, head, chunks, &mut *reply, &mut speaker).await?;
            }
            Kind::Json => {
                let text = self.json(status, &headers, head, chunks, &mut *reply).await?;
                speaker.say(text);
            }
            Kind::Other => {
                let (why, body) = match super::compressed(&headers) {
                    Some(coding) => {
                        (format!("it is compressed with {coding}, which was not asked for"), String::new())
                    }
                    None => {
                        let body = String::from_utf8_lossy(&head).into_owned();
                        ("neither JSON nor an event stream".to_owned(), body)
                    }
                };
                return Err(self.target.unparsable(status, &why, &body));
            }
        }
        speaker.end();
        let learnt = reply.learnt();
        let mut reply = reply.finish();
        mend(&mut reply);
        Ok((reply, learnt))
    }

    fn late(&self) -> Failure {
        self.target.late("sent no token", self.first.1, "limits.first_token_timeout_s")
    }

    fn broken(&self, error: &Broken) -> Failure {
        match error {
            Broken::Wire(error) => self.target.broken("broke off its reply", Some(error)),
            Broken::TooLong => self.target.too_long(self.limit),
        }
    }

    fn widest(&self) -> usize {
        // An escaped character may take twice its bytes, control characters aside.
        self.limit.saturating_mul(2).saturating_add(ENVELOPE)
    }

    /// Everything up to the first chunk that has more than white space: some servers send blanks to keep a
    /// connection open while they compute.
    async fn head(&self, chunks: &mut Bytestream, status: StatusCode) -> Result<Bytes, Failure> {
        let mut head = BytesMut::new();
        loop {
            let next = timeout_at(self.first.0, chunks.next()).await.map_err(|_| self.late())?;
            match next {
                Some(Ok(chunk)) => head.extend_from_slice(&chunk),
                Some(Err(error)) => return Err(self.broken(&error)),
                None => return Err(self.target.unparsable(status, "it is empty", "")),
            }
            if !text_of(&head).is_empty() {
                return Ok(head.freeze());
            }
            if head.len() > ENVELOPE {
                return Err(self.target.too_long(self.limit));
            }
        }
    }

    /// Takes a body that is one reply, and returns its text.
    async fn json(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        head: Bytes,
        mut chunks: Bytestream,
        reply: &mut dyn Assembler,
    ) -> Result<String, Failure> {
        let mut body = BytesMut::from(head);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| self.broken(&error))?;
            body.extend_from_slice(&chunk);
            if body.len() > self.widest() {
                return Err(self.target.too_long(self.limit));
            }
        }
        let text = text_of(&body);
        let taken = reply.whole(text);
        self.counted(text, &taken, reply);
        taken.map_err(|flaw| {
            let shown = || bounded(&String::from_utf8_lossy(&body), ENVELOPE);
            self.flaw(flaw, status, headers, shown)
        })
    }

    /// Takes note of what a reply has taken, be it none (E-20).
    fn counted(&self, data: &[u8], taken: &Result<String, ReplyError>, reply: &mut dyn Assembler) {
        if taken.is_err() {
            count_in(data, reply);
        }
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) = (reply.tokens(), reply.unread());
    }

    fn flaw(
        &self,
        flaw: ReplyError,
        status: StatusCode,
        headers: &HeaderMap,
        body: impl FnOnce() -> String,
    ) -> Failure {
        match flaw {
            ReplyError::TooLong => self.target.too_long(self.limit),
            ReplyError::Provider(mut error) => {
                surrogates::value(&mut error);
                self.target.in_reply(&error, headers)
            }
            ReplyError::Refused(mut refusal) => {
                for text in [&mut refusal.reason, &mut refusal.detail] {
                    surrogates::text(text);
                }
                self.target.withheld(&refusal)
            }
            ReplyError::Unparsable(why) => self.target.unparsable(status, &why, &body()),
        }
    }

    async fn events(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        head: Bytes,
        chunks: Bytestream,
        reply: &mut dyn Assembler,
        speaker: &mut Speaker<'_>,
    ) -> Result<(), Failure> {
        let (mut events, pending) = decode(head, chunks, self.widest());
        let mut begun = false;
        let mut stopped: Option<Instant> = None;
        loop {
            let next = if reply.phase() == Phase::Stopped {
                // Usage may still follow. A server that neither ends nor goes on has said all there is.
                let until = *stopped.get_or_insert_with(|| self.patience());
                match timeout_at(until, events.next()).await {
                    Ok(Some(Ok(event))) => event,
                    Ok(Some(Err(_)) | None) | Err(_) => return Ok(()),
                }
            } else {
                let next = if begun {
                    events.next().await
                } else {
                    timeout_at(self.first.0, events.next()).await.map_err(|_| self.late())?
                };
                match next {
                    Some(Ok(event)) => event,
                    Some(Err(error)) => return Err(self.undecoded(error, status)),
                    None => {
                        return Err(self.target.broken("ended its stream in the middle of the reply", None));
                    }
                }
            };
            pending.store(0, Ordering::Relaxed);
            let Some(data) = next.data.filter(|data| !data.trim().is_empty()) else { continue };
            begun = begun || !is_ping(next.event.as_deref(), &data);
            let taken = reply.event(next.event.as_deref(), &data);
            self.counted(data.as_bytes(), &taken, reply);
            speaker.say(taken.map_err(|flaw| self.flaw(flaw, status, headers, || data.clone()))?);
            if reply.phase() == Phase::Ended {
                drain(events);
                return Ok(());
            }
        }
    }

    /// Until when the rest of a stream is waited for whose provider has said why it stopped.
    fn patience(&self) -> Instant {
        let linger = Instant::now() + LINGER;
        self.deadline.checked_sub(SPARE).map_or(linger, |last| linger.min(last))
    }

    fn undecoded(&self, error: SseError, status: StatusCode) -> Failure {
        match error {
            SseError::Body(inner) => match inner.downcast_ref::<Broken>() {
                Some(broken) => self.broken(broken),
                None => self.target.broken("broke off its reply", Some(&*inner)),
            },
            other => self.target.unparsable(status, &other.to_string(), ""),
        }
    }
}

/// The events of a body, and the count of its bytes since the last event.
fn decode(
    head: Bytes,
    chunks: Bytestream,
    widest: usize,
) -> (impl Stream<Item = Result<Sse, SseError>> + Send + Unpin + 'static, Arc<AtomicUsize>) {
    let pending = Arc::new(AtomicUsize::new(0));
    let count = pending.clone();
    let mut characters = Characters::default();
    let bytes = stream::iter([Ok(head)]).chain(chunks).map(move |chunk| {
        let chunk = chunk?;
        let so_far = count.fetch_add(chunk.len(), Ordering::Relaxed).saturating_add(chunk.len());
        if so_far > widest { Err(Broken::TooLong) } else { Ok(characters.of(chunk)) }
    });
    // A last line without the empty line after it still counts: some servers end that way after their last event.
    let closed = bytes.chain(stream::iter([Ok(Bytes::from_static(b"\n\n"))]));
    (SseByteStream::new(closed.boxed()), pending)
}

/// Whether an event only keeps the connection open: it is no beginning of a reply.
fn is_ping(name: Option<&str>, data: &str) -> bool {
    const LONGEST: usize = 64;
    let kind = || serde_json::from_str::<serde_json::Value>(data).ok()?.get("type").cloned();
    name == Some("ping") || (data.len() <= LONGEST && kind().is_some_and(|kind| kind == "ping"))
}

/// Reads what is left after the last event, without keeping the reply waiting for it: only a connection that was read
/// to the end is used again.
fn drain(mut events: impl Stream<Item = Result<Sse, SseError>> + Send + Unpin + 'static) {
    let mut rest = async move { while let Some(Ok(_)) = events.next().await {} }.boxed();
    if (&mut rest).now_or_never().is_none() {
        tokio::spawn(timeout(DRAIN, rest));
    }
}

/// A body without its byte-order mark, which may not have come whole yet, and leading white space.
fn text_of(body: &[u8]) -> &[u8] {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    if MARK.starts_with(body) {
        return &[];
    }
    body.strip_prefix(MARK).unwrap_or(body).trim_ascii_start()
}

fn kind(head: &[u8]) -> Kind {
    let text = text_of(head);
    match text.first() {
        Some(b'{' | b'[') => Kind::Json,
        Some(b':') => Kind::Events,
        _ => {
            let names: [&[u8]; 4] = [b"data:", b"event:", b"id:", b"retry:"];
            // The first chunk may end within the name.
            let fits = |name: &&[u8]| text.starts_with(name) || name.starts_with(text);
            if names.iter().any(fits) { Kind::Events } else { Kind::Other }
        }
    }
}
