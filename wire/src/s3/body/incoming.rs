//! The bytes of a request as they come, within limits of time.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::sync::Mutex;

use crate::fault::Fault;
use crate::limits::{BODY_WAIT_MAX, REFUSED_BYTES_MAX, REFUSED_WAIT_MAX};
use crate::receive::Body;
use crate::s3::errors::incomplete_body;

/// A body, of which its operation may take a part only.
#[derive(Clone)]
pub(crate) struct Incoming {
    raw: Arc<Mutex<Raw>>,
    /// The client waits to be asked for the body.
    waits: bool,
    /// Its size, if the transport knows it.
    pub(super) size: Option<u64>,
}

struct Raw {
    body: Body,
    received_bytes: u64,
}

impl Incoming {
    /// The body of a request with these headers.
    pub(crate) fn new(headers: &HeaderMap, body: Body) -> Self {
        let (waits, size) = (headers.contains_key(header::EXPECT), body.size_hint().exact());
        Incoming { raw: Arc::new(Mutex::new(Raw { body, received_bytes: 0 })), waits, size }
    }

    /// The next bytes; none at the end.
    pub(super) async fn next(&self) -> Result<Option<Bytes>, Fault> {
        self.raw.lock().await.next().await
    }

    /// Takes what nobody wanted, within limits: a client that is still sending would miss the answer. Returns whether the
    /// connection can go on: one with a body that does not end cannot, nor one whose client was never asked for it, because it
    /// may send it or not.
    pub(crate) async fn drain(&self) -> bool {
        let drained = async {
            let mut raw = self.raw.lock().await;
            if self.waits && raw.received_bytes == 0 {
                return false;
            }
            let limit = raw.received_bytes.saturating_add(REFUSED_BYTES_MAX);
            while raw.received_bytes < limit {
                match raw.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return true,
                    Err(_) => return false,
                }
            }
            false
        };
        tokio::time::timeout(REFUSED_WAIT_MAX, drained).await.unwrap_or(false)
    }
}

impl Raw {
    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        match tokio::time::timeout(BODY_WAIT_MAX, self.body.frame()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(frame))) => {
                let bytes = frame.into_data().unwrap_or_default();
                self.received_bytes += bytes.len() as u64;
                Ok(Some(bytes))
            }
            Ok(Some(Err(_))) => Err(incomplete_body()),
            Err(_) => Err(Fault::client(
                "RequestTimeout",
                "Your socket connection to the server was not read from or written to within the timeout period. Idle \
                 connections will be closed.",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;
    use crate::receive::BodyError;

    fn incoming(
        headers: &HeaderMap,
        pieces: impl futures_core::Stream<Item = Bytes> + Send + 'static,
    ) -> Incoming {
        let frames = pieces.map(|piece| Ok::<_, BodyError>(Frame::data(piece)));
        Incoming::new(headers, StreamBody::new(frames).boxed_unsync())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_coming_is_not_waited_for() {
        let sent = stream::iter([Bytes::from_static(b"abc")]).chain(stream::pending());
        let incoming = incoming(&HeaderMap::new(), sent);
        assert_eq!(incoming.next().await.unwrap().unwrap(), "abc");
        assert_eq!(incoming.next().await.unwrap_err().code, "RequestTimeout");
    }

    #[tokio::test]
    async fn what_is_refused_is_taken_within_limits() {
        let piece = Bytes::from(vec![0; 1 << 20]);
        let endless = || {
            stream::repeat_with({
                let piece = piece.clone();
                move || piece.clone()
            })
        };
        let sending = incoming(&HeaderMap::new(), endless());
        assert!(!sending.drain().await, "there is more");
        assert_eq!(sending.raw.lock().await.received_bytes, REFUSED_BYTES_MAX);
        let whole = http_body_util::Full::new(Bytes::from_static(b"x")).map_err(|never| match never {});
        assert!(Incoming::new(&HeaderMap::new(), whole.boxed_unsync()).drain().await);
        let waiting = HeaderMap::from_iter([(header::EXPECT, "100-continue".parse().unwrap())]);
        let waiting = incoming(&waiting, endless());
        assert!(!waiting.drain().await);
        assert_eq!(waiting.raw.lock().await.received_bytes, 0, "nobody asked for it");
    }
}
