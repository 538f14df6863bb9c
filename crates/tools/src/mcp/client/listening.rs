//! The streams on which a server may say what it was not asked for, and what it was.

use super::Events;
use futures_util::stream::StreamExt;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a stream that was cut may take to be taken up again.
const AGAIN: Duration = Duration::from_secs(10);

/// How many streams are open, or are being opened. Clones share the count.
#[derive(Clone, Default)]
pub(super) struct Listening(watch::Sender<usize>);

/// A stream that counts for as long as this is kept.
pub(super) struct Open(watch::Sender<usize>);

impl Listening {
    pub(super) fn open(&self) -> Open {
        self.0.send_modify(|open| *open += 1);
        Open(self.0.clone())
    }

    pub(super) fn is_any(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// No event, and an end when none is open any more: what was to come on one comes on none.
    pub(super) fn to_their_end(&self) -> Events {
        let mut open = self.0.subscribe();
        let over = async move {
            loop {
                let _ = open.wait_for(|open| *open == 0).await.map(drop);
                if !matches!(timeout(AGAIN, open.wait_for(|open| *open > 0)).await, Ok(Ok(_))) {
                    return;
                }
            }
        };
        futures_util::stream::once(over).filter_map(async |()| None).boxed()
    }
}

impl Open {
    /// The events of the stream that was opened.
    pub(super) fn during(self, events: Events) -> Events {
        events
            .inspect(move |_| {
                let _open = &self;
            })
            .boxed()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}
