//! Uploads and their parts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use anabranch_model::blob::{
    Body, BodyDigest, BodyOptions, Checksum, ChecksumAlgorithm, ChecksumScope, Checksums, ETag, Part,
    PartNumber, Upload, UploadAfter, UploadId, UploadListOptions, UploadOptions, UploadSummary,
};
use anabranch_model::{BlobKey, BucketName, Error, Page, Result, limits};
use aws_smithy_types::base64;
use bytes::Bytes;

use super::explain::About;
use super::intake::{Intake, WHOLE_BYTES_MAX, carrying, take};
use super::request::Request;
use super::xml::Element;
use super::{Blobs, action, meta};
use crate::call::Deadline;
use crate::failure::{Failure, Outcome};

/// The checksum that an upload was begun with.
pub(super) type Begun = Option<(ChecksumAlgorithm, ChecksumScope)>;

/// Largest part that is taken into memory because its size or its checksum is not known before.
const UNKNOWN_PART_BYTES_MAX: usize = 64 << 20;
/// Uploads whose checksum is remembered.
const REMEMBERED_MAX: usize = 10_000;

/// The checksums that uploads were begun with, as far as they were seen.
#[derive(Debug, Default)]
pub(super) struct Algorithms(Mutex<HashMap<UploadId, Begun>>);

