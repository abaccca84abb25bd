//! What the listings of a bucket share.

use std::borrow::Cow;

use anabranch_model::blob::{BlobKey, BlobSummary, ListAfter, ListOptions, ListPage};
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::answer::{owner, quoted};
use super::checksum;
use super::errors::{fault, invalid_argument};
use super::moment::iso;
use super::rest::Rest;
use super::xml::Xml;
use crate::context::Context;
use crate::fault::Fault;

/// What is written as it is in the encoding of addresses.
const KEPT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'*');

/// How keys are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// As they are.
    Plain,
    /// In the encoding of addresses, which can hold every character.
    Encoded,
}

impl Shown {
    /// How a request wants keys to be shown.
    pub(super) fn of(rest: &Rest) -> Result<Self, Fault> {
        match rest.query.get("encoding-type") {
            None => Ok(Shown::Plain),
            Some("url") => Ok(Shown::Encoded),
            Some(other) => {
                let message = "Invalid Encoding Method specified in Request";
                Err(invalid_argument("encoding-type", other, message))
            }
        }
    }

    /// A key or a part of one.
    pub(super) fn key(self, key: &str) -> Cow<'_, str> {
        match self {
            Shown::Plain => Cow::Borrowed(key),
            Shown::Encoded => utf8_percent_encode(key, KEPT).into(),
        }
    }

    /// Says in a document how its keys are shown.
    pub(super) fn declare(self, xml: &mut Xml) {
        if self == Shown::Encoded {
            xml.value("EncodingType", "url");
        }
    }
}

/// What a listing asks for.
pub(super) struct Listing {
    pub(super) prefix: String,
    pub(super) delimiter: Option<String>,
    pub(super) shown: Shown,
    pub(super) limit: usize,
}

impl Listing {
    pub(super) fn of(rest: &Rest) -> Result<Self, Fault> {
        Ok(Listing {
            prefix: rest.query.get("prefix").unwrap_or("").to_owned(),
            delimiter: rest.query.filled("delimiter").map(str::to_owned),
            shown: Shown::of(rest)?,
            limit: rest.query.limit("max-keys", PAGE_ENTRIES_MAX)?,
        })
    }

    /// Where a listing goes on that showed this last: if it was a prefix, behind all that begin with it.
    pub(super) fn after(&self, last: &str) -> Option<ListAfter> {
        let is_prefix = self.delimiter.as_deref().is_some_and(|delimiter| {
            let behind = last.strip_prefix(self.prefix.as_str());
            behind.and_then(|behind| behind.split_once(delimiter)).is_some_and(|(_, rest)| rest.is_empty())
        });
        if is_prefix {
            return Some(ListAfter::Prefix(last.to_owned()));
        }
        // What is longer than every key goes on behind the longest key that it begins with.
        let mut end = last.len().min(anabranch_model::limits::BLOB_KEY_BYTES_MAX);
        while !last.is_char_boundary(end) {
            end -= 1;
        }
        BlobKey::new(&last[..end]).ok().map(ListAfter::Key)
    }

    /// Where a listing goes on behind a marker. One below a prefix stands for all that the prefix stands for.
    pub(super) fn behind(&self, marker: &str) -> Option<ListAfter> {
        let below = self.delimiter.as_deref().and_then(|delimiter| {
            let at = marker.strip_prefix(self.prefix.as_str())?.find(delimiter)?;
            marker.get(..self.prefix.len() + at + delimiter.len())
        });
        below.map_or_else(|| self.after(marker), |prefix| Some(ListAfter::Prefix(prefix.to_owned())))
    }

    /// One page. Who wants no entries gets none, and no promise of more.
    pub(super) async fn page(
        &self,
        context: &Context,
        rest: &Rest,
        after: Option<ListAfter>,
    ) -> Result<ListPage, Fault> {
        let bucket = rest.bucket()?;
        if self.limit == 0 {
            context.ports.blobs.bucket(bucket).await.map_err(fault)?;
            return Ok(ListPage::default());
        }
        let options = ListOptions {
            prefix: self.prefix.clone(),
            delimiter: self.delimiter.clone(),
            after,
            limit: self.limit,
        };
        context.ports.blobs.list(bucket, options).await.map_err(fault)
    }

