//! ListObjects: the first version, which goes on behind a key.

use http::Response;

use super::answer::document;
use super::listing::{Listing, last};
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let listing = Listing::of(rest)?;
    let marker = rest.query.get("marker").unwrap_or("");
    let page = listing.page(context, rest, listing.behind(marker)).await?;
    let bucket = rest.bucket()?.as_str();
    Ok(document("ListBucketResult", |xml| {
        listing.head(xml, bucket, &page);
        xml.value("Marker", listing.shown.key(marker));
        // Without a delimiter the last key is where it goes on, and everybody sees it.
        let next = page.next.as_ref().filter(|_| listing.delimiter.is_some());
        xml.optional("NextMarker", next.map(|next| listing.shown.key(last(next))));
        listing.entries(xml, &page, true);
    }))
}
