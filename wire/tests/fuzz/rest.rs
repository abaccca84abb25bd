//! Requests to S3: methods, paths, headers and bodies in chunks.

use anabranch_wire::Wire;

use crate::sample::Sample;
use crate::send;

const COMPLETE: &str = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"x\"</ETag></Part></CompleteMultipartUpload>";
const DELETE: &str = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object><Key>a&amp;b</Key></Object>\
     <Object><Key>c</Key></Object><Quiet>true</Quiet></Delete>";
const CONFIGURATION: &str = "<CreateBucketConfiguration><LocationConstraint>eu-central-1</LocationConstraint>\
                             </CreateBucketConfiguration>";
const TRAILED: &str = "5\r\nhello\r\n6\r\n world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n";
const SIGNED: &str = "5;chunk-signature=0000000000000000000000000000000000000000000000000000000000000000\r\nhello\r\n\
                      0;chunk-signature=0000000000000000000000000000000000000000000000000000000000000000\r\n\r\n";

fn sample(operation: &'static str, line: &str, headers: &[(&str, &str)], body: &str) -> Sample {
    let (method, uri) = line.split_once(' ').expect("a method and an address");
    let mut all = vec![("host".to_owned(), b"localhost:4566".to_vec())];
    all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())));
    let (method, uri, body) = (method.to_owned(), uri.to_owned(), body.as_bytes().to_vec());
    Sample { service: "s3", operation, method, uri, headers: all, body, cbor: None }
}

