//! The checksum that an object in parts has although nobody asked for one.

mod harness;
mod s3_client;

use harness::Harness;
use s3_client::{Answer, done, refused, send};

const PART: usize = 5 << 20;

async fn start() -> Harness {
    let harness = Harness::start().await;
    done(&harness, "PUT /photos", &[], "").await;
    harness
}

async fn begin(harness: &Harness, headers: &[(&str, &str)]) -> String {
    let begun = done(harness, "POST /photos/big?uploads", headers, "").await;
    format!("/photos/big?uploadId={}", begun.one("UploadId"))
}

async fn put_part(
    harness: &Harness,
    path: &str,
    number: usize,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    done(harness, &format!("PUT {path}&partNumber={number}"), headers, body.to_owned()).await
}

/// A completion whose parts have these tags, and whatever else is said about each.
fn completion(parts: &[(&str, &str)]) -> String {
    let part = |(number, (tag, more)): (usize, &(&str, &str))| {
        format!("<Part><PartNumber>{}</PartNumber><ETag>{tag}</ETag>{more}</Part>", number + 1)
    };
    let parts: String = parts.iter().enumerate().map(part).collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}

#[tokio::test]
async fn an_object_in_parts_has_the_checksum_of_its_bytes() {
    let harness = start().await;
    let path = begin(&harness, &[]).await;
    let one = "x".repeat(PART);
    // One part comes with a checksum of its own, the other with none.
    let first = put_part(&harness, &path, 1, &[], &one).await;
    let second = put_part(&harness, &path, 2, &[("x-amz-checksum-crc32", "NhCmhg==")], "hello").await;
    let told = |answer: &Answer, name| answer.header(&format!("x-amz-checksum-{name}")).to_owned();
    assert_eq!((told(&first, "crc64nvme"), told(&second, "crc64nvme")), (String::new(), String::new()));
    assert_eq!(told(&second, "crc32"), "NhCmhg==", "what the writer said is repeated");
    let listed = done(&harness, &format!("GET {path}"), &[], "").await;
    assert!(!listed.text().contains("Checksum"), "{}", listed.text());

    let harness = harness.crash().await;
    let line = format!("POST {path}");
    let (first, second) = (first.header("etag"), second.header("etag"));
    let plain = completion(&[(first, ""), (second, "")]);
    let summed = completion(&[(first, ""), (second, "<ChecksumCRC32>NhCmhg==</ChecksumCRC32>")]);
    assert_eq!(refused(&harness, &line, &[], summed).await, "400 InvalidPart");
    let kind = [("x-amz-checksum-type", "FULL_OBJECT")];
    assert_eq!(refused(&harness, &line, &kind, plain.clone()).await, "400 InvalidRequest");
    let wrong = [("x-amz-checksum-crc64nvme", "M3eFcAZSQlc=")];
    assert_eq!(refused(&harness, &line, &wrong, plain.clone()).await, "400 BadDigest");
    // An algorithm that nobody chose says nothing.
    let other = [("x-amz-checksum-crc32c", "mnG7TA==-2")];
    let joined = done(&harness, &line, &other, plain).await;
    assert_eq!(joined.one("ChecksumType"), "FULL_OBJECT");

    done(&harness, "PUT /photos/whole", &[], format!("{one}hello")).await;
    let shown = [("x-amz-checksum-mode", "ENABLED")];
    let whole = done(&harness, "HEAD /photos/whole", &shown, "").await;
    let sum = told(&whole, "crc64nvme");
    assert_eq!((joined.one("ChecksumCRC64NVME"), sum.is_empty()), (sum.clone(), false));
    for method in ["GET", "HEAD"] {
        let found = done(&harness, &format!("{method} /photos/big"), &shown, "").await;
        assert_eq!((told(&found, "crc64nvme"), told(&found, "type")), (sum.clone(), "FULL_OBJECT".into()));
    }
    let wanted = [("x-amz-object-attributes", "Checksum,ObjectParts")];
    let attributes = done(&harness, "GET /photos/big?attributes", &wanted, "").await;
    assert_eq!(
        (attributes.one("ChecksumCRC64NVME"), attributes.one("PartsCount")),
        (sum.clone(), "2".into())
    );
    let copied = done(&harness, "PUT /photos/copy", &[("x-amz-copy-source", "photos/big")], "").await;
    assert_eq!(copied.one("ChecksumCRC64NVME"), sum);
}

#[tokio::test]
async fn a_part_that_is_copied_counts_in_the_checksum() {
    let harness = start().await;
    done(&harness, "PUT /photos/source", &[], "hello").await;
    let path = begin(&harness, &[]).await;
    let source = [("x-amz-copy-source", "photos/source")];
    let part = done(&harness, &format!("PUT {path}&partNumber=1"), &source, "").await;
    assert!(!part.text().contains("Checksum"), "{}", part.text());
    let joined = done(&harness, &format!("POST {path}"), &[], completion(&[(&part.one("ETag"), "")])).await;
    assert_eq!(joined.one("ChecksumCRC64NVME"), "M3eFcAZSQlc=");
}

#[tokio::test]
async fn a_checksum_of_an_object_says_of_which_bytes_it_is() {
    let harness = start().await;
    let whole = [("x-amz-checksum-algorithm", "CRC32"), ("x-amz-checksum-type", "FULL_OBJECT")];
    let path = begin(&harness, &whole).await;
    let part = put_part(&harness, &path, 1, &[], "hello").await;
    assert_eq!(part.header("x-amz-checksum-crc32"), "NhCmhg==");
    let line = format!("POST {path}");
    let list = completion(&[(part.header("etag"), "<ChecksumCRC32>NhCmhg==</ChecksumCRC32>")]);
    // Without its type it is taken for one of parts, as of every upload that was begun without a type.
    let sum = [("x-amz-checksum-crc32", "NhCmhg==")];
    let other = [("x-amz-checksum-crc64nvme", "M3eFcAZSQlc=")];
    for headers in [&sum[..], &other] {
        let answer = send(&harness, &line, headers, list.clone()).await;
        assert_eq!(answer.refusal(), "400 BadDigest");
        assert_eq!(answer.one("Message"), "The crc32 you specified did not match the calculated checksum.");
    }
    let typed = [sum[0], ("x-amz-checksum-type", "FULL_OBJECT")];
    assert_eq!(done(&harness, &line, &typed, list).await.one("ChecksumCRC32"), "NhCmhg==");
}
