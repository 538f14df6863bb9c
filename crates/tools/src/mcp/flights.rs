//! Calls under way: what is given up is cancelled at the server (E-13).

use rmcp::model::{CancelledNotification, CancelledNotificationParam, RequestId};
use rmcp::service::{Peer, RoleClient};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a server may take to hear of what was given up when it is closed.
const HEAR: Duration = Duration::from_millis(500);

/// The calls of one connection.
#[derive(Clone)]
pub(super) struct Flights {
    peer: Peer<RoleClient>,
    air: Arc<Mutex<Air>>,
    /// Cancellations that are not sent yet.
    telling: watch::Sender<usize>,
}

#[derive(Default)]
struct Air {
    /// Calls under way, sent or not.
    busy: usize,
    /// Those that were sent and are not answered.
    sent: HashSet<RequestId>,
    /// Set after a call that was given up: the server may hang.
    suspect: bool,
}

/// A call under way: dropped before it has landed, the server is told, and has to show that it lives before it is asked
/// again.
pub(super) struct Flight {
    flights: Flights,
    id: Option<RequestId>,
}

impl Flights {
    pub(super) fn new(peer: Peer<RoleClient>) -> Self {
        Self { peer, air: Arc::default(), telling: watch::Sender::new(0) }
    }

    /// A call begins.
    pub(super) fn take_off(&self) -> Flight {
        self.air().busy += 1;
        Flight { flights: self.clone(), id: None }
    }

    /// Whether a call was given up and none is under way, so that the server can be asked how it is.
    pub(super) fn is_suspect(&self) -> bool {
        let air = self.air();
        air.suspect && air.busy == 0
    }

    /// The server has shown that it lives.
    pub(super) fn lives(&self) {
        self.air().suspect = false;
    }

    /// Gives up whatever is under way, and waits a little until the server has been told.
    pub(super) async fn give_up(&self) {
        let sent = std::mem::take(&mut self.air().sent);
        sent.into_iter().for_each(|id| self.cancel(id));
        let _ = timeout(HEAR, self.telling.subscribe().wait_for(|telling| *telling == 0)).await;
    }

    fn cancel(&self, id: RequestId) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (peer, telling) = (self.peer.clone(), self.telling.clone());
        telling.send_modify(|telling| *telling += 1);
        let told = CancelledNotificationParam::new(Some(id), Some("the call was given up".to_owned()));
        runtime.spawn(async move {
            let _ = peer.send_notification(CancelledNotification::new(told).into()).await;
            telling.send_modify(|telling| *telling -= 1);
        });
    }

    fn air(&self) -> std::sync::MutexGuard<'_, Air> {
        self.air.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// It was sent.
    pub(super) fn sent(&mut self, id: &RequestId) {
        self.flights.air().sent.insert(id.clone());
        self.id = Some(id.clone());
    }

    /// It was answered.
    pub(super) fn landed(mut self) {
        if let Some(id) = self.id.take() {
            self.flights.air().sent.remove(&id);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut air = self.flights.air();
        air.busy -= 1;
        let Some(id) = self.id.take() else { return };
        air.suspect = true;
        // Else it was given up with all others.
        let open = air.sent.remove(&id);
        drop(air);
        if open {
            self.flights.cancel(id);
        }
    }
}
