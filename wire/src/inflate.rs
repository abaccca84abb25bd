//! Bodies that clients compress: those of calls that report many figures.

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, StatusCode, header};

use crate::fault::Fault;
use crate::limits::INFLATED_BYTES_MAX;

/// Whether a body comes compressed.
pub(crate) fn is_compressed(headers: &HeaderMap) -> bool {
    encoding(headers) == "gzip"
}

fn encoding(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap_or("?").trim())
}

/// The body as it was before its compression, if there is one.
pub(crate) fn inflated(headers: &HeaderMap, body: Bytes) -> Result<Bytes, Fault> {
    match encoding(headers) {
        "gzip" => inflate(&body),
        "" | "identity" => Ok(body),
        // Signatures of chunks are no compression.
        other if other.contains("aws-chunked") => Ok(body),
        other => {
            let message = format!(
                "the content encoding {other:?} is not supported: send the body as it is, or as gzip"
            );
            Err(Fault::serialization(message).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
        }
    }
}

fn inflate(body: &[u8]) -> Result<Bytes, Fault> {
    let mut whole = Vec::new();
    // One byte more tells a body of the largest size from one that goes on.
    let most = INFLATED_BYTES_MAX as u64 + 1;
    let read = MultiGzDecoder::new(body).take(most).read_to_end(&mut whole);
    read.map_err(|error| Fault::serialization(format!("the body is no gzip: {error}")))?;
    if whole.len() > INFLATED_BYTES_MAX {
        let message =
            format!("the request is too large: a compressed body may hold {INFLATED_BYTES_MAX} bytes");
        let fault = Fault::client("RequestEntityTooLargeException", message);
        return Err(fault.with_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    Ok(whole.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_was_compressed_comes_back_within_the_limit() {
        assert_eq!(inflate(&deflate(b"{}")).unwrap(), "{}");
        assert_eq!(inflate(&deflate(&vec![b' '; INFLATED_BYTES_MAX])).unwrap().len(), INFLATED_BYTES_MAX);
        let bomb = deflate(&vec![0; 64 << 20]);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(inflate(&bomb).unwrap_err().status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn what_is_no_gzip_is_refused() {
        let whole = deflate(b"some words");
        for body in [&b"{}"[..], b"", &whole[..whole.len() - 3], &[0x1f, 0x8b]] {
            assert_eq!(inflate(body).unwrap_err().code, "SerializationException", "{body:?}");
        }
    }
}
