//! What S3 tells beside the code of a refusal, which clients print and some of them read.

mod harness;
mod s3_client;

use std::time::Duration;

use harness::Harness;
use s3_client::{done, refused, send};

async fn start() -> Harness {
    let harness = Harness::start().await;
    done(&harness, "PUT /photos", &[], "").await;
    done(&harness, "PUT /photos/a", &[], "0123456789").await;
    harness
}

#[tokio::test]
async fn a_condition_that_does_not_hold_is_named() {
    let harness = start().await;
    let copy = ("x-amz-copy-source", "photos/a");
    let past = "Sat, 01 Jan 2000 00:00:00 GMT";
    let tag = done(&harness, "HEAD /photos/a", &[], "").await.header("etag").to_owned();
    let own = tag.as_str();
    for (line, headers, condition) in [
        ("PUT /photos/a", &[("if-none-match", "*")][..], "If-None-Match"),
        ("PUT /photos/a", &[("if-match", "x")], "If-Match"),
        ("GET /photos/a", &[("if-match", "x")], "If-Match"),
        ("GET /photos/a", &[("if-unmodified-since", past)], "If-Unmodified-Since"),
        ("PUT /photos/a", &[copy, ("x-amz-metadata-directive", "REPLACE"), ("if-match", "x")], "If-Match"),
        (
            "PUT /photos/a",
            &[copy, ("x-amz-storage-class", "STANDARD"), ("if-none-match", "*")],
            "If-None-Match",
        ),
        ("PUT /photos/b", &[copy, ("x-amz-copy-source-if-match", "x")], "x-amz-copy-source-If-Match"),
        (
            "PUT /photos/b",
            &[copy, ("x-amz-copy-source-if-none-match", own)],
            "x-amz-copy-source-If-None-Match",
        ),
        (
            "PUT /photos/b",
            &[
                copy,
                ("x-amz-copy-source-if-unmodified-since", past),
                ("x-amz-copy-source-if-none-match", own),
            ],
            "x-amz-copy-source-If-Unmodified-Since",
        ),
    ] {
        let answer = send(&harness, line, headers, "").await;
        assert_eq!(answer.refusal(), "412 PreconditionFailed", "{headers:?}");
        assert_eq!(answer.one("Condition"), condition, "{headers:?}");
    }
    for (headers, named) in [
        (&[("if-none-match", "x")][..], "If-None-Match"),
        (&[("if-none-match", "*"), ("if-match", "x")], "If-Match,If-None-Match"),
    ] {
        let answer = send(&harness, "PUT /photos/a", headers, "").await;
        assert_eq!((answer.refusal(), answer.one("Header")), ("501 NotImplemented".into(), named.into()));
    }
    assert_eq!(done(&harness, "GET /photos/a", &[], "").await.body, "0123456789");
}

#[tokio::test]
async fn what_was_asked_for_is_told() {
    let harness = start().await;
    let begun = done(&harness, "POST /photos/big?uploads", &[], "").await.one("UploadId");
    let part = format!("PUT /photos/big?uploadId={begun}");
    let copied = [("x-amz-copy-source", "photos/a"), ("x-amz-copy-source-range", "bytes=-2")];
    for (line, headers, code, told) in [
        (
            "GET /photos/a",
            &[("range", "bytes=99-")][..],
            "416 InvalidRange",
            &[("RangeRequested", "bytes=99-")][..],
        ),
        (
            "GET /photos/a?partNumber=2",
            &[],
            "416 InvalidPartNumber",
            &[("ActualPartCount", "1"), ("PartNumberRequested", "2")],
        ),
        (
            "GET /photos/a?versionId=x",
            &[],
            "400 InvalidArgument",
            &[("ArgumentName", "versionId"), ("ArgumentValue", "x")],
        ),
        ("GET /photos?encoding-type=", &[], "400 InvalidArgument", &[("ArgumentName", "encoding-type")]),
        (
            "GET /photos?list-type=2&continuation-token=",
            &[],
            "400 InvalidArgument",
            &[("ArgumentName", "continuation-token")],
        ),
        (
            &format!("{part}&partNumber=-1"),
            &[],
            "400 InvalidArgument",
            &[("ArgumentName", "partNumber"), ("ArgumentValue", "-1")],
        ),
        (
            &format!("{part}&partNumber=1"),
            &copied,
            "400 InvalidArgument",
            &[("ArgumentName", "x-amz-copy-source-range"), ("ArgumentValue", "bytes=-2")],
        ),
        ("PUT /photos/a", &[("content-md5", "x")], "400 InvalidDigest", &[("Content-MD5", "x")]),
        (
            "PUT /photos/a",
            &[("x-amz-storage-class", "COLD")],
            "400 InvalidStorageClass",
            &[("StorageClassRequested", "COLD")],
        ),
    ] {
        let answer = send(&harness, line, headers, "").await;
        assert_eq!(answer.refusal(), code, "{line}");
        for (element, value) in told {
            assert_eq!(answer.one(element), *value, "{line}");
        }
        assert_eq!(answer.one("HostId"), answer.header("x-amz-id-2"));
        assert_eq!(answer.header("server"), "anabranch");
        assert_eq!(answer.header("x-amzn-requestid"), "", "that is the name of others");
    }
    assert_eq!(
        refused(&harness, "PUT /photos/a", &[("x-amz-storage-class", "GLACIER")], "").await,
        "501 NotImplemented"
    );
    let small = done(&harness, &format!("{part}&partNumber=1"), &[], "x").await.header("etag").to_owned();
    done(&harness, &format!("{part}&partNumber=2"), &[], "x").await;
    let parts =
        [1, 2].map(|number| format!("<Part><PartNumber>{number}</PartNumber><ETag>{small}</ETag></Part>"));
    let list = format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts.concat());
    let answer = send(&harness, &format!("POST /photos/big?uploadId={begun}"), &[], list).await;
    assert_eq!(answer.refusal(), "400 EntityTooSmall");
    let told = ["PartNumber", "MinSizeAllowed", "ProposedSize", "ETag"].map(|element| answer.one(element));
    assert_eq!(told, ["1", "5242880", "1", small.trim_matches('"')]);
    let versions = "<Delete><Object><Key>a</Key><VersionId>x</VersionId></Object></Delete>";
    let answer = done(&harness, "POST /photos?delete", &[], versions).await;
    assert_eq!((answer.one("Code"), answer.one("VersionId")), ("NoSuchVersion".into(), "x".into()));
    assert_eq!(done(&harness, "GET /photos/a", &[], "").await.body, "0123456789");
}

