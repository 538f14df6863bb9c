//! Bodies of answers, read up to a limit (E-28).

use bytes::{Bytes, BytesMut};
use futures_util::stream::{BoxStream, StreamExt};
use futures_util::{Stream, TryStreamExt};
use reqwest::Response;

/// The whole body; `None` if it is longer than that.
pub(super) async fn body(response: Response, longest: usize) -> Result<Option<Bytes>, reqwest::Error> {
    let mut bytes = response.bytes_stream();
    let mut body = BytesMut::new();
    while let Some(piece) = bytes.try_next().await? {
        if piece.len() > longest.saturating_sub(body.len()) {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body.freeze()))
}

/// Why events end before their end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Wire(reqwest::Error),
    #[error("an event is longer than a message may be")]
    TooLong,
}

/// Bytes of events, of which none is longer than `longest`: an event ends with an empty line.
pub(super) fn bounded(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    longest: usize,
) -> BoxStream<'static, Result<Bytes, Broken>> {
    let counted = (bytes.boxed(), 0_usize, 0_usize);
    let stream = futures_util::stream::unfold(Some(counted), move |state| async move {
        let (mut bytes, mut event, mut line) = state?;
        let piece = match bytes.next().await? {
            Ok(piece) => piece,
            Err(error) => return Some((Err(Broken::Wire(error.without_url())), None)),
        };
        for byte in &piece {
            match byte {
                b'\n' if line == 0 => event = 0,
                b'\n' => line = 0,
                b'\r' => {}
                _ => line += 1,
            }
            event += 1;
            if event > longest {
                return Some((Err(Broken::TooLong), None));
            }
        }
        Some((Ok(piece), Some((bytes, event, line))))
    });
    stream.boxed()
}
