//! Uploads and their parts, until they are completed or aborted.

use std::collections::BTreeSet;

use super::bytes::{PART, some_bytes, whole};
use super::trial::Trial;
use crate::Error;
use crate::blob::{
    BodyOptions, CompleteOptions, ETag, GetOptions, PartChoice, PartNumber, Range, UploadAfter,
    UploadListOptions, md5_of,
};

/// Parts that were put in any order are joined by their numbers, which may have gaps; the etag counts them.
pub async fn parts_are_joined_by_number(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    let upload = trial.begin(&bucket, &key).await;
    let bodies = [some_bytes(1, PART), some_bytes(2, PART + 1), some_bytes(3, 17)];
    let mut parts = Vec::new();
    for (number, at) in [(9_999, 2), (3, 0), (40, 1)] {
        let at_number = trial.ok("a part number", PartNumber::new(number));
        let options = BodyOptions { md5_tag: true, ..BodyOptions::default() };
        let part = trial.store().put_part(&upload, at_number, whole(&bodies[at]), options).await;
        let part = trial.ok("putting a part", part);
        trial.same("the number of a part", u64::from(part.number.get()), number);
        trial.same("the size of a part", part.size, bodies[at].len() as u64);
        trial.same("the etag of a part", part.etag.clone(), ETag::of_md5(md5_of(&bodies[at])));
        parts.push(part);
    }
    parts.sort_by_key(|part| part.number);
    let meta = trial.complete(&upload, &parts).await;
    let body = bodies.concat();
    let md5s: Vec<_> = bodies.iter().map(|bytes| md5_of(bytes)).collect();
    trial.same("the etag", meta.etag.clone(), ETag::of_parts(&md5s));
    trial.same("size and parts", (meta.size, meta.parts), (body.len() as u64, Some(3)));
    trial.same("what a completion and a look say", trial.head(&bucket, &key).await, meta);
    trial.same_bytes("the joined body", &trial.read(&bucket, &key).await, &body);
    // A range may begin in one part and end in another.
    let range = Some(Range::FromTo(PART as u64 - 10, 2 * PART as u64 + 5));
    let (.., read) = trial.read_with(&bucket, &key, GetOptions { range, ..GetOptions::default() }).await;
    trial.same_bytes("a range across parts", &read, &body[PART - 10..2 * PART + 6]);
}

/// The parts of a blob can be read one by one, and each says where it stands. A blob that was put at once, and one that
/// was copied whole, is its own only part.
pub async fn parts_can_be_read_one_by_one(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    let upload = trial.begin(&bucket, &key).await;
    let bodies = [some_bytes(1, PART + 9), some_bytes(2, PART), some_bytes(3, 17)];
    let mut parts = Vec::new();
    for (number, body) in (1..).zip(&bodies) {
        parts.push(trial.part(&upload, number, body).await);
    }
    let meta = trial.complete(&upload, &parts).await;
    let at = |number| {
        let part = trial.ok("a part number", PartNumber::new(number));
        GetOptions { range: Some(Range::Part(part)), ..GetOptions::default() }
    };
    let mut start = 0;
    for (number, body) in (1..).zip(&bodies) {
        let (found, range, read) = trial.read_with(&bucket, &key, at(number)).await;
        trial.same_bytes("a part", &read, body);
        trial.same("where a part stands", range, start..start + body.len() as u64);
        trial.same("the blob that a part is of", found, meta.clone());
        start += body.len() as u64;
    }
    let missing = |error: &Error| matches!(error, Error::PartNotFound(_));
    trial.refused_in(&bucket, "reading a fourth part", missing, store.get(&bucket, &key, at(4))).await;

    let (once, bytes) = (trial.key("once"), some_bytes(4, 1_000));
    trial.put(&bucket, &once, &bytes).await;
    let (_, range, read) = trial.read_with(&bucket, &once, at(1)).await;
    trial.same_bytes("the only part", &read, &bytes);
    trial.same("where the only part stands", range, 0..1_000);
    trial.refused_in(&bucket, "reading a second part", missing, store.get(&bucket, &once, at(2))).await;
    let empty = trial.key("empty");
    trial.put(&bucket, &empty, &Default::default()).await;
    let (_, range, read) = trial.read_with(&bucket, &empty, at(1)).await;
    trial.same("the only part of nothing", (range, read.len()), (0..0, 0));
}

