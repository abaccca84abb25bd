//! ListParts.

use anabranch_model::blob::PartNumber;
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use http::Response;

use super::answer::{document, owner, quoted};
use super::checksum;
use super::errors::{fault, invalid, no_such_upload};
use super::listing::Shown;
use super::moment::iso;
use super::rest::Rest;
use super::uploading::{shown as part_checksums, summary};
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let upload = rest.upload()?;
    let limit = rest.query.limit("max-parts", PAGE_ENTRIES_MAX)?;
    let marker = marker(rest)?;
    let shown = Shown::of(rest)?;
    let after = (marker > 0).then(|| PartNumber::new(marker)).transpose();
    // Behind a number that no part can have there is nothing.
    let beyond = after.is_err();
    let after = after.unwrap_or(None);
    let page = context.ports.blobs.parts(&upload, after, limit).await.map_err(fault)?;
    let found = summary(context, &upload).await?.ok_or_else(|| no_such_upload(upload.id.as_str()))?;
    let nothing = limit == 0 || beyond;
    let (parts, more) = if nothing { (Vec::new(), false) } else { (page.entries, page.more) };
    Ok(document("ListPartsResult", |xml| {
        xml.value("Bucket", upload.bucket.as_str()).value("Key", shown.key(upload.key.as_str()));
        xml.value("UploadId", upload.id.as_str());
        owner(xml, "Initiator");
        owner(xml, "Owner");
        xml.value("StorageClass", "STANDARD").value("PartNumberMarker", marker);
        let next = parts.last().map_or(0, |last| last.number.get());
        xml.value("NextPartNumberMarker", next).value("MaxParts", limit).value("IsTruncated", more);
        shown.declare(xml);
        if let Some((algorithm, scope)) = found.checksum {
            xml.value("ChecksumAlgorithm", checksum::name(algorithm));
            xml.value("ChecksumType", checksum::scope_name(scope));
        }
        for part in &parts {
            xml.element("Part", |xml| {
                xml.value("PartNumber", part.number).value("LastModified", iso(part.modified_at));
                xml.value("ETag", quoted(&part.etag)).value("Size", part.size);
                checksum::list(xml, &part_checksums(part, found.checksum), None);
            });
        }
    }))
}

fn marker(rest: &Rest) -> Result<u64, Fault> {
    let text = rest.query.filled("part-number-marker").unwrap_or("0");
    text.parse().map_err(|_| invalid("Provided part-number-marker not an integer or within integer range"))
}
