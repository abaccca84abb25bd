//! Objects over HTTP: what is put is what comes back, whatever its key, and a refusal changes nothing.

mod harness;
mod s3_client;

use harness::Harness;
use http::StatusCode;
use s3_client::{Answer, Raw, done, refused, send, send_http2};

const HELLO: &str = "\"5d41402abc4b2a76b9719d911017c592\"";

async fn start() -> Harness {
    let harness = Harness::start().await;
    done(&harness, "PUT /photos", &[], "").await;
    harness
}

async fn get(harness: &Harness, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(harness, &format!("GET {path}"), headers, "").await
}

#[tokio::test]
async fn an_object_comes_back_with_what_was_said_about_it() {
    let harness = start().await;
    let said = [
        ("content-type", "text/plain"),
        ("cache-control", "no-store"),
        ("content-encoding", "gzip"),
        ("x-amz-meta-colour", "red"),
    ];
    let put = done(&harness, "PUT /photos/a", &said, "hello").await;
    assert_eq!(put.header("etag"), HELLO);
    for method in ["GET", "HEAD"] {
        let found = done(&harness, &format!("{method} /photos/a"), &[], "").await;
        for (name, value) in said {
            assert_eq!(found.header(name), value, "{method}");
        }
        assert_eq!(found.header("content-length"), "5", "{method}");
        assert_eq!(found.header("etag"), HELLO);
        assert!(!found.header("last-modified").is_empty() && !found.header("x-amz-request-id").is_empty());
        assert_eq!(found.body, if method == "GET" { "hello" } else { "" });
    }
    let plain =
        done(&harness, "GET /photos/a?response-content-type=x%2Fy&response-expires=never", &[], "").await;
    assert_eq!((plain.header("content-type"), plain.header("expires")), ("x/y", "never"));
}

#[tokio::test]
async fn keys_are_what_was_sent_and_nothing_else() {
    let harness = start().await;
    let paths = [
        "..", "%2e%2e/x", "/", "//", "a//b", "a/./b", "%00", "a%0D%0Ab", "%25", "+", "%2B", "e%CC%81",
        "%C3%A9",
    ];
    for path in paths {
        done(&harness, &format!("PUT /photos/{path}"), &[], path).await;
    }
    for path in paths {
        let expected = if path == "+" { "%2B" } else { path };
        assert_eq!(done(&harness, &format!("GET /photos/{path}"), &[], "").await.body, expected, "{path}");
    }
    let listed = done(&harness, "GET /photos?list-type=2&encoding-type=url", &[], "").await;
    assert_eq!(
        listed.all("Key"),
        ["%00", "%25", "%2B", "..", "../x", "/", "//", "a%0D%0Ab", "a/./b", "a//b", "e%CC%81", "%C3%A9"]
    );
    let longest = "x".repeat(1_024);
    done(&harness, &format!("PUT /photos/{longest}"), &[], "x").await;
    assert_eq!(refused(&harness, &format!("PUT /photos/{longest}x"), &[], "").await, "400 KeyTooLongError");
    assert_eq!(refused(&harness, "PUT /photos/%ff", &[], "").await, "400 InvalidURI");
}

