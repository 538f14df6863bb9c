//! A run's events: as they come, and a page of them (S-04).

use crate::app::App;
use crate::blocking::blocking;
use crate::call::Call;
use crate::feed::{Feed, Standing};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::reply::{Content, Later, Reply};
use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use selvedge_engine::State;
use selvedge_host::report;
use selvedge_runtime::{LoadError, graph_of};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};

/// How often somebody is told that the connection is alive.
const COMMENT: Duration = Duration::from_secs(15);
/// Events of a page, where nothing else is asked for.
const PAGE: u64 = 200;

/// `GET /v1/runs/{id}/events`.
pub(crate) fn events(app: Arc<App>, call: Call) -> Later {
    Box::pin(async move {
        let runtime = tokio::runtime::Handle::current();
        blocking(move || {
            let id = app.run_id(&call)?;
            if call.accepts("application/json") {
                return page(
                    &app,
                    &id,
                    call.number("after").unwrap_or(0),
                    call.number("limit").unwrap_or(PAGE),
                );
            }
            // Whose connection has broken says itself how far it had come.
            let last = call.headers.get("last-event-id").and_then(|last| last.to_str().ok()?.parse().ok());
            let feed = app.feeds.feed(&id, &runtime)?;
            let after = last.or(call.number("after")).unwrap_or(0);
            let watcher = Watcher::new(feed, Arc::clone(&app.metrics), after);
            let stream =
                stream::unfold(watcher, |mut watcher| async { Some((watcher.next().await?, watcher)) });
            Ok(Reply::of(StatusCode::OK, Content::Stream(Box::pin(stream))))
        })
        .await
    })
}

/// Events behind one, as C-15 has them.
fn page(app: &App, id: &str, after: u64, limit: u64) -> Result<Reply, Problem> {
    let names = State::new(graph_of(&app.store, &app.store.run(id)?)?);
    let entries = app.store.journal(id, after.saturating_add(1))?.until(after.saturating_add(limit));
    let event = |entry: Result<selvedge_store::Entry, _>| {
        let entry = entry?;
        report::event(&names, &entry).map_err(|error| LoadError::Unreadable {
            run: id.to_owned(),
            what: format!("event {}", entry.n),
            cause: error.to_string(),
        })
    };
    let events: Vec<Value> = entries.map(event).collect::<Result<_, _>>()?;
    let next = after + events.len() as u64;
    let next = (next < app.store.last_event(id)?).then_some(next);
    Ok(Reply::json(json!({"events": events, "next": next})))
}

/// Somebody who watches.
struct Watcher {
    feed: Arc<Feed>,
    metrics: Arc<Metrics>,
    standing: watch::Receiver<Standing>,
    deltas: broadcast::Receiver<Bytes>,
    /// The last event that was handed out.
    after: u64,
    ready: VecDeque<Bytes>,
    /// What was said last of where the run stands.
    said: Option<Standing>,
    comment: Instant,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.metrics.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Watcher {
    fn new(feed: Arc<Feed>, metrics: Arc<Metrics>, after: u64) -> Self {
        metrics.watchers.fetch_add(1, Ordering::Relaxed);
        let (standing, deltas) = (feed.standing(), feed.deltas());
        let comment = Instant::now() + COMMENT;
        Self { feed, metrics, standing, deltas, after, ready: VecDeque::new(), said: None, comment }
    }

    /// What is to be sent next; nothing after the journal turned out to be damaged.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                self.after += 1;
                return Some(frame);
            }
            let standing = *self.standing.borrow_and_update();
            if self.after < standing.events {
                match self.feed.frames(self.after).await {
                    Ok(frames) if !frames.is_empty() => {
                        self.ready.extend(frames);
                        continue;
                    }
                    Ok(_) => {}
                    // Who comes again and asks for a page is told why.
                    Err(_) => return None,
                }
            } else if self
                .said
                .is_none_or(|said| (said.status, said.driven) != (standing.status, standing.driven))
            {
                self.said = Some(standing);
                return Some(standing.frame());
            }
            tokio::select! {
                biased;
                changed = self.standing.changed() => changed.ok()?,
                delta = self.deltas.recv() => match delta {
                    Ok(delta) => return Some(delta),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                () = sleep_until(self.comment) => {
                    self.comment = Instant::now() + COMMENT;
                    return Some(Bytes::from_static(b": still here\n\n"));
                }
            }
        }
    }
}
