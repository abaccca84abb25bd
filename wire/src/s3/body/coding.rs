//! How a body is sent, as the header `x-amz-content-sha256` says it.

use http::HeaderMap;

use crate::fault::Fault;
use crate::s3::errors::{invalid, not_implemented};
use crate::s3::headers::text;

/// How a body is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it is.
    Plain,
    /// As it is, and this is its SHA-256 in hexadecimal digits.
    Hashed(String),
    /// In chunks, each with its signature or none has one.
    Chunked {
        /// Whether the chunks are signed.
        signed: bool,
        /// Whether checksums follow the last one.
        trailers: bool,
    },
}

impl Coding {
    /// How the body of this request is sent.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Coding, Fault> {
        let chunked = |signed, trailers| Ok(Coding::Chunked { signed, trailers });
        match text(headers, "x-amz-content-sha256")? {
            None | Some("" | "UNSIGNED-PAYLOAD") => Ok(Coding::Plain),
            Some("STREAMING-AWS4-HMAC-SHA256-PAYLOAD") => chunked(true, false),
            Some("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER") => chunked(true, true),
            Some("STREAMING-UNSIGNED-PAYLOAD-TRAILER") => chunked(false, true),
            Some(other) if other.starts_with("STREAMING-AWS4-ECDSA") => Err(not_implemented(other)),
            Some(hash) if hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                Ok(Coding::Hashed(hash.to_ascii_lowercase()))
            }
            Some(_) => Err(invalid(
                "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, \
                 STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 value.",
            )),
        }
    }
}
