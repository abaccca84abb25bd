//! Bodies of blobs as they travel: the bytes as they are, in pieces, and the JSON of the call beside them.
//!
//! ```text
//!   put   request   anabranch-head: base64(JSON of the request)    body: the blob
//!   get   answer    anabranch-head: base64(JSON of the reply)      body: the blob
//!                   anabranch-failed: base64(JSON of an error), behind the body if it could not be read to its end
//! ```
//!
//! No side ever holds more than a few pieces of a body.

use std::sync::Arc;

use anabranch_model::blob::Body;
use anabranch_model::limits::BODY_BYTES_MAX;
use anabranch_model::{Error, Result};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use hyper::body::Frame;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use super::error::ErrorBody;
use super::meter;
use crate::limits::{BODY_WAIT_MAX, REFUSED_BYTES_MAX, REFUSED_WAIT_MAX};

/// The header with the JSON of a call whose body is a blob.
pub const HEAD: HeaderName = HeaderName::from_static("anabranch-head");
/// What stands behind a blob that could not be read to its end.
pub const FAILED: HeaderName = HeaderName::from_static("anabranch-failed");

/// A value as a header.
pub(crate) fn encode(value: &impl Serialize) -> Result<HeaderValue> {
    let json = serde_json::to_vec(value)
        .map_err(|error| Error::Invalid(format!("the request cannot be written as JSON: {error}")))?;
    HeaderValue::from_str(&STANDARD.encode(json))
        .map_err(|error| Error::Invalid(format!("the request cannot be a header: {error}")))
}

/// The value in a header.
pub(crate) fn decode<T: DeserializeOwned>(headers: &HeaderMap, name: &HeaderName) -> Result<T> {
    let wrong = |what: &dyn std::fmt::Display| Error::Invalid(format!("the header {name} {what}"));
    let value = headers.get(name).ok_or_else(|| wrong(&"is missing"))?;
    let json =
        STANDARD.decode(value.as_bytes()).map_err(|error| wrong(&format_args!("is wrong: {error}")))?;
    serde_json::from_slice(&json).map_err(|error| wrong(&format_args!("is not understood: {error}")))
}

/// The body of a request, of which a store may take a part only.
#[derive(Clone)]
pub(super) struct Incoming(Arc<Mutex<Pieces>>);

struct Pieces {
    body: axum::body::Body,
    received_bytes: u64,
    ended: bool,
}

impl Incoming {
    pub(super) fn new(body: axum::body::Body) -> Self {
        Incoming(Arc::new(Mutex::new(Pieces { body, received_bytes: 0, ended: false })))
    }

    /// The body for a store. It ends with an error if the client breaks off or stops sending.
    pub(super) fn body(&self) -> Body {
        Box::pin(stream::unfold(self.clone(), |incoming| async move {
            let piece = incoming.0.lock().await.next().await?;
            Some((piece, incoming))
        }))
    }

    /// Takes what a store did not want, within limits: a client that is still sending would miss the answer.
    pub(super) async fn drain(&self) {
        let drained = async {
            let mut pieces = self.0.lock().await;
            let limit = pieces.received_bytes.saturating_add(REFUSED_BYTES_MAX);
            while pieces.received_bytes < limit && matches!(pieces.next().await, Some(Ok(_))) {}
        };
        let _ = tokio::time::timeout(REFUSED_WAIT_MAX, drained).await;
    }
}

impl Pieces {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.ended {
            return None;
        }
        let piece = match tokio::time::timeout(BODY_WAIT_MAX, self.body.frame()).await {
            Ok(None) => None,
            Ok(Some(Ok(frame))) => Some(self.count(frame.into_data().unwrap_or_default())),
            Ok(Some(Err(error))) => {
                Some(Err(Error::Unavailable(format!("the body of the request broke off: {error}"))))
            }
            Err(_) => Some(Err(Error::Unavailable(format!(
                "no byte of the body came for {} seconds",
                BODY_WAIT_MAX.as_secs()
            )))),
        };
        self.ended = !matches!(piece, Some(Ok(_)));
        piece
    }

    fn count(&mut self, piece: Bytes) -> Result<Bytes> {
        self.received_bytes += piece.len() as u64;
        meter::blob_bytes_received(piece.len());
        if self.received_bytes > BODY_BYTES_MAX {
            return Err(Error::BodyTooLarge { limit_bytes: BODY_BYTES_MAX });
        }
        Ok(piece)
    }
}

/// The body of an answer: the bytes, and behind them the error that ended them early.
pub(crate) fn frames(body: Body) -> impl Stream<Item = Result<Frame<Bytes>>> + Send {
    body.map(|piece| match piece {
        Ok(bytes) => {
            meter::blob_bytes_sent(bytes.len());
            Ok(Frame::data(bytes))
        }
        Err(error) => {
            let mut trailers = HeaderMap::new();
            trailers.insert(FAILED, encode(&ErrorBody::from(error))?);
            Ok(Frame::trailers(trailers))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_as_headers() {
        let body = ErrorBody::Invalid { message: "bad\r\nä\u{0}".to_owned() };
        let headers = HeaderMap::from_iter([(HEAD, encode(&body).unwrap())]);
        assert_eq!(decode::<ErrorBody>(&headers, &HEAD), Ok(body));
        for wrong in ["", "?", "e30="] {
            let headers = HeaderMap::from_iter([(HEAD, HeaderValue::from_static(wrong))]);
            assert!(decode::<ErrorBody>(&headers, &HEAD).is_err(), "{wrong}");
        }
        assert!(decode::<ErrorBody>(&HeaderMap::new(), &HEAD).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_coming_ends_with_an_error() {
        let sent = stream::iter([Ok::<_, Error>(Bytes::from_static(b"abc"))]).chain(stream::pending());
        let incoming = Incoming::new(axum::body::Body::from_stream(sent));
        let pieces: Vec<_> = incoming.body().collect().await;
        assert_eq!(pieces[0], Ok(Bytes::from_static(b"abc")));
        assert!(matches!(pieces[1], Err(Error::Unavailable(_))), "{pieces:?}");
        assert_eq!(pieces.len(), 2);
    }

    #[tokio::test]
    async fn what_is_refused_is_taken_within_limits() {
        let piece = Bytes::from(vec![0; 1 << 20]);
        let endless = stream::repeat_with(move || Ok::<_, Error>(piece.clone()));
        let incoming = Incoming::new(axum::body::Body::from_stream(endless));
        incoming.drain().await;
        assert_eq!(incoming.0.lock().await.received_bytes, REFUSED_BYTES_MAX);
    }
}