#[tokio::test]
async fn a_refusal_changes_nothing_and_says_why() {
    let harness = start().await;
    done(&harness, "PUT /photos/a", &[], "hello").await;
    for (headers, code) in [
        (&[("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")][..], "400 BadDigest"),
        (&[("content-md5", "x")], "400 InvalidDigest"),
        (&[("x-amz-checksum-crc32", "AAAAAA==")], "400 BadDigest"),
        (&[("x-amz-checksum-crc32", "x")], "400 InvalidRequest"),
        (&[("x-amz-checksum-md4", "x")], "400 InvalidRequest"),
        (&[("x-amz-sdk-checksum-algorithm", "CRC32")], "400 InvalidRequest"),
        (&[("x-amz-content-sha256", &"0".repeat(64))], "400 XAmzContentSHA256Mismatch"),
        (&[("x-amz-content-sha256", "nonsense")], "400 InvalidArgument"),
        (&[("if-none-match", "*")], "412 PreconditionFailed"),
        (&[("if-match", "\"other\"")], "412 PreconditionFailed"),
        (&[("x-amz-server-side-encryption", "aws:kms")], "501 NotImplemented"),
        (&[("x-amz-server-side-encryption-customer-algorithm", "AES256")], "501 NotImplemented"),
        (&[("x-amz-acl", "public-read")], "400 AccessControlListNotSupported"),
        (&[("x-amz-expected-bucket-owner", "1")], "403 AccessDenied"),
        (&[("x-amz-meta-a", &"x".repeat(2_048))], "400 MetadataTooLarge"),
    ] {
        assert_eq!(refused(&harness, "PUT /photos/a", headers, "other").await, code, "{headers:?}");
    }
    assert_eq!(refused(&harness, "PUT /nothing/a", &[], "x").await, "404 NoSuchBucket");
    let missing = get(&harness, "/photos/b%26", &[]).await;
    assert_eq!(missing.refusal(), "404 NoSuchKey");
    assert_eq!((missing.all("Resource").len(), missing.one("Key")), (0, "b&amp;".into()));
    assert_eq!(missing.one("RequestId"), missing.header("x-amz-request-id"));
    let head = send(&harness, "HEAD /photos/b", &[], "").await;
    assert_eq!((head.status, head.body.len()), (StatusCode::NOT_FOUND, 0));
    assert_eq!(get(&harness, "/photos/a", &[]).await.body, "hello");
}

#[tokio::test]
async fn readers_ask_for_pieces_and_changes() {
    let harness = start().await;
    done(&harness, "PUT /photos/a", &[], "0123456789").await;
    for (range, bytes, shown) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=8-", "89", "bytes 8-9/10"),
        ("bytes=-1", "9", "bytes 9-9/10"),
        ("bytes=9-100", "9", "bytes 9-9/10"),
    ] {
        let piece = get(&harness, "/photos/a", &[("range", range)]).await;
        assert_eq!(piece.status, StatusCode::PARTIAL_CONTENT);
        assert_eq!((&piece.body[..], piece.header("content-range")), (bytes.as_bytes(), shown));
    }
    let beyond = get(&harness, "/photos/a", &[("range", "bytes=10-")]).await;
    assert_eq!(
        (beyond.refusal().as_str(), beyond.one("ActualObjectSize").as_str()),
        ("416 InvalidRange", "10")
    );
    let whole = get(&harness, "/photos/a", &[("range", "bytes=3-1")]).await;
    assert_eq!((whole.status, whole.body.len()), (StatusCode::OK, 10));
    let (tag, moment) = (whole.header("etag"), whole.header("last-modified"));
    let past = "Sat, 01 Jan 2000 00:00:00 GMT";
    for (name, value, status) in [
        ("if-match", tag, 200),
        ("if-match", "\"x\"", 412),
        ("if-none-match", tag, 304),
        ("if-none-match", "\"x\"", 200),
        ("if-modified-since", moment, 304),
        ("if-modified-since", past, 200),
        // A moment that is still to come says nothing.
        ("if-modified-since", "Fri, 01 Jan 2999 00:00:00 GMT", 200),
        ("if-match", "no good tag", 412),
        ("if-none-match", "no good tag", 200),
        ("if-unmodified-since", moment, 200),
        ("if-unmodified-since", past, 412),
        ("if-modified-since", "yesterday", 200),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = send(&harness, &format!("{method} /photos/a"), &[(name, value)], "").await;
            assert_eq!(answer.status.as_u16(), status, "{method} {name}: {value}");
            assert!(status != 304 || answer.header("etag") == tag && answer.body.is_empty());
        }
    }
}

