//! Responses that are no answer of the protocol by themselves: refusals, and requests that were only taken.

use super::body::body;
use super::lost::{Meant, meant};
use super::{Bad, Failed, REFUSAL, Wire, after, wire};
use crate::mcp::message::same;
use reqwest::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcError, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse};

impl Wire {
    pub(super) async fn refusal(&self, status: StatusCode, response: Response) -> Failed {
        let retry_after = after(response.headers());
        let body = body(response, REFUSAL).await.unwrap_or_default().unwrap_or_default();
        self.bad(status, &body, retry_after)
    }

    fn bad(&self, status: StatusCode, said: &[u8], retry_after: Option<String>) -> Failed {
        let said = self.words(said);
        StreamableHttpError::Client(Bad::Refused { status: status.as_u16(), said, retry_after })
    }

    /// What the server says, behind a status.
    pub(super) fn words(&self, said: &[u8]) -> String {
        let said = self.reader.told(said);
        if said.is_empty() { said } else { format!(": {said}") }
    }

    /// A request that was taken and not answered: servers that misread the protocol do so. Its answer may be in the body all
    /// the same, or come over a stream that is open for whatever the server says; else it comes never.
    pub(super) async fn accepted(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        asked: &RequestId,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let body = body(response, self.reader.longest()).await.map_err(wire)?.unwrap_or_default();
        match self.answers(&body, asked, session) {
            Ok(answer) => Ok(answer),
            Err(_) if is_discovery(message) => Ok(unknown(asked, status)),
            Err(_) if self.listening.is_any() => {
                Ok(StreamableHttpPostResponse::Sse(self.listening.to_their_end(), None))
            }
            Err(_) => {
                let (status, said) = (status.as_u16(), self.words(&body));
                Err(StreamableHttpError::Client(Bad::NoAnswer { status, said }))
            }
        }
    }

    /// What an answer that is no success means for `message`. The server's own error is the answer to it, whatever id
    /// it has: who refuses before reading knows none. But a status that passes by itself (E-14) is more than such an error.
    pub(super) async fn refused(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let retry_after = after(response.headers());
        let body = body(response, REFUSAL).await.unwrap_or_default().unwrap_or_default();
        let said = self.reader.read(&body).into_iter().find_map(|said| match said {
            JsonRpcMessage::Error(error) => Some(error),
            _ => None,
        });
        let asked = match message {
            ClientJsonRpcMessage::Request(asked) => Some(&asked.id),
            _ => None,
        };
        let own =
            |said: &JsonRpcError| said.id.as_ref().zip(asked).is_some_and(|(said, asked)| same(said, asked));
        if has_session {
            let words = || self.words(said.as_ref().map_or(&*body, |said| said.error.message.as_bytes()));
            let status = status.as_u16();
            match meant(status, said.as_ref().map(|said| (&said.error, own(said)))) {
                Meant::Session => {
                    return Err(StreamableHttpError::Client(Bad::Lost { status, said: words() }));
                }
                Meant::Nobody => {
                    return Err(StreamableHttpError::Client(Bad::Unclear { status, said: words() }));
                }
                Meant::Call => {}
            }
        }
        let passes = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
        match (asked, said) {
            (Some(asked), said) if is_discovery(message) && !passes => Ok(match said {
                Some(said) => {
                    let answer = JsonRpcMessage::error(said.error, Some(asked.clone()));
                    StreamableHttpPostResponse::Json(answer, None)
                }
                None => unknown(asked, status),
            }),
            (Some(asked), Some(said))
                if !passes || (status != StatusCode::TOO_MANY_REQUESTS && own(&said)) =>
            {
                let answer = JsonRpcMessage::error(said.error, Some(asked.clone()));
                Ok(StreamableHttpPostResponse::Json(answer, None))
            }
            (_, Some(said)) => Err(self.bad(status, said.error.message.as_bytes(), retry_after)),
            (_, None) => Err(self.bad(status, &body, retry_after)),
        }
    }
}

/// Whether it asks which generation of the protocol the server speaks. Servers that do not know the question refuse it in
/// many ways.
fn is_discovery(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(asked) if matches!(asked.request, ClientRequest::DiscoverRequest(_)))
}

/// The answer of one that does not know it, and does not say so in the protocol.
fn unknown(asked: &RequestId, status: StatusCode) -> StreamableHttpPostResponse {
    let error = ErrorData::invalid_request(format!("status {status}"), None);
    StreamableHttpPostResponse::Json(JsonRpcMessage::error(error, Some(asked.clone())), None)
}
