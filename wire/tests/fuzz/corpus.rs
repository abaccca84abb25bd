//! Everything that the cases are made from: right requests, and words that decide something.

use anabranch_wire::Wire;

use crate::harness::Harness;
use crate::made::make;
use crate::sample::{Sample, in_cbor};
use crate::{around, queues, rest, streams, tables};

/// Names that queries have.
pub const NAMES: &[&str] = &[
    "Action",
    "Version",
    "uploadId",
    "uploads",
    "partNumber",
    "list-type",
    "prefix",
    "delimiter",
    "marker",
    "max-keys",
    "continuation-token",
    "start-after",
    "encoding-type",
    "acl",
    "delete",
    "versionId",
    "response-content-type",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
    "X-Amz-Security-Token",
    "x-id",
    "attributes",
    "max-parts",
    "part-number-marker",
];

/// Headers that decide something.
pub const HEADERS: &[&str] = &[
    "authorization",
    "content-encoding",
    "content-length",
    "content-md5",
    "content-type",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "range",
    "x-amz-acl",
    "x-amz-checksum-algorithm",
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-mode",
    "x-amz-checksum-sha256",
    "x-amz-content-sha256",
    "x-amz-copy-source",
    "x-amz-copy-source-range",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-meta-a",
    "x-amz-metadata-directive",
    "x-amz-object-attributes",
    "x-amz-security-token",
    "x-amz-tagging",
    "x-amz-target",
    "x-amz-trailer",
    "smithy-protocol",
];

/// All samples.
pub struct Corpus {
    pub samples: Vec<Sample>,
}

impl Corpus {
    /// Makes the resources and the requests.
    pub async fn make(harness: &Harness, wire: &Wire) -> Self {
        let made = make(harness, wire).await;
        let mut samples = streams::kinesis(&made);
        samples.extend(samples.iter().map(in_cbor).collect::<Vec<_>>());
        samples.extend(queues::json(&made));
        samples.extend(queues::forms(&made));
        samples.extend(tables::samples());
        samples.extend(streams::changes(&made));
        samples.extend(around::samples());
        samples.extend(rest::samples(wire).await);
        Corpus { samples }
    }
}
