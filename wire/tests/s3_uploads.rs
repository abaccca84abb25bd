//! Listings and uploads in parts over HTTP, with a crash in the middle.

mod harness;
mod s3_client;

use bytes::Bytes;
use harness::Harness;
use s3_client::{done, refused, send};

const PART: usize = 5 << 20;

async fn start() -> Harness {
    let harness = Harness::start().await;
    done(&harness, "PUT /photos", &[], "").await;
    harness
}

async fn begin(harness: &Harness, key: &str, headers: &[(&str, &str)]) -> String {
    done(harness, &format!("POST /photos/{key}?uploads"), headers, "").await.one("UploadId")
}

async fn put_part(harness: &Harness, path: &str, number: usize, body: impl Into<Bytes>) -> String {
    let line = format!("PUT {path}&partNumber={number}");
    done(harness, &line, &[], body).await.header("etag").to_owned()
}

/// A completion that repeats the checksums of the parts.
fn summed_completion(parts: &[(usize, &str, &str)]) -> String {
    let part = |(number, tag, sum): &(usize, &str, &str)| {
        let sum = format!("<ChecksumCRC32>{sum}</ChecksumCRC32>");
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag>{sum}</Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<CompleteMultipartUpload xmlns='x'>{parts}</CompleteMultipartUpload>")
}

fn completion(parts: &[(usize, &str)]) -> String {
    let part = |(number, tag): &(usize, &str)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<CompleteMultipartUpload xmlns='x'>{parts}</CompleteMultipartUpload>")
}

#[tokio::test]
async fn pages_joined_are_the_listing() {
    let harness = start().await;
    let keys = ["a", "a/1", "a/2", "b/1", "c", "d/e/f", "z%26%3C"];
    for key in keys {
        done(&harness, &format!("PUT /photos/{key}"), &[], "").await;
    }
    for limit in 1..=8 {
        let (mut token, mut entries, mut prefixes) = (String::new(), Vec::new(), Vec::new());
        let (mut marker, mut keys_v1, mut prefixes_v1) = (String::new(), Vec::new(), Vec::new());
        for _ in 0..20 {
            let line = format!("GET /photos?list-type=2&delimiter=/&max-keys={limit}{token}");
            let page = done(&harness, &line, &[], "").await;
            entries.extend(page.all("Key"));
            prefixes.extend(page.all("CommonPrefixes"));
            match page.all("NextContinuationToken").first() {
                Some(next) => token = format!("&continuation-token={next}"),
                None => break,
            }
        }
        for _ in 0..20 {
            let line = format!("GET /photos?delimiter=/&encoding-type=url&max-keys={limit}&marker={marker}");
            let page = done(&harness, &line, &[], "").await;
            keys_v1.extend(page.all("Key"));
            prefixes_v1.extend(page.all("CommonPrefixes"));
            match page.all("NextMarker").first() {
                Some(next) => marker = next.clone(),
                None => break,
            }
        }
        assert_eq!(entries, ["a", "c", "z&amp;&lt;"], "{limit}");
        assert_eq!(keys_v1, ["a", "c", "z%26%3C"], "{limit}");
        let shared = ["<Prefix>a/</Prefix>", "<Prefix>b/</Prefix>", "<Prefix>d/</Prefix>"];
        assert_eq!(
            (prefixes, prefixes_v1),
            (shared.map(String::from).to_vec(), shared.map(String::from).to_vec())
        );
    }
    let behind = done(&harness, "GET /photos?list-type=2&start-after=a/2", &[], "").await;
    assert_eq!(behind.all("Key").len(), 4);
    let none = done(&harness, "GET /photos?list-type=2&max-keys=0", &[], "").await;
    assert_eq!((none.all("Key").len(), none.one("IsTruncated")), (0, "false".into()));
    for query in ["max-keys=-1", "max-keys=x", "encoding-type=x", "continuation-token=x"] {
        let line = format!("GET /photos?list-type=2&{query}");
        assert_eq!(refused(&harness, &line, &[], "").await, "400 InvalidArgument", "{query}");
    }
    let versions = done(&harness, "GET /photos?versions&prefix=a/", &[], "").await;
    assert_eq!(
        (versions.all("Key"), versions.all("VersionId")),
        (vec!["a/1".into(), "a/2".into()], vec!["null".into(); 2])
    );
}

#[tokio::test]
async fn parts_become_an_object_although_the_server_crashed() {
    let harness = start().await;
    let id = begin(&harness, "big", &[("content-type", "x/y")]).await;
    let path = format!("/photos/big?uploadId={id}");
    let two = put_part(&harness, &path, 2, "end").await;
    let replaced = put_part(&harness, &path, 1, "short").await;
    let one = put_part(&harness, &path, 1, vec![7; PART]).await;
    let harness = harness.crash().await;
    let listed = done(&harness, &format!("GET {path}"), &[], "").await;
    assert_eq!(listed.all("PartNumber"), ["1", "2"]);
    assert_eq!(listed.all("Size"), [PART.to_string(), "3".into()]);
    for (parts, code) in [
        (&[(2, two.as_str()), (1, &one)][..], "400 InvalidPartOrder"),
        (&[(1, &replaced), (2, &two)], "400 InvalidPart"),
        (&[(1, &one), (3, &two)], "400 InvalidPart"),
        (&[(0, &one)], "400 InvalidArgument"),
        (&[], "400 MalformedXML"),
    ] {
        assert_eq!(refused(&harness, &format!("POST {path}"), &[], completion(parts)).await, code);
    }
    let replaced_part =
        send(&harness, &format!("POST {path}"), &[], completion(&[(1, &replaced), (2, &two)])).await;
    let tag = replaced.trim_matches('"').to_owned();
    let blamed = ["PartNumber", "ETag", "UploadId"].map(|element| replaced_part.one(element));
    assert_eq!(blamed, ["1".to_owned(), tag, id.clone()]);
    let size = [("x-amz-mp-object-size", "1")];
    let whole = completion(&[(1, &one), (2, &two)]);
    assert_eq!(refused(&harness, &format!("POST {path}"), &size, whole.clone()).await, "400 InvalidRequest");
    let done_once = done(&harness, &format!("POST {path}"), &[], whole.clone()).await;
    let again = done(&harness, &format!("POST {path}"), &[], whole).await;
    assert_eq!(again.one("ETag"), done_once.one("ETag"), "whoever missed the answer asks again");
    let other = completion(&[(1, &one)]);
    assert_eq!(refused(&harness, &format!("POST {path}"), &[], other).await, "404 NoSuchUpload");
    assert_eq!(refused(&harness, &format!("POST {path}"), &[], "").await, "404 NoSuchUpload");
    assert!(done_once.one("ETag").ends_with("-2&quot;"), "{}", done_once.text());
    assert_eq!(refused(&harness, &format!("GET {path}"), &[], "").await, "404 NoSuchUpload");
    let harness = harness.crash().await;
    let found = done(&harness, "GET /photos/big", &[], "").await;
    assert_eq!((found.body.len(), found.header("content-type")), (PART + 3, "x/y"));
    assert!(found.body.ends_with(b"\x07end"));
    assert_eq!(refused(&harness, "GET /photos/big?partNumber=3", &[], "").await, "416 InvalidPartNumber");
    assert_eq!(refused(&harness, "GET /photos/big?partNumber=0", &[], "").await, "400 InvalidArgument");
    let both = [("range", "bytes=0-1")];
    assert_eq!(refused(&harness, "GET /photos/big?partNumber=1", &both, "").await, "400 InvalidRequest");
    for (number, bytes) in [(1, 0..PART), (2, PART..PART + 3)] {
        let part = done(&harness, &format!("GET /photos/big?partNumber={number}"), &[], "").await;
        assert_eq!(part.body, found.body.slice(bytes.clone()), "part {number}");
        let head = done(&harness, &format!("HEAD /photos/big?partNumber={number}"), &[], "").await;
        for answer in [part, head] {
            assert_eq!(answer.status, 206);
            let range = format!("bytes {}-{}/{}", bytes.start, bytes.end - 1, PART + 3);
            assert_eq!(answer.header("content-range"), range);
            assert_eq!(answer.header("content-length"), bytes.len().to_string());
            assert_eq!(answer.header("x-amz-mp-parts-count"), "2");
        }
    }
}

#[tokio::test]
async fn the_parts_of_an_object_are_listed_and_the_last_may_be_empty() {
    let harness = start().await;
    let id = begin(&harness, "big", &[("x-amz-checksum-algorithm", "CRC32")]).await;
    let path = format!("/photos/big?uploadId={id}");
    // Whatever their numbers were, parts are counted from one.
    let (one, two) =
        (put_part(&harness, &path, 3, vec![1; PART]).await, put_part(&harness, &path, 70, "").await);
    let sums = done(&harness, &format!("GET {path}"), &[], "").await.all("ChecksumCRC32");
    let parts = [(3, one.as_str(), sums[0].as_str()), (70, &two, &sums[1])];
    done(&harness, &format!("POST {path}"), &[], summed_completion(&parts)).await;
    let ask = async |more: &[(&str, &str)]| {
        let headers = [&[("x-amz-object-attributes", "ObjectParts,ObjectSize")], more].concat();
        send(&harness, "GET /photos/big?attributes", &headers, "").await
    };
    let all = ask(&[]).await;
    assert_eq!(all.all("PartNumber"), ["1", "2"]);
    assert_eq!(all.all("Size"), [PART.to_string(), "0".into()]);
    assert_eq!(all.all("ChecksumCRC32"), sums, "each part has its own");
    assert_eq!((all.one("PartsCount"), all.one("IsTruncated")), ("2".into(), "false".into()));
    let first = ask(&[("x-amz-max-parts", "1")]).await;
    assert_eq!((first.all("PartNumber"), first.one("IsTruncated")), (vec!["1".into()], "true".into()));
    let marker = first.one("NextPartNumberMarker");
    let rest = ask(&[("x-amz-part-number-marker", &marker)]).await;
    assert_eq!((rest.all("PartNumber"), rest.one("IsTruncated")), (vec!["2".into()], "false".into()));
    for (name, value) in [("x-amz-max-parts", "-1"), ("x-amz-part-number-marker", "x")] {
        assert_eq!(ask(&[(name, value)]).await.refusal(), "400 InvalidArgument", "{name}");
    }
    let empty = done(&harness, "GET /photos/big?partNumber=2", &[], "").await;
    assert_eq!((empty.status.as_u16(), empty.body.len()), (206, 0));
    let harness = harness.crash().await;
    for (number, sum) in [(1, &sums[0]), (2, &sums[1])] {
        for method in ["GET", "HEAD"] {
            let line = format!("{method} /photos/big?partNumber={number}");
            let part = done(&harness, &line, &[("x-amz-checksum-mode", "ENABLED")], "").await;
            assert_eq!(
                (part.header("x-amz-checksum-crc32"), part.header("x-amz-checksum-type")),
                (&**sum, "COMPOSITE")
            );
        }
    }
    done(&harness, "PUT /photos/once", &[], "whole").await;
    let once = done(&harness, "GET /photos/once?partNumber=1", &[], "").await;
    assert_eq!((&once.body[..], once.header("content-range")), (&b"whole"[..], "bytes 0-4/5"));
}

/// The checksum of a whole body is not made of those of its parts, and these are not told.
#[tokio::test]
async fn of_an_object_with_one_checksum_the_parts_are_counted() {
    let harness = start().await;
    let full = [("x-amz-checksum-algorithm", "CRC32"), ("x-amz-checksum-type", "FULL_OBJECT")];
    for headers in [&full[..], &[]] {
        let id = begin(&harness, "big", headers).await;
        let path = format!("/photos/big?uploadId={id}");
        let tags =
            [put_part(&harness, &path, 1, vec![1; PART]).await, put_part(&harness, &path, 2, "x").await];
        done(&harness, &format!("POST {path}"), &[], completion(&[(1, &tags[0]), (2, &tags[1])])).await;
        let wanted = [("x-amz-object-attributes", "ObjectParts,Checksum")];
        let told = done(&harness, "GET /photos/big?attributes", &wanted, "").await;
        assert_eq!(
            (told.one("PartsCount"), told.all("PartNumber").len()),
            ("2".into(), 0),
            "{}",
            told.text()
        );
        assert_eq!(told.one("ChecksumType"), "FULL_OBJECT");
        let mode = [("x-amz-checksum-mode", "ENABLED")];
        let part = done(&harness, "HEAD /photos/big?partNumber=2", &mode, "").await;
        assert_eq!(part.header("x-amz-checksum-crc32"), "");
    }
}

#[tokio::test]
async fn a_part_may_be_a_copy_and_an_upload_may_be_given_up() {
    let harness = start().await;
    done(&harness, "PUT /photos/source", &[], "0123456789").await;
    let id = begin(&harness, "copy", &[]).await;
    let path = format!("/photos/copy?uploadId={id}");
    let source = ("x-amz-copy-source", "photos/source");
    let headers = [source, ("x-amz-copy-source-range", "bytes=2-4")];
    let part = done(&harness, &format!("PUT {path}&partNumber=1"), &headers, "").await.one("ETag");
    let wrong = [source, ("x-amz-copy-source-range", "2-4")];
    assert_eq!(
        refused(&harness, &format!("PUT {path}&partNumber=1"), &wrong, "").await,
        "400 InvalidArgument"
    );
    let partly = [source, ("x-amz-copy-source-range", "bytes=5-10")];
    assert_eq!(
        refused(&harness, &format!("PUT {path}&partNumber=1"), &partly, "").await,
        "400 InvalidArgument"
    );
    let open = [source, ("x-amz-copy-source-range", "bytes=2-")];
    assert_eq!(
        refused(&harness, &format!("PUT {path}&partNumber=1"), &open, "").await,
        "400 InvalidArgument"
    );
    let beyond = [source, ("x-amz-copy-source-range", "bytes=10-12")];
    assert_eq!(
        refused(&harness, &format!("PUT {path}&partNumber=1"), &beyond, "").await,
        "400 InvalidRequest"
    );
    done(&harness, &format!("POST {path}"), &[], completion(&[(1, &part)])).await;
    assert_eq!(done(&harness, "GET /photos/copy", &[], "").await.body, "234");

    let id = begin(&harness, "given-up", &[]).await;
    let path = format!("/photos/given-up?uploadId={id}");
    put_part(&harness, &path, 1, "x").await;
    assert_eq!(done(&harness, "GET /photos?uploads", &[], "").await.one("UploadId"), id);
    done(&harness, &format!("DELETE {path}"), &[], "").await;
    assert_eq!(refused(&harness, &format!("DELETE {path}"), &[], "").await, "404 NoSuchUpload");
    assert_eq!(refused(&harness, &format!("PUT {path}&partNumber=1"), &[], "x").await, "404 NoSuchUpload");
    assert!(done(&harness, "GET /photos?uploads", &[], "").await.all("UploadId").is_empty());
    assert_eq!(
        refused(&harness, "PUT /photos/k?uploadId=x&partNumber=10001", &[], "x").await,
        "400 InvalidArgument"
    );
}

#[tokio::test]
async fn checksums_of_parts_are_compared() {
    let harness = start().await;
    let id = begin(&harness, "sum", &[("x-amz-checksum-algorithm", "CRC32")]).await;
    let path = format!("/photos/sum?uploadId={id}");
    // The CRC32 of "hello" is 3610a686.
    let (good, wrong) = ("NhCmhg==", "AAAAAA==");
    let line = format!("PUT {path}&partNumber=1");
    assert_eq!(refused(&harness, &line, &[("x-amz-checksum-crc32", wrong)], "hello").await, "400 BadDigest");
    let put = done(&harness, &line, &[("x-amz-checksum-crc32", good)], "hello").await;
    assert_eq!(put.header("x-amz-checksum-crc32"), good);
    let with = |sum: &str| {
        completion(&[(1, put.header("etag"))])
            .replace("</Part>", &format!("<ChecksumCRC32>{sum}</ChecksumCRC32></Part>"))
    };
    let other = send(&harness, &line, &[("x-amz-checksum-crc32c", "mnG7TA==")], "hello").await;
    assert_eq!(
        other.one("Message"),
        "Checksum Type mismatch occurred, expected checksum Type: crc32, actual checksum Type: crc32c"
    );
    let without = send(&harness, &format!("POST {path}"), &[], completion(&[(1, put.header("etag"))])).await;
    assert_eq!(
        without.one("Message"),
        "The upload was created using a crc32 checksum. The complete request must include the checksum for each part. It \
         was missing for part 1 in the request."
    );
    let sha = with("")
        .replace("ChecksumCRC32", "ChecksumSHA256")
        .replace("></Check", ">47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=</Check");
    let sha = send(&harness, &format!("POST {path}"), &[], sha).await;
    assert_eq!(
        sha.one("Message"),
        "The sha256 you specified for part 1 did not match what we received.",
        "{}",
        sha.text()
    );
    let mode = [("x-amz-checksum-type", "FULL_OBJECT")];
    let mode = send(&harness, &format!("POST {path}"), &mode, with(good)).await;
    assert_eq!(
        mode.one("Message"),
        "The upload was created using the COMPOSITE checksum mode. The complete request must use the same checksum mode."
    );
    assert_eq!(refused(&harness, &format!("POST {path}"), &[], with(wrong)).await, "400 InvalidPart");
    let expected = [("x-amz-checksum-crc32", wrong)];
    assert_eq!(refused(&harness, &format!("POST {path}"), &expected, with(good)).await, "400 BadDigest");
    let answer = done(&harness, &format!("POST {path}"), &[], with(good)).await;
    assert!(answer.one("ChecksumCRC32").ends_with("-1"), "{}", answer.text());
    assert_eq!(answer.one("ChecksumType"), "COMPOSITE");
    for listing in ["GET /photos", "GET /photos?list-type=2"] {
        let listed = done(&harness, listing, &[], "").await;
        assert_eq!(
            (listed.one("ChecksumAlgorithm"), listed.one("ChecksumType")),
            ("CRC32".into(), "COMPOSITE".into())
        );
    }
    let full = [("x-amz-checksum-algorithm", "SHA256"), ("x-amz-checksum-type", "FULL_OBJECT")];
    assert_eq!(refused(&harness, "POST /photos/sum?uploads", &full, "").await, "400 InvalidRequest");
}

#[tokio::test]
async fn the_copy_of_an_object_in_parts_is_in_one_piece() {
    let harness = start().await;
    let id = begin(&harness, "joined", &[("x-amz-checksum-algorithm", "CRC32")]).await;
    let path = format!("/photos/joined?uploadId={id}");
    let (one, two) = ("x".repeat(PART), "y");
    let tags = [put_part(&harness, &path, 1, one.clone()).await, put_part(&harness, &path, 2, two).await];
    let sums = done(&harness, &format!("GET {path}"), &[], "").await.all("ChecksumCRC32");
    let list = summed_completion(&[(1, &tags[0], &sums[0]), (2, &tags[1], &sums[1])]);
    let joined = done(&harness, &format!("POST {path}"), &[], list).await.one("ETag");
    assert!(joined.contains("-2"), "{joined}");
    let copied = [("x-amz-copy-source", "/photos/joined")];
    done(&harness, "PUT /photos/copy", &copied, "").await;
    done(&harness, "PUT /photos/whole", &[], format!("{one}{two}")).await;
    let shown = [("x-amz-checksum-mode", "ENABLED")];
    let copy = done(&harness, "HEAD /photos/copy", &shown, "").await;
    let whole = done(&harness, "HEAD /photos/whole", &shown, "").await;
    assert_eq!(copy.header("etag"), whole.header("etag"));
    assert_eq!(copy.header("x-amz-checksum-type"), "FULL_OBJECT");
    let sum = copy.header("x-amz-checksum-crc32");
    assert!(!sum.is_empty() && !sum.contains('-'), "{sum}");
    assert_eq!(copy.header("x-amz-mp-parts-count"), "");
}
