//! What callers see when the far side is not as it should be: each case its own error, with what to do, and no call
//! that may have been carried out is made twice by itself.
//!
//! | what is wrong | where it is put to the test |
//! |---|---|
//! | no credentials, no region, a region or an endpoint that is none | `discovery.rs`; `what_is_missing_is_named` of the commands |
//! | another region | `a_wrong_region_is_told` here; `the_region_of_the_bucket_is_named` in `blob_failures.rs` |
//! | what does not exist or is being made | `what_is_missing_or_being_made_is_not_the_same` here; for tables in `table_failures.rs` |
//! | an endpoint that is not AWS | `whoever_is_not_aws_is_recognised` here; `who_is_not_aws_is_told_apart` of the commands |
//! | a clock twenty minutes off | here with a stub, in `blob_laws.rs` with a server that verifies signatures |
//! | a table with another key schema | `a_table_with_another_key_is_told_in_words` in `table_failures.rs` |
//! | a bucket of another account | `a_bucket_of_another_account_is_told` in `blob_failures.rs` |
//!
//! None of these is tried again: the tests count the calls.

mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_aws::{Aws, AwsOptions, Streams};
use anabranch_model::{Clock, Error, NewRecord, NextMove, ShardSource, StreamName, StreamStore, limits};
use peer::stub::{Answer, Stub};
use peer::{Late, SECRET, WallClock, connect, connect_by};

fn name() -> StreamName {
    StreamName::new("clicks").expect("a name")
}

/// The error of a listing, which is a call that may be repeated, from a server that always answers the same.
async fn listing(answer: Answer) -> (Error, usize) {
    let stub = Stub::start(move |_, _| answer.clone()).await;
    let streams = Streams::new(&connect(&stub.endpoint()).await);
    let error = streams.shards(&name(), None, 10).await.expect_err("the server refuses everything");
    (error, stub.asked().len())
}

#[tokio::test]
async fn a_missing_permission_is_named() {
    let (error, calls) =
        listing(Answer::failure(400, "AccessDeniedException", "User x is not authorized")).await;
    assert!(matches!(&error, Error::Denied { action, .. } if action == "kinesis:ListShards"), "{error:?}");
    assert_eq!((error.next_move(), calls), (NextMove::FixSetup, 1));
    assert!(error.to_string().contains("User x is not authorized"), "{error}");
}

#[tokio::test]
async fn bad_credentials_are_told_apart() {
    for (status, code) in [
        (400, "ExpiredTokenException"),
        (400, "UnrecognizedClientException"),
        (403, "InvalidSignatureException"),
        (403, "MissingAuthenticationTokenException"),
    ] {
        let (error, calls) = listing(Answer::failure(status, code, "no")).await;
        assert!(matches!(error, Error::Unauthenticated(_)), "{code}: {error:?}");
        assert!(error.to_string().contains(code), "{error}");
        assert_eq!(calls, 1, "{code}");
    }
}

