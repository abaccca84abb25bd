//! CreateMultipartUpload.

use anabranch_model::blob::{ChecksumAlgorithm, ChecksumScope, UploadOptions};
use http::{HeaderName, Response};

use super::answer::document;
use super::checksum;
use super::errors::{fault, invalid_request};
use super::headers::{properties, set};
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let checksum = checksum(rest)?;
    let options = UploadOptions { properties: properties(&rest.headers)?, checksum };
    let upload = context.ports.blobs.begin_upload(bucket, key, options).await.map_err(fault)?;
    let mut response = document("InitiateMultipartUploadResult", |xml| {
        xml.value("Bucket", bucket.as_str()).value("Key", key.as_str()).value("UploadId", upload.id.as_str());
    });
    if let Some((algorithm, scope)) = checksum {
        let headers = response.headers_mut();
        set(headers, HeaderName::from_static("x-amz-checksum-algorithm"), checksum::name(algorithm));
        set(headers, HeaderName::from_static("x-amz-checksum-type"), checksum::scope_name(scope));
    }
    Ok(response)
}

/// The checksum that the object will have. Of which bytes it is depends on the algorithm, unless the request says it.
fn checksum(rest: &Rest) -> Result<Option<(ChecksumAlgorithm, ChecksumScope)>, Fault> {
    let algorithm = checksum::named(&rest.headers, "x-amz-checksum-algorithm")?;
    let scope = checksum::scope(&rest.headers)?;
    let Some(algorithm) = algorithm else {
        return match scope {
            None => Ok(None),
            Some(_) => Err(invalid_request(
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
            )),
        };
    };
    let scope = scope.unwrap_or(checksum::usual_scope(algorithm));
    if !algorithm.allows(scope) {
        return Err(invalid_request(format!(
            "The {} checksum type cannot be used with the {} checksum algorithm.",
            checksum::scope_name(scope),
            algorithm.name()
        )));
    }
    Ok(Some((algorithm, scope)))
}
