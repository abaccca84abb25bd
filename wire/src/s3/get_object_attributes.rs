//! GetObjectAttributes.

use http::Response;
use http::header::LAST_MODIFIED;

use super::answer::document;
use super::checksum;
use super::errors::{fault, invalid};
use super::headers::set;
use super::moment::http_date;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

const ATTRIBUTES: [&str; 5] = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"];

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let wanted = wanted(rest)?;
    let wants = |attribute: &str| wanted.iter().any(|wanted| wanted == attribute);
    let meta = context.ports.blobs.head(bucket, key).await.map_err(fault)?;
    let mut response = document("GetObjectAttributesResponse", |xml| {
        if wants("ETag") {
            xml.value("ETag", &meta.etag);
        }
        if wants("Checksum") && !meta.checksums.is_empty() {
            xml.element("Checksum", |xml| {
                checksum::list(xml, &meta.checksums, meta.parts);
                xml.value("ChecksumType", checksum::scope_name(meta.checksums.scope()));
            });
        }
        if let Some(parts) = meta.parts.filter(|_| wants("ObjectParts")) {
            xml.nested("ObjectParts", "PartsCount", parts);
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