#[tokio::test]
async fn a_wrong_clock_is_measured() {
    let long_ago =
        Answer::failure(403, "InvalidSignatureException", "Signature expired: 2015 is now earlier than");
    let (error, calls) = listing(long_ago.with("date: Thu, 01 Jan 2015 00:00:00 GMT")).await;
    assert!(matches!(&error, Error::Misconfigured(text) if text.contains("minutes ahead of")), "{error:?}");
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn a_clock_that_is_twenty_minutes_late_is_not_corrected_behind_the_back_of_its_owner() {
    let date = aws_smithy_types::DateTime::from_millis(WallClock::default().now().as_millis() as i64);
    let date = date.fmt(aws_smithy_types::date_time::Format::HttpDate).unwrap();
    let stub = Stub::start(move |_, _| {
        Answer::failure(403, "InvalidSignatureException", "Signature expired").with(&format!("date: {date}"))
    })
    .await;
    let late = Late(WallClock::default(), Duration::from_secs(20 * 60));
    let aws = connect_by(&stub.endpoint(), SECRET, None, Arc::new(late)).await;
    for _ in 0..2 {
        let error = Streams::new(&aws).shards(&name(), None, 10).await.unwrap_err();
        let behind = |text: &str| text.contains("20 minutes behind") || text.contains("21 minutes behind");
        assert!(matches!(&error, Error::Misconfigured(text) if behind(text)), "{error:?}");
    }
    assert_eq!(stub.asked().len(), 2, "the call was made again with another date");
}

#[tokio::test]
async fn a_wrong_region_is_told() {
    let scope = "Credential should be scoped to a valid region. ";
    let (error, calls) = listing(Answer::failure(400, "InvalidSignatureException", scope)).await;
    assert!(matches!(&error, Error::Misconfigured(text) if text.contains("AWS_REGION")), "{error:?}");
    assert_eq!((error.next_move(), calls), (NextMove::FixSetup, 1));
}

#[tokio::test]
async fn whoever_is_not_aws_is_recognised() {
    let html =
        |status| Answer::Full(status, vec!["content-type: text/html".into()], "<html>hi</html>".into());
    let json =
        |status, body: &str| Answer::Full(status, vec!["content-type: application/json".into()], body.into());
    for answer in [html(404), html(200), html(403), json(404, r#"{"detail":"Not Found"}"#), json(400, "[]")] {
        let (error, calls) = listing(answer.clone()).await;
        assert!(
            matches!(&error, Error::Misconfigured(text) if text.contains("endpoint")),
            "{answer:?}: {error:?}"
        );
        assert_eq!(calls, 1, "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_missing_or_being_made_is_not_the_same() {
    let (error, calls) = listing(Answer::failure(400, "ResourceNotFoundException", "not found")).await;
    assert_eq!((error, calls), (Error::StreamNotFound(name()), 1));
    let (error, calls) = listing(Answer::failure(400, "ResourceInUseException", "creating")).await;
    assert_eq!((error, calls), (Error::StreamBusy(name()), 1));
}

#[tokio::test]
async fn a_service_that_is_away_is_waited_for() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let stub = Stub::start(move |_, _| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::failure(500, "InternalFailure", "oops"),
        1 => Answer::failure(400, "LimitExceededException", "Rate exceeded for stream"),
        2 => Answer::Closed,
        3 => Answer::Cut,
        4 => Answer::Full(503, Vec::new(), String::new()),
        _ => Answer::ok(r#"{"Shards":[]}"#),
    })
    .await;
    let streams = Streams::new(&connect(&stub.endpoint()).await);
    let page = streams.shards(&name(), None, 10).await.unwrap();
    assert_eq!((page.entries.len(), asked.load(Ordering::Relaxed)), (0, 6));
}

#[tokio::test]
async fn nobody_at_the_endpoint_is_an_absence() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let streams = Streams::new(&connect(&endpoint).await);
    let error = streams.append(&name(), vec![NewRecord::new("k", "v")]).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(!error.to_string().contains("not known"), "a record that was never sent is in doubt: {error}");
}

#[tokio::test]
async fn an_append_that_may_have_been_stored_is_not_made_again() {
    for answer in [Answer::Closed, Answer::Cut, Answer::failure(500, "InternalFailure", "oops")] {
        let answered = answer.clone();
        let stub = Stub::start(move |_, _| answered.clone()).await;
        let streams = Streams::new(&connect(&stub.endpoint()).await);
        let error = streams.append(&name(), vec![NewRecord::new("k", "v")]).await.unwrap_err();
        assert_eq!(error.next_move(), NextMove::Retry, "{answer:?}: {error:?}");
        assert!(error.to_string().contains("not known"), "{answer:?}: {error}");
        assert_eq!(stub.asked(), ["putrecords"], "{answer:?}");
    }
}

/// Results of a put in which the records at `refused` were over the limit.
fn put_results(count: usize, refused: &[usize], first: u64) -> Answer {
    let one = |place: usize| {
        match refused.contains(&place) {
        true => r#"{"ErrorCode":"ProvisionedThroughputExceededException","ErrorMessage":"Rate exceeded for shard shardId-000000000000 in stream clicks"}"#.to_string(),
        false => format!(r#"{{"ShardId":"shardId-000000000000","SequenceNumber":"{}"}}"#, first + place as u64),
    }
    };
    let records: Vec<_> = (0..count).map(one).collect();
    Answer::ok(&format!(r#"{{"FailedRecordCount":{},"Records":[{}]}}"#, refused.len(), records.join(",")))
}

const ONE_SHARD: &str = r#"{"Shards":[{"ShardId":"shardId-000000000000",
    "HashKeyRange":{"StartingHashKey":"0","EndingHashKey":"340282366920938463463374607431768211455"},
    "SequenceNumberRange":{"StartingSequenceNumber":"1"}}]}"#;

fn three() -> Vec<NewRecord> {
    ["a", "b", "c"].map(|data| NewRecord::new("k", data)).into()
}

#[tokio::test]
async fn the_rest_of_an_append_is_sent_again_in_order() {
    let mut puts = 0;
    let stub = Stub::start(move |operation, body| {
        if operation == "listshards" {
            return Answer::ok(ONE_SHARD);
        }
        puts += 1;
        match puts {
            1 => put_results(3, &[1, 2], 10),
            2 => {
                // The records are in base64: `b` and `c`, and no longer `a`.
                assert!(body.contains("Yg==") && body.contains("Yw==") && !body.contains("YQ=="), "{body}");
                put_results(2, &[0, 1], 20)
            }
            _ => put_results(2, &[], 30),
        }
    })
    .await;
    let streams = Streams::new(&connect(&stub.endpoint()).await);
    let results = streams.append(&name(), three()).await.unwrap();
    let numbers: Vec<_> =
        results.into_iter().map(|result| result.unwrap().sequence.as_u128().unwrap()).collect();
    assert_eq!(numbers, [10, 30, 31]);
}

#[tokio::test]
async fn a_record_that_was_overtaken_is_reported_and_not_put_behind() {
    let stub = Stub::start(|operation, _| match operation {
        "listshards" => Answer::ok(ONE_SHARD),
        _ => put_results(3, &[1], 10),
    })
    .await;
    let streams = Streams::new(&connect(&stub.endpoint()).await);
    let results = streams.append(&name(), three()).await.unwrap();
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert!(
        matches!(&results[1], Err(Error::Throttled { shard, .. }) if shard.number() == Some(0)),
        "{results:?}"
    );
    assert_eq!(stub.asked(), ["putrecords", "listshards"]);
}

#[tokio::test]
async fn what_was_stored_is_reported_although_the_rest_fails() {
    let mut puts = 0;
    let stub = Stub::start(move |operation, _| {
        puts += usize::from(operation == "putrecords");
        match (operation, puts) {
            ("listshards", _) => Answer::ok(ONE_SHARD),
            (_, 1) => put_results(3, &[2], 10),
            _ => Answer::failure(400, "AccessDeniedException", "not any more"),
        }
    })
    .await;
    let streams = Streams::new(&connect(&stub.endpoint()).await);
    let results = streams.append(&name(), three()).await.unwrap();
    assert!(results[0].is_ok() && results[1].is_ok(), "{results:?}");
    assert!(matches!(&results[2], Err(Error::Denied { .. })), "{results:?}");
}

#[tokio::test]
async fn an_endpoint_that_is_no_address_is_refused_at_once() {
    for endpoint in ["", "localhost:4566", "http://", "ftp://x", "http:///x"] {
        let options = AwsOptions {
            endpoint: Some(endpoint.to_string()),
            region: Some("us-east-1".to_string()),
            ..AwsOptions::default()
        };
        let error = Aws::connect(options, Arc::new(WallClock::default()), 1).await.unwrap_err();
        assert!(
            matches!(&error, Error::Misconfigured(text) if text.contains("endpoint")),
            "{endpoint}: {error:?}"
        );
    }
}

#[tokio::test]
async fn actions_that_were_made_are_known() {
    let stub = Stub::start(|_, _| Answer::failure(400, "ResourceNotFoundException", "no")).await;
    let aws = connect(&stub.endpoint()).await;
    let streams = Streams::new(&aws);
    let _ = streams.append(&name(), three()).await;
    let _ = streams.stream(&name()).await;
    let made: Vec<_> = aws.actions_made().iter().map(|action| action.permission()).collect();
    assert_eq!(made, ["kinesis:DescribeStreamSummary", "kinesis:PutRecords"]);
}

#[tokio::test]
async fn the_largest_record_is_sent_whole() {
    let stub = Stub::start(|_, body| {
        // Four characters of base64 for every three bytes, and the key as it is.
        let key = "🦦".repeat(limits::PARTITION_KEY_CHARS_MAX);
        let data = limits::RECORD_BYTES_MAX.div_ceil(3) * 4;
        assert!(body.contains(&key) && body.len() > data && body.len() < data + 2_000, "{}", body.len());
        put_results(1, &[], 7)
    })
    .await;
    let streams = Streams::new(&connect(&stub.endpoint()).await);
    let key = "🦦".repeat(limits::PARTITION_KEY_CHARS_MAX);
    let largest = NewRecord::new(key, vec![0xab; limits::RECORD_BYTES_MAX]);
    let results = streams.append(&name(), vec![largest]).await.unwrap();
    assert!(matches!(&results[..], [Ok(stored)] if stored.sequence.as_u128() == Some(7)), "{results:?}");
}
