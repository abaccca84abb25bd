//! ListObjectsV2.

use anabranch_model::blob::{BlobKey, ListAfter};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Response;

use super::answer::document;
use super::errors::{invalid, with};
use super::listing::Listing;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let listing = Listing::of(rest)?;
    let token = rest.query.get("continuation-token");
    let start_after = rest.query.filled("start-after");
    let after = match token {
        Some(token) => Some(open(token)?),
        None => start_after.and_then(|key| listing.after(key)),
    };
    // Where a token says where to go on, this does not.
    let start_after = start_after.filter(|_| token.is_none());
    let page = listing.page(context, rest, after).await?;
    let bucket = rest.bucket()?.as_str();
    let owners = rest.query.get("fetch-owner").is_some_and(|wanted| wanted.eq_ignore_ascii_case("true"));
    Ok(document("ListBucketResult", |xml| {
        listing.head(xml, bucket, &page);
        xml.value("KeyCount", page.entries.len() + page.prefixes.len());
        xml.optional("ContinuationToken", token);
        xml.optional("NextContinuationToken", page.next.as_ref().map(seal));
        xml.optional("StartAfter", start_after.map(|key| listing.shown.key(key)));
        listing.entries(xml, &page, owners);
    }))
}

/// A token tells what was shown last. It gives nobody a right, so it is not sealed against changes.
fn seal(next: &ListAfter) -> String {
    let text = match next {
        ListAfter::Key(key) => format!("k{}", key.as_str()),
        ListAfter::Prefix(prefix) => format!("p{prefix}"),
    };
    BASE64_URL_SAFE_NO_PAD.encode(text)
}

fn open(token: &str) -> Result<ListAfter, Fault> {
    let text = BASE64_URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.unwrap_or_default();
    let after = match text.strip_prefix('k') {
        Some(key) => BlobKey::new(key).ok().map(ListAfter::Key),
        None => text.strip_prefix('p').map(|prefix| ListAfter::Prefix(prefix.to_owned())),
    };
    after.ok_or_else(|| {
        let fault = invalid("The continuation token provided is incorrect");
        with(fault, "ArgumentName", "continuation-token")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went() {
        let key = BlobKey::new("a/\0ü").unwrap();
        for after in [ListAfter::Key(key), ListAfter::Prefix("p/".into()), ListAfter::Prefix(String::new())] {
            assert_eq!(open(&seal(&after)), Ok(after));
        }
        for token in ["", "!", "eA", "aw"] {
            assert!(open(token).is_err(), "{token}");
        }
    }
}
