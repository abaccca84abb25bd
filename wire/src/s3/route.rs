//! Which operation a request means: by its method, by what it is about, and by the names in its query.

use http::{HeaderMap, Method, StatusCode};

use super::address::Target;
use super::query::Query;
use crate::fault::Fault;

/// Names in the query that make another operation of a request. What stands here and in no row below is not implemented.
const RESOURCES: &[&str] = &[
    "abac",
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "delete",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "metadataConfiguration",
    "metadataInventoryTable",
    "metadataJournalTable",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "renameObject",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "session",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versioning",
    "versions",
    "website",
];

/// On a bucket: method, resource, operation.
const BUCKET: &[(Method, &str, &str)] = &[
    (Method::GET, "", "ListObjects"),
    (Method::GET, "accelerate", "GetBucketAccelerateConfiguration"),
    (Method::GET, "acl", "GetBucketAcl"),
    (Method::GET, "cors", "GetBucketCors"),
    (Method::GET, "encryption", "GetBucketEncryption"),
    (Method::GET, "lifecycle", "GetBucketLifecycleConfiguration"),
    (Method::GET, "location", "GetBucketLocation"),
    (Method::GET, "logging", "GetBucketLogging"),
    (Method::GET, "notification", "GetBucketNotificationConfiguration"),
    (Method::GET, "object-lock", "GetObjectLockConfiguration"),
    (Method::GET, "ownershipControls", "GetBucketOwnershipControls"),
    (Method::GET, "policy", "GetBucketPolicy"),
    (Method::GET, "publicAccessBlock", "GetPublicAccessBlock"),
    (Method::GET, "replication", "GetBucketReplication"),
    (Method::GET, "requestPayment", "GetBucketRequestPayment"),
    (Method::GET, "tagging", "GetBucketTagging"),
    (Method::GET, "uploads", "ListMultipartUploads"),
    (Method::GET, "versioning", "GetBucketVersioning"),
    (Method::GET, "versions", "ListObjectVersions"),
    (Method::GET, "website", "GetBucketWebsite"),
    (Method::HEAD, "", "HeadBucket"),
    (Method::PUT, "", "CreateBucket"),
    (Method::POST, "delete", "DeleteObjects"),
    (Method::DELETE, "", "DeleteBucket"),
];

/// On an object: method, resource, operation.
const OBJECT: &[(Method, &str, &str)] = &[
    (Method::GET, "", "GetObject"),
    (Method::GET, "acl", "GetObjectAcl"),
    (Method::GET, "attributes", "GetObjectAttributes"),
    (Method::GET, "tagging", "GetObjectTagging"),
    (Method::GET, "uploadId", "ListParts"),
    (Method::HEAD, "", "HeadObject"),
    (Method::PUT, "", "PutObject"),
    (Method::PUT, "uploadId", "UploadPart"),
    (Method::POST, "uploads", "CreateMultipartUpload"),
    (Method::POST, "uploadId", "CompleteMultipartUpload"),
    (Method::DELETE, "", "DeleteObject"),
    (Method::DELETE, "uploadId", "AbortMultipartUpload"),
];

/// The operation that a request means.
pub(super) fn operation(
    method: &Method,
    target: &Target,
    query: &Query,
    headers: &HeaderMap,
) -> Result<&'static str, Fault> {
    let table = match target {
        Target::Service if method == Method::GET => return Ok("ListBuckets"),
        Target::Service => return Err(not_allowed(method)),
        Target::Bucket(_) => BUCKET,
        Target::Object(..) => OBJECT,
    };
    let resource = RESOURCES.iter().find(|resource| query.has(resource)).copied().unwrap_or("");
    let row = table.iter().find(|(own, name, _)| own == method && *name == resource);
    let copies = headers.contains_key("x-amz-copy-source");
    match row.map(|(_, _, operation)| *operation) {
        Some("PutObject") if copies => Ok("CopyObject"),
        Some("UploadPart") if copies => Ok("UploadPartCopy"),
        Some("ListObjects") if query.get("list-type") == Some("2") => Ok("ListObjectsV2"),
        Some("ListObjects") if query.has("list-type") => {
            Err(Fault::client("InvalidArgument", "Invalid List Type specified in Request"))
        }
        Some(operation) => Ok(operation),
        None if resource.is_empty() && method != Method::POST => Err(not_allowed(method)),
        None => {
            let message = format!(
                "A request you provided implies functionality that is not implemented: {method} {resource}"
            );
            Err(Fault::client("NotImplemented", message).with_status(StatusCode::NOT_IMPLEMENTED))
        }
    }
}

