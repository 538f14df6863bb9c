//! What a server says without being asked: progress of calls, and that its tools have changed.

use super::message::Message;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, JsonRpcMessage, JsonRpcNotification,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, ServerNotification,
};
use rmcp::service::{NotificationContext, RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use selvedge_runtime::ports::{Delta, Watch};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The longest line of progress, in characters.
const LONGEST: usize = 2000;

struct Watched {
    watch: Option<Watch>,
    beat: Arc<Notify>,
}

/// Who watches which call.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<HashMap<ProgressToken, Watched>>>);

/// A call that is watched; dropped, nobody hears of it any more.
pub(super) struct Watching {
    progress: Progress,
    token: ProgressToken,
}

impl Progress {
    /// Hands progress with this token to a watcher, and lets `beat` know of it.
    pub(super) fn watch(&self, token: &ProgressToken, watch: Option<Watch>, beat: &Arc<Notify>) -> Watching {
        let watched = Watched { watch, beat: Arc::clone(beat) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), watched);
        Watching { progress: self.clone(), token: token.clone() }
    }

    fn tell(&self, said: &ProgressNotificationParam) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watched) = all.get(&said.progress_token) else { return };
        watched.beat.notify_one();
        let Some(watch) = watched.watch.clone() else { return };
        let share = match said.total {
            Some(total) => format!("{}/{total}", said.progress),
            None => said.progress.to_string(),
        };
        let line = match said.message.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
            Some(message) => format!("{share} {message}"),
            None => share,
        };
        drop(all);
        let line: String = line.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
        watch(Delta::Progress(line));
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.progress.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

/// The client's side of a connection. It offers nothing: servers that ask for models, files or people are refused.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) progress: Progress,
    /// Set when the server says that its tools are others now.
    pub(super) changed: Arc<AtomicBool>,
}

/// A transport whose progress is heard in the order in which it comes, and before the answer that follows it: the client of
/// the protocol works on each notification by itself.
pub(super) struct Heard<T> {
    transport: T,
    progress: Progress,
}

impl Handler {
    /// Hears what comes over a transport.
    pub(super) fn hears<T>(&self, transport: T) -> Heard<T> {
        Heard { transport, progress: self.progress.clone() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Heard<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            match self.transport.receive().await? {
                JsonRpcMessage::Notification(JsonRpcNotification {
                    notification: ServerNotification::ProgressNotification(said),
                    ..
                }) => self.progress.tell(&said.params),
                message => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// Who we are, in the words of the protocol.
pub(super) fn config() -> ClientConfig {
    let us = Implementation::new("selvedge", env!("CARGO_PKG_VERSION"));
    // The newest generation that has a handshake; the one without takes its version from the discovery.
    ClientConfig::new(ClientCapabilities::default(), us)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        config()
    }
}
