//! UploadPart.

use http::header::ETAG;
use http::{Response, StatusCode};

use super::answer::{empty, quoted};
use super::checksum;
use super::headers::set;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (upload, number) = (rest.upload()?, rest.part_number()?);
    let options = rest.payload.storable()?;
    let put = context.ports.blobs.put_part(&upload, number, rest.payload.stream(), options).await;
    let part = match put {
        Ok(part) => part,
        Err(error) => return Err(rest.payload.blame(error).await),
    };
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    set(headers, ETAG, &quoted(&part.etag));
    checksum::describe(headers, &part.checksums, None);
    headers.remove("x-amz-checksum-type");
    Ok(response)
}
