//! An upload becomes a blob.

use std::fmt::Write as _;

use anabranch_model::blob::{
    BlobMeta, ChecksumScope, Checksums, CompleteOptions, DigestOfParts, Part, PartChoice, Properties, Upload,
    check_parts,
};
use anabranch_model::{Error, Result, limits};
use aws_smithy_types::base64;
use futures_util::FutureExt;

use super::explain::{About, Failed};
use super::guard::Guard;
use super::put::etag_of_parts;
use super::request::Request;
use super::upload::{Begun, checksum_element, scope_value};
use super::xml::Element;
use super::{Blobs, action, meta};
use crate::call::Deadline;
use crate::failure::Outcome;

impl Blobs {
    pub(super) async fn complete(
        &self,
        upload: &Upload,
        choices: &[PartChoice],
        options: CompleteOptions,
    ) -> Result<BlobMeta> {
        let known = self.all_parts(upload).await?;
        let begun = self.begun_with(upload).await?;
        let parts = check_parts(choices, |number| known.iter().find(|part| part.number == number).cloned())?;
        let checksums = match checksums_of(begun, &parts)? {
            Some(checksums) => checksums,
            None => begun.and_then(|(algorithm, _)| options.expected.get(algorithm)).into_iter().collect(),
        };
        let size = parts.iter().map(|part| part.size).sum();
        options.check(size, &checksums)?;
        let options = CompleteOptions { expected: checksums, size: Some(size), ..options };
        self.complete_parts(upload, &parts, begun, &options).await
    }

    async fn all_parts(&self, upload: &Upload) -> Result<Vec<Part>> {
        let (mut parts, mut after) = (Vec::new(), None);
        loop {
            let (page, _) = self.part_page(upload, after, limits::PAGE_ENTRIES_MAX, self.soon()).await?;
            parts.extend(page.entries);
            let last = parts.last().map(|part: &Part| part.number);
            if !page.more || last == after {
                return Ok(parts);
            }
            after = last;
        }
    }

    /// Completes with parts that were checked.
    pub(super) async fn complete_parts(
        &self,
        upload: &Upload,
        parts: &[Part],
        begun: Begun,
        options: &CompleteOptions,
    ) -> Result<BlobMeta> {
        let mut request = Request::blob("POST", &upload.bucket, &upload.key)
            .query("uploadId", upload.id.as_str())
            .header("content-type", "application/xml")
            .body(document(parts, begun));
        if let Some((algorithm, scope)) = begun {
            request = request.header("x-amz-checksum-type", scope_value(scope));
            // That of parts follows from what S3 has compared already.
            let whole = options.expected.get(algorithm).filter(|_| scope == ChecksumScope::Body);
            let value = whole.map(|checksum| base64::encode(checksum.value()));
            request = request.header_if(&meta::checksum_header(algorithm), value);
        }
        let (deadline, about) = (self.later(), About::Upload(upload));
        let write = |guard: Guard| {
            let request = guard.on(request.clone());
            async move {
                let call = || self.client.ask_document(&request, self.caller.clock().now());
                let action = guard.action(&action::COMPLETE_UPLOAD);
                match self.caller.call(&action, deadline, call).await {
                    Ok(answer) => Ok(Some(answer)),
                    Err(failure) => self.was_completed(upload, parts, failure, deadline).await.map(|()| None),
                }
            }
            .boxed()
        };
        let target = (&upload.bucket, &upload.key);
        let explain = |failure| about.explain(failure);
        let answer = self.guarded(target, &options.condition, deadline, write, explain).await?;
        self.algorithms.forget(&upload.id);
        self.completed(about, parts, answer, options, deadline).await
    }

    /// Finds out what became of a completion whose outcome is not known: the upload is gone, and its blob is there.
    async fn was_completed(
        &self,
        upload: &Upload,
        parts: &[Part],
        failure: Failed,
        deadline: Deadline,
    ) -> std::result::Result<(), Failed> {
        let etag = etag_of_parts(parts.iter().map(|part| &part.etag));
        let (Outcome::Unknown, Some(etag)) = (failure.outcome, etag) else { return Err(failure) };
        let gone = matches!(self.part_page(upload, None, 1, deadline).await, Err(Error::UploadNotFound(_)));
        let there = self.look(&upload.bucket, &upload.key, deadline).await;
        if gone && there.is_ok_and(|meta| meta.etag == etag) { Ok(()) } else { Err(failure) }
    }

    async fn completed(
        &self,
        about: About<'_>,
        parts: &[Part],
        answer: Option<Element>,
        options: &CompleteOptions,
        deadline: Deadline,
    ) -> Result<BlobMeta> {
        let etag = match answer {
            Some(answer) => Some(meta::etag(answer.text("ETag"))?),
            None => etag_of_parts(parts.iter().map(|part| &part.etag)),
        };
        let written = BlobMeta {
            size: parts.iter().map(|part| part.size).sum(),
            etag: etag.ok_or_else(|| super::strange("a completion without an etag"))?,
            // Only a blob that was replaced meanwhile is told without what its writer said.
            properties: Properties::default(),
            checksums: options.expected.clone(),
            modified_at: self.caller.clock().now(),
            parts: u16::try_from(parts.len()).ok(),
        };
        Ok(self.written(about, written, deadline).await)
    }
}

/// The checksum that follows from those of the parts. None where they are not listed, as some servers do, and the service
/// compares that of the body by itself.
fn checksums_of(begun: Begun, parts: &[Part]) -> Result<Option<Checksums>> {
    if let Some((algorithm, ChecksumScope::Body)) = begun
        && parts.iter().any(|part| part.checksums.get(algorithm).is_none())
    {
        return Ok(None);
    }
    let mut digest = DigestOfParts::new(begun);
    for part in parts {
        digest.add(part.size, &part.etag, &part.checksums)?;
    }
    let (_, _, checksums) = digest.finish();
    Ok(Some(checksums))
}

/// The list of parts, with the checksums by which S3 compares them once more.
fn document(parts: &[Part], begun: Begun) -> String {
    let mut text = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">".to_string();
    for part in parts {
        let _ = write!(text, "<Part><PartNumber>{}</PartNumber><ETag>\"{}\"</ETag>", part.number, part.etag);
        let checksum = begun.and_then(|(algorithm, _)| part.checksums.get(algorithm));
        if let Some(checksum) = checksum {
            let (name, value) = (checksum_element(checksum.algorithm()), base64::encode(checksum.value()));
            let _ = write!(text, "<{name}>{value}</{name}>");
        }
        text.push_str("</Part>");
    }
    text.push_str("</CompleteMultipartUpload>");
    text
}
