//! Looking at a blob and reading it.

use std::time::Duration;

use anabranch_model::blob::{
    Blob, BlobMeta, Body, Checksum, ChecksumDigester, ChecksumScope, ETagMatch, GetOptions, Range,
    ReadConditions,
};
use anabranch_model::{BlobKey, BucketName, Error, Result};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::byte_stream::ByteStream;
use aws_smithy_types::error::display::DisplayErrorContext;
use futures_util::stream;

use super::explain::{About, Failed};
use super::guard::quoted;
use super::request::Request;
use super::{Blobs, action, meta};
use crate::call::Deadline;
use crate::failure::Kind;

/// How long the next piece of a body may take.
const PIECE_MAX: Duration = Duration::from_secs(30);
/// How often a blob may be replaced while it is looked at and opened.
const ROUNDS_MAX: u32 = 10;

impl Blobs {
    /// What is known about a blob.
    pub(super) async fn look(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        deadline: Deadline,
    ) -> Result<BlobMeta> {
        let request = Request::blob("HEAD", bucket, key).header("x-amz-checksum-mode", "ENABLED");
        for rounds in 1..=ROUNDS_MAX {
            let answer = self
                .caller
                .call(&action::HEAD_OBJECT, deadline, || {
                    self.client.open(&request, self.caller.clock().now())
                })
                .await;
            let failure = match answer {
                Ok(answer) => return meta::from_headers(answer.headers(), content_length(&answer)?),
                Err(failure) => failure,
            };
            // An answer to this request has no body, so the service cannot say what is wrong.
            let silent = failure.kind == Kind::Stranger && failure.detail.is_some();
            if !silent {
                return Err(About::Blob(bucket, key).explain(failure));
            }
            self.ask_why(bucket, key, deadline).await?;
            if !self.caller.back_off(rounds, deadline).await {
                break;
            }
        }
        Err(Error::Unavailable(format!("blob `{key}` comes and goes while it is looked at: try again")))
    }

    /// Makes a request that the service refuses like one for the head of a blob, but with its reason.
    async fn ask_why(&self, bucket: &BucketName, key: &BlobKey, deadline: Deadline) -> Result<()> {
        let request = Request::blob("GET", bucket, key).header("range", "bytes=0-0");
        match self.get(&request, deadline).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is("InvalidRange") => Ok(()),
            Err(failure) => Err(About::Blob(bucket, key).explain(failure)),
        }
    }

    async fn get(&self, request: &Request, deadline: Deadline) -> std::result::Result<HttpResponse, Failed> {
        let call = || self.client.open(request, self.caller.clock().now());
        self.caller.call(&action::GET_OBJECT, deadline, call).await
    }

    pub(super) async fn open(&self, bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Result<Blob> {
        match options.range {
            None => self.open_whole(bucket, key, &options.conditions).await,
            Some(range) => self.open_range(bucket, key, range, &options.conditions).await,
        }
    }

    async fn open_whole(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        conditions: &ReadConditions,
    ) -> Result<Blob> {
        let request = Request::blob("GET", bucket, key).header("x-amz-checksum-mode", "ENABLED");
        let request = conditional(request, conditions);
        let answer =
            self.get(&request, self.soon()).await.map_err(|failure| match failure.code.as_deref() {
                Some("NotModified") => Error::NotModified(key.clone()),
                Some("PreconditionFailed") => Error::PreconditionFailed(key.clone()),
                _ => About::Blob(bucket, key).explain(failure),
            })?;
        let size = content_length(&answer)?;
        let meta = meta::from_headers(answer.headers(), size)?;
        // What a header cannot say is decided here.
        conditions.check(key, &meta)?;
        let body = Reading::new(key, answer, Expected::of(&meta)).into_body();
        Ok(Blob { meta, range: 0..size, part: None, body })
    }

    /// Opens a piece. Its answer does not tell the checksums of the whole, so the blob is looked at first, and the piece
    /// must be of what was seen.
    async fn open_range(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        range: Range,
        conditions: &ReadConditions,
    ) -> Result<Blob> {
        let deadline = self.soon();
        for rounds in 1..=ROUNDS_MAX {
            let meta = self.look(bucket, key, deadline).await?;
            conditions.check(key, &meta)?;
            let request = Request::blob("GET", bucket, key).header("if-match", quoted(&meta.etag));
            let request = piece(request, range, &meta)?;
            match self.get(&request, deadline).await {
                Ok(answer) => {
                    let range = match range {
                        Range::Part(_) if meta.parts.is_some_and(|parts| parts > 1) => {
                            stands(&answer, meta.size)?
                        }
                        Range::Part(_) => 0..meta.size,
                        range => range.resolve(meta.size, &[])?,
                    };
                    if content_length(&answer)? != range.end - range.start {
                        return Err(super::strange("other bytes than it was asked for"));
                    }
                    let expected = Expected { size: range.end - range.start, checksums: Vec::new() };
                    let body = Reading::new(key, answer, expected).into_body();
                    return Ok(Blob { meta, range, part: None, body });
                }
                // It was replaced in between, perhaps by a shorter one.
                Err(failure) if failure.is("PreconditionFailed") || failure.is("InvalidRange") => {}
                Err(failure) => return Err(About::Blob(bucket, key).explain(failure)),
            }
            if !self.caller.back_off(rounds, deadline).await {
                break;
            }
        }
        Err(Error::Unavailable(format!("blob `{key}` is replaced all the time: try again")))
    }
}

