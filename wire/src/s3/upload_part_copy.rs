//! UploadPartCopy.

use anabranch_model::Error;
use anabranch_model::blob::{BodyOptions, GetOptions, Range};
use http::Response;

use super::answer::{document, quoted};
use super::checksum;
use super::copy_object::{CONDITIONS, refused, source, source_conditions};
use super::errors::{fault, invalid_argument, invalid_request};
use super::headers::{parse_range, unmet_read};
use super::moment::iso;
use super::rest::Rest;
use super::uploading::{shown, summary, with_checksum};
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

/// The bytes of the source that become the part.
const RANGE: &str = "x-amz-copy-source-range";

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (upload, number) = (rest.upload()?, rest.part_number()?);
    let source = source(rest)?;
    let range = rest.header(RANGE)?.map(range).transpose()?;
    let options = GetOptions { range, conditions: source_conditions(context, rest)? };
    let blob = match context.ports.blobs.get(&source.0, &source.1, options).await {
        Ok(blob) => blob,
        Err(error @ (Error::PreconditionFailed(_) | Error::NotModified(_))) => {
            return Err(unmet_read(&rest.headers, CONDITIONS, &error));
        }
        Err(Error::RangeInvalid { .. }) => {
            return Err(invalid_request("The specified copy range is invalid for the source object size"));
        }
        Err(error) => return Err(refused(error)),
    };
    // A range that is cut off at the end of the source would be another one than was asked for.
    if let Some(Range::FromTo(_, last)) = range
        && last >= blob.meta.size
    {
        let message = format!("Range specified is not valid for source object of size: {}", blob.meta.size);
        return Err(invalid_argument(RANGE, rest.header(RANGE)?.unwrap_or(""), message));
    }
    let size = Some(blob.range.end - blob.range.start);
    let begun = summary(context, &upload).await?.and_then(|begun| begun.checksum);
    let body = with_checksum(begun, BodyOptions { size, md5_tag: true, ..BodyOptions::default() });
    let part = context.ports.blobs.put_part(&upload, number, blob.body, body).await.map_err(fault)?;
    Ok(document("CopyPartResult", |xml| {
        xml.value("LastModified", iso(part.modified_at)).value("ETag", quoted(&part.etag));
        checksum::list(xml, &shown(&part, begun), None);
    }))
}

/// Both ends of a range are named: an open one would depend on what the source happens to be.
fn range(text: &str) -> Result<Range, Fault> {
    match parse_range(text) {
        Some(range @ Range::FromTo(..)) => Ok(range),
        _ => Err(invalid_argument(
            RANGE,
            text,
            "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the \
             zero-based offsets of the first and last bytes to copy",
        )),
    }
}
