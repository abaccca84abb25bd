//! Firehose over HTTP: from records to objects.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::io::Read;
use std::time::Duration;

use anabranch_model::blob::{GetOptions, ListOptions};
use anabranch_model::{
    Admin, BlobKey, BlobStore, BucketName, Owner, SequenceNumber, StreamName, StreamOptions, StreamStore,
};
use base64::Engine as _;
use futures_util::TryStreamExt;
use harness::Harness;
use serde_json::{Value, json};

/// The longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn ok(server: &Harness, operation: &str, request: Value) -> Value {
    server.done(&format!("Firehose_20150804.{operation}"), request).await
}

async fn refused(server: &Harness, operation: &str, request: Value) -> String {
    server.refused(&format!("Firehose_20150804.{operation}"), request).await.0
}

fn definition(name: &str, more: Value) -> Value {
    let mut destination = json!({
        "RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::lake", "Prefix": "raw/",
        "BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 0},
    });
    destination.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"DeliveryStreamName": name, "ExtendedS3DestinationConfiguration": destination})
}

/// The keys in the bucket and all that is in it, in the order of the keys.
async fn contents(server: &Harness) -> (Vec<String>, Vec<u8>) {
    let bucket = BucketName::new("lake").unwrap();
    let (mut keys, mut whole) = (Vec::new(), Vec::new());
    for blob in server.engine.list(&bucket, ListOptions::default()).await.unwrap().entries {
        let key = BlobKey::new(blob.key.as_str()).unwrap();
        let body = server.engine.get(&bucket, &key, GetOptions::default()).await.unwrap().body;
        whole.extend(body.try_collect::<Vec<_>>().await.unwrap().concat());
        keys.push(key.as_str().to_owned());
    }
    (keys, whole)
}

