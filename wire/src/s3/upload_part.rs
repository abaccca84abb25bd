//! UploadPart.

use anabranch_model::blob::{BodyOptions, ChecksumAlgorithm, Upload};
use http::header::ETAG;
use http::{Response, StatusCode};

use super::answer::{empty, quoted};
use super::checksum;
use super::errors::invalid_request;
use super::headers::set;
use super::rest::Rest;
use super::uploading::summary;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (upload, number) = (rest.upload()?, rest.part_number()?);
    let options = rest.payload.storable()?;
    check_algorithm(context, &upload, &options).await?;
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

/// A part comes with a checksum of the algorithm that its upload was begun with, or with none.
async fn check_algorithm(context: &Context, upload: &Upload, options: &BodyOptions) -> Result<(), Fault> {
    let given = options.expected.iter().map(|checksum| checksum.algorithm());
    let given: Option<ChecksumAlgorithm> = given.chain(options.computed.iter().copied()).next();
    let Some(given) = given else { return Ok(()) };
    let begun = summary(context, upload).await?.and_then(|begun| begun.checksum);
    match begun {
        Some((algorithm, _)) if algorithm != given => Err(invalid_request(format!(
            "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
            algorithm.name(),
            given.name()
        ))),
        _ => Ok(()),
    }
}
