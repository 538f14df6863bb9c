//! The transport of 2024-11-05, HTTP with SSE: one stream of events says where messages are posted, and brings all answers.

use super::client::{Bad, Failed, Wire};
use super::message::{Message, Reader, cancelled};
use futures_util::StreamExt;
use reqwest::Url;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::sync::{mpsc, watch};

/// Messages that were read and not taken yet; a server that writes faster waits.
const WAITING: usize = 64;

/// A conversation, which lasts as long as the stream.
pub(super) struct Sse {
    wire: Wire,
    headers: super::client::Headers,
    reader: Reader,
    /// Where messages are posted, once the server has said it.
    endpoint: watch::Receiver<Option<Url>>,
    messages: mpsc::Receiver<Message>,
    stream: tokio::task::JoinHandle<()>,
}

impl Sse {
    /// Opens the stream.
    ///
    /// # Errors
    /// There is no connection, or the answer is no stream of events.
    pub(super) async fn open(wire: Wire, url: &Url, headers: super::client::Headers) -> Result<Self, Failed> {
        let mut events = wire.listen(url, headers.clone()).await?;
        let reader = wire.reader().clone();
        let (sender, messages) = mpsc::channel(WAITING);
        let (said, endpoint) = watch::channel(None);
        let base = url.clone();
        let stream = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                let Some(data) = event.data else { continue };
                if event.event.as_deref() == Some("endpoint") {
                    // Requests carry keys for one address: nobody is sent elsewhere with them (C-06).
                    let place = base.join(data.trim()).ok().filter(|place| place.origin() == base.origin());
                    match place {
                        Some(place) => drop(said.send_replace(Some(place))),
                        None => break,
                    }
                    continue;
                }
                if let Ok(message) = serde_json::from_str::<Message>(&data)
                    && sender.send(message).await.is_err()
                {
                    break;
                }
            }
        });
        Ok(Self { wire, headers, reader, endpoint, messages, stream })
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.stream.abort();
    }
}

impl Transport<RoleClient> for Sse {
    type Error = StreamableHttpError<Bad>;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match (&item, cancelled(&item)) {
            (_, Some(id)) => self.reader.given_up(id),
            (JsonRpcMessage::Request(request), None) => self.reader.asked(&request.id),
            _ => {}
        }
        let (wire, headers, mut endpoint) = (self.wire.clone(), self.headers.clone(), self.endpoint.clone());
        async move {
            let place = match endpoint.wait_for(Option::is_some).await {
                Ok(place) => place.clone(),
                Err(_) => None,
            };
            let none =
                || Bad::NoMessage("a stream of events without an address of its own for messages".into());
            let place = place.ok_or_else(|| StreamableHttpError::Client(none()))?;
            wire.say(&place, &item, headers).await
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.stream.abort();
        Ok(())
    }
}