    /// What stands at the head of every listing.
    pub(super) fn head(&self, xml: &mut Xml, bucket: &str, page: &ListPage) {
        xml.value("Name", bucket).value("Prefix", self.shown.key(&self.prefix));
        xml.optional("Delimiter", self.delimiter.as_deref().map(|delimiter| self.shown.key(delimiter)));
        xml.value("MaxKeys", self.limit).value("IsTruncated", page.next.is_some());
        self.shown.declare(xml);
    }

    /// Objects and prefixes.
    pub(super) fn entries(&self, xml: &mut Xml, page: &ListPage, owners: bool) {
        for entry in &page.entries {
            xml.element("Contents", |xml| {
                self.entry(xml, entry);
                if owners {
                    owner(xml, "Owner");
                }
            });
        }
        self.prefixes(xml, page);
    }

    /// What is shown of an object.
    pub(super) fn entry(&self, xml: &mut Xml, entry: &BlobSummary) {
        xml.value("Key", self.shown.key(entry.key.as_str())).value("LastModified", iso(entry.modified_at));
        xml.value("ETag", quoted(&entry.etag));
        if let Some(kinds) = entry.checksums.as_ref().filter(|kinds| !kinds.algorithms.is_empty()) {
            for algorithm in &kinds.algorithms {
                xml.value("ChecksumAlgorithm", checksum::name(*algorithm));
            }
            xml.value("ChecksumType", checksum::scope_name(kinds.scope));
        }
        xml.value("Size", entry.size).value("StorageClass", "STANDARD");
    }

    /// What stands for the objects below a prefix.
    pub(super) fn prefixes(&self, xml: &mut Xml, page: &ListPage) {
        for prefix in &page.prefixes {
            xml.nested("CommonPrefixes", "Prefix", self.shown.key(prefix));
        }
    }
}

/// The last key or prefix of a page, where the next one goes on.
pub(super) fn last(next: &ListAfter) -> &str {
    match next {
        ListAfter::Key(key) => key.as_str(),
        ListAfter::Prefix(prefix) => prefix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(prefix: &str, delimiter: Option<&str>) -> Listing {
        let delimiter = delimiter.map(str::to_owned);
        Listing { prefix: prefix.into(), delimiter, shown: Shown::Plain, limit: 10 }
    }

    #[test]
    fn a_marker_that_is_a_prefix_is_behind_all_that_it_stands_for() {
        let key = |key: &str| Some(ListAfter::Key(BlobKey::new(key).unwrap()));
        let prefix = |prefix: &str| Some(ListAfter::Prefix(prefix.into()));
        assert_eq!(listing("", Some("/")).after("a/"), prefix("a/"));
        assert_eq!(listing("a/", Some("/")).after("a/b/"), prefix("a/b/"));
        assert_eq!(listing("a/", Some("/")).after("a/"), key("a/"));
        assert_eq!(listing("", Some("/")).after("a/b"), key("a/b"));
        assert_eq!(listing("", Some("/")).after("a/b/"), key("a/b/"));
        assert_eq!(listing("", None).after("a/"), key("a/"));
        assert_eq!(listing("", None).after(""), None);
        assert_eq!(listing("", Some("/")).behind("a/b"), prefix("a/"));
        assert_eq!(listing("a/", Some("/")).behind("a/b/c"), prefix("a/b/"));
        assert_eq!(listing("a/", Some("/")).behind("a/b"), key("a/b"));
        assert_eq!(listing("", None).behind("a/b"), key("a/b"));
        assert_eq!(listing("", Some("/")).behind(""), None);
        let long = "ä".repeat(600);
        assert_eq!(listing("", None).after(&long), key(&"ä".repeat(512)));
    }

    #[test]
    fn every_character_can_be_shown() {
        assert_eq!(Shown::Encoded.key("a/b c+ä\u{0}\n%*"), "a/b%20c%2B%C3%A4%00%0A%25*");
        assert_eq!(Shown::Plain.key("a b"), "a b");
    }
}
