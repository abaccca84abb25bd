//! CompleteMultipartUpload.

use anabranch_model::Error;
use anabranch_model::blob::{
    BlobMeta, Checksum, ChecksumAlgorithm, ChecksumScope, Checksums, CompleteOptions, ETag, PartChoice,
    PartNumber, Upload, UploadSummary, WriteCondition,
};
use anabranch_model::limits::UPLOAD_PARTS_MAX;
use http::Response;
use http::header::HOST;

use super::answer::{document, quoted};
use super::checksum;
use super::errors::{conflict, fault, invalid, invalid_request, no_such_upload, with};
use super::headers::{etag, unmet, write_condition};
use super::listing::Shown;
use super::rest::Rest;
use super::uploading::{all_parts, shown, summary};
use super::xml::{Element, malformed};
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

/// A part as the request names it.
struct Chosen {
    choice: PartChoice,
    checksums: Vec<Checksum>,
}

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let upload = rest.upload()?;
    let (body, _reservation) = rest.payload.collect_without_checksum(&*context.memory).await?;
    if body.is_empty() {
        all_parts(context, &upload).await?;
        return Err(invalid_request("You must specify at least one part"));
    }
    let chosen = parts(&Element::parse(&body, "CompleteMultipartUpload")?)?;
    let begun = summary(context, &upload).await?;
    if let Some(begun) = &begun {
        check_scope(rest, begun)?;
        check_algorithms(begun, &chosen)?;
    }
    let kind = begun.as_ref().and_then(|begun| begun.checksum);
    check_parts(context, &upload, kind, &chosen).await?;
    if let Some(begun) = &begun {
        check_conflict(context, rest, begun).await?;
    }
    let options = CompleteOptions {
        condition: write_condition(&rest.headers)?,
        size: size(rest)?,
        expected: expected(rest, kind)?,
    };
    let choices: Vec<PartChoice> = chosen.into_iter().map(|part| part.choice).collect();
    let completed = context.ports.blobs.complete_upload(&upload, &choices, options).await;
    let meta = match completed {
        Err(Error::UploadNotFound(id)) => {
            completed_before(context, &upload, &choices).await?.ok_or_else(|| no_such_upload(id.as_str()))?
        }
        completed => {
            completed.map_err(|error| unmet(&rest.headers, refused(error, &upload, kind, &choices)))?
        }
    };
    let host = rest.header(HOST.as_str())?.unwrap_or("localhost").to_owned();
    Ok(document("CompleteMultipartUploadResult", |xml| {
        let key = Shown::Encoded.key(upload.key.as_str());
        xml.value("Location", format!("http://{host}/{}/{key}", upload.bucket.as_str()));
        xml.value("Bucket", upload.bucket.as_str()).value("Key", upload.key.as_str());
        xml.value("ETag", quoted(&meta.etag));
        checksum::list(xml, &meta.checksums, meta.parts);
        if !meta.checksums.is_empty() {
            xml.value("ChecksumType", checksum::scope_name(meta.checksums.scope()));
        }
    }))
}

fn parts(request: &Element) -> Result<Vec<Chosen>, Fault> {
    let mut chosen = Vec::new();
    for part in request.all("Part") {
        let number = part.required("PartNumber")?.trim().parse::<u64>().map_err(|_| malformed())?;
        let number = PartNumber::new(number)
            .map_err(|_| invalid("PartNumber must be an integer between 1 and 10000, inclusive"))?;
        let choice = PartChoice { number, etag: etag(part.required("ETag")?)? };
        chosen.push(Chosen { choice, checksums: checksum::in_element(part)? });
    }
    if chosen.is_empty() || chosen.len() > UPLOAD_PARTS_MAX {
        return Err(malformed());
    }
    Ok(chosen)
}

/// A completion that says of which bytes the checksum is says what the beginning said.
fn check_scope(rest: &Rest, begun: &UploadSummary) -> Result<(), Fault> {
    let begun = begun.checksum.map(|(_, scope)| scope);
    match checksum::scope(&rest.headers)? {
        Some(scope) if begun != Some(scope) => Err(invalid_request(format!(
            "The upload was created using the {} checksum mode. The complete request must use the same checksum mode.",
            begun.map_or("null", checksum::scope_name)
        ))),
        _ => Ok(()),
    }
}

