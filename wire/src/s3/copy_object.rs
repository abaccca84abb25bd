//! CopyObject.

use anabranch_model::Error;
use anabranch_model::blob::{
    BlobKey, BlobMeta, BodyOptions, BucketName, ChecksumAlgorithm, ChecksumScope, CopyOptions, ETagMatch,
    GetOptions, PutOptions, ReadConditions, WriteCondition,
};
use anabranch_model::limits::BODY_BYTES_MAX;
use http::{HeaderName, Response};

use super::address::copy_source;
use super::answer::{document, quoted};
use super::checksum;
use super::errors::{fault, invalid, invalid_request, precondition_failed};
use super::headers::{properties, read_conditions, unmet, unmet_read, write_condition};
use super::moment::iso;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

/// What stands before the conditions on the source.
pub(super) const CONDITIONS: &str = "x-amz-copy-source-";

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let source = source(rest)?;
    let replaced = match rest.header("x-amz-metadata-directive")? {
        None | Some("" | "COPY") => None,
        Some("REPLACE") => Some(properties(&rest.headers)?),
        Some(other) => return Err(invalid(format!("Unknown metadata directive {other:?}."))),
    };
    let options = CopyOptions {
        source: source_conditions(context, rest)?,
        target: write_condition(&rest.headers)?,
        properties: replaced,
    };
    let (from, to) = ((&source.0, &source.1), (bucket, key));
    if from == to && options.properties.is_none() {
        if changes_itself(rest) {
            return copy_onto_itself(context, rest, options).await;
        }
        return Err(invalid_request(
            "This copy request is illegal because it is trying to copy an object to itself without changing the object's \
             metadata, storage class, website redirect location or encryption attributes.",
        ));
    }
    let meta = match checksum::named(&rest.headers, "x-amz-checksum-algorithm")? {
        Some(algorithm) => copy_with(context, from, to, options, algorithm).await,
        None => context.ports.blobs.copy(from, to, options).await,
    };
    match meta {
        Ok(meta) => Ok(copied(&meta)),
        Err(error) => Err(unmet_copy(context, rest, from, error).await),
    }
}

fn copied(meta: &BlobMeta) -> Response<Body> {
    document("CopyObjectResult", |xml| {
        xml.value("LastModified", iso(meta.modified_at)).value("ETag", quoted(&meta.etag));
        checksum::list(xml, &meta.checksums, meta.parts);
        if !meta.checksums.is_empty() {
            xml.value("ChecksumType", checksum::scope_name(meta.checksums.scope()));
        }
    })
}

/// Whether a request names what is not metadata and would change by a copy of an object onto itself. That it stays the same
/// is nobody's concern.
fn changes_itself(rest: &Rest) -> bool {
    let names = |header: &&HeaderName| {
        *header == "x-amz-storage-class"
            || *header == "x-amz-website-redirect-location"
            || header.as_str().starts_with("x-amz-server-side-encryption")
    };
    rest.headers.keys().find(names).is_some()
}

/// An object is put in its own place with the metadata that it has.
async fn copy_onto_itself(
    context: &Context,
    rest: &Rest,
    options: CopyOptions,
) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let meta = context.ports.blobs.head(bucket, key).await.map_err(fault)?;
    options.source.check(key, &meta).map_err(|error| unmet_read(&rest.headers, CONDITIONS, &error))?;
    // Whoever replaces it meanwhile has said something else about it.
    let same = ETagMatch::OneOf(vec![meta.etag.clone()]);
    let source = ReadConditions { if_match: Some(same), ..ReadConditions::default() };
    let options = CopyOptions { source, properties: Some(meta.properties), ..options };
    let unconditional = matches!(options.target, WriteCondition::None);
    let replaced = |error| match error {
        Error::PreconditionFailed(_) if unconditional => {
            fault(Error::Unavailable("the object was replaced meanwhile".into()))
        }
        error => unmet(&rest.headers, refused(error)),
    };
    let meta = context.ports.blobs.copy((bucket, key), (bucket, key), options).await.map_err(replaced)?;
    Ok(copied(&meta))
}

/// The object that is copied.
pub(super) fn source(rest: &Rest) -> Result<(BucketName, BlobKey), Fault> {
    copy_source(rest.header("x-amz-copy-source")?.unwrap_or(""))
}

/// What must be true of the object that is copied.
pub(super) fn source_conditions(context: &Context, rest: &Rest) -> Result<ReadConditions, Fault> {
    read_conditions(&rest.headers, CONDITIONS, context.clock.now())
}

/// Why an object is not copied, with the condition that did not hold: one on the source, or else the one on the target.
async fn unmet_copy(
    context: &Context,
    rest: &Rest,
    (bucket, key): (&BucketName, &BlobKey),
    error: Error,
) -> Fault {
    if !matches!(error, Error::PreconditionFailed(_) | Error::NotModified(_)) {
        return refused(error);
    }
    let source = context.ports.blobs.head(bucket, key).await;
    let checked = source_conditions(context, rest).ok().zip(source.ok());
    match checked.map(|(conditions, meta)| conditions.check(key, &meta)) {
        Some(Err(error)) => unmet_read(&rest.headers, CONDITIONS, &error),
        _ => unmet(&rest.headers, refused(error)),
    }
}

/// Why an object is not copied: whatever its source fails is one and the same.
pub(super) fn refused(error: Error) -> Fault {
    match error {
        Error::NotModified(_) => precondition_failed(),
        Error::BodyTooLarge { .. } => invalid_request(format!(
            "The specified copy source is larger than the maximum allowable size for a copy source: {BODY_BYTES_MAX}"
        )),
        error => fault(error),
    }
}

/// A copy with a checksum that its source may not have: then the bytes are read and put again.
async fn copy_with(
    context: &Context,
    from: (&BucketName, &BlobKey),
    to: (&BucketName, &BlobKey),
    options: CopyOptions,
    algorithm: ChecksumAlgorithm,
) -> anabranch_model::Result<BlobMeta> {
    let blobs = &context.ports.blobs;
    let known = blobs.head(from.0, from.1).await?.checksums;
    if known.scope() == ChecksumScope::Body && known.get(algorithm).is_some() {
        return blobs.copy(from, to, options).await;
    }
    let get = GetOptions { range: None, conditions: options.source };
    let blob = blobs.get(from.0, from.1, get).await?;
    let body = BodyOptions {
        size: Some(blob.meta.size),
        computed: [algorithm].into(),
        md5_tag: true,
        ..BodyOptions::default()
    };
    let properties = options.properties.unwrap_or(blob.meta.properties);
    blobs.put(to.0, to.1, blob.body, PutOptions { properties, condition: options.target, body }).await
}