impl Algorithms {
    fn get(&self, id: &UploadId) -> Option<Begun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    fn remember(&self, id: &UploadId, begun: Begun) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whatever is forgotten is asked for again.
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(id.clone(), begun);
    }

    pub(super) fn forget(&self, id: &UploadId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

impl Blobs {
    /// Begins an upload. `further` are checksums of the whole that S3 has no place for.
    pub(super) async fn begin(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: &UploadOptions,
        further: &[Checksum],
    ) -> Result<Upload> {
        options.check()?;
        meta::check_properties(&options.properties)?;
        let mut request = Request::blob("POST", bucket, key)
            .query("uploads", "")
            .headers(meta::to_headers(&options.properties, further)?);
        if let Some((algorithm, scope)) = options.checksum {
            request = request
                .header("x-amz-checksum-algorithm", meta::algorithm_value(algorithm))
                .header("x-amz-checksum-type", scope_value(scope));
        }
        let call = || self.client.ask_document(&request, self.caller.clock().now());
        let answer = self.caller.call(&action::CREATE_UPLOAD, self.soon(), call).await;
        let answer = answer.map_err(|failure| About::Blob(bucket, key).explain(failure))?;
        let id = UploadId::new(answer.text("UploadId"))
            .map_err(|_| super::strange("an upload without an identifier"))?;
        self.algorithms.remember(&id, options.checksum);
        Ok(Upload { bucket: bucket.clone(), key: key.clone(), id })
    }

    /// The checksum that an upload was begun with.
    pub(super) async fn begun_with(&self, upload: &Upload) -> Result<Begun> {
        if let Some(begun) = self.algorithms.get(&upload.id) {
            return Ok(begun);
        }
        let (_, begun) = self.part_page(upload, None, 1, self.soon()).await?;
        self.algorithms.remember(&upload.id, begun);
        Ok(begun)
    }

    pub(super) async fn put_one_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        mut options: BodyOptions,
    ) -> Result<Part> {
        let own = self.begun_with(upload).await?.map(|(algorithm, _)| algorithm);
        options.computed.extend(own);
        let flow = match take(body, options.clone(), WHOLE_BYTES_MAX).await? {
            Intake::Whole(bytes, digest) => {
                return self.put_whole_part(upload, number, bytes, digest, own).await;
            }
            Intake::Flowing(flow) => flow,
        };
        let checksum = own.map(|algorithm| options.expected.get(algorithm));
        if let (Some(size), None | Some(Some(_))) = (options.size, checksum) {
            let request = part_request(upload, number)
                .header_if("content-md5", options.md5.map(base64::encode))
                .headers(checksum.flatten().into_iter().flat_map(meta::checksum_headers));
            let explain = |failure| About::Upload(upload).explain(failure);
            let (headers, digest) =
                self.send_flowing(&action::UPLOAD_PART, &request, flow, size, explain).await?;
            let etag = meta::etag(headers.get("etag").unwrap_or_default())?;
            let sent =
                Part { number, size, etag, checksums: digest.checksums, modified_at: self.date(&headers) };
            return Ok(self.listed_part(upload, sent).await);
        }
        match flow.fill(UNKNOWN_PART_BYTES_MAX).await? {
            Intake::Whole(bytes, digest) => self.put_whole_part(upload, number, bytes, digest, own).await,
            Intake::Flowing(_) => Err(Error::Invalid(format!(
                "a part of more than {UNKNOWN_PART_BYTES_MAX} bytes must come with its size{}: S3 is told before",
                own.map_or(String::new(), |algorithm| format!(" and its {}", algorithm.name()))
            ))),
        }
    }

    async fn put_whole_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        bytes: Bytes,
        digest: BodyDigest,
        own: Option<ChecksumAlgorithm>,
    ) -> Result<Part> {
        let sent = self.send_part(upload, number, bytes, digest, own).await?;
        Ok(self.listed_part(upload, sent).await)
    }

    /// Sends a part. Its time is that of the answer, which is not quite what a listing shows.
    pub(super) async fn send_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        bytes: Bytes,
        digest: BodyDigest,
        own: Option<ChecksumAlgorithm>,
    ) -> Result<Part> {
        let checksum = own.and_then(|algorithm| digest.checksums.get(algorithm));
        let request = part_request(upload, number)
            .header_if("content-md5", digest.etag.md5().map(base64::encode))
            .headers(checksum.into_iter().flat_map(meta::checksum_headers))
            .body(bytes);
        let call = || self.client.ask(&request, self.caller.clock().now());
        let action = carrying(action::UPLOAD_PART, digest.size);
        let answer = self.caller.call(&action, self.time_for(digest.size), call).await;
        let answer = answer.map_err(|failure| About::Upload(upload).explain(failure))?;
        let etag = meta::etag(answer.headers.get("etag").unwrap_or_default())?;
        let modified_at = self.date(&answer.headers);
        Ok(Part { number, size: digest.size, etag, checksums: digest.checksums, modified_at })
    }

    /// A part that was just put, with the time that a listing shows of it.
    async fn listed_part(&self, upload: &Upload, sent: Part) -> Part {
        let before = PartNumber::new(u64::from(sent.number.get()) - 1).ok();
        let page = self.part_page(upload, before, 1, self.soon()).await;
        let same = |part: &Part| part.number == sent.number && part.etag == sent.etag;
        match page.ok().and_then(|(page, _)| page.entries.into_iter().next()).filter(same) {
            Some(listed) => {
                let mut checksums = sent.checksums;
                listed.checksums.iter().for_each(|checksum| checksums.insert(checksum));
                Part { checksums, ..listed }
            }
            None => sent,
        }
    }

    /// One page of parts, and the checksum that their upload was begun with.
    pub(super) async fn part_page(
        &self,
        upload: &Upload,
        after: Option<PartNumber>,
        limit: usize,
        deadline: Deadline,
    ) -> Result<(Page<Part>, Begun)> {
        let request = Request::blob("GET", &upload.bucket, &upload.key)
            .query("max-parts", limit.clamp(1, limits::PAGE_ENTRIES_MAX).to_string())
            .query_if("part-number-marker", after.map(|number| number.to_string()))
            .query("uploadId", upload.id.as_str());
        let call = || self.client.ask_document(&request, self.caller.clock().now());
        let answer = self.caller.call(&action::LIST_PARTS, deadline, call).await;
        let answer = answer.map_err(|failure| About::Upload(upload).explain(failure))?;
        let entries = answer.all("Part").map(part).collect::<Result<_>>()?;
        Ok((Page { entries, more: answer.text("IsTruncated") == "true" }, begun(&answer)))
    }

    /// One page of uploads. S3 orders those of one key by time and goes on from one that must still be there, so all are
    /// listed, and the page is cut here; few are open at a time.
    pub(super) async fn upload_page(
        &self,
        bucket: &BucketName,
        options: UploadListOptions,
    ) -> Result<Page<UploadSummary>> {
        let mut entries = self.open_uploads(bucket, &options.prefix).await?;
        entries.sort_by(|one, other| one.upload.cmp(&other.upload));
        if let Some(UploadAfter { key, upload: id }) = &options.after {
            entries.retain(|UploadSummary { upload, .. }| match id {
                Some(id) => (&upload.key, &upload.id) > (key, id),
                None => upload.key > *key,
            });
        }
        let limit = options.limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let more = entries.len() > limit;
        entries.truncate(limit);
        Ok(Page { entries, more })
    }

    /// Every open upload of keys that begin with `prefix`.
    pub(super) async fn open_uploads(&self, bucket: &BucketName, prefix: &str) -> Result<Vec<UploadSummary>> {
        let mut uploads = Vec::new();
        let mut mark: Option<(String, String)> = None;
        loop {
            let (key, id) = mark.clone().unzip();
            let request = Request::bucket("GET", bucket)
                .query("encoding-type", "url")
                .query_if("key-marker", key)
                .query("max-uploads", limits::PAGE_ENTRIES_MAX.to_string())
                .query_if("prefix", Some(prefix.to_string()))
                .query_if("upload-id-marker", id)
                .query("uploads", "");
            let call = || self.client.ask_document(&request, self.caller.clock().now());
            let answer = self.caller.call(&action::LIST_UPLOADS, self.soon(), call).await;
            let answer = answer.map_err(|failure| About::Bucket(bucket).explain(failure))?;
            for entry in answer.all("Upload") {
                uploads.push(summary(bucket, entry)?);
            }
            let next = (answer.unescaped("NextKeyMarker"), answer.text("NextUploadIdMarker").to_string());
            match (answer.text("IsTruncated"), next) {
                ("true", (Some(key), id)) if mark != Some((key.clone(), id.clone())) => {
                    mark = Some((key, id))
                }
                ("true", _) => return Err(super::strange("a page that leads to itself")),
                _ => return Ok(uploads),
            }
        }
    }

    /// Aborts for a caller, who is told if there is nothing to abort: not every server says so.
    pub(super) async fn abort_known(&self, upload: &Upload) -> Result<()> {
        self.part_page(upload, None, 1, self.soon()).await?;
        self.abort(upload, self.soon()).await
    }

    pub(super) async fn abort(&self, upload: &Upload, deadline: Deadline) -> Result<()> {
        self.algorithms.forget(&upload.id);
        let request =
            Request::blob("DELETE", &upload.bucket, &upload.key).query("uploadId", upload.id.as_str());
        let call = || self.client.ask(&request, self.caller.clock().now());
        let failure: Failure<_> = match self.caller.call(&action::ABORT_UPLOAD, deadline, call).await {
            Ok(_) => return Ok(()),
            Err(failure) => failure,
        };
        // An upload that is gone after an abort of which nobody knows whether it was carried out is aborted.
        if failure.outcome == Outcome::Unknown
            && let Err(Error::UploadNotFound(_)) = self.part_page(upload, None, 1, deadline).await
        {
            return Ok(());
        }
        Err(About::Upload(upload).explain(failure))
    }
}

