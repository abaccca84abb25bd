//! Streams, queues and delivery streams that are made by a server that dies at any step: when it has started again, all that
//! was asked for is there, or nothing, and nobody has to ask again.

mod harness;

use anabranch_model::{
    Admin, BlobStore, BucketName, Document, Owner, QueueName, QueueOptions, QueueStore, StreamName,
};
use harness::{Death, Harness};
use http::StatusCode;
use serde_json::{Value, json};

/// One kind of things.
struct Kind {
    /// What its operations begin with.
    service: &'static str,
    create: &'static str,
    request: Value,
    /// What is looked at, and what of the answers counts.
    looks: Vec<(&'static str, Value, &'static [&'static str])>,
    notes: &'static str,
    /// Writes of documents that make one.
    writes: usize,
}

fn stream() -> Kind {
    Kind {
        service: "Kinesis_20131202",
        create: "CreateStream",
        request: json!({
            "StreamName": "things", "ShardCount": 2, "StreamModeDetails": {"StreamMode": "ON_DEMAND"},
            "Tags": {"team": "red"}, "MaxRecordSizeInKiB": 2048,
        }),
        looks: vec![
            (
                "DescribeStreamSummary",
                json!({"StreamName": "things"}),
                &[
                    "/StreamDescriptionSummary/StreamModeDetails",
                    "/StreamDescriptionSummary/MaxRecordSizeInKiB",
                ],
            ),
            ("ListTagsForStream", json!({"StreamName": "things"}), &["/Tags"]),
        ],
        notes: "kinesis-making",
        writes: 3,
    }
}

fn queue(server: &Harness) -> Kind {
    let url = format!("http://{}/000000000000/things", server.address);
    Kind {
        service: "AmazonSQS",
        create: "CreateQueue",
        request: json!({
            "QueueName": "things", "Attributes": {"VisibilityTimeout": "7", "KmsMasterKeyId": "alias/k"},
            "tags": {"team": "red"},
        }),
        looks: vec![
            (
                "GetQueueAttributes",
                json!({"QueueUrl": url, "AttributeNames": ["All"]}),
                &["/Attributes/VisibilityTimeout", "/Attributes/KmsMasterKeyId"],
            ),
            ("ListQueueTags", json!({"QueueUrl": url}), &["/Tags"]),
        ],
        notes: "sqs-making",
        writes: 3,
    }
}

fn delivery_stream() -> Kind {
    Kind {
        service: "Firehose_20150804",
        create: "CreateDeliveryStream",
        request: json!({
            "DeliveryStreamName": "things", "Tags": [{"Key": "team", "Value": "red"}],
            "ExtendedS3DestinationConfiguration": {
                "RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::lake", "Prefix": "raw/",
            },
        }),
        looks: vec![
            (
                "DescribeDeliveryStream",
                json!({"DeliveryStreamName": "things"}),
                &["/DeliveryStreamDescription/DeliveryStreamStatus"],
            ),
            ("ListTagsForDeliveryStream", json!({"DeliveryStreamName": "things"}), &["/Tags"]),
        ],
        notes: "firehose-making",
        writes: 4,
    }
}

impl Kind {
    async fn make(&self, server: &Harness) -> bool {
        let target = format!("{}.{}", self.service, self.create);
        server.call(&target, self.request.clone()).await.0 == StatusCode::OK
    }

    /// What such a thing says about itself; none if it is not there.
    async fn seen(&self, server: &Harness) -> Option<Vec<Value>> {
        let mut seen = Vec::new();
        for (operation, request, places) in &self.looks {
            let (status, answer) =
                server.call(&format!("{}.{operation}", self.service), request.clone()).await;
            if status != StatusCode::OK {
                assert_eq!(seen, Vec::<Value>::new(), "there by halves: {answer}");
                return None;
            }
            for place in *places {
                seen.push(answer.pointer(place).unwrap_or_else(|| panic!("{place}: {answer}")).clone());
            }
        }
        Some(seen)
    }

    /// Whether a server that died left nothing to be done.
    async fn nothing_is_noted(&self, server: &Harness) -> bool {
        server
            .engine
            .documents(&Owner::Store, self.notes, None, 10)
            .await
            .expect("documents")
            .entries
            .is_empty()
    }
}

async fn started() -> Harness {
    let server = Harness::start().await;
    server.engine.create_bucket(&BucketName::new("lake").expect("a name")).await.expect("a bucket");
    server
}

async fn is_made_as_a_whole_or_not_at_all(kind: impl Fn(&Harness) -> Kind) {
    let server = started().await;
    assert!(kind(&server).make(&server).await);
    let whole = kind(&server).seen(&server).await.expect("it is there");
    assert!(whole.iter().any(|told| told.to_string().contains("red")), "{whole:?}");
    assert!(kind(&server).nothing_is_noted(&server).await);
    let writes = kind(&server).writes;
    let (mut unmade, mut finished) = (0, 0);
    for death in (0..writes).flat_map(|writes| [true, false].map(|behind| Death { writes, behind })) {
        let server = started().await;
        server.dies(death);
        assert!(!kind(&server).make(&server).await, "{death:?}: it has fewer writes");
        let server = server.crash().await;
        let kind = kind(&server);
        match kind.seen(&server).await {
            None => {
                unmade += 1;
                assert!(kind.make(&server).await, "{death:?}");
                assert_eq!(kind.seen(&server).await.as_ref(), Some(&whole), "{death:?}");
            }
            Some(seen) => {
                finished += 1;
                assert_eq!(seen, whole, "{death:?}");
            }
        }
        assert!(kind.nothing_is_noted(&server).await, "{death:?}");
    }
    assert!(unmade >= 2 && finished >= 4, "{unmade} {finished}");
}

#[tokio::test]
async fn a_stream_is_made_as_a_whole_or_not_at_all() {
    is_made_as_a_whole_or_not_at_all(|_| stream()).await;
}

#[tokio::test]
async fn a_queue_is_made_as_a_whole_or_not_at_all() {
    is_made_as_a_whole_or_not_at_all(queue).await;
}

#[tokio::test]
async fn a_delivery_stream_is_made_as_a_whole_or_not_at_all() {
    is_made_as_a_whole_or_not_at_all(|_| delivery_stream()).await;
}

/// What was refused is forgotten: a queue that somebody else makes under the name gets nothing of it.
#[tokio::test]
async fn what_was_refused_is_not_finished() {
    let server = started().await;
    let mut request = queue(&server).request;
    let policy =
        json!({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:gone", "maxReceiveCount": 3});
    request["Attributes"]["RedrivePolicy"] = json!(policy.to_string());
    let (status, answer) = server.call("AmazonSQS.CreateQueue", request).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    let things = QueueName::new("things").expect("a name");
    server.engine.create_queue(&things, QueueOptions::default()).await.expect("made");
    let server = server.crash().await;
    let url = format!("http://{}/000000000000/things", server.address);
    let tags = server.done("AmazonSQS.ListQueueTags", json!({"QueueUrl": url})).await;
    assert_eq!(tags["Tags"], Value::Null);
}

/// Settings that somebody made since are not undone.
#[tokio::test]
async fn what_was_changed_since_stays() {
    let server = started().await;
    let kind = stream();
    server.dies(Death { writes: 1, behind: false });
    assert!(!kind.make(&server).await);
    let settings = json!({"tags": {"team": "blue"}}).to_string();
    let (owner, document) =
        (Owner::Stream(StreamName::new("things").expect("a name")), Document::new("settings", settings));
    server.engine.put_documents(&owner, "kinesis", vec![document]).await.expect("kept");
    let server = server.crash().await;
    let tags = server.call("Kinesis_20131202.ListTagsForStream", json!({"StreamName": "things"})).await.1;
    assert_eq!(tags["Tags"], json!([{"Key": "team", "Value": "blue"}]));
    assert!(kind.nothing_is_noted(&server).await);
}