#[tokio::test]
async fn who_replaces_an_object_means_the_one_that_was_there_when_he_began() {
    let harness = start().await;
    let begun = done(&harness, "POST /photos/a?uploads", &[], "").await.one("UploadId");
    let path = format!("/photos/a?uploadId={begun}");
    let part = done(&harness, &format!("PUT {path}&partNumber=1"), &[], "x").await.header("etag").to_owned();
    let list = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{part}</ETag></Part></CompleteMultipartUpload>"
    );
    // What is put in the same millisecond may have been there before.
    harness.clock.advance(Duration::from_millis(20));
    let again = done(&harness, "PUT /photos/a", &[], "0123456789").await.header("etag").to_owned();
    let line = format!("POST {path}");
    let other = [("if-match", "x")];
    assert_eq!(refused(&harness, &line, &other, list.clone()).await, "412 PreconditionFailed");
    let same = [("if-match", again.as_str())];
    let answer = send(&harness, &line, &same, list.clone()).await;
    assert_eq!(answer.refusal(), "409 ConditionalRequestConflict");
    assert_eq!((answer.one("Condition"), answer.one("Key")), ("If-Match".into(), "a".into()));
    assert_eq!(done(&harness, "GET /photos/a", &[], "").await.body, "0123456789");
    done(&harness, &line, &[], list).await;
}

#[tokio::test]
async fn documents_and_headers_agree() {
    let harness = start().await;
    let made = done(&harness, "PUT /more", &[], "").await;
    assert_eq!(made.header("x-amz-bucket-arn"), "arn:aws:s3:::more");
    for line in ["GET /", "GET /photos", "GET /photos?list-type=2", "GET /photos?versions"] {
        let listed = done(&harness, line, &[], "").await;
        let moments = [listed.all("LastModified"), listed.all("CreationDate")].concat();
        assert!(!moments.is_empty() && moments.iter().all(|moment| moment.ends_with(".000Z")), "{moments:?}");
    }
    done(&harness, "PUT /photos/d/b/x", &[], "").await;
    done(&harness, "PUT /photos/d/c", &[], "").await;
    // What the marker lies below was shown before.
    let behind = done(&harness, "GET /photos?prefix=d/&delimiter=/&marker=d/b/a", &[], "").await;
    assert_eq!((behind.all("Key"), behind.all("CommonPrefixes").len()), (vec!["d/c".into()], 0));
    let first = done(&harness, "GET /photos?list-type=2&max-keys=1", &[], "").await;
    let token = first.one("NextContinuationToken");
    let line = format!("GET /photos?list-type=2&start-after=z&continuation-token={token}");
    let rest = done(&harness, &line, &[], "").await;
    assert_eq!(
        (rest.all("Key").len(), rest.all("StartAfter").len()),
        (2, 0),
        "the token says where to go on"
    );
    let begun = done(&harness, "POST /photos/up?uploads", &[], "").await.one("UploadId");
    let uploads = done(&harness, "GET /photos?uploads", &[], "").await;
    assert_eq!((uploads.one("NextKeyMarker"), uploads.one("NextUploadIdMarker")), ("up".into(), begun));
    assert!(uploads.all("Prefix").is_empty() && uploads.one("IsTruncated") == "false");
    let named = "attachment; filename=\"é—.pdf\"";
    done(&harness, "PUT /photos/named", &[("content-disposition", named)], "").await;
    let found = done(&harness, "HEAD /photos/named", &[], "").await;
    assert_eq!(found.headers["content-disposition"].as_bytes(), named.as_bytes(), "as it came");
    let asked = done(&harness, "GET /photos/named?response-content-language=%C3%A9", &[], "").await;
    assert_eq!(asked.headers["content-language"].as_bytes(), b"\xe9");
    let line = "GET /photos/named?response-content-language=%E2%80%94&response-cache-control=%E2%80%94";
    let answer = send(&harness, line, &[], "").await;
    assert_eq!(answer.one("ArgumentName"), "response-cache-control");
    done(&harness, "PUT /photos/a%20b", &[], "space").await;
    done(&harness, "PUT /photos/copy", &[("x-amz-copy-source", "photos/a+b")], "").await;
    assert_eq!(done(&harness, "GET /photos/copy", &[], "").await.body, "space");
}