/// Of parts with one number the last counts: the blob has its bytes, and the etag of the first is refused.
pub async fn a_replaced_part_counts(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    let upload = trial.begin(&bucket, &key).await;
    let first = trial.part(&upload, 1, &some_bytes(1, PART + 7)).await;
    let last = trial.part(&upload, 2, &some_bytes(2, 20)).await;
    let again = trial.part(&upload, 1, &some_bytes(3, PART)).await;
    trial.same("parts", trial.parts_by(&upload, 10).await, vec![again.clone(), last.clone()]);
    let choices: Vec<_> = [&first, &last].into_iter().map(PartChoice::from).collect();
    let refused = trial.store().complete_upload(&upload, &choices, CompleteOptions::default()).await;
    trial.same("a replaced part", refused.err(), Some(Error::PartNotFound(first.number)));
    trial.complete(&upload, &[again, last]).await;
    let expected = [some_bytes(3, PART), some_bytes(2, 20)].concat();
    trial.same_bytes("the joined body", &trial.read(&bucket, &key).await, &expected);
}

/// Until its completion an upload is not a blob, does not touch the blob under its key, and keeps no bucket from being
/// described.
pub async fn parts_are_no_blob(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, present, bytes) = (trial.key("key"), trial.key("present"), some_bytes(9, 90));
    let put = trial.put(&bucket, &present, &bytes).await;
    for key in [&key, &present] {
        let upload = trial.begin(&bucket, key).await;
        trial.part(&upload, 1, &some_bytes(1, 1_000)).await;
    }
    trial.is_absent("with an open upload", &bucket, &key).await;
    trial.same_blob("the blob beside an upload", trial.head(&bucket, &present).await, put);
    trial.same_bytes("the body beside an upload", &trial.read(&bucket, &present).await, &bytes);
    trial.same("keys", trial.keys(&bucket).await, vec![present]);
}

/// Parts are listed by number, in pages of any size, as they were acknowledged.
pub async fn parts_are_listed_in_pages(trial: Trial) {
    let bucket = trial.bucket().await;
    let upload = trial.begin(&bucket, &trial.key("key")).await;
    trial.same("parts of a new upload", trial.parts_by(&upload, 10).await, Vec::new());
    let mut parts = Vec::new();
    for number in [500, 1, 2, 10_000, 30, 3, 29] {
        parts.push(trial.part(&upload, number, &some_bytes(number, number as usize)).await);
    }
    parts.sort_by_key(|part| part.number);
    for limit in [0, 1, 2, 6, 7, 1_000, usize::MAX] {
        trial.same(format!("parts in pages of {limit}"), trial.parts_by(&upload, limit).await, parts.clone());
    }
    // The number to go on from need not have a part.
    let after = trial.ok("a part number", PartNumber::new(40));
    let page = trial.ok("listing parts", trial.store().parts(&upload, Some(after), 1).await);
    trial.same("parts behind 40", (page.entries, page.more), (vec![parts[5].clone()], true));
}

/// Uploads are listed by key, in pages of any size, each once, also where several have one key.
pub async fn uploads_are_listed_in_pages(trial: Trial) {
    let bucket = trial.bucket().await;
    let mut begun = BTreeSet::new();
    for key in ["b/2", "a", "b/1", "b/1", "a", "c", "b/1", "é"] {
        begun.insert(trial.begin(&bucket, &trial.key(key)).await);
    }
    trial.same("uploads that were begun", begun.len(), 8);
    for prefix in ["", "a", "b/", "b/1", "é", "nothing"] {
        let expected: BTreeSet<_> =
            begun.iter().filter(|upload| upload.key.as_str().starts_with(prefix)).cloned().collect();
        for limit in [0, 1, 2, 3, 8, usize::MAX] {
            let what = format!("uploads below `{prefix}` in pages of {limit}");
            let listed = trial.uploads_by(&bucket, prefix, limit).await;
            let in_order = listed.is_sorted_by_key(|summary| summary.upload.key.clone());
            trial.holds(in_order, format!("{what} are out of order"));
            trial.same(format!("the number of {what}"), listed.len(), expected.len());
            let listed: BTreeSet<_> = listed.into_iter().map(|summary| summary.upload).collect();
            trial.same(&what, listed, expected.clone());
        }
    }
    let after = UploadAfter { key: trial.key("b/1"), upload: None };
    let options = UploadListOptions { after: Some(after), ..UploadListOptions::default() };
    let page = trial.ok("listing uploads", trial.store().uploads(&bucket, options).await);
    let keys: Vec<_> = page.entries.iter().map(|summary| summary.upload.key.as_str()).collect();
    trial.same("keys of uploads behind `b/1`", keys, vec!["b/2", "c", "é"]);
    // The upload to go on from need not exist: it may have been completed or aborted meanwhile.
    let listed = trial.uploads_by(&bucket, "", 1_000).await;
    let gone = listed[3].upload.clone();
    trial.ok("aborting", trial.store().abort_upload(&gone).await);
    let after = UploadAfter { key: gone.key, upload: Some(gone.id) };
    let options = UploadListOptions { after: Some(after), ..UploadListOptions::default() };
    let page = trial.ok("listing uploads", trial.store().uploads(&bucket, options).await);
    trial.same("uploads behind one that is gone", page.entries, listed[4..].to_vec());
}

