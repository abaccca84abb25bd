//! What callers of blobs see when the far side is not as it should be: each case its own error, with what to do. No put
//! that may have been carried out is made twice where that could do harm, and no upload is left behind.

mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_aws::Blobs;
use anabranch_model::blob::{
    Body, BodyOptions, ChecksumAlgorithm, CompleteOptions, GetOptions, ListOptions, PartChoice, PartNumber,
    PutOptions, Upload, UploadId, WriteCondition,
};
use anabranch_model::{BlobKey, BlobStore, BucketName, Error, NextMove};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use peer::connect;
use peer::stub::{Answer, Stub};
use tokio::sync::Notify;

const MODIFIED: &str = "last-modified: Thu, 05 Nov 2026 00:00:00 GMT";
const ETAG: &str = "etag: \"0123456789abcdef0123456789abcdef\"";
const PART_LIST: &str = "<ListPartsResult><IsTruncated>false</IsTruncated><Part><PartNumber>1</PartNumber>\
    <ETag>\"0123456789abcdef0123456789abcdef\"</ETag><Size>3</Size>\
    <LastModified>2026-11-05T00:00:00.000Z</LastModified></Part></ListPartsResult>";

fn bucket() -> BucketName {
    BucketName::new("clicks").expect("a name")
}

fn key(key: &str) -> BlobKey {
    BlobKey::new(key).expect("a key")
}

fn body(pieces: Vec<Bytes>) -> Body {
    Box::pin(stream::iter(pieces.into_iter().map(Ok)))
}

fn small() -> Body {
    body(vec![Bytes::from_static(b"abc")])
}

/// Twenty megabytes in pieces.
fn large() -> Body {
    body(vec![Bytes::from(vec![7; 1 << 20]); 20])
}

async fn blobs(stub: &Stub) -> Blobs {
    Blobs::new(&connect(&stub.endpoint()).await).expect("an address")
}

fn stored() -> Answer {
    Answer::document("").with(ETAG).with(MODIFIED)
}

/// The error of a listing from a server that always answers the same, and how often it was asked.
async fn listing(answer: Answer) -> (Error, usize) {
    let stub = Stub::start(move |_, _| answer.clone()).await;
    let error = blobs(&stub).await.list(&bucket(), ListOptions::default()).await;
    (error.expect_err("the server refuses everything"), stub.asked().len())
}

#[tokio::test]
async fn a_bucket_of_another_account_is_told() {
    let (error, calls) = listing(Answer::refusal(403, "AccessDenied", "Access Denied")).await;
    assert!(matches!(&error, Error::Denied { action, .. } if action == "s3:ListBucket"), "{error:?}");
    assert!(error.to_string().contains("`clicks`: it may belong to another account"), "{error}");
    assert_eq!((error.next_move(), calls), (NextMove::FixSetup, 1));
}

#[tokio::test]
async fn the_region_of_the_bucket_is_named() {
    let moved = Answer::refusal(301, "PermanentRedirect", "Use the endpoint of the bucket.");
    let scoped = Answer::Full(
        400,
        Vec::new(),
        "<Error><Code>AuthorizationHeaderMalformed</Code><Message>wrong</Message><Region>eu-west-1</Region></Error>"
            .to_string(),
    );
    for answer in [moved.with("x-amz-bucket-region: eu-west-1"), scoped] {
        let (error, calls) = listing(answer).await;
        assert!(matches!(&error, Error::Misconfigured(text) if text.contains("`eu-west-1`")), "{error:?}");
        assert!(error.to_string().contains("AWS_REGION"), "{error}");
        assert_eq!(calls, 1);
    }
}

