//! Pages of keys.

use anabranch_model::blob::{BlobSummary, ListAfter, ListOptions, ListPage};
use anabranch_model::{BlobKey, BucketName, Result, limits};

use super::explain::About;
use super::request::Request;
use super::xml::Element;
use super::{Blobs, action, meta};
use crate::call::Deadline;

impl Blobs {
    pub(super) async fn list_page(&self, bucket: &BucketName, options: ListOptions) -> Result<ListPage> {
        let (deadline, limit) = (self.soon(), options.limit_clamped());
        let mut page = self.shared_by(bucket, &options, deadline).await?;
        // A page may be shorter than it was asked for; only the last one of ours may.
        loop {
            let wanted = limit.saturating_sub(page.entries.len() + page.prefixes.len());
            if wanted == 0 {
                return Ok(page);
            }
            let more = self.keys_behind(bucket, &options, page.next.as_ref(), wanted, deadline).await?;
            if more.next.is_some() && more.next == page.next {
                return Err(super::strange("a page that leads to itself"));
            }
            page.entries.extend(more.entries);
            page.prefixes.extend(more.prefixes);
            page.next = more.next;
            if page.next.is_none() {
                return Ok(page);
            }
        }
    }

    /// The beginning of a page that goes on from a key which a prefix stands for: the prefix, if there are keys of it
    /// behind that key. Servers disagree on what a listing shows there, so it is asked for without a delimiter.
    async fn shared_by(
        &self,
        bucket: &BucketName,
        options: &ListOptions,
        deadline: Deadline,
    ) -> Result<ListPage> {
        let mut page = ListPage { next: options.after.clone(), ..ListPage::default() };
        let Some(ListAfter::Key(key)) = &options.after else { return Ok(page) };
        let Some(shared) = shared_prefix(key, options) else { return Ok(page) };
        let within = ListOptions { prefix: shared.clone(), ..ListOptions::default() };
        let behind = self.keys_behind(bucket, &within, options.after.as_ref(), 1, deadline).await?;
        if !behind.entries.is_empty() {
            page.prefixes.push(shared.clone());
        }
        page.next = Some(ListAfter::Prefix(shared));
        Ok(page)
    }

    /// What one request shows.
    pub(super) async fn keys_behind(
        &self,
        bucket: &BucketName,
        options: &ListOptions,
        after: Option<&ListAfter>,
        limit: usize,
        deadline: Deadline,
    ) -> Result<ListPage> {
        let request = Request::bucket("GET", bucket)
            .query_if("delimiter", options.delimiter().map(str::to_string))
            .query("encoding-type", "url")
            .query("list-type", "2")
            .query("max-keys", limit.to_string())
            .query_if("prefix", Some(options.prefix.clone()))
            .query_if("start-after", after.map(start_after));
        let call = || self.client.ask_document(&request, self.caller.clock().now());
        let answer = self.caller.call(&action::LIST_OBJECTS, deadline, call).await;
        let answer = answer.map_err(|failure| About::Bucket(bucket).explain(failure))?;
        let entries = answer.all("Contents").map(entry).collect::<Result<Vec<_>>>()?;
        let prefixes = answer.all("CommonPrefixes").map(prefix).collect::<Result<Vec<_>>>()?;
        let more = answer.text("IsTruncated") == "true";
        let next = if more { last(&entries, &prefixes).or_else(|| after.cloned()) } else { None };
        Ok(ListPage { entries, prefixes, next })
    }
}

/// What stands for a key in a listing, if it is not the key itself.
fn shared_prefix(key: &BlobKey, options: &ListOptions) -> Option<String> {
    let (prefix, delimiter) = (options.prefix.as_str(), options.delimiter()?);
    let (before, _) = key.as_str().strip_prefix(prefix)?.split_once(delimiter)?;
    Some(format!("{prefix}{before}{delimiter}"))
}

/// The last of what a page shows.
fn last(entries: &[BlobSummary], prefixes: &[String]) -> Option<ListAfter> {
    let key = entries.last().map(|entry| &entry.key);
    match prefixes.last() {
        Some(prefix) if key.is_none_or(|key| key.as_str() < prefix.as_str()) => {
            Some(ListAfter::Prefix(prefix.clone()))
        }
        _ => key.cloned().map(ListAfter::Key),
    }
}

/// The key behind which a listing goes on.
fn start_after(after: &ListAfter) -> String {
    match after {
        ListAfter::Key(key) => key.as_str().to_string(),
        ListAfter::Prefix(prefix) => last_key_with(prefix),
    }
}

/// The last key that can begin like this: filled up with the largest characters that fit.
fn last_key_with(prefix: &str) -> String {
    let mut key = prefix.to_string();
    for largest in ['\u{10ffff}', '\u{ffff}', '\u{7ff}', '\u{7f}'] {
        while key.len() + largest.len_utf8() <= limits::BLOB_KEY_BYTES_MAX {
            key.push(largest);
        }
    }
    key
}

fn entry(element: &Element) -> Result<BlobSummary> {
    let read = || {
        Some(BlobSummary {
            key: BlobKey::new(&element.unescaped("Key")?).ok()?,
            size: element.text("Size").parse().ok()?,
            etag: meta::etag(element.text("ETag")).ok()?,
            modified_at: meta::date_in_seconds(element.text("LastModified"))?,
            // Not every service that speaks S3 lists them.
            checksums: None,
        })
    };
    read().ok_or_else(|| super::strange("a key that cannot be read"))
}

fn prefix(element: &Element) -> Result<String> {
    element.unescaped("Prefix").ok_or_else(|| super::strange("a prefix that cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_with_a_prefix_is_behind_the_last() {
        for prefix in ["", "a/", "é/", "🦦"] {
            let last = last_key_with(prefix);
            assert_eq!(last.len(), limits::BLOB_KEY_BYTES_MAX);
            let fill = limits::BLOB_KEY_BYTES_MAX - prefix.len();
            for rest in ['\u{10ffff}', '\u{ffff}', '\u{7ff}', '\u{7f}'] {
                let key = format!("{prefix}{}", rest.to_string().repeat(fill / rest.len_utf8()));
                assert!(key <= last, "{prefix} {rest:?}");
            }
        }
        assert!(last_key_with("a/").as_str() < "b");
    }
}
