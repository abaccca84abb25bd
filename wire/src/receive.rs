//! The body of a call, within limits of size, memory and time.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::context::{Memory, Reservation};
use crate::fault::Fault;
use crate::limits::{BODY_BYTES_MAX, BODY_WAIT_MAX};

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
    memory: &dyn Memory,
) -> Result<(Bytes, Reservation), Fault> {
    let length = announced(headers)?;
    // The bytes as they came, and what is decoded from them.
    let reserved = memory.reserve(2 * length as u64).await;
    let reservation = reserved.map_err(|error| {
        Fault::of_server(&error).unwrap_or_else(|| Fault::server("InternalFailure", error.to_string()))
    })?;
    match tokio::time::timeout(BODY_WAIT_MAX, Limited::new(body, length).collect()).await {
        Ok(Ok(collected)) => Ok((collected.to_bytes(), reservation)),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Fault::client("IncompleteBody", format!("the request broke off: {error}"))),
        Err(_) => {
            let message = format!("the body did not arrive within {} seconds", BODY_WAIT_MAX.as_secs());
            Err(Fault::client("RequestTimeout", message).with_status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

/// The most bytes that the body may have: what the client announces, or the limit if it announces nothing.
fn announced(headers: &HeaderMap) -> Result<usize, Fault> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let length: u64 = announced.unwrap_or(BODY_BYTES_MAX as u64);
    usize::try_from(length).ok().filter(|length| *length <= BODY_BYTES_MAX).ok_or_else(too_large)
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

    struct Plenty;

    #[async_trait]
    impl Memory for Plenty {
        async fn reserve(&self, _bytes: u64) -> anabranch_model::Result<Reservation> {
            Ok(Box::new(()))
        }
    }

    fn full(bytes: impl Into<Bytes>) -> Body {
        Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
    }

    async fn received(length: Option<usize>, body: Body) -> Result<Bytes, StatusCode> {
        let mut headers = HeaderMap::new();
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        receive(&headers, body, &Plenty).await.map(|(bytes, _)| bytes).map_err(|fault| fault.status)
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

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, BodyError>>();
        let body = StreamBody::new(never).boxed_unsync();
        assert_eq!(received(None, body).await, Err(StatusCode::REQUEST_TIMEOUT));
    }
}