#[tokio::test]
async fn a_wrong_clock_is_measured() {
    let skewed = Answer::refusal(403, "RequestTimeTooSkewed", "The difference is too large.");
    let (error, calls) = listing(skewed.with("date: Thu, 01 Jan 2015 00:00:00 GMT")).await;
    assert!(matches!(&error, Error::Misconfigured(text) if text.contains("minutes ahead of")), "{error:?}");
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn whoever_is_not_s3_is_found_out() {
    let page =
        |status| Answer::Full(status, vec!["content-type: text/html".to_string()], "<p>Hi".to_string());
    for answer in [page(200), page(404), page(403), Answer::Full(200, Vec::new(), "{}".to_string())] {
        let (error, calls) = listing(answer).await;
        assert!(
            matches!(&error, Error::Misconfigured(text) if text.contains("AWS_ENDPOINT_URL")),
            "{error:?}"
        );
        assert_eq!(calls, 1);
    }
}

#[tokio::test]
async fn bad_credentials_are_told_apart() {
    for code in ["InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"] {
        let (error, calls) = listing(Answer::refusal(403, code, "no")).await;
        assert!(matches!(error, Error::Unauthenticated(_)), "{code}: {error:?}");
        assert_eq!(calls, 1, "{code}");
    }
}

#[tokio::test]
async fn the_head_of_a_blob_is_refused_with_a_reason() {
    let stub = Stub::start(|operation, _| match operation.starts_with("HEAD") {
        true => Answer::Full(403, Vec::new(), String::new()),
        false => Answer::refusal(400, "ExpiredToken", "The token has expired."),
    })
    .await;
    let error = blobs(&stub).await.head(&bucket(), &key("key")).await.expect_err("a refusal");
    assert!(matches!(&error, Error::Unauthenticated(text) if text.contains("ExpiredToken")), "{error:?}");
}

#[tokio::test]
async fn keys_stand_in_addresses_byte_for_byte() {
    let stub = Stub::start(|_, _| stored()).await;
    let blobs = blobs(&stub).await;
    for (text, path) in [
        ("../up", "../up"),
        ("/a//b/", "/a//b/"),
        ("a b+c%20", "a%20b%2Bc%2520"),
        ("é", "%C3%A9"),
        ("e\u{301}", "e%CC%81"),
        ("q?x=1&y#z", "q%3Fx%3D1%26y%23z"),
        ("\0\n~*", "%00%0A~%2A"),
    ] {
        blobs.put(&bucket(), &key(text), small(), PutOptions::default()).await.expect("a put");
        let expected = format!("PUT /clicks/{path}");
        assert!(stub.asked().contains(&expected), "{expected} is not in {:?}", stub.asked());
    }
}

/// How often a blob was put by a put whose first answer never came, and what became of it.
async fn put_without_an_answer(condition: WriteCondition) -> (Result<(), Error>, usize) {
    let puts = Arc::new(AtomicUsize::new(0));
    let counted = puts.clone();
    let stub = Stub::start(move |operation, _| {
        let is_first = operation.starts_with("PUT") && counted.fetch_add(1, Ordering::SeqCst) == 0;
        if is_first { Answer::Closed } else { stored() }
    })
    .await;
    let options = PutOptions { condition, ..PutOptions::default() };
    let put = blobs(&stub).await.put(&bucket(), &key("key"), small(), options).await;
    (put.map(|_| ()), puts.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_put_of_unknown_outcome_is_repeated_only_without_a_condition() {
    let (put, puts) = put_without_an_answer(WriteCondition::None).await;
    assert_eq!((put, puts), (Ok(()), 2));
    let (put, puts) = put_without_an_answer(WriteCondition::IfAbsent).await;
    let error = put.expect_err("nobody knows");
    assert_eq!((error.next_move(), puts), (NextMove::Retry, 1));
    assert!(error.to_string().contains("not known"), "{error}");
}

#[tokio::test]
async fn a_damaged_body_is_not_read_to_its_end() {
    let stub = Stub::start(|_, _| {
        Answer::Full(200, Vec::new(), "abc".to_string())
            .with(ETAG)
            .with(MODIFIED)
            .with("x-amz-checksum-crc32: AAAAAA==")
    })
    .await;
    let mut blob =
        blobs(&stub).await.get(&bucket(), &key("key"), GetOptions::default()).await.expect("a head");
    let mut last = None;
    while let Some(piece) = blob.body.next().await {
        last = Some(piece);
    }
    let error = last.expect("pieces").expect_err("another body than was stored");
    assert_eq!(error.next_move(), NextMove::Report, "{error:?}");
}

#[tokio::test]
async fn a_body_that_breaks_off_ends_with_an_error() {
    let stub = Stub::start(|_, _| {
        Answer::CutBehind(vec![ETAG.to_string(), MODIFIED.to_string()], "abc".to_string())
    })
    .await;
    let blob = blobs(&stub).await.get(&bucket(), &key("key"), GetOptions::default()).await.expect("a head");
    assert_eq!(blob.meta.size, 500);
    let pieces: Vec<_> = blob.body.collect().await;
    let error = pieces.last().and_then(|last| last.as_ref().err()).expect("an error at the end");
    assert_eq!(error.next_move(), NextMove::Retry, "{error:?}");
}

/// A server of uploads that fails where it is told to, and notes what it was asked.
async fn uploads(fails: &'static str) -> Stub {
    Stub::start(move |operation, _| {
        if !fails.is_empty() && operation.contains(fails) {
            return Answer::refusal(400, "InvalidRequest", "told to fail");
        }
        match operation {
            begin if begin.ends_with("?uploads") => Answer::document("<R><UploadId>first</UploadId></R>"),
            complete if complete.starts_with("POST") => {
                Answer::document("<R><ETag>\"0123456789abcdef0123456789abcdef-3\"</ETag></R>")
            }
            _ => stored(),
        }
    })
    .await
}

fn asked(stub: &Stub, what: &str) -> usize {
    stub.asked().iter().filter(|asked| asked.starts_with(what)).count()
}

async fn until_asked(stub: &Stub, what: &str) {
    let mut again = tokio::time::interval(Duration::from_millis(10));
    while asked(stub, what) == 0 {
        again.tick().await;
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_goes_in_parts() {
    let stub = uploads("").await;
    let body = BodyOptions { computed: [ChecksumAlgorithm::Crc32].into(), ..BodyOptions::default() };
    let options = PutOptions { body, ..PutOptions::default() };
    let put = blobs(&stub).await.put(&bucket(), &key("key"), large(), options).await.expect("a put");
    assert_eq!((put.size, put.parts), (20 << 20, Some(3)));
    assert_eq!(asked(&stub, "PUT /clicks/key?partNumber="), 3);
    assert_eq!(asked(&stub, "DELETE"), 0);
}

#[tokio::test]
async fn an_upload_that_fails_is_aborted() {
    for fails in ["partNumber=2", "POST /clicks/key?uploadId="] {
        let stub = uploads(fails).await;
        let put = blobs(&stub).await.put(&bucket(), &key("key"), large(), PutOptions::default()).await;
        assert!(put.expect_err("told to fail").to_string().contains("told to fail"), "{fails}");
        assert_eq!(asked(&stub, "DELETE /clicks/key?uploadId=first"), 1, "{fails}");
    }
    // A body that is not what was declared is known only at its end.
    let stub = uploads("").await;
    let wrong = BodyOptions { md5: Some([0; 16]), ..BodyOptions::default() };
    let options = PutOptions { body: wrong, ..PutOptions::default() };
    let put = blobs(&stub).await.put(&bucket(), &key("key"), large(), options).await;
    assert_eq!(put.expect_err("another MD5"), Error::ChecksumMismatch("md5"));
    assert_eq!(asked(&stub, "DELETE /clicks/key?uploadId=first"), 1);
    assert_eq!(asked(&stub, "POST /clicks/key?uploadId="), 0);
}

#[tokio::test]
async fn an_upload_that_is_dropped_is_aborted() {
    let stub = uploads("").await;
    let blobs = blobs(&stub).await;
    let stalled: Body = Box::pin(large().chain(stream::pending()));
    let put = {
        let blobs = blobs.clone();
        tokio::spawn(async move { blobs.put(&bucket(), &key("key"), stalled, PutOptions::default()).await })
    };
    until_asked(&stub, "PUT /clicks/key?partNumber=").await;
    put.abort();
    until_asked(&stub, "DELETE /clicks/key?uploadId=first").await;
    assert_eq!(asked(&stub, "POST /clicks/key?uploadId="), 0);
}

#[tokio::test]
async fn an_upload_that_nobody_waits_for_any_more_is_aborted() {
    let moment = Arc::new(Notify::new());
    let late = moment.clone();
    let stub = Stub::start(move |operation, _| match operation.ends_with("?uploads") {
        true => {
            let begun = Answer::document("<R><UploadId>first</UploadId></R>");
            Answer::Late(late.clone(), Box::new(begun))
        }
        false => stored(),
    })
    .await;
    let blobs = blobs(&stub).await;
    let put =
        tokio::spawn(async move { blobs.put(&bucket(), &key("key"), large(), PutOptions::default()).await });
    until_asked(&stub, "POST /clicks/key?uploads").await;
    put.abort();
    assert!(put.await.is_err_and(|error| error.is_cancelled()));
    moment.notify_one();
    until_asked(&stub, "DELETE /clicks/key?uploadId=first").await;
    assert_eq!(asked(&stub, "PUT"), 0);
}

#[tokio::test]
async fn an_upload_is_aborted_until_it_is_gone() {
    let aborts = Arc::new(AtomicUsize::new(0));
    let counted = aborts.clone();
    // A part that was under way arrives behind the first abort.
    let stub = Stub::start(move |operation, _| match operation {
        begin if begin.ends_with("?uploads") => Answer::document("<R><UploadId>first</UploadId></R>"),
        abort if abort.starts_with("DELETE") => {
            counted.fetch_add(1, Ordering::SeqCst);
            stored()
        }
        list if list.starts_with("GET") => match counted.load(Ordering::SeqCst) {
            0 | 1 => Answer::document(PART_LIST),
            _ => Answer::refusal(404, "NoSuchUpload", "gone"),
        },
        _ => Answer::refusal(400, "InvalidRequest", "told to fail"),
    })
    .await;
    let put = blobs(&stub).await.put(&bucket(), &key("key"), large(), PutOptions::default()).await;
    assert!(put.expect_err("told to fail").to_string().contains("told to fail"));
    assert_eq!(aborts.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_last_bytes_of_a_wrong_body_are_not_sent() {
    let received = Arc::new(AtomicUsize::new(0));
    let counted = received.clone();
    let stub = Stub::start(move |operation, _| {
        counted.fetch_add(usize::from(operation.starts_with("PUT")), Ordering::SeqCst);
        stored()
    })
    .await;
    let blobs = blobs(&stub).await;
    let right = BodyOptions { size: Some(20 << 20), ..BodyOptions::default() };
    let wrong = BodyOptions { md5: Some([0; 16]), ..right.clone() };
    let options = |body| PutOptions { body, ..PutOptions::default() };
    let put = blobs.put(&bucket(), &key("key"), large(), options(wrong)).await;
    assert_eq!(put.expect_err("another MD5"), Error::ChecksumMismatch("md5"));
    // The server hands a request on when all of its body has come.
    assert_eq!(received.load(Ordering::SeqCst), 0);
    blobs.put(&bucket(), &key("key"), large(), options(right)).await.expect("a put");
    assert_eq!(received.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_error_under_a_status_of_success_is_an_error() {
    let stub = Stub::start(|operation, _| match operation.starts_with("GET") {
        true => Answer::document(PART_LIST),
        false => Answer::refusal(200, "InvalidRequest", "not today"),
    })
    .await;
    let upload = Upload { bucket: bucket(), key: key("key"), id: UploadId::new("first").expect("an id") };
    let etag = "0123456789abcdef0123456789abcdef".parse().expect("an etag");
    let choice = PartChoice { number: PartNumber::new(1).expect("a number"), etag };
    let completed = blobs(&stub).await.complete_upload(&upload, &[choice], CompleteOptions::default()).await;
    assert!(completed.expect_err("an error").to_string().contains("not today"));
}