/// Makes a bucket, an object and an upload, and the requests about them.
pub async fn samples(wire: &Wire) -> Vec<Sample> {
    let put = |line: &str| sample("PutObject", line, &[], "some words that are not so few");
    let bucket = sample("CreateBucket", "PUT /bucket", &[], "");
    for made in [bucket, put("PUT /bucket/key"), put("PUT /bucket/a%26b")] {
        send(wire, &made).await.expect("a request").expect("an answer");
    }
    let begin = sample("CreateMultipartUpload", "POST /bucket/parts?uploads", &[], "");
    let begun = send(wire, &begin).await.expect("a request").expect("an answer");
    let begun = String::from_utf8(begun.body).expect("a document");
    let upload = begun.split("<UploadId>").nth(1).and_then(|rest| rest.split('<').next()).expect("an upload");
    let at = |rest: &str| format!("/bucket/parts?{rest}uploadId={upload}");

    let mut samples = vec![
        begin,
        sample("AbortMultipartUpload", "DELETE /bucket/parts?uploadId=none", &[], ""),
        sample(
            "CompleteMultipartUpload",
            &format!("POST {}", at("")),
            &[("content-type", "application/xml")],
            COMPLETE,
        ),
        sample(
            "CopyObject",
            "PUT /bucket/copy",
            &[
                ("x-amz-copy-source", "/bucket/a%26b"),
                ("x-amz-metadata-directive", "REPLACE"),
                ("x-amz-meta-a", "1"),
                ("x-amz-copy-source-if-unmodified-since", "Sun, 15 Nov 2099 18:15:00 GMT"),
            ],
            "",
        ),
        sample("CreateBucket", "PUT /other", &[], CONFIGURATION),
        sample("DeleteBucket", "DELETE /other", &[], ""),
        sample("DeleteObject", "DELETE /bucket/gone", &[("if-match", "\"x\"")], ""),
        sample(
            "DeleteObjects",
            "POST /bucket?delete",
            &[("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")],
            DELETE,
        ),
        sample("DeleteObjects", "POST /bucket?delete", &[], DELETE),
        sample("GetBucketLocation", "GET /bucket?location", &[], ""),
        sample(
            "GetObject",
            "GET /bucket/key?response-content-type=a%2Fb",
            &[
                ("range", "bytes=2-9"),
                ("if-none-match", "\"a\", W/\"b\""),
                ("x-amz-checksum-mode", "ENABLED"),
                ("if-modified-since", "Sun, 15 Nov 2020 18:15:00 GMT"),
            ],
            "",
        ),
        sample("GetObject", "GET /bucket/key?partNumber=1", &[], ""),
        sample(
            "GetObject",
            "GET /bucket/key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20261115%2Fus-east-1%2Fs3\
             %2Faws4_request&X-Amz-Date=20261115T181500Z&X-Amz-Expires=604800&X-Amz-SignedHeaders=host&X-Amz-Signature=00",
            &[],
            "",
        ),
        sample("GetObjectAcl", "GET /bucket/key?acl", &[], ""),
        sample(
            "GetObjectAttributes",
            "GET /bucket/key?attributes",
            &[("x-amz-object-attributes", "ETag,Checksum,ObjectParts,StorageClass,ObjectSize")],
            "",
        ),
        sample("GetObjectTagging", "GET /bucket/key?tagging", &[], ""),
        sample("HeadBucket", "HEAD /bucket", &[], ""),
        sample("HeadObject", "HEAD /bucket/key", &[("if-match", "*"), ("range", "bytes=-3")], ""),
        sample("ListBuckets", "GET /?max-buckets=1&prefix=b", &[], ""),
        sample(
            "ListMultipartUploads",
            "GET /bucket?uploads&max-uploads=1&key-marker=a&upload-id-marker=b",
            &[],
            "",
        ),
        sample("ListObjectVersions", "GET /bucket?versions&max-keys=1", &[], ""),
        sample(
            "ListObjects",
            "GET /bucket?prefix=k&delimiter=%2F&marker=a&max-keys=2&encoding-type=url",
            &[],
            "",
        ),
        sample(
            "ListObjectsV2",
            "GET /bucket?list-type=2&start-after=a&fetch-owner=true&continuation-token=eA%3D%3D",
            &[],
            "",
        ),
        sample("ListParts", &format!("GET {}", at("max-parts=1&part-number-marker=0&")), &[], ""),
        sample(
            "PutObject",
            "PUT /bucket/chunks",
            &[
                ("content-encoding", "aws-chunked"),
                ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
                ("x-amz-decoded-content-length", "11"),
                ("x-amz-trailer", "x-amz-checksum-crc32"),
            ],
            TRAILED,
        ),
        sample(
            "PutObject",
            "PUT /bucket/signed",
            &[
                ("content-encoding", "aws-chunked"),
                ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
                ("x-amz-decoded-content-length", "5"),
                (
                    "authorization",
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/us-east-1/s3/aws4_request, \
                SignedHeaders=host;x-amz-content-sha256, Signature=0000",
                ),
            ],
            SIGNED,
        ),
        sample(
            "PutObject",
            "PUT /bucket/key",
            &[
                ("content-md5", "XUFAKrxLKna5cZ2REBfFkg=="),
                ("if-none-match", "*"),
                ("x-amz-meta-a", "=?UTF-8?B?w6Q=?="),
                ("x-amz-checksum-sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="),
            ],
            "hello",
        ),
        // A bucket in the name of the host.
        Sample {
            headers: vec![("host".to_owned(), b"bucket.localhost:4566".to_vec())],
            ..sample("GetObject", "GET /key", &[], "")
        },
        sample(
            "UploadPart",
            &format!("PUT {}", at("partNumber=1&")),
            &[("x-amz-checksum-crc32c", "AAAAAA==")],
            "part",
        ),
        sample(
            "UploadPartCopy",
            &format!("PUT {}", at("partNumber=2&")),
            &[("x-amz-copy-source", "bucket/key"), ("x-amz-copy-source-range", "bytes=0-4")],
            "",
        ),
    ];
    for (operation, resource) in SETTINGS {
        samples.push(sample(operation, &format!("GET /bucket?{resource}"), &[], ""));
    }
    samples
}

/// What clients ask a bucket for before they do anything else.
const SETTINGS: [(&str, &str); 17] = [
    ("GetBucketAccelerateConfiguration", "accelerate"),
    ("GetBucketAcl", "acl"),
    ("GetBucketCors", "cors"),
    ("GetBucketEncryption", "encryption"),
    ("GetBucketLifecycleConfiguration", "lifecycle"),
    ("GetBucketLogging", "logging"),
    ("GetBucketNotificationConfiguration", "notification"),
    ("GetBucketOwnershipControls", "ownershipControls"),
    ("GetBucketPolicy", "policy"),
    ("GetBucketReplication", "replication"),
    ("GetBucketRequestPayment", "requestPayment"),
    ("GetBucketTagging", "tagging"),
    ("GetBucketVersioning", "versioning"),
    ("GetBucketWebsite", "website"),
    ("GetObjectLockConfiguration", "object-lock"),
    ("GetPublicAccessBlock", "publicAccessBlock"),
    ("ListObjects", ""),
];
