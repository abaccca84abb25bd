//! PutObject.

use anabranch_model::blob::{ChecksumAlgorithm, PutOptions};
use http::header::ETAG;
use http::{Response, StatusCode};

use super::answer::{empty, quoted};
use super::checksum;
use super::headers::{properties, set, unmet, write_condition};
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let mut body = rest.payload.storable()?;
    if body.expected.is_empty() && body.computed.is_empty() {
        // Every object has a checksum; this one costs least.
        body.computed.insert(ChecksumAlgorithm::Crc64Nvme);
    }
    let options = PutOptions {
        properties: properties(&rest.headers)?,
        condition: write_condition(&rest.headers)?,
        body,
    };
    let put = context.ports.blobs.put(bucket, key, rest.payload.stream(), options).await;
    let meta = match put {
        Ok(meta) => meta,
        Err(error) => return Err(unmet(&rest.headers, rest.payload.blame(error).await)),
    };
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    set(headers, ETAG, &quoted(&meta.etag));
    checksum::describe(headers, &meta.checksums, meta.parts);
    Ok(response)
}