/// Waits until the bucket has this.
async fn delivered(server: &Harness, expected: &[u8]) -> Vec<String> {
    let waiting = async {
        loop {
            let (keys, whole) = contents(server).await;
            if whole == expected {
                return keys;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the records are delivered")
}

#[tokio::test]
async fn records_come_to_the_bucket_in_order_even_through_a_crash() {
    let server = Harness::start().await;
    ok(&server, "CreateDeliveryStream", definition("clicks", json!({}))).await;
    let again = definition("clicks", json!({}));
    assert_eq!(refused(&server, "CreateDeliveryStream", again).await, "ResourceInUseException");
    // There is no bucket yet: what was acknowledged waits for it, however often the server dies.
    let put = json!({"DeliveryStreamName": "clicks", "Record": {"Data": "b25lCg=="}});
    assert!(ok(&server, "PutRecord", put).await["RecordId"].is_string());
    let server = server.crash().await;
    server.engine.create_bucket(&BucketName::new("lake").unwrap()).await.unwrap();
    let batch =
        json!({"DeliveryStreamName": "clicks", "Records": [{"Data": "dHdvCg=="}, {"Data": "dGhyZWUK"}]});
    let answer = ok(&server, "PutRecordBatch", batch).await;
    assert_eq!(
        (&answer["FailedPutCount"], answer["RequestResponses"].as_array().unwrap().len()),
        (&json!(0), 2)
    );
    server.clock.advance(Duration::from_secs(60));
    let keys = delivered(&server, b"one\ntwo\nthree\n").await;
    assert!(keys.iter().all(|key| key.starts_with("raw/20")), "{keys:?}");
    let put = json!({"DeliveryStreamName": "clicks", "Record": {"Data": "Zm91cgo="}});
    ok(&server, "PutRecord", put).await;
    // What waits is delivered before the delivery stream goes.
    ok(&server, "DeleteDeliveryStream", json!({"DeliveryStreamName": "clicks"})).await;
    delivered(&server, b"one\ntwo\nthree\nfour\n").await;
    let gone = json!({"DeliveryStreamName": "clicks"});
    assert_eq!(refused(&server, "DescribeDeliveryStream", gone).await, "ResourceNotFoundException");
}

#[tokio::test]
async fn a_delivery_stream_that_is_written_to_all_the_time_can_be_deleted() {
    let server = Harness::start().await;
    server.engine.create_bucket(&BucketName::new("lake").unwrap()).await.unwrap();
    ok(&server, "CreateDeliveryStream", definition("clicks", json!({}))).await;
    let put = || {
        let record = json!({"DeliveryStreamName": "clicks", "Record": {"Data": "b25lCg=="}});
        server.call("Firehose_20150804.PutRecord", record)
    };
    assert_eq!(put().await.0, 200);
    // Whoever delivers until nothing waits never comes to an end here.
    let writing = async {
        let mut acknowledged = 1;
        loop {
            match put().await {
                (http::StatusCode::OK, _) => acknowledged += 1,
                (_, refusal) => return (acknowledged, refusal),
            }
        }
    };
    let deleting = ok(&server, "DeleteDeliveryStream", json!({"DeliveryStreamName": "clicks"}));
    let ((acknowledged, refusal), _) = tokio::join!(writing, deleting);
    assert_eq!(refusal["__type"], "ResourceNotFoundException");
    let (_, whole) = contents(&server).await;
    assert_eq!(whole.len(), acknowledged * b"one\n".len(), "what was acknowledged was delivered");
}

#[tokio::test]
async fn what_cannot_be_delivered_keeps_its_delivery_stream() {
    let server = Harness::start().await;
    let put = |name: &str, data: &str| json!({"DeliveryStreamName": name, "Record": {"Data": data}});
    for name in ["clicks", "rides"] {
        ok(&server, "CreateDeliveryStream", definition(name, json!({}))).await;
        ok(&server, "PutRecord", put(name, "b25lCg==")).await;
    }
    // There is no bucket.
    let target = "Firehose_20150804.DeleteDeliveryStream";
    let (code, message) = server.refused(target, json!({"DeliveryStreamName": "clicks"})).await;
    assert_eq!(code, "ResourceInUseException");
    assert!(message.contains("bucket `lake` does not exist"), "{message}");
    assert!(message.contains("AllowForceDelete"), "{message}");
    // Who gives up what waits says so.
    let given_up = json!({"DeliveryStreamName": "rides", "AllowForceDelete": true});
    ok(&server, "DeleteDeliveryStream", given_up).await;
    let gone = refused(&server, "PutRecord", put("rides", "b25lCg==")).await;
    assert_eq!(gone, "ResourceNotFoundException");
    ok(&server, "PutRecord", put("clicks", "dHdvCg==")).await;
    server.engine.create_bucket(&BucketName::new("lake").unwrap()).await.unwrap();
    ok(&server, "DeleteDeliveryStream", json!({"DeliveryStreamName": "clicks"})).await;
    assert_eq!(contents(&server).await.1, b"one\ntwo\n");
}

#[tokio::test]
async fn a_delivery_waits_for_the_limits_of_its_shard() {
    let server = Harness::with_shard_limits().await;
    let more = json!({"BufferingHints": {"SizeInMBs": 16, "IntervalInSeconds": 900}});
    ok(&server, "CreateDeliveryStream", definition("clicks", more)).await;
    let mut expected = Vec::new();
    for letter in b'a'..=b'f' {
        // A shard takes a mebibyte a second, and gives two.
        server.clock.advance(Duration::from_secs(1));
        let line = vec![letter; 1_000_000];
        let data = base64::prelude::BASE64_STANDARD.encode(&line);
        ok(&server, "PutRecord", json!({"DeliveryStreamName": "clicks", "Record": {"Data": data}})).await;
        expected.extend(line);
    }
    server.engine.create_bucket(&BucketName::new("lake").unwrap()).await.unwrap();
    server.clock.advance(Duration::from_secs(1_000));
    assert_eq!(delivered(&server, &expected).await.len(), 1, "it is one object");
}

#[tokio::test]
async fn damaged_records_are_passed_over_and_their_neighbours_delivered() {
    let server = Harness::start().await;
    let more = json!({"BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 900}});
    ok(&server, "CreateDeliveryStream", definition("clicks", more)).await;
    let put = async |text: &str| {
        let data = base64::prelude::BASE64_STANDARD.encode(text);
        let record = json!({"DeliveryStreamName": "clicks", "Record": {"Data": data}});
        ok(&server, "PutRecord", record).await["RecordId"].as_str().unwrap().to_owned()
    };
    for text in ["the first line\n", "the second line\n", "the third line\n", "the fourth line\n"] {
        put(text).await;
    }
    server.damage(&["the first line\n".to_owned(), "the third line\n".to_owned()]);
    server.engine.create_bucket(&BucketName::new("lake").unwrap()).await.unwrap();
    server.clock.advance(Duration::from_secs(1_000));
    delivered(&server, b"the second line\nthe fourth line\n").await;
    // Damage that nothing follows is behind the delivery, too.
    let fifth: SequenceNumber = put("the fifth line\n").await.parse().unwrap();
    server.damage(&["the fifth line\n".to_owned()]);
    server.clock.advance(Duration::from_secs(1_000));
    let owner = Owner::Stream(StreamName::new("firehose.clicks").unwrap());
    eventually("the damage is passed", async || {
        let noted = server.engine.document(&owner, "firehose", "delivered").await.unwrap().unwrap();
        std::str::from_utf8(&noted).unwrap().parse::<SequenceNumber>().unwrap() >= fifth
    })
    .await;
    put("the sixth line\n").await;
    ok(&server, "DeleteDeliveryStream", json!({"DeliveryStreamName": "clicks"})).await;
    assert_eq!(contents(&server).await.1, b"the second line\nthe fourth line\nthe sixth line\n");
}

#[tokio::test]
async fn delivery_streams_are_described_and_listed() {
    let server = Harness::start().await;
    for name in ["a", "b", "c"] {
        ok(&server, "CreateDeliveryStream", definition(name, json!({"CompressionFormat": "GZIP"}))).await;
    }
    let first = ok(&server, "ListDeliveryStreams", json!({"Limit": 2})).await;
    assert_eq!(first, json!({"DeliveryStreamNames": ["a", "b"], "HasMoreDeliveryStreams": true}));
    let rest = ok(&server, "ListDeliveryStreams", json!({"ExclusiveStartDeliveryStreamName": "b"})).await;
    assert_eq!(rest, json!({"DeliveryStreamNames": ["c"], "HasMoreDeliveryStreams": false}));
    let described = ok(&server, "DescribeDeliveryStream", json!({"DeliveryStreamName": "a"})).await;
    let description = &described["DeliveryStreamDescription"];
    assert_eq!(description["DeliveryStreamStatus"], "ACTIVE");
    let s3 = &description["Destinations"][0]["ExtendedS3DestinationDescription"];
    assert_eq!((&s3["BucketARN"], &s3["CompressionFormat"]), (&json!("arn:aws:s3:::lake"), &json!("GZIP")));
}

#[tokio::test]
async fn what_cannot_be_done_is_refused() {
    let server = Harness::start().await;
    for more in [
        json!({"BucketARN": "lake"}),
        json!({"CompressionFormat": "Snappy"}),
        json!({"BufferingHints": {"SizeInMBs": 129}}),
        json!({"BufferingHints": {"IntervalInSeconds": 901}}),
        json!({"Prefix": "!{timestamp:yyyy}/"}),
        json!({"Prefix": "!{partitionKeyFromQuery:id}/", "ErrorOutputPrefix": "e/!{firehose:error-output-type}/"}),
        json!({"FileExtension": "json"}),
        json!({"CustomTimeZone": "Europe/Berlin"}),
        json!({"EncryptionConfiguration": {"KMSEncryptionConfig": {"AWSKMSKeyARN": "arn"}}}),
        json!({"ProcessingConfiguration": {"Enabled": true}}),
        json!({"DynamicPartitioningConfiguration": {"Enabled": true}}),
        json!({"S3BackupMode": "Enabled"}),
    ] {
        let request = definition("a", more);
        assert_eq!(refused(&server, "CreateDeliveryStream", request).await, "InvalidArgumentException");
    }
    let nowhere = json!({"DeliveryStreamName": "a", "HttpEndpointDestinationConfiguration": {}});
    assert_eq!(refused(&server, "CreateDeliveryStream", nowhere).await, "InvalidArgumentException");
    assert_eq!(ok(&server, "ListDeliveryStreams", json!({})).await["DeliveryStreamNames"], json!([]));
    let put = json!({"DeliveryStreamName": "none", "Record": {"Data": "eA=="}});
    assert_eq!(refused(&server, "PutRecord", put).await, "ResourceNotFoundException");
    ok(&server, "CreateDeliveryStream", definition("a", json!({}))).await;
    let many: Vec<_> = (0..501).map(|_| json!({"Data": "eA=="})).collect();
    let large = "eHh4".repeat(342_000);
    let five: Vec<_> = (0..5).map(|_| json!({"Data": large[..1_200_000]})).collect();
    for records in [json!([]), json!(many), json!([{}]), json!([{"Data": large}]), json!(five)] {
        let batch = json!({"DeliveryStreamName": "a", "Records": records});
        assert_eq!(refused(&server, "PutRecordBatch", batch).await, "InvalidArgumentException");
    }
}

#[tokio::test]
async fn an_object_that_is_delivered_again_takes_the_place_of_the_first() {
    let server = Harness::start().await;
    server.engine.create_bucket(&BucketName::new("lake").unwrap()).await.unwrap();
    let more = json!({
        "Prefix": "y=!{timestamp:yyyy}/", "ErrorOutputPrefix": "bad/!{firehose:error-output-type}/",
        "FileExtension": ".jsonl",
    });
    ok(&server, "CreateDeliveryStream", definition("clicks", more)).await;
    let put = json!({"DeliveryStreamName": "clicks", "Record": {"Data": "b25lCg=="}});
    ok(&server, "PutRecord", put).await;
    let first = delivered(&server, b"one\n").await;
    assert!(first[0].starts_with("y=20") && first[0].ends_with(".jsonl"), "{first:?}");
    // What a crash between the object and its note would leave.
    let owner = Owner::Stream(StreamName::new("firehose.clicks").unwrap());
    eventually("the delivery is noted", async || is_noted(&server, &owner).await).await;
    server.engine.delete_documents(&owner, "firehose", vec!["delivered".into()]).await.unwrap();
    let server = server.crash().await;
    eventually("the object is delivered again", async || is_noted(&server, &owner).await).await;
    assert_eq!(contents(&server).await, (first, b"one\n".to_vec()));
}

async fn is_noted(server: &Harness, owner: &Owner) -> bool {
    server.engine.document(owner, "firehose", "delivered").await.unwrap().is_some()
}

async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !check().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn a_compressed_object_is_one_whole() {
    let server = Harness::start().await;
    server.engine.create_bucket(&BucketName::new("lake").unwrap()).await.unwrap();
    // The object is read in pieces, and is larger than one.
    let line = "x".repeat(99_999) + "\n";
    let records: Vec<_> =
        (0..30).map(|_| json!({"Data": base64::prelude::BASE64_STANDARD.encode(&line)})).collect();
    let more =
        json!({"CompressionFormat": "GZIP", "BufferingHints": {"SizeInMBs": 4, "IntervalInSeconds": 900}});
    ok(&server, "CreateDeliveryStream", definition("packed", more)).await;
    let put = json!({"DeliveryStreamName": "packed", "Records": records});
    assert_eq!(ok(&server, "PutRecordBatch", put).await["FailedPutCount"], 0);
    server.clock.advance(Duration::from_secs(1_000));
    eventually("the object comes", async || !contents(&server).await.0.is_empty()).await;
    let (keys, packed) = contents(&server).await;
    assert!(keys.len() == 1 && keys[0].ends_with(".gz"), "{keys:?}");
    let mut whole = String::new();
    // A decoder of a single member stops at the end of the first.
    flate2::read::GzDecoder::new(&*packed).read_to_string(&mut whole).unwrap();
    assert_eq!(whole, line.repeat(30));
}

#[tokio::test]
async fn tags_belong_to_the_delivery_stream() {
    let server = Harness::start().await;
    let mut request = definition("a", json!({}));
    request["Tags"] = json!([{"Key": "team", "Value": "red"}]);
    ok(&server, "CreateDeliveryStream", request).await;
    let tag = json!({"DeliveryStreamName": "a", "Tags": [{"Key": "stage", "Value": "x"}, {"Key": "bare"}]});
    ok(&server, "TagDeliveryStream", tag).await;
    let untag = json!({"DeliveryStreamName": "a", "TagKeys": ["stage"]});
    ok(&server, "UntagDeliveryStream", untag).await;
    let server = server.crash().await;
    let listed = ok(&server, "ListTagsForDeliveryStream", json!({"DeliveryStreamName": "a"})).await;
    let tags = json!([{"Key": "bare", "Value": ""}, {"Key": "team", "Value": "red"}]);
    assert_eq!(listed, json!({"Tags": tags, "HasMoreTags": false}));
    let page = json!({"DeliveryStreamName": "a", "Limit": 1, "ExclusiveStartTagKey": "a"});
    let listed = ok(&server, "ListTagsForDeliveryStream", page).await;
    assert_eq!(listed, json!({"Tags": [{"Key": "bare", "Value": ""}], "HasMoreTags": true}));
    let bad = json!({"DeliveryStreamName": "a", "Tags": [{"Key": "aws:x", "Value": "x"}]});
    assert_eq!(refused(&server, "TagDeliveryStream", bad).await, "InvalidArgumentException");
    ok(&server, "DeleteDeliveryStream", json!({"DeliveryStreamName": "a"})).await;
    ok(&server, "CreateDeliveryStream", definition("a", json!({}))).await;
    let listed = ok(&server, "ListTagsForDeliveryStream", json!({"DeliveryStreamName": "a"})).await;
    assert_eq!(listed["Tags"], json!([]));
}

#[tokio::test]
async fn a_stream_of_somebody_else_is_left_alone() {
    let server = Harness::start().await;
    let stream = StreamName::new("firehose.mine").unwrap();
    server.engine.create_stream(&stream, StreamOptions::default()).await.unwrap();
    let request = definition("mine", json!({}));
    assert_eq!(refused(&server, "CreateDeliveryStream", request).await, "ResourceInUseException");
    let named = json!({"DeliveryStreamName": "mine"});
    assert_eq!(refused(&server, "DeleteDeliveryStream", named).await, "ResourceNotFoundException");
    server.engine.stream(&stream).await.unwrap();
}

/// The definition is written first: a server that ended behind it leaves a delivery stream without its stream.
#[tokio::test]
async fn what_is_half_made_is_used_and_deleted_all_the_same() {
    let server = Harness::start().await;
    server.engine.create_bucket(&BucketName::new("lake").unwrap()).await.unwrap();
    for name in ["used", "deleted"] {
        ok(&server, "CreateDeliveryStream", definition(name, json!({}))).await;
        server.engine.delete_stream(&StreamName::new(&format!("firehose.{name}")).unwrap()).await.unwrap();
    }
    let server = server.crash().await;
    let again = definition("used", json!({}));
    assert_eq!(refused(&server, "CreateDeliveryStream", again).await, "ResourceInUseException");
    let data = base64::prelude::BASE64_STANDARD.encode("line\n");
    let put = json!({"DeliveryStreamName": "used", "Record": {"Data": data}});
    eventually("the other half is made", async || {
        server.call("Firehose_20150804.PutRecord", put.clone()).await.0 == http::StatusCode::OK
    })
    .await;
    delivered(&server, b"line\n").await;
    ok(&server, "DeleteDeliveryStream", json!({"DeliveryStreamName": "deleted"})).await;
    ok(&server, "CreateDeliveryStream", definition("deleted", json!({}))).await;
}