fn not_allowed(method: &Method) -> Fault {
    let message = "The specified method is not allowed against this resource.";
    let fault = Fault::client("MethodNotAllowed", message).with_status(StatusCode::METHOD_NOT_ALLOWED);
    super::errors::with(fault, "Method", method.as_str().chars().take(32).collect::<String>())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn named(method: &str, uri: &str, headers: &[(&str, &str)]) -> String {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        let target = Target::of(&parts, &[]).unwrap();
        let query = Query::parse(parts.uri.query().unwrap_or("")).unwrap();
        match operation(&parts.method, &target, &query, &parts.headers) {
            Ok(operation) => operation.to_owned(),
            Err(fault) => format!("{} {}", fault.status.as_u16(), fault.code),
        }
    }

    #[test]
    fn methods_resources_and_headers_tell_the_operation() {
        for (method, uri, expected) in [
            ("GET", "/", "ListBuckets"),
            ("GET", "/photos", "ListObjects"),
            ("GET", "/photos?prefix=a&delimiter=/", "ListObjects"),
            ("GET", "/photos?list-type=2", "ListObjectsV2"),
            ("GET", "/photos?list-type=3", "400 InvalidArgument"),
            ("GET", "/photos?location", "GetBucketLocation"),
            ("GET", "/photos/k?location", "501 NotImplemented"),
            ("GET", "/photos?analytics", "501 NotImplemented"),
            ("PUT", "/photos?versioning", "501 NotImplemented"),
            ("DELETE", "/photos?policy", "501 NotImplemented"),
            ("DELETE", "/photos/k?tagging", "501 NotImplemented"),
            ("PUT", "/photos/k?tagging", "501 NotImplemented"),
            ("PUT", "/photos/k?renameObject", "501 NotImplemented"),
            ("PUT", "/photos/k?partNumber=1&uploadId=x", "UploadPart"),
            ("PUT", "/photos/k?x-id=PutObject", "PutObject"),
            ("POST", "/photos/k?uploads", "CreateMultipartUpload"),
            ("POST", "/photos/k?uploadId=x", "CompleteMultipartUpload"),
            ("POST", "/photos", "501 NotImplemented"),
            ("DELETE", "/photos/k?uploadId=x", "AbortMultipartUpload"),
            ("OPTIONS", "/photos/k", "405 MethodNotAllowed"),
            ("PUT", "/", "405 MethodNotAllowed"),
            ("PATCH", "/photos", "405 MethodNotAllowed"),
        ] {
            assert_eq!(named(method, uri, &[]), expected, "{method} {uri}");
        }
        let copy = [("x-amz-copy-source", "photos/a")];
        assert_eq!(named("PUT", "/photos/k", &copy), "CopyObject");
        assert_eq!(named("PUT", "/photos/k?partNumber=1&uploadId=x", &copy), "UploadPartCopy");
    }

    #[test]
    fn every_row_names_an_operation_that_somebody_does() {
        for (_, resource, operation) in BUCKET.iter().chain(OBJECT) {
            assert!(resource.is_empty() || RESOURCES.contains(resource), "{resource}");
            assert!(super::super::OPERATIONS.contains(operation), "{operation}");
        }
        assert!(RESOURCES.is_sorted_by_key(|resource| resource.to_ascii_lowercase()));
    }
}
