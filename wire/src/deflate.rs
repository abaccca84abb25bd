//! Answers that callers want compressed. DynamoDB does it, and only with what is long enough to be worth it.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{HeaderMap, HeaderValue, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};

use crate::receive::Body;

/// Shorter answers are given as they are.
const BYTES_MIN: u64 = 4 << 10;

/// The answer, compressed if the caller wants that.
pub(crate) async fn deflated(request: &HeaderMap, response: Response<Body>) -> Response<Body> {
    let length = http_body::Body::size_hint(response.body()).exact().unwrap_or(0);
    if length < BYTES_MIN || !is_wanted(request) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    // It is whole in memory already. Where it is not, what broke off must not look like a short answer.
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            let broken = StreamBody::new(stream::iter([Err::<Frame<Bytes>, _>(error)]));
            return Response::from_parts(head, broken.boxed_unsync());
        }
    };
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Response::from_parts(head, Full::new(deflate(&body)).map_err(|never| match never {}).boxed_unsync())
}

fn deflate(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.expect("memory takes whatever is written to it").into()
}

/// Whether gzip is among the encodings that a caller takes, and not with a weight of nothing.
fn is_wanted(request: &HeaderMap) -> bool {
    let values = request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|encoding| {
        let (name, weight) = encoding.split_once(';').unwrap_or((encoding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        ["gzip", "*"].contains(&name.trim().to_ascii_lowercase().as_str())
            && weight.is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_say_what_they_take() {
        let wants = |value: &'static str| {
            is_wanted(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]))
        };
        for value in ["gzip", "deflate, gzip;q=0.5", "GZIP", "*", "br;q=1.0, *;q=0.1"] {
            assert!(wants(value), "{value}");
        }
        for value in ["identity", "", "gzip;q=0", "deflate", "gzip;q=x"] {
            assert!(!wants(value), "{value}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }
}
