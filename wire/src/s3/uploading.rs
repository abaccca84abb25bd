//! What the operations on uploads in parts share.

use anabranch_model::blob::{
    BodyOptions, ChecksumAlgorithm, ChecksumScope, Checksums, Part, Upload, UploadAfter, UploadListOptions,
    UploadSummary,
};
use anabranch_model::limits::PAGE_ENTRIES_MAX;

use super::errors::fault;
use crate::context::Context;
use crate::fault::Fault;

/// What is known about an open upload; none if there is no such upload.
pub(super) async fn summary(context: &Context, upload: &Upload) -> Result<Option<UploadSummary>, Fault> {
    let mut options =
        UploadListOptions { prefix: upload.key.as_str().to_owned(), ..UploadListOptions::default() };
    loop {
        let page = context.ports.blobs.uploads(&upload.bucket, options.clone()).await.map_err(fault)?;
        let last = page.entries.last().map(|last| last.upload.clone());
        // Keys come in order, and the key itself comes before those that are longer.
        let passed = last.as_ref().is_none_or(|last| last.key != upload.key);
        if let Some(found) = page.entries.into_iter().find(|entry| entry.upload == *upload) {
            return Ok(Some(found));
        }
        match last.filter(|_| page.more && !passed) {
            Some(last) => options.after = Some(UploadAfter { key: last.key, upload: Some(last.id) }),
            None => return Ok(None),
        }
    }
}

/// How the body of a part is taken: an object whose upload was begun with no checksum gets one that is made of those of
/// its parts, so each of them needs it.
pub(super) fn with_checksum(
    begun: Option<(ChecksumAlgorithm, ChecksumScope)>,
    mut body: BodyOptions,
) -> BodyOptions {
    if begun.is_none() {
        body.computed.insert(ChecksumAlgorithm::Crc64Nvme);
    }
    body
}

/// The checksums of a part that are shown: those of the algorithm that its upload was begun with. What else there is was
/// between the one who put the part and this server.
pub(super) fn shown(part: &Part, begun: Option<(ChecksumAlgorithm, ChecksumScope)>) -> Checksums {
    begun.and_then(|(algorithm, _)| part.checksums.get(algorithm)).into_iter().collect()
}

/// All parts of an upload.
pub(super) async fn all_parts(context: &Context, upload: &Upload) -> Result<Vec<Part>, Fault> {
    let mut parts: Vec<Part> = Vec::new();
    loop {
        let after = parts.last().map(|last| last.number);
        let page = context.ports.blobs.parts(upload, after, PAGE_ENTRIES_MAX).await.map_err(fault)?;
        parts.extend(page.entries);
        if !page.more {
            return Ok(parts);
        }
    }
}