#[tokio::test]
async fn copies_and_deletions() {
    let harness = start().await;
    done(&harness, "PUT /photos/a%20b", &[("x-amz-meta-x", "1")], "hello").await;
    let source = ("x-amz-copy-source", "/photos/a%20b");
    assert_eq!(
        done(&harness, "PUT /photos/c", &[source], "").await.one("ETag").replace("&quot;", "\""),
        HELLO
    );
    assert_eq!(get(&harness, "/photos/c", &[]).await.header("x-amz-meta-x"), "1");
    let replace = [source, ("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-y", "2")];
    done(&harness, "PUT /photos/c", &replace, "").await;
    let copied = get(&harness, "/photos/c", &[]).await;
    assert_eq!((copied.header("x-amz-meta-x"), copied.header("x-amz-meta-y")), ("", "2"));
    for (headers, code) in [
        (&[("x-amz-copy-source", "/photos/none")][..], "404 NoSuchKey"),
        (&[("x-amz-copy-source", "/photos")], "400 InvalidArgument"),
        (&[source, ("x-amz-copy-source-if-match", "\"x\"")], "412 PreconditionFailed"),
        (&[source, ("x-amz-copy-source-if-none-match", HELLO)], "412 PreconditionFailed"),
        (&[source, ("if-none-match", "*")], "412 PreconditionFailed"),
        (&[source, ("x-amz-metadata-directive", "KEEP")], "400 InvalidArgument"),
    ] {
        assert_eq!(refused(&harness, "PUT /photos/c", headers, "").await, code, "{headers:?}");
    }
    assert_eq!(refused(&harness, "PUT /photos/a%20b", &[source], "").await, "400 InvalidRequest");

    assert_eq!(
        refused(&harness, "DELETE /photos/c", &[("if-match", "\"x\"")], "").await,
        "412 PreconditionFailed"
    );
    assert_eq!(
        done(&harness, "DELETE /photos/c", &[("if-match", "*")], "").await.status,
        StatusCode::NO_CONTENT
    );
    done(&harness, "DELETE /photos/c", &[], "").await;
    let many = "<Delete><Object><Key>a b</Key><ETag>&quot;x&quot;</ETag></Object><Object><Key>none</Key></Object></Delete>";
    let answer = done(&harness, "POST /photos?delete", &[], many).await;
    assert_eq!(
        (answer.all("Key"), answer.one("Code")),
        (vec!["a b".into(), "none".into()], "PreconditionFailed".into())
    );
    assert_eq!(get(&harness, "/photos/a%20b", &[]).await.body, "hello");
    let long = format!("<Delete>{}</Delete>", "<Object><Key>k</Key></Object>".repeat(1_001));
    for text in ["", "<Delete/>", "<Delete>", "<Other/>", "<!DOCTYPE a><Delete/>", &long] {
        let shown: String = text.chars().take(20).collect();
        assert_eq!(
            refused(&harness, "POST /photos?delete", &[], text.to_owned()).await,
            "400 MalformedXML",
            "{shown}"
        );
    }
}

#[tokio::test]
async fn both_versions_of_http_and_hosts_that_name_a_bucket() {
    let harness = start().await;
    let put = send_http2(&harness, "PUT /photos/a", &[("content-length", "5")], "hello").await;
    assert_eq!(put.status, StatusCode::OK, "{}", put.text());
    assert_eq!(send_http2(&harness, "GET /photos/a", &[], "").await.body, "hello");
    let head = send_http2(&harness, "HEAD /photos/a", &[], "").await;
    assert_eq!((head.status, head.header("content-length")), (StatusCode::OK, "5"));
    let mut raw = Raw::open(&harness).await;
    raw.write("GET /a HTTP/1.1\r\nhost: photos.localhost:4566\r\n\r\n").await;
    let head = raw.head().await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(HELLO), "{head}");
}

#[tokio::test]
async fn buckets_are_made_listed_and_removed() {
    let harness = start().await;
    for name in ["b-1", "b-2", "b-3"] {
        assert_eq!(
            done(&harness, &format!("PUT /{name}"), &[], "").await.header("location"),
            format!("/{name}")
        );
    }
    assert_eq!(done(&harness, "GET /", &[], "").await.all("Name"), ["b-1", "b-2", "b-3", "photos"]);
    let first = done(&harness, "GET /?max-buckets=2&prefix=b-", &[], "").await;
    assert_eq!(first.all("Name"), ["b-1", "b-2"]);
    let token = first.one("ContinuationToken").replace('=', "%3D");
    let rest = done(&harness, &format!("GET /?prefix=b-&continuation-token={token}"), &[], "").await;
    assert_eq!((rest.all("Name"), rest.all("ContinuationToken").len()), (vec!["b-3".to_owned()], 0));
    let region =
        "AWS4-HMAC-SHA256 Credential=AK/20261115/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=0";
    let signed = [("authorization", region)];
    assert_eq!(refused(&harness, "PUT /b-1", &signed, "").await, "409 BucketAlreadyOwnedByYou");
    done(&harness, "PUT /b-1", &[], "").await;
    assert_eq!(done(&harness, "HEAD /b-1", &signed, "").await.header("x-amz-bucket-region"), "eu-west-1");
    let text = done(&harness, "GET /b-1?location", &signed, "").await.text();
    assert!(text.contains(">eu-west-1</LocationConstraint>"), "{text}");
    done(&harness, "PUT /photos/a", &[], "").await;
    assert_eq!(refused(&harness, "DELETE /photos", &[], "").await, "409 BucketNotEmpty");
    done(&harness, "DELETE /b-1", &[], "").await;
    assert_eq!(refused(&harness, "DELETE /b-1", &[], "").await, "404 NoSuchBucket");
    assert_eq!(refused(&harness, "PUT /UPPER", &[], "").await, "400 InvalidBucketName");
    assert_eq!(refused(&harness, "PUT /photos?versioning", &[], "x").await, "501 NotImplemented");
    assert_eq!(refused(&harness, "GET /photos?policy", &[], "").await, "404 NoSuchBucketPolicy");
    assert!(!done(&harness, "GET /photos?versioning", &[], "").await.text().contains("Status"));
}

