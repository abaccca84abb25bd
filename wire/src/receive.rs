//! The body of a call, within limits of size, memory and time.

use std::fmt;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::Body as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::context::{Memory, Reservation};
use crate::fault::Fault;
use crate::inflate::Inflation;
use crate::limits::{BODY_BYTES_MAX, BODY_WAIT_MAX, UNANNOUNCED_BYTES, UNANNOUNCED_BYTES_SMALL};

/// The body of a request or of an answer.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What went wrong with a body on its way.
#[derive(Debug)]
pub struct BodyError(pub BoxError);

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// Reads the body of a call. The reservation covers the body and what is made of it; the caller holds it until that is
/// gone.
pub(crate) async fn receive(
    headers: &HeaderMap,
    body: Body,
    inflation: Inflation,
    memory: &dyn Memory,
) -> Result<(Bytes, Reservation), Fault> {
    let length = announced(headers, &body)?;
    // All that is known to be needed is taken at once: who holds some and waits for more keeps others from both.
    let inflated = inflation.bytes_max(length.unwrap_or(BODY_BYTES_MAX));
    let mut held = vec![reserve(memory, cost(length.unwrap_or(UNANNOUNCED_BYTES)) + inflated as u64).await?];
    let body = Limited::new(body, length.unwrap_or(BODY_BYTES_MAX));
    let arrived = async {
        match length {
            Some(_) => body.collect().await.map(|collected| collected.to_bytes()).map_err(broken),
            None => collect_unannounced(body, inflated, memory, &mut held).await,
        }
    };
    match tokio::time::timeout(BODY_WAIT_MAX, arrived).await {
        Ok(arrived) => Ok((arrived?, Box::new(held))),
        Err(_) => {
            let message = format!("the body did not arrive within {} seconds", BODY_WAIT_MAX.as_secs());
            Err(Fault::client("RequestTimeout", message).with_status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

/// Reads a body whose length nobody knows, and takes memory as it grows. One that is not small gets all that the largest may
/// need, instead of what it had: several that grow would keep each other from their last step.
async fn collect_unannounced(
    mut body: Limited<Body>,
    inflated: usize,
    memory: &dyn Memory,
    held: &mut Vec<Reservation>,
) -> Result<Bytes, Fault> {
    let (mut whole, mut covered) = (BytesMut::new(), UNANNOUNCED_BYTES);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        while whole.len() + data.len() > covered {
            if covered < UNANNOUNCED_BYTES_SMALL {
                held.push(reserve(memory, cost(covered)).await?);
                covered *= 2;
            } else {
                held.clear();
                held.push(reserve(memory, cost(BODY_BYTES_MAX) + inflated as u64).await?);
                covered = BODY_BYTES_MAX;
            }
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// The bytes as they come, and what is decoded from them.
fn cost(length: usize) -> u64 {
    2 * length as u64
}

async fn reserve(memory: &dyn Memory, bytes: u64) -> Result<Reservation, Fault> {
    memory.reserve(bytes).await.map_err(|error| {
        Fault::of_server(&error).unwrap_or_else(|| Fault::server("InternalFailure", error.to_string()))
    })
}

/// The length of the body, if it is known before it comes.
fn announced(headers: &HeaderMap, body: &Body) -> Result<Option<usize>, Fault> {
    let header = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let Some(length) = header.or_else(|| body.size_hint().exact()) else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|length| *length <= BODY_BYTES_MAX);
    length.map(Some).ok_or_else(too_large)
}

fn broken(error: BoxError) -> Fault {
    if error.is::<LengthLimitError>() {
        return too_large();
    }
    Fault::client("IncompleteBody", format!("the request broke off: {error}"))
}

fn too_large() -> Fault {
    let message = format!("the request is too large: its body may have {BODY_BYTES_MAX} bytes");
    Fault::client("RequestEntityTooLargeException", message).with_status(StatusCode::PAYLOAD_TOO_LARGE)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use http_body_util::{Empty, Full, StreamBody};

    use super::*;
    use crate::dispatch::Service;
    use crate::limits::INFLATION_MAX;

    /// Memory without end that notes what is taken.
    #[derive(Default)]
    struct Plenty(parking_lot::Mutex<Vec<u64>>);

    #[async_trait]
    impl Memory for Plenty {
        async fn reserve(&self, bytes: u64) -> anabranch_model::Result<Reservation> {
            self.0.lock().push(bytes);
            Ok(Box::new(()))
        }
    }

    fn full(bytes: impl Into<Bytes>) -> Body {
        Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
    }

    fn inflation(headers: &HeaderMap) -> Inflation {
        Inflation::of(headers, Service::DynamoDb).unwrap()
    }

    async fn received(length: Option<usize>, body: Body) -> Result<Bytes, StatusCode> {
        let mut headers = HeaderMap::new();
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        receive(&headers, body, inflation(&headers), &Plenty::default())
            .await
            .map(|(bytes, _)| bytes)
            .map_err(|fault| fault.status)
    }

    #[tokio::test]
    async fn a_large_body_is_refused_whether_it_is_announced_or_not() {
        assert_eq!(received(Some(2), full("{}")).await, Ok("{}".into()));
        assert_eq!(received(None, full("{}")).await, Ok("{}".into()));
        let empty = Empty::new().map_err(|never| match never {}).boxed_unsync();
        assert_eq!(received(Some(BODY_BYTES_MAX + 1), empty).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let large = full(vec![b' '; BODY_BYTES_MAX + 1]);
        assert_eq!(received(None, large).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        assert_eq!(received(Some(1), full("{}")).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
    }

    #[tokio::test]
    async fn memory_is_taken_for_what_comes() {
        let taken = async |headers: &HeaderMap, body| {
            let memory = Plenty::default();
            receive(headers, body, inflation(headers), &memory).await.unwrap();
            memory.0.into_inner()
        };
        let nothing = || Empty::new().map_err(|never| match never {}).boxed_unsync();
        let mut headers = HeaderMap::new();
        assert_eq!(taken(&headers, nothing()).await, [0], "a call without a body needs none");
        assert_eq!(taken(&headers, full(vec![0; 5_000])).await, [10_000]);
        let frames = (0..3).map(|_| Ok(http_body::Frame::data(Bytes::from(vec![0; UNANNOUNCED_BYTES]))));
        let unannounced = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
        let step = cost(UNANNOUNCED_BYTES);
        assert_eq!(taken(&headers, unannounced).await, [step, step, 2 * step]);
        let frames = (0..33).map(|_| Ok(http_body::Frame::data(Bytes::from(vec![0; UNANNOUNCED_BYTES]))));
        let large = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
        assert_eq!(taken(&headers, large).await.last(), Some(&cost(BODY_BYTES_MAX)), "enough for any body");
        headers.insert(header::CONTENT_ENCODING, "gzip".parse().unwrap());
        assert_eq!(taken(&headers, full("{}")).await, [4 + 2 * INFLATION_MAX as u64], "all at once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, BodyError>>();
        let body = StreamBody::new(never).boxed_unsync();
        assert_eq!(received(None, body).await, Err(StatusCode::REQUEST_TIMEOUT));
    }
}
