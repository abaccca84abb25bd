//! A request of S3: a method on a bucket or an object, with a query, headers and a body.

use anabranch_model::blob::{BlobKey, BucketName, PartNumber, Upload, UploadId};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::address::Target;
use super::body::Payload;
use super::checksum;
use super::errors::{invalid, invalid_argument, invalid_version, no_such_upload, not_implemented, with};
use super::headers::text;
use super::query::Query;
use crate::context::ACCOUNT;
use crate::fault::Fault;

/// A request whose operation is known.
pub(super) struct Rest {
    pub(super) operation: &'static str,
    pub(super) target: Target,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) payload: Payload,
}

impl Rest {
    /// The bucket that the request is about.
    pub(super) fn bucket(&self) -> Result<&BucketName, Fault> {
        match &self.target {
            Target::Bucket(bucket) | Target::Object(bucket, _) => Ok(bucket),
            Target::Service => Err(invalid("The request names no bucket")),
        }
    }

    /// The object that the request is about.
    pub(super) fn object(&self) -> Result<(&BucketName, &BlobKey), Fault> {
        match &self.target {
            Target::Object(bucket, key) => Ok((bucket, key)),
            _ => Err(invalid("The request names no object")),
        }
    }

    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Result<Option<&str>, Fault> {
        text(&self.headers, name)
    }

    /// The upload that the request is about.
    pub(super) fn upload(&self) -> Result<Upload, Fault> {
        let (bucket, key) = self.object()?;
        let id = self.query.get("uploadId").unwrap_or("");
        let id = UploadId::new(id).map_err(|_| no_such_upload(id))?;
        Ok(Upload { bucket: bucket.clone(), key: key.clone(), id })
    }

    /// The part that the request is about.
    pub(super) fn part_number(&self) -> Result<PartNumber, Fault> {
        let text = self.query.get("partNumber").unwrap_or("");
        PartNumber::new(text.parse().unwrap_or(0)).map_err(|_| {
            let message = "Part number must be an integer between 1 and 10000, inclusive";
            invalid_argument("partNumber", text, message)
        })
    }

    /// Says again what the request demanded and was granted.
    pub(super) fn repeat_demands(&self, headers: &mut HeaderMap) {
        if self.headers.get(ENCRYPTION).is_some_and(|value| value == KEPT_ENCRYPTION) {
            headers.insert(ENCRYPTION, HeaderValue::from_static(KEPT_ENCRYPTION));
        }
    }

    /// Refuses what a request demands that nobody does here: a success would be a lie.
    pub(super) fn check_demands(&self) -> Result<(), Fault> {
        for name in self.headers.keys().map(HeaderName::as_str).filter(|name| name.starts_with("x-amz-")) {
            let value = text(&self.headers, name)?.unwrap_or("");
            check_demand(name, value)?;
        }
        match self.query.filled("versionId") {
            Some(version) if version != "null" => Err(invalid_version(version)),
            _ => Ok(()),
        }
    }
}

/// How an object is to be encrypted where it lies.
const ENCRYPTION: &str = "x-amz-server-side-encryption";
/// The service's own keys. Whether the disk encrypts is the disk's affair; to clients it makes no difference.
const KEPT_ENCRYPTION: &str = "AES256";

/// The classes that S3 knows.
const STORAGE_CLASSES: [&str; 12] = [
    "",
    "DEEP_ARCHIVE",
    "EXPRESS_ONEZONE",
    "FSX_ONTAP",
    "FSX_OPENZFS",
    "GLACIER",
    "GLACIER_IR",
    "INTELLIGENT_TIERING",
    "ONEZONE_IA",
    "REDUCED_REDUNDANCY",
    "STANDARD",
    "STANDARD_IA",
];

fn check_demand(name: &str, value: &str) -> Result<(), Fault> {
    let refused = match name {
        "x-amz-acl" => {
            let kept = ["", "private", "bucket-owner-full-control"].contains(&value);
            return if kept { Ok(()) } else { Err(no_lists()) };
        }
        name if name.starts_with("x-amz-grant-") => return Err(no_lists()),
        "x-amz-expected-bucket-owner" | "x-amz-source-expected-bucket-owner" if value != ACCOUNT => {
            let fault = Fault::client("AccessDenied", "Access Denied: the bucket has another owner");
            return Err(fault.with_status(StatusCode::FORBIDDEN));
        }
        "x-amz-storage-class" if !STORAGE_CLASSES.contains(&value) => {
            let fault = Fault::client("InvalidStorageClass", "The storage class you specified is not valid");
            return Err(with(fault, "StorageClassRequested", value));
        }
        "x-amz-storage-class" => !["", "STANDARD"].contains(&value),
        "x-amz-object-ownership" => !["", "BucketOwnerEnforced"].contains(&value),
        "x-amz-bucket-object-lock-enabled" => value.eq_ignore_ascii_case("true"),
        ENCRYPTION => !["", KEPT_ENCRYPTION].contains(&value),
        "x-amz-tagging" | "x-amz-website-redirect-location" | "x-amz-write-offset-bytes" => !value.is_empty(),
        name => {
            name.starts_with("x-amz-object-lock-")
                || name.starts_with("x-amz-server-side-encryption")
                || name.starts_with("x-amz-copy-source-server-side-encryption")
        }
    };
    if refused { Err(not_implemented(name)) } else { Ok(()) }
}

/// Buckets have an owner and no lists of others.
fn no_lists() -> Fault {
    Fault::client("AccessControlListNotSupported", "The bucket does not allow ACLs")
}

/// Who signed an address did not know the body, and many who use it say of it what they always say. That counts only where
/// the signature covers it.
pub(super) fn forget_unsigned_hash(headers: &mut HeaderMap, query: &Query) {
    const HASH: &str = "x-amz-content-sha256";
    let mut signed = query.get("X-Amz-SignedHeaders").unwrap_or("").split(';');
    if !signed.any(|name| name.eq_ignore_ascii_case(HASH)) {
        headers.remove(HASH);
    }
}

/// In an address that was signed beforehand, headers of AWS may stand in the query, and so may conditions: one that was not
/// seen would let somebody replace what he must not. A checksum there is none of the body, which nobody had seen when the
/// address was signed; clients put that of an empty one there, and S3 does not look at it.
pub(super) fn hoisted(headers: &mut HeaderMap, query: &Query) {
    const SIGNATURE: [&str; 8] = [
        "x-amz-algorithm",
        "x-amz-credential",
        "x-amz-date",
        "x-amz-expires",
        "x-amz-signature",
        "x-amz-signedheaders",
        "x-amz-security-token",
        "x-amz-user-agent",
    ];
    const CONDITIONS: [&str; 4] = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
    for (name, value) in query.iter() {
        let name = name.to_ascii_lowercase();
        let of_a_body = name == "x-amz-sdk-checksum-algorithm" || checksum::of_header(&name).is_some();
        let ours = name.starts_with("x-amz-") && !of_a_body && !SIGNATURE.contains(&name.as_str());
        if !ours && !CONDITIONS.contains(&name.as_str()) {
            continue;
        }
        let header = HeaderName::try_from(name).ok().zip(HeaderValue::from_str(value).ok());
        if let Some((name, value)) = header {
            headers.entry(name).or_insert(value);
        }
    }
}
