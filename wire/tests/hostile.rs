//! What nobody should send, to every service: bytes that are no text, values in values in values, and little that
//! becomes much.

mod harness;
mod s3_client;

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::Harness;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use s3_client::{done, refused};

/// The services that speak JSON: what stands before their operations, and an operation with a text.
const SPEAK_JSON: [(&str, &str, &str); 7] = [
    ("Kinesis_20131202", "DescribeStream", "StreamName"),
    ("AmazonSQS", "GetQueueUrl", "QueueName"),
    ("DynamoDB_20120810", "DescribeTable", "TableName"),
    ("DynamoDBStreams_20120810", "DescribeStream", "StreamArn"),
    ("KeyspacesStreams", "GetStream", "streamArn"),
    ("Firehose_20150804", "DescribeDeliveryStream", "DeliveryStreamName"),
    ("secretsmanager", "DescribeSecret", "SecretId"),
];

/// Sends a body of this type, and returns the status and what is said.
async fn post(harness: &Harness, headers: &[(&str, &str)], body: impl Into<Bytes>) -> (StatusCode, String) {
    let mut request = Request::post("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (status, _, bytes) = harness.exchange(request.body(Full::new(body.into())).expect("a request")).await;
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::test]
async fn bytes_that_are_no_text_are_no_text_in_any_language() {
    let harness = Harness::start().await;
    for (service, operation, member) in SPEAK_JSON {
        let target = format!("{service}.{operation}");
        let headers = [("x-amz-target", target.as_str()), ("content-type", "application/x-amz-json-1.1")];
        for wrong in [&b"\xff"[..], b"\xc3\x28", b"\xed\xa0\x80", b"\\ud800", b"\xf4\x90\x80\x80"] {
            let body = [b"{\"", member.as_bytes(), b"\":\"", wrong, b"\"}"].concat();
            let (status, text) = post(&harness, &headers, body).await;
            assert_eq!(status, 400, "{target} {}: {text}", wrong.escape_ascii());
            assert!(text.contains("SerializationException"), "{target} {}: {text}", wrong.escape_ascii());
        }
    }
    let cbor =
        [("x-amz-target", "Kinesis_20131202.DescribeStream"), ("content-type", "application/x-amz-cbor-1.1")];
    let (status, text) = post(&harness, &cbor, &b"\xa1\x6aStreamName\x61\xff"[..]).await;
    assert!(status == 400 && text.contains("SerializationException"), "{status} {text}");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for body in ["Action=GetQueueUrl&QueueName=%ff", "Action=%ff&Version=2012-11-05", "%ff=%ff"] {
        let (status, text) = post(&harness, &form, body).await;
        assert!(status == 400 && text.contains("<Code>"), "{body}: {status} {text}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused_wherever_s3_reads_one() {
    let harness = Harness::start().await;
    done(&harness, "PUT /photos", &[], "").await;
    done(&harness, "PUT /photos/a", &[], "before").await;
    for line in ["GET /photos/%ff", "GET /photos?prefix=%c3%28", "GET /photos?list-type=2&%ff=1", "PUT /%ff"]
    {
        assert_eq!(refused(&harness, line, &[], "").await, "400 InvalidURI", "{line}");
    }
    let copy = [("x-amz-copy-source", "/photos/%ff")];
    assert!(refused(&harness, "PUT /photos/copy", &copy, "").await.starts_with("400 "));
    for body in [&b"<Delete><Object><Key>\xff</Key></Object></Delete>"[..], b"\xff\xfe<\0D\0"] {
        assert_eq!(refused(&harness, "POST /photos?delete", &[], body).await, "400 MalformedXML");
    }
    for name in ["x-amz-meta-a", "x-amz-copy-source", "content-md5", "x-amz-checksum-crc32", "if-none-match"]
    {
        let mut request = s3_client::request("PUT /photos/a", &[], "after");
        let value = HeaderValue::from_bytes(b"\xff\xfe").expect("HTTP allows it");
        request.headers_mut().insert(http::HeaderName::try_from(name).expect("a name"), value);
        let (status, _, bytes) = harness.exchange(request).await;
        assert!(status.is_client_error(), "{name}: {status} {}", bytes.escape_ascii());
    }
    assert_eq!(done(&harness, "GET /photos/a", &[], "").await.body, "before", "nothing was changed");
}

#[tokio::test]
async fn what_nests_without_end_is_refused() {
    let harness = Harness::start().await;
    let deep = 200_000;
    for (service, operation, member) in SPEAK_JSON {
        let target = format!("{service}.{operation}");
        let headers = [("x-amz-target", target.as_str()), ("content-type", "application/x-amz-json-1.1")];
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let body = format!("{{\"{member}\":{}1{}}}", open.repeat(deep), close.repeat(deep));
            let (status, text) = post(&harness, &headers, body).await;
            assert!(status == 400 && text.contains("SerializationException"), "{target}: {status} {text}");
        }
    }
    let attribute = format!("{{\"TableName\":\"t\",\"Item\":{{\"a\":{}", "{\"L\":[".repeat(deep));
    let headers =
        [("x-amz-target", "DynamoDB_20120810.PutItem"), ("content-type", "application/x-amz-json-1.0")];
    assert_eq!(post(&harness, &headers, attribute).await.0, 400);
    for kind in ["application/x-amz-cbor-1.1", "application/cbor"] {
        let headers = [("x-amz-target", "Kinesis_20131202.PutRecord"), ("content-type", kind)];
        for nested in [&b"\x81"[..], b"\x9f", b"\xa1\x61a", b"\xbf\x61a", b"\xc1"] {
            let body = [&b"\xa1\x64Data"[..], &nested.repeat(deep)].concat();
            let (status, text) = post(&harness, &headers, body).await;
            assert!(status.is_client_error(), "{kind} {}: {status} {text}", nested.escape_ascii());
        }
    }
    done(&harness, "PUT /photos", &[], "").await;
    let entities = "<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;'>]>\
                    <Delete><Object><Key>&b;</Key></Object></Delete>";
    let outside = "<!DOCTYPE d [<!ENTITY a SYSTEM 'file:///etc/hostname'>]><Delete><Object><Key>&a;</Key></Object></Delete>";
    let elements = format!("<Delete>{}{}</Delete>", "<Object>".repeat(deep), "</Object>".repeat(deep));
    let many = format!("<Delete>{}</Delete>", "<Object><Key>a</Key></Object>".repeat(deep));
    for body in [entities, outside, &elements, &many, &"<a>".repeat(deep), "<Delete>"] {
        assert_eq!(refused(&harness, "POST /photos?delete", &[], body.to_owned()).await, "400 MalformedXML");
    }
}

#[tokio::test]
async fn little_that_becomes_much_is_refused() {
    let harness = Harness::start().await;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..256 {
        encoder.write_all(&[b' '; 1 << 20]).expect("a vector takes it");
    }
    let bomb = encoder.finish().expect("a vector takes it");
    for (target, kind) in [
        ("Kinesis_20131202.PutRecord", "application/x-amz-json-1.1"),
        ("Kinesis_20131202.PutRecord", "application/x-amz-cbor-1.1"),
        ("DynamoDB_20120810.PutItem", "application/x-amz-json-1.0"),
    ] {
        let headers = [("x-amz-target", target), ("content-type", kind), ("content-encoding", "gzip")];
        let (status, text) = post(&harness, &headers, bomb.clone()).await;
        assert_eq!(status, 413, "{target}: {text}");
        let (status, text) = post(&harness, &headers, bomb[..bomb.len() / 2].to_vec()).await;
        assert!(status.is_client_error(), "half of it: {status} {text}");
    }
    let form = [("content-type", "application/x-www-form-urlencoded"), ("content-encoding", "gzip")];
    assert_eq!(post(&harness, &form, bomb).await.0, 413);
}
