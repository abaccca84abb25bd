//! GetObjectAttributes.

use anabranch_model::Error;
use anabranch_model::blob::{
    BlobMeta, ChecksumScope, Checksums, ETagMatch, GetOptions, PartNumber, Range, ReadConditions,
};
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use http::Response;
use http::header::LAST_MODIFIED;

use super::answer::document;
use super::checksum;
use super::errors::{fault, invalid};
use super::headers::set;
use super::moment::http_date;
use super::rest::Rest;
use super::xml::Xml;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

const ATTRIBUTES: [&str; 5] = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"];

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let wanted = wanted(rest)?;
    let wants = |attribute: &str| wanted.iter().any(|wanted| wanted == attribute);
    let meta = context.ports.blobs.head(bucket, key).await.map_err(fault)?;
    let parts = if wants("ObjectParts") { parts(context, rest, &meta).await? } else { None };
    let mut response = document("GetObjectAttributesResponse", |xml| {
        if wants("ETag") {
            xml.value("ETag", &meta.etag);
        }
        if wants("Checksum") && !meta.checksums.is_empty() {
            xml.element("Checksum", |xml| {
                checksum::list(xml, &meta.checksums, None);
                xml.value("ChecksumType", checksum::scope_name(meta.checksums.scope()));
            });
        }
        if let Some(parts) = &parts {
            xml.element("ObjectParts", |xml| parts.write(xml));
        }
        if wants("StorageClass") {
            xml.value("StorageClass", "STANDARD");
        }
        if wants("ObjectSize") {
            xml.value("ObjectSize", meta.size);
        }
    });
    set(response.headers_mut(), LAST_MODIFIED, &http_date(meta.modified_at));
    Ok(response)
}

/// A page of the parts that an object was put in.
struct Parts {
    count: u16,
    /// The part behind which the page begins, as it was asked for: there may be none behind it.
    marker: usize,
    limit: usize,
    /// The bytes and the checksums of each part of the page; none of an object whose checksum is not made of those of its
    /// parts.
    listed: Option<Vec<(u64, Checksums)>>,
}

impl Parts {
    fn write(&self, xml: &mut Xml) {
        xml.value("PartsCount", self.count);
        let Some(listed) = &self.listed else { return };
        let last = if listed.is_empty() { 0 } else { self.marker + listed.len() };
        xml.value("PartNumberMarker", self.marker);
        xml.value("NextPartNumberMarker", last).value("MaxParts", self.limit);
        xml.value("IsTruncated", last > 0 && last < usize::from(self.count));
        for (number, (size, checksums)) in (self.marker + 1..).zip(listed) {
            xml.element("Part", |xml| {
                xml.value("PartNumber", number).value("Size", size);
                checksum::list(xml, checksums, None);
            });
        }
    }
}

/// The parts that the request asks for; none of an object that was put at once.
async fn parts(context: &Context, rest: &Rest, meta: &BlobMeta) -> Result<Option<Parts>, Fault> {
    let Some(count) = meta.parts else { return Ok(None) };
    let number = |name: &str, default: usize| match rest.header(name)?.filter(|text| !text.is_empty()) {
        None => Ok(default),
        Some(text) => match text.parse::<i32>().map(usize::try_from) {
            Ok(Ok(number)) => Ok(number),
            _ => Err(invalid(format!("The value of {name} is not an integer between 0 and 2147483647"))),
        },
    };
    let limit = number("x-amz-max-parts", PAGE_ENTRIES_MAX)?.min(PAGE_ENTRIES_MAX);
    let marker = number("x-amz-part-number-marker", 0)?;
    if meta.checksums.is_empty() || meta.checksums.scope() == ChecksumScope::Body {
        return Ok(Some(Parts { count, marker, limit, listed: None }));
    }
    let (bucket, key) = rest.object()?;
    let same = ETagMatch::OneOf(vec![meta.etag.clone()]);
    let conditions = ReadConditions { if_match: Some(same), ..ReadConditions::default() };
    let mut listed = Vec::new();
    for number in (marker + 1..=usize::from(count)).take(limit) {
        let part = PartNumber::new(number as u64).map_err(fault)?;
        let options = GetOptions { range: Some(Range::Part(part)), conditions: conditions.clone() };
        let blob = context.ports.blobs.get(bucket, key, options).await.map_err(replaced)?;
        listed.push((blob.range.end - blob.range.start, blob.part.unwrap_or_default()));
    }
    Ok(Some(Parts { count, marker, limit, listed: Some(listed) }))
}

/// Parts of two objects make no page: whoever asks again gets those of the younger one.
fn replaced(error: Error) -> Fault {
    match error {
        Error::PreconditionFailed(_) => {
            fault(Error::Unavailable("the object was replaced while its parts were listed".into()))
        }
        error => fault(error),
    }
}

/// What is asked for: in one header or in several.
fn wanted(rest: &Rest) -> Result<Vec<String>, Fault> {
    let mut wanted = Vec::new();
    for value in rest.headers.get_all("x-amz-object-attributes") {
        let value = value.to_str().map_err(|_| invalid("Invalid attribute name specified."))?;
        for name in value.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if !ATTRIBUTES.contains(&name) {
                return Err(invalid("Invalid attribute name specified."));
            }
            wanted.push(name.to_owned());
        }
    }
    if wanted.is_empty() {
        return Err(invalid(
            "The x-amz-object-attributes header specifying the attributes to be retrieved is missing",
        ));
    }
    Ok(wanted)
}