/// The request for a piece of a blob. Where a part of several stands only the service knows.
fn piece(request: Request, range: Range, meta: &BlobMeta) -> Result<Request> {
    match (range, meta.parts.unwrap_or(1)) {
        (Range::Part(number), parts) if number.get() > parts => Err(Error::PartNotFound(number)),
        (Range::Part(_), 1) => Ok(request),
        (Range::Part(number), _) => Ok(request.query("partNumber", number.to_string())),
        (range, _) => {
            let bytes = range.resolve(meta.size, &[])?;
            Ok(request.header("range", format!("bytes={}-{}", bytes.start, bytes.end - 1)))
        }
    }
}

/// Where the bytes of an answer stand in the whole.
fn stands(answer: &HttpResponse, size: u64) -> Result<std::ops::Range<u64>> {
    // Only the last part may have none.
    if content_length(answer)? == 0 {
        return Ok(size..size);
    }
    let text = answer.headers().get("content-range");
    let (first, last) = text
        .and_then(|text| text.strip_prefix("bytes "))
        .and_then(|text| text.split_once('/')?.0.split_once('-'))
        .and_then(|(first, last)| Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?)))
        .filter(|(first, last)| first <= last && *last < size)
        .ok_or_else(|| super::strange("bytes of which nobody knows where they stand"))?;
    Ok(first..last + 1)
}

/// The request with those conditions that a header can say. S3 takes one tag.
fn conditional(request: Request, conditions: &ReadConditions) -> Request {
    let tag = |tags: &Option<ETagMatch>| match tags {
        Some(ETagMatch::OneOf(tags)) if tags.len() == 1 => tags.first().map(quoted),
        Some(ETagMatch::OneOf(_) | ETagMatch::Any) | None => None,
    };
    let since = conditions.if_modified_since.filter(|_| conditions.if_none_match.is_none());
    let unmodified = conditions.if_unmodified_since.filter(|_| conditions.if_match.is_none());
    request
        .header_if("if-match", tag(&conditions.if_match))
        .header_if("if-none-match", tag(&conditions.if_none_match))
        .header_if("if-modified-since", since.and_then(meta::to_http_date))
        .header_if("if-unmodified-since", unmodified.and_then(meta::to_http_date))
}

fn content_length(answer: &HttpResponse) -> Result<u64> {
    let length = answer.headers().get("content-length").and_then(|length| length.parse().ok());
    length.ok_or_else(|| super::strange("an object without a length"))
}

/// What a body must turn out to be. Nobody needs its MD5, which costs more than all else.
struct Expected {
    /// Bytes that are still to come.
    size: u64,
    checksums: Vec<(Checksum, ChecksumDigester)>,
}

impl Expected {
    fn of(meta: &BlobMeta) -> Self {
        // Checksums of parts say nothing about bytes that come in one piece.
        let of_body = meta.checksums.iter().filter(|_| meta.checksums.scope() == ChecksumScope::Body);
        let checksums = of_body.map(|checksum| (checksum, ChecksumDigester::new(checksum.algorithm())));
        Expected { size: meta.size, checksums: checksums.collect() }
    }

    fn update(&mut self, piece: &[u8]) -> Result<()> {
        let longer = || Error::Invalid("it has more bytes than it should".to_string());
        self.size = self.size.checked_sub(piece.len() as u64).ok_or_else(longer)?;
        self.checksums.iter_mut().for_each(|(_, digester)| digester.update(piece));
        Ok(())
    }

    /// Compares what came with what should have.
    fn finish(&mut self) -> Result<()> {
        if self.size > 0 {
            return Err(Error::Invalid(format!("{} of its bytes are missing", self.size)));
        }
        for (expected, digester) in self.checksums.drain(..) {
            if digester.finish() != expected {
                return Err(Error::ChecksumMismatch(expected.algorithm().name()));
            }
        }
        Ok(())
    }
}

/// A body that is being read.
struct Reading {
    key: BlobKey,
    stream: ByteStream,
    expected: Expected,
    ended: bool,
}

impl Reading {
    fn new(key: &BlobKey, mut answer: HttpResponse, expected: Expected) -> Self {
        Reading { key: key.clone(), stream: ByteStream::new(answer.take_body()), expected, ended: false }
    }

    fn into_body(self) -> Body {
        Box::pin(stream::unfold(self, |mut reading| async move {
            if reading.ended {
                return None;
            }
            let piece = reading.next().await.transpose();
            reading.ended = !matches!(piece, Some(Ok(_)));
            piece.map(|piece| (piece, reading))
        }))
    }

    async fn next(&mut self) -> Result<Option<bytes::Bytes>> {
        let cut = |why: String| {
            Error::Unavailable(format!("blob `{}` broke off while it was read ({why})", self.key))
        };
        let piece = match tokio::time::timeout(PIECE_MAX, self.stream.try_next()).await {
            Ok(Ok(piece)) => piece,
            Ok(Err(error)) => return Err(cut(DisplayErrorContext(&error).to_string())),
            Err(_) => return Err(cut(format!("nothing came for {} seconds", PIECE_MAX.as_secs()))),
        };
        let damaged = |error: Error| Error::Corrupt(format!("blob `{}` is damaged: {error}", self.key));
        match &piece {
            Some(bytes) => self.expected.update(bytes).map_err(damaged)?,
            None => self.expected.finish().map_err(damaged)?,
        }
        Ok(piece)
    }
}
