//! GetObject.

use anabranch_model::Error;
use anabranch_model::blob::{BlobMeta, ChecksumScope, Checksums, GetOptions, Range};
use http::header::{CONTENT_RANGE, RANGE};
use http::{HeaderMap, HeaderName, Response, StatusCode};

use super::answer::{empty, head, identify, streamed};
use super::checksum;
use super::errors::{fault, invalid_request, with};
use super::headers::{range, read_conditions, set, unmet_read};
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let conditions = read_conditions(&rest.headers, "", context.clock.now())?;
    let options = GetOptions { range: piece(rest)?, conditions };
    let partial = options.range.is_some();
    let blob = match context.ports.blobs.get(bucket, key, options).await {
        Ok(blob) => blob,
        Err(error) => return refused(context, rest, error).await,
    };
    let status = if partial { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut response = streamed(status, blob.body);
    let headers = response.headers_mut();
    head(headers, &blob.meta, blob.range.end - blob.range.start, &rest.query)?;
    describe(headers, rest, &blob.meta, (partial, &blob.range), blob.part.as_ref())?;
    Ok(response)
}

/// The piece that is asked for, if any: bytes or a part.
pub(super) fn piece(rest: &Rest) -> Result<Option<Range>, Fault> {
    let bytes = range(&rest.headers);
    if !rest.query.has("partNumber") {
        return Ok(bytes);
    }
    let part = Range::Part(rest.part_number()?);
    match bytes {
        None => Ok(Some(part)),
        Some(_) => Err(invalid_request("Cannot specify both Range header and partNumber query parameter")),
    }
}

/// Adds what depends on how much of the object is answered: which bytes, and the checksums of the whole or of the `part`.
pub(super) fn describe(
    headers: &mut HeaderMap,
    rest: &Rest,
    meta: &BlobMeta,
    (partial, bytes): (bool, &std::ops::Range<u64>),
    part: Option<&Checksums>,
) -> Result<(), Fault> {
    let whole = *bytes == (0..meta.size);
    if partial && !bytes.is_empty() {
        let text = format!("bytes {}-{}/{}", bytes.start, bytes.end - 1, meta.size);
        set(headers, CONTENT_RANGE, &text);
    }
    // A part has checksums of its own: one of all parts together is not that of any of them.
    let part_alone = rest.query.has("partNumber") && meta.checksums.scope() == ChecksumScope::Parts;
    let wanted = rest.header("x-amz-checksum-mode")?.is_some_and(|mode| mode.eq_ignore_ascii_case("ENABLED"));
    match part.filter(|_| part_alone) {
        Some(part) if wanted => {
            checksum::describe(headers, part, None);
            set(headers, checksum::TYPE, checksum::scope_name(ChecksumScope::Parts));
        }
        None if wanted && whole && !part_alone => checksum::describe(headers, &meta.checksums, meta.parts),
        _ => {}
    }
    if let Some(parts) = meta.parts.filter(|_| rest.query.has("partNumber")) {
        set(headers, HeaderName::from_static("x-amz-mp-parts-count"), &parts.to_string());
    }
    Ok(())
}

/// Why the object is not answered. That a reader has it already tells which one it is.
pub(super) async fn refused(context: &Context, rest: &Rest, error: Error) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    match error {
        Error::PreconditionFailed(_) => Err(unmet_read(&rest.headers, "", &error)),
        Error::RangeInvalid { .. } => {
            let asked = rest.header(RANGE.as_str())?.unwrap_or("");
            Err(with(fault(error), "RangeRequested", asked))
        }
        Error::NotModified(_) => {
            let meta = context.ports.blobs.head(bucket, key).await.map_err(fault)?;
            Ok(not_modified(&meta))
        }
        Error::PartNotFound(asked) => {
            let parts = context.ports.blobs.head(bucket, key).await.map_err(fault)?.parts.unwrap_or(1);
            let fault = Fault::client("InvalidPartNumber", "The requested partnumber is not satisfiable");
            let fault = with(fault, "ActualPartCount", parts.to_string());
            let fault = with(fault, "PartNumberRequested", asked.to_string());
            Err(fault.with_status(StatusCode::RANGE_NOT_SATISFIABLE))
        }
        error => Err(fault(error)),
    }
}

/// The answer to a reader who has the object already.
fn not_modified(meta: &BlobMeta) -> Response<Body> {
    let mut response = empty(StatusCode::NOT_MODIFIED);
    identify(response.headers_mut(), meta);
    response
}
