//! Bodies that break off, come in chunks, or are waited for.

mod harness;
mod s3_client;

use harness::Harness;
use s3_client::{Raw, done, refused, send};

const UNSIGNED: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";

async fn start() -> Harness {
    let harness = Harness::start().await;
    done(&harness, "PUT /photos", &[], "").await;
    harness
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_what_was_there() {
    let harness = start().await;
    done(&harness, "PUT /photos/a", &[], "before").await;
    let chunked = format!("x-amz-content-sha256: {UNSIGNED}\r\nx-amz-decoded-content-length: 5\r\n");
    for (head, sent) in [
        ("content-length: 100\r\n".to_owned(), "only this"),
        (format!("{chunked}content-length: 60\r\n"), "5\r\nhel"),
        (format!("{chunked}transfer-encoding: chunked\r\n"), "9\r\n5\r\nhello\r\n\r\n"),
    ] {
        let mut raw = Raw::open(&harness).await;
        raw.write(format!("PUT /photos/a HTTP/1.1\r\nhost: localhost\r\n{head}\r\n{sent}")).await;
        drop(raw);
        let mut raw = Raw::open(&harness).await;
        raw.write(format!("PUT /photos/new HTTP/1.1\r\nhost: localhost\r\n{head}\r\n{sent}")).await;
        drop(raw);
    }
    assert_eq!(done(&harness, "GET /photos/a", &[], "").await.body, "before");
    assert_eq!(refused(&harness, "GET /photos/new", &[], "").await, "404 NoSuchKey");
}

#[tokio::test]
async fn a_client_that_waits_is_asked_for_its_body_only_if_it_is_wanted() {
    let harness = start().await;
    let head = |path: &str| {
        format!("PUT {path} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n")
    };
    let mut raw = Raw::open(&harness).await;
    raw.write(head("/photos/a")).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 100 Continue\r\n"));
    raw.write("hello").await;
    assert!(raw.head().await.starts_with("HTTP/1.1 200 OK\r\n"));
    let mut raw = Raw::open(&harness).await;
    raw.write(head("/nothing/a")).await;
    let head = raw.head().await;
    assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"), "nobody asked for the body: {head}");
    assert!(head.contains("connection: close\r\n"), "nobody knows whether it will come: {head}");
}

#[tokio::test]
async fn the_size_must_be_known() {
    let harness = start().await;
    let mut raw = Raw::open(&harness).await;
    raw.write(
        "PUT /photos/a HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    )
    .await;
    assert!(raw.head().await.starts_with("HTTP/1.1 411 Length Required\r\n"));
    let chunked = [("x-amz-content-sha256", UNSIGNED)];
    assert_eq!(refused(&harness, "PUT /photos/a", &chunked, "0\r\n\r\n").await, "411 MissingContentLength");
    let large =
        format!("PUT /photos/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", (5_u64 << 30) + 1);
    let mut raw = Raw::open(&harness).await;
    raw.write(large).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 400 Bad Request\r\n"));
}

#[tokio::test]
async fn chunks_carry_the_checksum_behind_them() {
    let harness = start().await;
    // The CRC32 of "hello" is 3610a686.
    let headers = [
        ("x-amz-content-sha256", UNSIGNED),
        ("x-amz-decoded-content-length", "5"),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
        ("content-encoding", "aws-chunked"),
    ];
    let good = "3\r\nhel\r\n2\r\nlo\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n";
    let put = done(&harness, "PUT /photos/a", &headers, good).await;
    assert_eq!(put.header("x-amz-checksum-crc32"), "NhCmhg==");
    let found = done(&harness, "GET /photos/a", &[("x-amz-checksum-mode", "ENABLED")], "").await;
    assert_eq!((&found.body[..], found.header("content-encoding")), (&b"hello"[..], ""));
    assert_eq!(found.header("x-amz-checksum-crc32"), "NhCmhg==");
    for (body, code) in [
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", "400 BadDigest"),
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:nonsense\r\n\r\n", "400 InvalidRequest"),
        ("5\r\nhello\r\n0\r\n\r\n", "400 MalformedTrailerError"),
        ("5\r\nhello\r\n", "400 IncompleteBody"),
        ("4\r\nhell\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", "400 IncompleteBody"),
        ("6\r\nhello!\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", "400 IncompleteBody"),
        ("hello", "400 IncompleteBody"),
        ("x\r\nhello", "400 InvalidChunkFormat"),
        ("5\r\nhello!\r\n", "400 InvalidChunkFormat"),
        ("", "400 IncompleteBody"),
    ] {
        assert_eq!(refused(&harness, "PUT /photos/b", &headers, body).await, code, "{body:?}");
    }
    assert_eq!(refused(&harness, "GET /photos/b", &[], "").await, "404 NoSuchKey");
    let unknown = [headers[0], headers[1], ("x-amz-trailer", "x-other")];
    assert_eq!(refused(&harness, "PUT /photos/b", &unknown, good).await, "400 InvalidRequest");
    let delete = "24\r\n<Delete><Object><Key>a</Key></Object\r\na\r\n></Delete>\r\n0\r\n\r\n";
    let headers = [("x-amz-content-sha256", UNSIGNED), ("x-amz-decoded-content-length", "46")];
    assert_eq!(done(&harness, "POST /photos?delete", &headers, delete).await.one("Key"), "a");
}

#[tokio::test]
async fn a_refused_body_is_taken_so_that_the_connection_goes_on() {
    let harness = start().await;
    let body = vec![0; 8 << 20];
    for _ in 0..3 {
        assert_eq!(refused(&harness, "PUT /nothing/a", &[], body.clone()).await, "404 NoSuchBucket");
        assert_eq!(refused(&harness, "PUT /photos/%ff", &[], body.clone()).await, "400 InvalidURI");
    }
    assert_eq!(send(&harness, "GET /photos", &[], "").await.status, 200);
}
