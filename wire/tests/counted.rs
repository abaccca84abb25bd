//! What is counted for `/metrics`.

mod harness;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_model::{Admin, BlobStore, BucketName, Owner, StreamName};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use harness::Harness;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counters by their names, and what their labels say.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counts {
    fn of(&self, counter: &str) -> u64 {
        self.0.lock().get(counter).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels = key.labels().map(|label| format!(" {}", label.value())).collect::<String>();
        let name = format!("{}{labels}", key.name());
        Counter::from_arc(self.0.lock().entry(name).or_default().clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Runs a test whose counters are seen.
fn counted(test: impl AsyncFnOnce(&Counts)) {
    let counts = Counts::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    metrics::with_local_recorder(&counts, || runtime.block_on(test(&counts)));
}

async fn kinesis(harness: &Harness, operation: &str, body: Value) -> Value {
    harness.done(&format!("Kinesis_20131202.{operation}"), body).await
}

#[test]
fn numbers_of_shards_are_counted_where_they_are_switched_on() {
    counted(async |counts| {
        let harness = Harness::with_shard_limits().await;
        for stream in ["on", "off"] {
            kinesis(&harness, "CreateStream", json!({"StreamName": stream, "ShardCount": 1})).await;
        }
        let metrics = ["IncomingBytes", "OutgoingRecords", "WriteProvisionedThroughputExceeded"];
        let body = json!({"StreamName": "on", "ShardLevelMetrics": metrics});
        kinesis(&harness, "EnableEnhancedMonitoring", body.clone()).await;
        let large = json!({"Data": BASE64_STANDARD.encode(vec![7; 900_000]), "PartitionKey": "key"});
        let small = json!({"Data": BASE64_STANDARD.encode("small"), "PartitionKey": "key"});
        for stream in ["on", "off"] {
            // The first of them leaves no room for the second, and what is behind it in its order waits with it.
            let records = json!([large, large, small]);
            let put = json!({"StreamName": stream, "Records": records});
            assert_eq!(kinesis(&harness, "PutRecords", put).await["FailedRecordCount"], 2);
            harness.clock.advance(Duration::from_secs(10));
            let mut put = small.clone();
            put["StreamName"] = json!(stream);
            kinesis(&harness, "PutRecord", put).await;
            let from = json!({
                "StreamName": stream, "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON",
            });
            let place = kinesis(&harness, "GetShardIterator", from).await["ShardIterator"].clone();
            kinesis(&harness, "GetRecords", json!({"ShardIterator": place})).await;
        }
        let count = |name: &str, stream: &str| {
            counts.of(&format!("anabranch_kinesis_shard_{name}_total {stream} shardId-000000000000"))
        };
        assert_eq!(count("incoming_bytes", "on"), 900_003 + 8);
        assert_eq!(count("outgoing_records", "on"), 2);
        assert_eq!(count("writes_refused", "on"), 2);
        for other in ["incoming_records", "outgoing_bytes", "reads_refused"] {
            assert_eq!(count(other, "on"), 0, "{other} is not switched on");
        }
        assert!(!counts.0.lock().keys().any(|name| name.contains(" off ")));
        kinesis(&harness, "DisableEnhancedMonitoring", body).await;
        let put = json!({"StreamName": "on", "Data": "eA==", "PartitionKey": "key"});
        kinesis(&harness, "PutRecord", put).await;
        assert_eq!(count("incoming_bytes", "on"), 900_003 + 8);
    });
}

#[test]
fn damage_that_a_delivery_meets_again_is_counted_once() {
    counted(async |counts| {
        let harness = Harness::start().await;
        let destination = json!({
            "RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::lake",
            "BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 900},
        });
        let definition =
            json!({"DeliveryStreamName": "a", "ExtendedS3DestinationConfiguration": destination});
        harness.done("Firehose_20150804.CreateDeliveryStream", definition).await;
        for text in ["the first line", "the second line"] {
            let put = json!({"DeliveryStreamName": "a", "Record": {"Data": BASE64_STANDARD.encode(text)}});
            harness.done("Firehose_20150804.PutRecord", put).await;
        }
        harness.damage(&["the first line".to_owned()]);
        // There is no bucket: each time the delivery gets past the damage, and begins anew.
        for _ in 0..3 {
            let failures = counts.of("anabranch_firehose_failures_total");
            harness.clock.advance(Duration::from_secs(1_000));
            eventually(async || counts.of("anabranch_firehose_failures_total") > failures).await;
        }
        assert_eq!(counts.of("anabranch_firehose_damaged_total"), 1);
        harness.engine.create_bucket(&BucketName::new("lake").expect("a name")).await.expect("a bucket");
        harness.clock.advance(Duration::from_secs(1_000));
        let owner = Owner::Stream(StreamName::new("firehose.a").expect("a name"));
        eventually(async || {
            harness.engine.document(&owner, "firehose", "delivered").await.expect("an answer").is_some()
        })
        .await;
        assert_eq!(counts.of("anabranch_firehose_damaged_total"), 1);
    });
}

async fn eventually(mut check: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !check().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it happens in time");
}
