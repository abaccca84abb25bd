//! ListObjectVersions: every object has one version, which has no name.

use http::Response;

use super::answer::{document, owner};
use super::listing::{Listing, last};
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let listing = Listing::of(rest)?;
    let marker = rest.query.get("key-marker").unwrap_or("");
    let page = listing.page(context, rest, listing.behind(marker)).await?;
    let bucket = rest.bucket()?.as_str();
    Ok(document("ListVersionsResult", |xml| {
        listing.head(xml, bucket, &page);
        xml.value("KeyMarker", listing.shown.key(marker));
        xml.value("VersionIdMarker", rest.query.get("version-id-marker").unwrap_or(""));
        if let Some(next) = &page.next {
            xml.value("NextKeyMarker", listing.shown.key(last(next))).value("NextVersionIdMarker", "null");
        }
        for entry in &page.entries {
            xml.element("Version", |xml| {
                listing.entry(xml, entry);
                xml.value("VersionId", "null").value("IsLatest", true);
                owner(xml, "Owner");
            });
        }
        listing.prefixes(xml, &page);
    }))
}
