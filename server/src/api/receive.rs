//! A request becomes a checked value here, within limits of size, memory and time.

use anabranch_model::{Error, Result};
use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::error::{ErrorBody, status};
use super::wire::FailedReply;
use crate::http::{Admission, Budget};
use crate::limits::{BODY_BYTES_MAX, BODY_WAIT_MAX};

/// An answer that is not a success.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    error: Error,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Refusal { status, error: Error::Invalid(message.into()) }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { status: status(&error), error }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let message = self.error.to_string();
        let reply = FailedReply { error: ErrorBody::from(self.error), message };
        (self.status, Json(reply)).into_response()
    }
}

/// Reads the body of a request. The admission covers the body and what is made of it; the caller holds it until
/// that is gone.
pub(super) async fn receive<T: DeserializeOwned>(
    request: Request,
    budget: &Budget,
) -> std::result::Result<(T, Admission), Refusal> {
    let length = check_head(request.headers())?;
    // The bytes as they came, and the payloads decoded from them.
    let admission = budget.admit(2 * length as u64).await?;
    let body = Limited::new(request.into_body(), length);
    let bytes = match tokio::time::timeout(BODY_WAIT_MAX, body.collect()).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
        Ok(Err(error)) => {
            return Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the request broke off: {error}")));
        }
        Err(_) => {
            let message = format!("the body did not arrive within {} seconds", BODY_WAIT_MAX.as_secs());
            return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message));
        }
    };
    Ok((parse(&bytes)?, admission))
}

/// The most bytes that the body may have: what the client announces, or the limit if it announces nothing.
fn check_head(headers: &HeaderMap) -> std::result::Result<usize, Refusal> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = content_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let message = "the content type must be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let length: u64 = announced.unwrap_or(BODY_BYTES_MAX as u64);
    usize::try_from(length).ok().filter(|length| *length <= BODY_BYTES_MAX).ok_or_else(too_large)
}

fn too_large() -> Refusal {
    let message = format!("the request is too large: its body may have {BODY_BYTES_MAX} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::Invalid(format!("the request is not understood: {error}")))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;
    use crate::api::wire::StreamRequest;

    async fn receive_stream(request: Request) -> std::result::Result<String, StatusCode> {
        let received = receive::<StreamRequest>(request, &Budget::new(1 << 20)).await;
        received.map(|(request, _)| request.stream.0.to_string()).map_err(|refusal| refusal.status)
    }

    fn post(content_type: &str, body: impl Into<Body>) -> Request {
        Request::post("/").header(header::CONTENT_TYPE, content_type).body(body.into()).unwrap()
    }

    #[tokio::test]
    async fn only_json_of_the_right_shape_is_taken() {
        let good = r#"{"stream":"clicks"}"#;
        assert_eq!(receive_stream(post("application/json", good)).await, Ok("clicks".into()));
        assert_eq!(receive_stream(post("Application/JSON; charset=utf-8", good)).await, Ok("clicks".into()));
        for content_type in ["text/plain", "", "application/jsonx"] {
            assert_eq!(
                receive_stream(post(content_type, good)).await,
                Err(StatusCode::UNSUPPORTED_MEDIA_TYPE)
            );
        }
        for body in
            ["", "{}", "[]", r#"{"stream":"a/b"}"#, r#"{"stream":"a","more":1}"#, r#"{"stream":"a"} x"#]
        {
            let received = receive_stream(post("application/json", body)).await;
            assert_eq!(received, Err(StatusCode::BAD_REQUEST), "{body}");
        }
    }

    #[tokio::test]
    async fn a_large_body_is_refused_before_it_is_read() {
        let announced = Request::post("/")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_LENGTH, BODY_BYTES_MAX + 1)
            .body(Body::from("{}"))
            .unwrap();
        assert_eq!(receive_stream(announced).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let unannounced = post("application/json", vec![b' '; BODY_BYTES_MAX + 1]);
        assert_eq!(receive_stream(unannounced).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = Body::from_stream(futures_util::stream::pending::<Result<bytes::Bytes>>());
        assert_eq!(receive_stream(post("application/json", never)).await, Err(StatusCode::REQUEST_TIMEOUT));
    }
}
