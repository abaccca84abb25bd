//! UploadPartCopy.

use anabranch_model::Error;
use anabranch_model::blob::{BodyOptions, GetOptions, Range};
use http::Response;

use super::answer::{document, quoted};
use super::checksum;
use super::copy_object::{refused, source, source_conditions};
use super::errors::{fault, invalid};
use super::headers::parse_range;
use super::moment::iso;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (upload, number) = (rest.upload()?, rest.part_number()?);
    let source = source(rest)?;
    let range = rest.header("x-amz-copy-source-range")?;
    let range = range.map(|text| {
        let wrong = || {
            invalid(
                "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the \
                 zero-based offsets of the first and last bytes to copy",
            )
        };
        parse_range(text).ok_or_else(wrong)
    });
    let range = range.transpose()?;
    let options = GetOptions { range, conditions: source_conditions(context, rest)? };
    let blob = context.ports.blobs.get(&source.0, &source.1, options).await.map_err(refused)?;
    // A range that is cut off at the end of the source would be another one than was asked for.
    if let Some(Range::FromTo(_, last)) = range
        && last >= blob.meta.size
    {
        return Err(fault(Error::RangeInvalid { size: blob.meta.size }));
    }
    let size = Some(blob.range.end - blob.range.start);
    let body = BodyOptions { size, md5_tag: true, ..BodyOptions::default() };
    let part = context.ports.blobs.put_part(&upload, number, blob.body, body).await.map_err(fault)?;
    Ok(document("CopyPartResult", |xml| {
        xml.value("LastModified", iso(part.modified_at)).value("ETag", quoted(&part.etag));
        checksum::list(xml, &part.checksums, None);
    }))
}