#[tokio::test]
async fn the_encryption_that_every_client_asks_for_is_granted() {
    let harness = start().await;
    let asked = [("x-amz-server-side-encryption", "AES256")];
    let put = done(&harness, "PUT /photos/a", &asked, "hello").await;
    assert_eq!(put.header(asked[0].0), "AES256");
    let plain = done(&harness, "PUT /photos/b", &[], "hello").await;
    assert_eq!(plain.header(asked[0].0), "", "nothing is claimed that was not asked for");
    assert_eq!(done(&harness, "GET /photos/a", &[], "").await.body, "hello");
}

#[tokio::test]
async fn an_object_without_a_checksum_gets_one() {
    let harness = start().await;
    done(&harness, "PUT /photos/a", &[], "hello").await;
    let shown = [("x-amz-checksum-mode", "ENABLED")];
    let found = get(&harness, "/photos/a", &shown).await;
    assert_eq!(found.header("x-amz-checksum-crc64nvme"), "M3eFcAZSQlc=");
    assert_eq!(found.header("x-amz-checksum-type"), "FULL_OBJECT");
    done(&harness, "PUT /photos/b", &[("x-amz-checksum-crc32", "NhCmhg==")], "hello").await;
    let found = get(&harness, "/photos/b", &shown).await;
    let sums = (found.header("x-amz-checksum-crc32"), found.header("x-amz-checksum-crc64nvme"));
    assert_eq!(sums, ("NhCmhg==", ""), "one is enough");
}

#[tokio::test]
async fn an_object_that_must_be_there_is_deleted_once() {
    let harness = start().await;
    done(&harness, "PUT /photos/a", &[], "hello").await;
    let present = [("if-match", "*")];
    done(&harness, "DELETE /photos/a", &present, "").await;
    assert_eq!(refused(&harness, "DELETE /photos/a", &present, "").await, "404 NoSuchKey");
}

#[tokio::test]
async fn an_object_is_copied_onto_itself_only_to_change_it() {
    let harness = Harness::start().await;
    done(&harness, "PUT /photos", &[], "").await;
    done(&harness, "PUT /photos/a", &[("x-amz-meta-colour", "red")], "body").await;
    let source = ("x-amz-copy-source", "/photos/a");
    for same in [&[][..], &[("x-amz-metadata-directive", "COPY")], &[("x-amz-meta-colour", "blue")]] {
        let refusal = send(&harness, "PUT /photos/a", &[&[source], same].concat(), "").await;
        assert_eq!(refusal.refusal(), "400 InvalidRequest", "{same:?}");
        assert_eq!(
            refusal.one("Message"),
            "This copy request is illegal because it is trying to copy an object to itself without changing the object&apos;s \
             metadata, storage class, website redirect location or encryption attributes."
        );
    }
    done(&harness, "PUT /photos/a", &[source, ("x-amz-storage-class", "STANDARD")], "").await;
    let found = done(&harness, "GET /photos/a", &[], "").await;
    assert_eq!((&found.body[..], found.header("x-amz-meta-colour")), (&b"body"[..], "red"));
    let replaced = [source, ("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-colour", "blue")];
    done(&harness, "PUT /photos/a", &replaced, "").await;
    assert_eq!(done(&harness, "HEAD /photos/a", &[], "").await.header("x-amz-meta-colour"), "blue");
}