fn part_request(upload: &Upload, number: PartNumber) -> Request {
    Request::blob("PUT", &upload.bucket, &upload.key)
        .query("partNumber", number.to_string())
        .query("uploadId", upload.id.as_str())
}

pub(super) fn scope_value(scope: ChecksumScope) -> &'static str {
    match scope {
        ChecksumScope::Body => "FULL_OBJECT",
        ChecksumScope::Parts => "COMPOSITE",
    }
}

/// The checksum that an upload in a document was begun with.
fn begun(element: &Element) -> Begun {
    let algorithm = meta::algorithm_of(element.text("ChecksumAlgorithm"))?;
    let scope = match element.text("ChecksumType") {
        "FULL_OBJECT" => ChecksumScope::Body,
        "COMPOSITE" => ChecksumScope::Parts,
        // What S3 takes where nothing was said.
        _ if algorithm.allows(ChecksumScope::Parts) => ChecksumScope::Parts,
        _ => ChecksumScope::Body,
    };
    Some((algorithm, scope))
}

fn part(element: &Element) -> Result<Part> {
    let read = || {
        let checksum = |algorithm: ChecksumAlgorithm| {
            let value = element.text(&checksum_element(algorithm)).to_string();
            meta::checksum(algorithm, &value)
        };
        let checksums: Checksums = ChecksumAlgorithm::ALL.into_iter().filter_map(checksum).collect();
        Some(Part {
            number: element
                .text("PartNumber")
                .parse()
                .ok()
                .and_then(|number| PartNumber::new(number).ok())?,
            size: element.text("Size").parse().ok()?,
            etag: etag(element)?,
            checksums,
            modified_at: meta::date(element.text("LastModified"))?,
        })
    };
    read().ok_or_else(|| super::strange("a part that cannot be read"))
}

fn etag(element: &Element) -> Option<ETag> {
    meta::etag(element.text("ETag")).ok()
}

/// The element that carries a checksum.
pub(super) fn checksum_element(algorithm: ChecksumAlgorithm) -> String {
    format!("Checksum{}", meta::algorithm_value(algorithm))
}

fn summary(bucket: &BucketName, element: &Element) -> Result<UploadSummary> {
    let read = || {
        let upload = Upload {
            bucket: bucket.clone(),
            key: BlobKey::new(&element.unescaped("Key")?).ok()?,
            id: UploadId::new(element.text("UploadId")).ok()?,
        };
        Some(UploadSummary {
            upload,
            begun_at: meta::date(element.text("Initiated"))?,
            checksum: begun(element),
        })
    };
    read().ok_or_else(|| super::strange("an upload that cannot be read"))
}