/// A checksum that is made of those of the parts needs each of them, and of its own algorithm.
fn check_algorithms(begun: &UploadSummary, chosen: &[Chosen]) -> Result<(), Fault> {
    let Some((algorithm, ChecksumScope::Parts)) = begun.checksum else { return Ok(()) };
    for part in chosen {
        let number = part.choice.number;
        match part.checksums.first() {
            None => {
                return Err(invalid_request(format!(
                    "The upload was created using a {} checksum. The complete request must include the checksum for each \
                     part. It was missing for part {number} in the request.",
                    algorithm.name()
                )));
            }
            Some(other) if part.checksums.iter().all(|given| given.algorithm() != algorithm) => {
                return Err(Fault::client(
                    "BadDigest",
                    format!(
                        "The {} you specified for part {number} did not match what we received.",
                        other.algorithm().name()
                    ),
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Compares the checksums that the request repeats with those of the parts.
async fn check_parts(
    context: &Context,
    upload: &Upload,
    begun: Option<(ChecksumAlgorithm, ChecksumScope)>,
    chosen: &[Chosen],
) -> Result<(), Fault> {
    if chosen.iter().all(|part| part.checksums.is_empty()) {
        return Ok(());
    }
    // An upload that is gone may have been completed by this very request, sent again: the store decides.
    let kept = match all_parts(context, upload).await {
        Err(fault) if fault.code == "NoSuchUpload" => return Ok(()),
        kept => kept?,
    };
    for part in chosen {
        let number = part.choice.number;
        let Some(kept) = kept.iter().find(|kept| kept.number == number) else { continue };
        // A part has the checksum that its upload was begun with; with any other it is not the part that is meant.
        let kept = shown(kept, begun);
        let wrong = |given: &&Checksum| kept.get(given.algorithm()) != Some(**given);
        if part.checksums.iter().find(wrong).is_some() {
            let choice = std::slice::from_ref(&part.choice);
            return Err(refused(Error::PartNotFound(number), upload, begun, choice));
        }
    }
    Ok(())
}

/// Who demands a certain object in the place of the new one means the one that was there when the upload was begun.
async fn check_conflict(context: &Context, rest: &Rest, begun: &UploadSummary) -> Result<(), Fault> {
    let WriteCondition::IfMatch(tag) = write_condition(&rest.headers)? else { return Ok(()) };
    let Upload { bucket, key, .. } = &begun.upload;
    match context.ports.blobs.head(bucket, key).await {
        Ok(meta) if meta.etag == tag && meta.modified_at > begun.begun_at => Err(conflict(key, "If-Match")),
        // Whatever else there is, the store decides.
        _ => Ok(()),
    }
}

fn size(rest: &Rest) -> Result<Option<u64>, Fault> {
    let size = rest.header("x-amz-mp-object-size")?.map(|text| text.trim().parse());
    size.transpose().map_err(|_| invalid("Value for x-amz-mp-object-size header is invalid."))
}

/// The checksum that the object must have. Of which bytes it is says the request, or else its algorithm; where the upload was
/// begun with none, the object has the one that it would have anyway, and another is nobody's.
fn expected(rest: &Rest, begun: Option<(ChecksumAlgorithm, ChecksumScope)>) -> Result<Checksums, Fault> {
    let Some(given) = checksum::given(&rest.headers)? else { return Ok(Checksums::default()) };
    let unasked = begun.is_none() && given.algorithm() != ChecksumAlgorithm::Crc64Nvme;
    let scope = checksum::scope(&rest.headers)?.unwrap_or(checksum::usual_scope(given.algorithm()));
    let mut expected = Checksums::empty(scope);
    if !unasked {
        expected.insert(given);
    }
    Ok(expected)
}

/// The object that these parts made, if it is there: whoever missed the answer to a completion sends it again.
async fn completed_before(
    context: &Context,
    upload: &Upload,
    choices: &[PartChoice],
) -> Result<Option<BlobMeta>, Fault> {
    let tags: Option<Vec<[u8; 16]>> = choices.iter().map(|choice| choice.etag.digest()).collect();
    let Some(tags) = tags else { return Ok(None) };
    match context.ports.blobs.head(&upload.bucket, &upload.key).await {
        Ok(meta) => Ok(Some(meta).filter(|meta| meta.etag == ETag::of_parts(&tags))),
        Err(Error::BlobNotFound(..)) => Ok(None),
        Err(error) => Err(fault(error)),
    }
}

/// Why there is no object, with the upload and the part that are to blame.
fn refused(
    error: Error,
    upload: &Upload,
    begun: Option<(ChecksumAlgorithm, ChecksumScope)>,
    choices: &[PartChoice],
) -> Fault {
    let id = upload.id.as_str();
    let tag = |number: PartNumber| {
        let choice = choices.iter().find(|choice| choice.number == number);
        choice.map_or("", |choice| choice.etag.as_str())
    };
    match error {
        Error::PartNotFound(number) => with(with(fault(error), "ETag", tag(number)), "UploadId", id),
        Error::PartTooSmall { part, .. } => with(fault(error), "ETag", tag(part)),
        Error::PartsOutOfOrder(..) => with(fault(error), "UploadId", id),
        Error::BodySizeMismatch { declared, received } => invalid_request(format!(
            "The provided 'x-amz-mp-object-size' header value {declared} does not match what was computed: {received}"
        )),
        Error::ChecksumMismatch(given) => {
            let algorithm = begun.map_or(given, |(algorithm, _)| algorithm.name());
            let message = format!("The {algorithm} you specified did not match the calculated checksum.");
            Fault::client("BadDigest", message)
        }
        error => fault(error),
    }
}
