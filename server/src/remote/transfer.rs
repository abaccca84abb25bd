//! Bodies of blobs on their way to and from a server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_model::blob::Body;
use anabranch_model::{Error, Result};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};

use crate::api::error::ErrorBody;
use crate::api::transfer::{FAILED, decode};
use crate::limits::ANSWER_WAIT_MAX;

/// What can be said about a body while it is being sent.
#[derive(Clone, Default)]
pub(super) struct Sending {
    pieces: Arc<AtomicU64>,
    failed: Arc<Mutex<Option<Error>>>,
}

impl Sending {
    /// How many pieces were taken from the body.
    pub(super) fn pieces(&self) -> u64 {
        self.pieces.load(Ordering::Relaxed)
    }

    /// The error that ended the body; the connection ended with it.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The body as it is sent.
    pub(super) fn body(&self, body: Body) -> UnsyncBoxBody<Bytes, Error> {
        let sending = self.clone();
        let frames = body.map(move |piece| {
            sending.pieces.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = &piece {
                *sending.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
            }
            piece.map(Frame::data)
        });
        UnsyncBoxBody::new(StreamBody::new(frames))
    }
}

/// The body of an answer, which must have this many bytes.
pub(super) fn fetched(incoming: Incoming, length_bytes: u64) -> Body {
    Box::pin(stream::unfold(Some((incoming, length_bytes)), |state| async move {
        let (mut incoming, left) = state?;
        match next_piece(&mut incoming, left).await {
            Ok(Some(piece)) => {
                let left = left - piece.len() as u64;
                Some((Ok(piece), Some((incoming, left))))
            }
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    }))
}

/// The next bytes; none at the end of the body. A body that ends early or late is an error.
async fn next_piece(incoming: &mut Incoming, left: u64) -> Result<Option<Bytes>> {
    let broken = |what: &dyn std::fmt::Display| Error::Unavailable(format!("the blob breaks off: {what}"));
    let frame = match tokio::time::timeout(ANSWER_WAIT_MAX, incoming.frame()).await {
        Ok(Some(Ok(frame))) => frame,
        Ok(Some(Err(error))) => return Err(broken(&error)),
        Ok(None) if left == 0 => return Ok(None),
        Ok(None) => return Err(broken(&format_args!("{left} bytes are missing"))),
        Err(_) => return Err(broken(&"the server has fallen silent")),
    };
    match frame.into_data() {
        Ok(piece) if piece.len() as u64 <= left => Ok(Some(piece)),
        Ok(_) => Err(broken(&"the server sent too many bytes")),
        Err(frame) => match frame.into_trailers() {
            Ok(trailers) => Err(decode::<ErrorBody>(&trailers, &FAILED)?.into()),
            Err(_) => Err(broken(&"the server sent something else")),
        },
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::blob::{BlobKey, BlobStore, BucketName, GetOptions};
    use axum::Router;
    use axum::http::header;
    use axum::response::IntoResponse;
    use axum::routing::post;
    use tokio::net::TcpListener;

    use super::*;
    use crate::api::Operation;
    use crate::api::transfer::{HEAD, encode, frames};
    use crate::http::{Port, Stopper, serve};
    use crate::remote::Remote;

    /// A server that announces six bytes and sends these pieces.
    async fn read_from(pieces: Vec<Result<Bytes>>) -> Vec<Result<Bytes>> {
        let head = r#"{"meta":{"size":6,"etag":"e","properties":{},"checksums":{},"modified_at_ms":0,"parts":null},
            "first":0,"end":6}"#;
        let head: serde_json::Value = serde_json::from_str(head).unwrap();
        let answer = move || async move {
            let headers =
                [(HEAD, encode(&head).unwrap()), (header::TRAILER, header::HeaderValue::from_name(FAILED))];
            let body = axum::body::Body::new(StreamBody::new(frames(Box::pin(stream::iter(pieces)))));
            (headers, body).into_response()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route(crate::api::GetBlob::PATH, post(answer));
        let (_stopper, stop) = Stopper::new();
        tokio::spawn(serve(Port { name: "test", listener, router, tls: None, connections_max: 1 }, stop));
        let (bucket, key) = (BucketName::new("photos").unwrap(), BlobKey::new("k").unwrap());
        let blob = Remote::new(address).get(&bucket, &key, GetOptions::default()).await.unwrap();
        blob.body.collect().await
    }

    fn piece(text: &'static str) -> Result<Bytes> {
        Ok(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn the_error_behind_a_body_comes_through() {
        let corrupt = || Err(Error::Corrupt("a file is damaged".to_owned()));
        let pieces = read_from(vec![piece("abc"), corrupt()]).await;
        assert_eq!(pieces.last(), Some(&corrupt()));
        assert_eq!(pieces.iter().flatten().map(Bytes::len).sum::<usize>(), 3);
    }

    #[tokio::test]
    async fn a_body_of_another_length_is_an_error() {
        assert!(read_from(vec![piece("abc"), piece("def")]).await.iter().all(Result::is_ok));
        for wrong in [vec![piece("abc")], vec![piece("abcdefg")], vec![]] {
            let pieces = read_from(wrong).await;
            assert!(matches!(pieces.last(), Some(Err(Error::Unavailable(_)))), "{pieces:?}");
        }
    }
}
