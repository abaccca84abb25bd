//! Blobs.

use std::collections::BTreeSet;
use std::sync::Mutex;

use anabranch_aws::Blobs;
use anabranch_model::blob::{
    Body, CompleteOptions, CopyOptions, ETag, GetOptions, ListOptions, PartChoice, PartNumber, PutOptions,
    Upload, UploadListOptions, UploadOptions, WriteCondition,
};
use anabranch_model::{BlobKey, BlobStore, BucketName, Error, NextMove};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use crate::peer::Peer;
use crate::peer::gaps::blobs::MINISTACK;
use crate::peer::plan::{chance, once_each};
use crate::peer::proxy::Fault::{self, *};
use crate::peer::proxy::Proxy;
use crate::peer::suite::{self, blob_cases};
use crate::peer::wire::Request;
use crate::{
    ALL, AT_MOST_ONCE, ATTEMPT_MAX, CERTAIN, Fate, LOOKED_UP, OF_CHANGES, PERCENT, REPEATED, is_doubt,
};

/// The calls that change a bucket.
const CHANGES: &[&str] = &["CreateBucket", "DeleteBucket"];
/// Every fault of a call that is made again until a look has shown what became of it.
const SEEN_IN_THE_END: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Cut, Double, Hang, Late];
/// Every fault. A put without a condition is spared the last: one that comes late undoes what was put since.
const WITH_LATE: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Cut, Double, Echo, Hang, Late];
/// Faults of a read whose body comes whole if it comes.
const WHOLE: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Double, Echo];
/// Bytes of every part but the last.
const PART: usize = 5 << 20;

fn key(text: &str) -> BlobKey {
    BlobKey::new(text).expect("a key")
}

fn body(bytes: impl Into<Bytes>) -> Body {
    Box::pin(stream::iter([Ok(bytes.into())]))
}

fn under(condition: WriteCondition) -> PutOptions {
    PutOptions { condition, ..PutOptions::default() }
}

/// Whether S3 demands something before it writes.
fn is_conditional(request: &Request) -> bool {
    request.has_header("if-match") || request.has_header("if-none-match")
}

