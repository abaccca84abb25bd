//! What is put comes back.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::bytes::{in_pieces, some_bytes, tagged_with_md5, whole};
use super::trial::Trial;
use crate::blob::{BodyOptions, ETag, Header, Properties, PutOptions, md5_of};
use crate::laws::trial::NO_CLOCK;
use crate::limits;

/// A body of any size is read as it was put.
pub async fn bodies_come_back_as_they_were(trial: Trial) {
    let bucket = trial.bucket().await;
    let edge = 64 << 10;
    let sizes = [0, 1, 2, 4_095, 4_096, edge - 1, edge, edge + 1, 1 << 20, 5 << 20];
    for (seed, size) in sizes.into_iter().enumerate() {
        let (key, bytes) = (trial.key(&format!("body-{size}")), some_bytes(seed as u64, size));
        let put = trial.put(&bucket, &key, &bytes).await;
        trial.same("the size that was put", put.size, size as u64);
        trial.same("parts of a body put at once", put.parts, None);
        trial.same_bytes(format!("a body of {size} bytes"), &trial.read(&bucket, &key).await, &bytes);
        trial.same_blob("what a put and a look say", trial.head(&bucket, &key).await, put);
    }
    for (seed, size) in sizes.into_iter().enumerate() {
        let (key, bytes) = (trial.key(&format!("body-{size}")), some_bytes(seed as u64, size));
        trial.same_bytes(format!("a body of {size} bytes, later"), &trial.read(&bucket, &key).await, &bytes);
    }
}

/// How a writer cuts a body leaves no trace, and neither do empty pieces.
pub async fn pieces_of_a_body_do_not_matter(trial: Trial) {
    let (bucket, bytes) = (trial.bucket().await, some_bytes(7, 100_003));
    let whole = trial.put(&bucket, &trial.key("whole"), &bytes).await;
    for size in [7, 1_000, 4_096, 65_536, 100_002] {
        let key = trial.key(&format!("by-{size}"));
        let meta = trial.put_with(&bucket, &key, in_pieces(&bytes, size), PutOptions::default()).await;
        trial.same(format!("the etag in pieces of {size}"), meta.etag, whole.etag.clone());
        trial.same_bytes(format!("a body in pieces of {size}"), &trial.read(&bucket, &key).await, &bytes);
    }
}

/// The etag of a body that was put at once is its MD5, where that is asked for or compared.
pub async fn etags_are_md5_where_asked_for(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    for size in [0, 1, 100, 70_000] {
        let bytes = some_bytes(3, size);
        let md5 = md5_of(&bytes);
        let compared = BodyOptions { md5: Some(md5), ..BodyOptions::default() };
        let compared = PutOptions { body: compared, ..PutOptions::default() };
        for options in [tagged_with_md5(), compared] {
            let put = trial.put_with(&bucket, &key, whole(&bytes), options).await;
            trial.same("the etag of a put", put.etag, ETag::of_md5(md5));
            trial.same("the etag of a look", trial.head(&bucket, &key).await.etag, ETag::of_md5(md5));
        }
    }
}

/// The etag follows from the bytes: the same ones give the same, whenever and wherever they are put, and others another.
/// A tag that looks like an MD5 is one.
pub async fn etags_follow_from_the_bytes(trial: Trial) {
    let bucket = trial.bucket().await;
    let mut seen = BTreeMap::new();
    for size in [0, 1, 100, 70_000, 70_001] {
        for seed in [1, 2] {
            let mut bytes = some_bytes(seed, size).to_vec();
            let copies = if size == 0 { 1 } else { 2 };
            for copy in 0..copies {
                // Bodies that differ in their last bit only.
                if let Some(last) = bytes.last_mut() {
                    *last ^= copy;
                }
                let body = Bytes::from(bytes.clone());
                let first = trial.put(&bucket, &trial.key("one"), &body).await.etag;
                let again = trial.put(&bucket, &trial.key("other"), &body).await.etag;
                trial.same("the etag of the same bytes", again, first.clone());
                let is_md5 = first.md5().is_none_or(|md5| md5 == md5_of(&body));
                trial.holds(is_md5, format!("{first} looks like an MD5 and is none"));
                let other = seen.insert(first, body.clone()).is_some_and(|other| other != body);
                trial.holds(!other, "bodies that differ have the same etag");
            }
        }
    }
}

fn properties(label: &str) -> Properties {
    let headers = Header::ALL.into_iter().map(|header| (header, format!("{label}; of={header:?}")));
    let metadata = [("owner", "Jo"), ("a-b_c.1", ""), ("city", "Zürich 🦦"), ("quoted", "a \"b\", c; d=e")];
    let metadata = metadata.map(|(name, value)| (name.to_string(), value.to_string()));
    Properties { headers: headers.collect(), metadata: BTreeMap::from(metadata) }
}

/// Headers and metadata come back as they were, up to their limits.
pub async fn properties_come_back_as_they_were(trial: Trial) {
    let (bucket, bytes) = (trial.bucket().await, some_bytes(1, 10));
    let name = "n".repeat(20);
    let value = "v".repeat(limits::BLOB_METADATA_BYTES_MAX - name.len());
    let largest = Properties { metadata: BTreeMap::from([(name, value)]), ..Properties::default() };
    let only_type = BTreeMap::from([(Header::ContentType, "text/plain".to_string())]);
    let one_header = Properties { headers: only_type, ..Properties::default() };
    for (number, properties) in
        [Properties::default(), one_header, properties("some"), largest].into_iter().enumerate()
    {
        let key = trial.key(&format!("key-{number}"));
        let options = PutOptions { properties: properties.clone(), ..PutOptions::default() };
        let put = trial.put_with(&bucket, &key, whole(&bytes), options).await;
        trial.same("properties of a put", put.properties, properties.clone());
        let (read, ..) = trial.read_with(&bucket, &key, Default::default()).await;
        trial.same("properties of a read", read.properties, properties.clone());
        trial.same("properties of a look", trial.head(&bucket, &key).await.properties, properties);
    }
}

/// Nothing of a replaced blob is left: neither body nor etag nor properties.
pub async fn a_second_put_replaces_the_first(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    let options = PutOptions { properties: properties("first"), ..PutOptions::default() };
    trial.put_with(&bucket, &key, whole(&some_bytes(1, 5_000)), options).await;
    for (seed, size) in [(2, 10), (3, 100_000), (4, 0)] {
        let bytes = some_bytes(seed, size);
        let put = trial.put(&bucket, &key, &bytes).await;
        trial.same("properties of the second", put.properties.clone(), Properties::default());
        let (meta, _, read) = trial.read_with(&bucket, &key, Default::default()).await;
        trial.same_bytes("the body of the second", &read, &bytes);
        trial.same_blob("what is known about the second", meta, put);
        trial.same("keys after a second put", trial.keys(&bucket).await, vec![key.clone()]);
    }
}

/// A blob shows the time of its last put.
pub async fn a_blob_shows_when_it_was_put(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    let first = trial.put(&bucket, &key, &some_bytes(1, 10)).await;
    let step = Duration::from_secs(100);
    trial.advance(step).await;
    let looked = trial.head(&bucket, &key).await.modified_at;
    trial.same("the time of the first put, later", looked, first.modified_at);
    // The same bytes again are a new blob all the same.
    let second = trial.put(&bucket, &key, &some_bytes(1, 10)).await;
    let between = second.modified_at.since(first.modified_at);
    trial.holds(between >= step && between < step * 2, format!("{step:?} between puts show as {between:?}"));
}
