//! Pages of keys, uploads and parts. Keys that share a prefix up to the delimiter are passed over by seeking behind them,
//! so a page costs what it shows and not what it stands for.

use std::ops::{Bound, ControlFlow};

use anabranch_model::blob::{
    BlobKey, BlobMeta, BucketName, ListAfter, ListOptions, ListPage, Part, PartNumber, Upload, UploadId,
    UploadListOptions, UploadSummary,
};
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{Error, Page, Result};

use super::layout::{self, StoredBlob, StoredPart, StoredUpload};
use super::malformed;
use super::upload::malformed_upload;
use crate::core::Core;
use crate::rows::Order;
use crate::rows::change::place;

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// The later of two beginnings, the first of which is included.
fn later(first: Vec<u8>, after: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match after {
        Bound::Excluded(key) if key >= first => Bound::Excluded(key),
        Bound::Included(key) if key > first => Bound::Included(key),
        _ => Bound::Included(first),
    }
}

impl Core {
    /// What is known about a blob.
    pub fn look_at_blob(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta> {
        let number = self.blobs.bucket(bucket)?.number;
        let row = self.rows.get(&layout::blob_key(number, key))?;
        let row = row.ok_or_else(|| Error::BlobNotFound(bucket.clone(), key.clone()))?;
        Ok(StoredBlob::decode(&row).map_err(|_| malformed(bucket, key))?.meta)
    }

    /// A page of keys.
    pub fn list_blobs(&self, bucket: &BucketName, options: &ListOptions) -> Result<ListPage> {
        let base = layout::blobs(self.blobs.bucket(bucket)?.number);
        let row = |text: &str| [&base, text.as_bytes()].concat();
        let after = match &options.after {
            None => Bound::Unbounded,
            Some(ListAfter::Key(key)) => Bound::Excluded(row(key.as_str())),
            Some(ListAfter::Prefix(prefix)) => Bound::Included(layout::behind(row(prefix))),
        };
        let mut from = later(row(&options.prefix), after);
        let to = Bound::Excluded(layout::behind(row(&options.prefix)));
        let (snapshot, limit) = (self.rows.snapshot()?, options.limit_clamped());
        let (mut page, mut last) = (ListPage::default(), None);
        loop {
            let mut seek = None;
            snapshot.range((borrowed(&from), borrowed(&to)), Order::Forward, |key, value| {
                let key = blob_key_of(&key[base.len()..])?;
                if page.entries.len() + page.prefixes.len() == limit {
                    page.next = last.take();
                    return Ok(ControlFlow::Break(()));
                }
                if let Some(prefix) = shared(&key, options) {
                    seek = Some(layout::behind(row(prefix)));
                    last = Some(ListAfter::Prefix(prefix.to_owned()));
                    page.prefixes.push(prefix.to_owned());
                    return Ok(ControlFlow::Break(()));
                }
                let stored = StoredBlob::decode(value).map_err(|_| malformed(bucket, &key))?;
                page.entries.push(stored.meta.summary(&key));
                last = Some(ListAfter::Key(key));
                Ok(ControlFlow::Continue(()))
            })?;
            match seek {
                Some(behind) => from = Bound::Included(behind),
                None => return Ok(page),
            }
        }
    }

    /// A page of open uploads.
    pub fn list_uploads(
        &self,
        bucket: &BucketName,
        options: &UploadListOptions,
    ) -> Result<Page<UploadSummary>> {
        let number = self.blobs.bucket(bucket)?.number;
        let after = match &options.after {
            None => Bound::Unbounded,
            Some(after) => {
                let of_key = layout::uploads_of(number, &after.key);
                match after.upload.as_ref().map(layout::read_upload_id) {
                    None => Bound::Included(layout::behind(of_key)),
                    // An id that we did not give comes before all of ours.
                    Some(id) => Bound::Excluded(place(&of_key, id.unwrap_or(0), 0)),
                }
            }
        };
        let from = later(layout::uploads(number, &options.prefix), after);
        let to = Bound::Excluded(layout::behind(layout::uploads(number, &options.prefix)));
        let mut page = Page { entries: Vec::new(), more: false };
        let limit = options.limit.clamp(1, PAGE_ENTRIES_MAX);
        self.rows.snapshot()?.range((borrowed(&from), borrowed(&to)), Order::Forward, |row, value| {
            if page.entries.len() == limit {
                page.more = true;
                return Ok(ControlFlow::Break(()));
            }
            let read =
                layout::read_upload_key(number, row).and_then(|key| Ok((key, StoredUpload::decode(value)?)));
            let Ok(((key, id), stored)) = read else {
                return Err(Error::Corrupt(format!(
                    "the row of an upload in bucket `{bucket}` makes no sense"
                )));
            };
            let upload = Upload { bucket: bucket.clone(), key, id: UploadId::new(&layout::upload_id(id))? };
            let (begun_at, checksum) = (stored.begun_at, stored.options.checksum);
            page.entries.push(UploadSummary { upload, begun_at, checksum });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(page)
    }

    /// A page of the parts of an upload.
    pub fn list_parts(&self, upload: &Upload, after: Option<PartNumber>, limit: usize) -> Result<Page<Part>> {
        let bucket = self.blobs.bucket(&upload.bucket)?.number;
        let (id, ..) = self.find_upload(bucket, upload)?;
        let all = layout::parts(bucket, Some(id));
        let after =
            after.map_or(Bound::Unbounded, |part| Bound::Excluded(layout::part_key(bucket, id, part)));
        // Behind the last part: numbers of parts have two bytes and are never the largest of these.
        let to = Bound::Excluded([&all[..], &u16::MAX.to_be_bytes()].concat());
        let from = later(all, after);
        let mut page = Page { entries: Vec::new(), more: false };
        let limit = limit.clamp(1, PAGE_ENTRIES_MAX);
        self.rows.snapshot()?.range((borrowed(&from), borrowed(&to)), Order::Forward, |row, value| {
            if page.entries.len() == limit {
                page.more = true;
                return Ok(ControlFlow::Break(()));
            }
            let part = layout::read_part_key(row).and_then(|number| StoredPart::decode(number, value));
            page.entries.push(part.map_err(|_| malformed_upload(upload))?.part);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(page)
    }
}

fn blob_key_of(bytes: &[u8]) -> Result<BlobKey> {
    let key = std::str::from_utf8(bytes).ok().and_then(|key| BlobKey::new(key).ok());
    key.ok_or_else(|| Error::Corrupt("the key of a blob makes no sense".into()))
}

/// What a key shares with others up to and with the first delimiter behind the prefix.
fn shared<'a>(key: &'a BlobKey, options: &ListOptions) -> Option<&'a str> {
    let (delimiter, rest) = (options.delimiter()?, &key.as_str()[options.prefix.len()..]);
    let cut = rest.find(delimiter)?;
    Some(&key.as_str()[..options.prefix.len() + cut + delimiter.len()])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_model::Timestamp;
    use anabranch_model::blob::{BlobStore, PutOptions};
    use anabranch_sim::{SimClock, SimDisk};
    use bytes::Bytes;

    use super::*;
    use crate::journal::Urgency;
    use crate::rows::Change;
    use crate::{Engine, Options};

    /// A bucket with rows, of which those that end in `!` are traps: whoever comes to one cannot read it.
    async fn bucket_of(rows: &[&str]) -> (Engine, BucketName) {
        let clock = SimClock::new(Timestamp::from_millis(1));
        let engine = Engine::open(Arc::new(SimDisk::new()), Arc::new(clock), Options::default());
        let (engine, name) = (engine.expect("opens"), BucketName::new("bucket").expect("a name"));
        engine.create_bucket(&name).await.expect("made");
        let core = engine.core();
        let base = layout::blobs(core.blobs.bucket(&name).expect("there").number);
        for row in rows {
            if let Some(text) = row.strip_suffix('!') {
                let key = Bytes::from([&base[..], text.as_bytes(), &[0xff]].concat());
                core.submit(|| {
                    let change = Change::put(key.clone(), Bytes::new());
                    let accepting = core.rows.accept(vec![key.clone()]);
                    core.write_rows(accepting, vec![change], Urgency::Normal, &mut None, None)
                })
                .await
                .expect("written");
            } else {
                let (key, body) = (BlobKey::new(row).expect("a key"), futures_util::stream::empty());
                let put = engine.put(&name, &key, Box::pin(body), PutOptions::default());
                put.await.expect("put");
            }
        }
        (engine, name)
    }

    fn shown(page: ListPage) -> (Vec<String>, Vec<String>, Option<ListAfter>) {
        let keys = page.entries.iter().map(|entry| entry.key.as_str().to_owned());
        (keys.collect(), page.prefixes, page.next)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_listing_comes_to_no_row_that_a_prefix_stands_for() {
        let (engine, name) = bucket_of(&["a/1", "a/2!", "b", "c/d/1", "c/d/2!", "c/e", "f"]).await;
        let delimited = |prefix: &str| ListOptions {
            prefix: prefix.into(),
            delimiter: Some("/".into()),
            ..ListOptions::default()
        };
        let root = engine.list(&name, delimited("")).await.expect("no trap");
        assert_eq!(shown(root), (vec!["b".into(), "f".into()], vec!["a/".into(), "c/".into()], None));
        let below = engine.list(&name, delimited("c/")).await.expect("no trap");
        assert_eq!(shown(below), (vec!["c/e".into()], vec!["c/d/".into()], None));
        let behind = ListOptions { after: Some(ListAfter::Prefix("a/".into())), ..delimited("") };
        assert_eq!(shown(engine.list(&name, behind).await.expect("no trap")).1, ["c/"]);
        let trapped = engine.list(&name, delimited("a/")).await;
        assert!(matches!(trapped, Err(Error::Corrupt(_))), "{trapped:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_listing_comes_to_one_row_behind_its_page() {
        let (engine, name) = bucket_of(&["a!", "b", "c", "d", "e!"]).await;
        let after = Some(ListAfter::Key(BlobKey::new("b").expect("a key")));
        let one = ListOptions { after: after.clone(), limit: 1, ..ListOptions::default() };
        let next = Some(ListAfter::Key(BlobKey::new("c").expect("a key")));
        let page = engine.list(&name, one).await.expect("no trap");
        assert_eq!(shown(page), (vec!["c".into()], vec![], next));
        for (after, limit) in [(after, 2), (None, 1)] {
            let trapped = engine.list(&name, ListOptions { after, limit, ..ListOptions::default() }).await;
            assert!(matches!(trapped, Err(Error::Corrupt(_))), "{trapped:?}");
        }
    }
}
