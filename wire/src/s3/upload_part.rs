//! UploadPart.

use std::collections::BTreeSet;

use anabranch_model::blob::{Checksum, ChecksumAlgorithm, ChecksumScope};
use http::header::ETAG;
use http::{Response, StatusCode};

use super::answer::{empty, quoted};
use super::checksum;
use super::errors::invalid_request;
use super::headers::set;
use super::rest::Rest;
use super::uploading::{summary, with_checksum};
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (upload, number) = (rest.upload()?, rest.part_number()?);
    let options = rest.payload.storable()?;
    let given: BTreeSet<_> = options.expected.iter().map(|checksum| checksum.algorithm()).collect();
    let given = &given | &options.computed;
    let begun = summary(context, &upload).await?.and_then(|begun| begun.checksum);
    check_algorithm(begun, given.first().copied())?;
    let options = with_checksum(begun, options);
    let put = context.ports.blobs.put_part(&upload, number, rest.payload.stream(), options).await;
    let part = match put {
        Ok(part) => part,
        Err(error) => return Err(rest.payload.blame(error).await),
    };
    let shown = |checksum: &Checksum| {
        given.contains(&checksum.algorithm())
            || begun.is_some_and(|(algorithm, _)| algorithm == checksum.algorithm())
    };
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    set(headers, ETAG, &quoted(&part.etag));
    checksum::describe(headers, &part.checksums.iter().filter(shown).collect(), None);
    headers.remove("x-amz-checksum-type");
    Ok(response)
}

/// A part comes with a checksum of the algorithm that its upload was begun with, or with none.
fn check_algorithm(
    begun: Option<(ChecksumAlgorithm, ChecksumScope)>,
    given: Option<ChecksumAlgorithm>,
) -> Result<(), Fault> {
    match begun.zip(given) {
        Some(((algorithm, _), given)) if algorithm != given => Err(invalid_request(format!(
            "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
            algorithm.name(),
            given.name()
        ))),
        _ => Ok(()),
    }
}