fn of_laws(request: &Request) -> &'static [Fault] {
    match request.operation.as_str() {
        // A body that is cut ends with an error, which a law does not expect.
        "GetObject" => WHOLE,
        // A second one would be found by those who list uploads.
        "CreateMultipartUpload" => CERTAIN,
        // What was completed is found by looking.
        "CompleteMultipartUpload" if is_conditional(request) => &[Delay, Throttle, Drop, Fail, Cut],
        "PutObject" | "CopyObject" | "DeleteObject" if is_conditional(request) => CERTAIN,
        "CompleteMultipartUpload" | "AbortMultipartUpload" => LOOKED_UP,
        operation if CHANGES.contains(&operation) => LOOKED_UP,
        _ => REPEATED,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_blobs_hold() {
    let ministack = Peer::ministack().await;
    let proxy = Proxy::start(ministack.address(), chance(41, PERCENT, of_laws)).await;
    let blobs = Blobs::new(&proxy.connect(None).await).unwrap();
    suite::hold(blob_cases(&blobs, "faulty"), MINISTACK, 4).await;
    proxy.saw(REPEATED);
}

/// A bucket with a server of its own, and a faulty way to it.
struct Way {
    direct: Blobs,
    faulty: Blobs,
    proxy: Proxy,
    bucket: BucketName,
    _ministack: Peer,
}

impl Way {
    async fn to(plan: impl FnMut(&Request) -> Option<Fault> + Send + 'static) -> Way {
        let ministack = Peer::ministack().await;
        let direct = Blobs::new(&ministack.connect().await).unwrap();
        let bucket = BucketName::new("photos").unwrap();
        direct.create_bucket(&bucket).await.unwrap();
        let proxy = Proxy::start(ministack.address(), plan).await;
        let faulty = Blobs::new(&proxy.connect(ATTEMPT_MAX).await).unwrap();
        Way { direct, faulty, proxy, bucket, _ministack: ministack }
    }

    /// A body and its tag as the server itself has them, if it has any.
    async fn truth(&self, key: &BlobKey) -> Option<Bytes> {
        match self.read(&self.direct, key).await {
            Ok((bytes, _)) => Some(bytes),
            Err(Error::BlobNotFound(..)) => None,
            Err(error) => panic!("{key}: {error:?}"),
        }
    }

    async fn read(&self, blobs: &Blobs, key: &BlobKey) -> Result<(Bytes, ETag), Error> {
        let mut blob = blobs.get(&self.bucket, key, GetOptions::default()).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = blob.body.next().await {
            bytes.extend_from_slice(&piece?);
        }
        assert_eq!(bytes.len() as u64, blob.meta.size, "the body of {key} was cut, and nobody said so");
        Ok((bytes.into(), blob.meta.etag))
    }

    /// The same over the faulty way. Who is told to try again does so.
    async fn read_in_the_end(&self, key: &BlobKey) -> (Bytes, ETag) {
        loop {
            match self.read(&self.faulty, key).await {
                Ok(read) => return read,
                Err(error) => assert_eq!(error.next_move(), NextMove::Retry, "{error:?}"),
            }
        }
    }
}

/// Blobs of one owner, of which each replaces the one before.
async fn replace(way: &Way, owner: u8, rounds: u8) {
    let keys: Vec<_> =
        ["small", "large", "copied", "gone"].map(|name| key(&format!("{owner}/{name}"))).into();
    let [small, large, copied, gone] = &keys[..] else { unreachable!("there are four") };
    let bucket = &way.bucket;
    for round in 0..rounds {
        let bytes = |size: usize| Bytes::from([owner, round].repeat(size / 2));
        for (key, size) in [(small, 100), (large, 400 << 10), (gone, 10)] {
            let put = way.faulty.put(bucket, key, body(bytes(size)), PutOptions::default()).await.unwrap();
            assert_eq!(put.size, size as u64);
            assert_eq!(way.truth(key).await, Some(bytes(size)), "{key} in round {round}");
        }
        let copy = way.faulty.copy((bucket, large), (bucket, copied), CopyOptions::default());
        copy.await.unwrap();
        assert_eq!(way.truth(copied).await, Some(bytes(400 << 10)), "{copied} in round {round}");
        assert_eq!(way.read_in_the_end(large).await.0, bytes(400 << 10));
        match round % 2 {
            0 => way.faulty.delete(bucket, gone, None).await.unwrap(),
            _ => {
                let many = way.faulty.delete_many(bucket, &[gone.clone(), copied.clone()]).await.unwrap();
                assert_eq!(many, [Ok(()), Ok(())]);
                assert_eq!(way.truth(copied).await, None);
            }
        }
        assert_eq!(way.truth(gone).await, None, "{gone} in round {round}");
        let prefix = format!("{owner}/");
        let mut listed = BTreeSet::new();
        let mut options = ListOptions { prefix, limit: 1, ..ListOptions::default() };
        loop {
            let page = way.faulty.list(bucket, options.clone()).await.unwrap();
            listed.extend(page.entries.into_iter().map(|entry| entry.key));
            options.after = page.next;
            if options.after.is_none() {
                break;
            }
        }
        let expected = if round % 2 == 0 { vec![copied, large, small] } else { vec![large, small] };
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "in round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_repeated_is_done_when_it_says_so() {
    let way = Way::to(chance(42, 25, |_| ALL)).await;
    join_all((1..=4).map(|owner| replace(&way, owner, 6))).await;
    way.proxy.saw(ALL);
}

/// What became of the steps of a counter.
#[derive(Default)]
struct Tally {
    /// The values that were set for certain.
    won: Vec<u32>,
    in_doubt: usize,
}

fn number(bytes: &Bytes) -> u32 {
    std::str::from_utf8(bytes).unwrap().split(' ').next().unwrap().parse().unwrap()
}

/// Counts up: each step demands the blob that was seen before it.
async fn count(way: &Way, counter: &BlobKey, writer: usize, tally: &Mutex<Tally>, steps: usize) {
    for step in 0..steps {
        loop {
            let (seen, etag) = way.read_in_the_end(counter).await;
            let next = number(&seen) + 1;
            // Bodies that differ have different tags.
            let text = format!("{next} by {writer} in step {step}");
            let condition = under(WriteCondition::IfMatch(etag));
            let result = way.faulty.put(&way.bucket, counter, body(text), condition).await;
            if matches!(result, Err(Error::PreconditionFailed(_))) {
                continue;
            }
            let mut tally = tally.lock().expect("the tally");
            match Fate::of(result) {
                Fate::Stored(_) => tally.won.push(next),
                Fate::InDoubt => tally.in_doubt += 1,
                Fate::Refused => continue,
            }
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_lets_a_put_happen_once() {
    let faults = |request: &Request| match request.operation.as_str() {
        "PutObject" => WITH_LATE,
        _ => ALL,
    };
    let way = Way::to(chance(43, 20, faults)).await;
    let counter = key("counter");
    way.direct.put(&way.bucket, &counter, body("0 by nobody"), PutOptions::default()).await.unwrap();
    let tally = Mutex::default();
    join_all((0..4).map(|writer| count(&way, &counter, writer, &tally, 20))).await;
    way.proxy.saw(WITH_LATE);

    let Tally { won, in_doubt } = tally.into_inner().unwrap();
    let distinct: BTreeSet<_> = won.iter().collect();
    assert_eq!(distinct.len(), won.len(), "two writers have set the same value: {won:?}");
    let last = number(&way.truth(&counter).await.unwrap()) as usize;
    // Of a put that came twice, the answer to the second says that the condition does not hold.
    let most = won.len() + in_doubt + way.proxy.count(Echo);
    assert!(
        (won.len()..=most).contains(&last),
        "{last}, of which {} are certain, {most} possible",
        won.len()
    );
    assert!(distinct.last().is_some_and(|highest| **highest as usize <= last), "{won:?}, {last}");
    assert!(in_doubt > 0, "no put was in doubt");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_makes_a_blob_that_was_absent() {
    const WRITERS: usize = 4;
    let faults = |request: &Request| match request.operation.as_str() {
        "PutObject" => OF_CHANGES,
        _ => ALL,
    };
    let way = Way::to(chance(44, 30, faults)).await;
    let (mut sure, mut doubts) = (0, 0);
    for round in 0..12 {
        let key = key(&format!("key-{round}"));
        let write = |writer: usize| {
            let (way, key) = (&way, &key);
            async move {
                let put = way.faulty.put(
                    &way.bucket,
                    key,
                    body(format!("by {writer}")),
                    under(WriteCondition::IfAbsent),
                );
                match put.await {
                    Err(Error::PreconditionFailed(_)) => Fate::Refused,
                    result => Fate::of(result),
                }
            }
        };
        let fates = join_all((0..WRITERS).map(write)).await;
        let there = way.truth(&key).await;
        let by = |writer: usize| Some(Bytes::from(format!("by {writer}")));
        let of = |wanted: fn(&Fate<_>) -> bool| {
            let found = fates.iter().enumerate().filter(|(_, fate)| wanted(fate));
            found.map(|(writer, _)| writer).collect::<Vec<_>>()
        };
        let (stored, in_doubt) =
            (of(|fate| matches!(fate, Fate::Stored(_))), of(|fate| *fate == Fate::InDoubt));
        match stored[..] {
            [] => assert!(
                there.is_none() || in_doubt.iter().any(|writer| there == by(*writer)),
                "{there:?} is in {key} after {fates:?}"
            ),
            [winner] => assert_eq!(there, by(winner), "{key} after {fates:?}"),
            _ => panic!("{} writers made {key}: {fates:?}", stored.len()),
        }
        sure += stored.len();
        doubts += in_doubt.len();
    }
    way.proxy.saw(OF_CHANGES);
    assert!(sure > 0 && doubts > 0, "{sure} are certain, {doubts} in doubt");
}

/// Begins an upload; who is told that nobody knows begins another.
async fn begun(way: &Way, key: &BlobKey, in_doubt: &mut usize) -> Upload {
    loop {
        match Fate::of(way.faulty.begin_upload(&way.bucket, key, UploadOptions::default()).await) {
            Fate::Stored(upload) => return upload,
            Fate::InDoubt => *in_doubt += 1,
            Fate::Refused => {}
        }
    }
}

/// Puts a blob in two parts, and says how many uploads may have been left behind.
async fn upload(way: &Way, number: u8) -> usize {
    let (key, mut in_doubt) = (key(&format!("joined-{number}")), 0);
    let (first, last) = (Bytes::from(vec![number; PART]), Bytes::from(vec![b'x'; 10]));
    let whole = Bytes::from([&first[..], &last[..]].concat());
    loop {
        let upload = begun(way, &key, &mut in_doubt).await;
        let mut parts = Vec::new();
        for (place, bytes) in [(1, &first), (2, &last)] {
            let place = PartNumber::new(place).unwrap();
            let part = way.faulty.put_part(&upload, place, body(bytes.clone()), Default::default()).await;
            parts.push(PartChoice::from(&part.unwrap()));
        }
        let listed = way.faulty.parts(&upload, None, 10).await.unwrap().entries;
        assert_eq!(listed.iter().map(PartChoice::from).collect::<Vec<_>>(), parts);
        // Every other one demands that nobody was faster, and nobody is.
        let condition =
            if number.is_multiple_of(2) { WriteCondition::None } else { WriteCondition::IfAbsent };
        let options = CompleteOptions { condition, ..CompleteOptions::default() };
        match way.faulty.complete_upload(&upload, &parts, options).await {
            Ok(completed) => {
                assert_eq!((completed.size, completed.parts), (whole.len() as u64, Some(2)));
                assert!(way.truth(&key).await == Some(whole), "{key} is not what was put");
                return in_doubt;
            }
            // It may still come to its end, behind our back.
            Err(error) if number % 2 == 1 && is_doubt(&error) => {
                if way.truth(&key).await.is_some_and(|there| there == whole) {
                    return in_doubt;
                }
                way.faulty.abort_upload(&upload).await.unwrap();
            }
            Err(error) => panic!("{key}: {error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_becomes_one_blob() {
    let faults = |request: &Request| match request.operation.as_str() {
        "CreateMultipartUpload" => AT_MOST_ONCE,
        "CompleteMultipartUpload" if is_conditional(request) => AT_MOST_ONCE,
        "CompleteMultipartUpload" | "AbortMultipartUpload" => SEEN_IN_THE_END,
        _ => ALL,
    };
    let way = Way::to(chance(45, 30, faults)).await;
    let left: usize = join_all((0..8).map(|number| upload(&way, number))).await.into_iter().sum();
    way.proxy.saw(&[Throttle, Drop, Cut, Hang]);
    let open = way.direct.uploads(&way.bucket, UploadListOptions::default()).await.unwrap().entries;
    assert!(open.len() <= left, "{} uploads are left behind, and {left} may be", open.len());
}

/// A bucket is made and removed, and each of these calls has the fault once.
async fn live(ministack: &Peer, fault: Fault) {
    let proxy = Proxy::start(ministack.address(), once_each(fault, CHANGES)).await;
    let blobs = Blobs::new(&proxy.connect(ATTEMPT_MAX).await).unwrap();
    let bucket = BucketName::new(&format!("life-{fault:?}").to_lowercase()).unwrap();
    blobs.create_bucket(&bucket).await.unwrap();
    assert_eq!(blobs.create_bucket(&bucket).await, Err(Error::BucketExists(bucket.clone())), "{fault:?}");
    blobs.put(&bucket, &key("key"), body("blob"), PutOptions::default()).await.unwrap();
    let full = Err(Error::BucketNotEmpty(bucket.clone()));
    assert_eq!(blobs.delete_bucket(&bucket).await, full, "{fault:?}");
    blobs.delete(&bucket, &key("key"), None).await.unwrap();
    blobs.delete_bucket(&bucket).await.unwrap();
    let gone = Err(Error::BucketNotFound(bucket.clone()));
    assert_eq!(blobs.delete_bucket(&bucket).await, gone, "{fault:?}");
    assert_eq!(proxy.count(fault), CHANGES.len(), "{fault:?} did not happen to every change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buckets_change_as_they_should_behind_lost_answers() {
    let ministack = Peer::ministack().await;
    join_all(OF_CHANGES.iter().map(|fault| live(&ministack, *fault))).await;
}