/// Uploads of one key have parts of their own; the last that is completed is the blob.
pub async fn uploads_of_one_key_are_apart(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    let (one, other) = (trial.begin(&bucket, &key).await, trial.begin(&bucket, &key).await);
    trial.holds(one.id != other.id, "two uploads have one identifier");
    let of_one = trial.part(&one, 1, &some_bytes(1, 100)).await;
    let of_other = trial.part(&other, 1, &some_bytes(2, 200)).await;
    trial.same("parts of one", trial.parts_by(&one, 10).await, vec![of_one.clone()]);
    trial.complete(&other, &[of_other]).await;
    trial.same_bytes("the first completion", &trial.read(&bucket, &key).await, &some_bytes(2, 200));
    trial.same("parts of one, later", trial.parts_by(&one, 10).await, vec![of_one.clone()]);
    trial.complete(&one, &[of_one]).await;
    trial.same_bytes("the second completion", &trial.read(&bucket, &key).await, &some_bytes(1, 100));
}

/// An aborted upload takes no parts, lists none, cannot be completed, and is not listed; others are left alone.
pub async fn an_aborted_upload_is_gone(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    let (kept, upload) = (trial.begin(&bucket, &key).await, trial.begin(&bucket, &key).await);
    let part = trial.part(&upload, 1, &some_bytes(1, 100)).await;
    trial.ok("aborting", store.abort_upload(&upload).await);
    let gone = |error: &Error| matches!(error, Error::UploadNotFound(_));
    let choices = [PartChoice::from(&part)];
    trial.refused_in(&bucket, "listing its parts", gone, store.parts(&upload, None, 10)).await;
    let put = store.put_part(&upload, part.number, whole(&some_bytes(2, 10)), BodyOptions::default());
    trial.refused_in(&bucket, "putting a part", gone, put).await;
    let complete = store.complete_upload(&upload, &choices, CompleteOptions::default());
    trial.refused_in(&bucket, "completing it", gone, complete).await;
    trial.refused_in(&bucket, "aborting it again", gone, store.abort_upload(&upload)).await;
    trial.is_absent("after an abort", &bucket, &key).await;
    let listed: Vec<_> = trial.uploads(&bucket).await.into_iter().map(|summary| summary.upload).collect();
    trial.same("uploads that are left", listed, vec![kept]);
}

/// Part 10,000 is a part like any other; 10,001 and 0 do not exist.
pub async fn the_last_part_number_is_ten_thousand(trial: Trial) {
    let bucket = trial.bucket().await;
    let key = trial.key("key");
    let upload = trial.begin(&bucket, &key).await;
    let (one, last) = (some_bytes(1, PART), some_bytes(2, 2));
    let parts = [trial.part(&upload, 1, &one).await, trial.part(&upload, 10_000, &last).await];
    trial.complete(&upload, &parts).await;
    trial.same_bytes("the joined body", &trial.read(&bucket, &key).await, &[one, last].concat());
    for number in [0, 10_001, u64::MAX] {
        trial.holds(PartNumber::new(number).is_err(), format!("part {number} is allowed"));
    }
}
