//! `blob put`: a file or standard input becomes a blob.
//!
//! ```text
//!   fits into one part ──▶ put
//!   longer             ──▶ begin ──▶ part, part, part … ──▶ complete      (abort if anything fails)
//! ```
//!
//! One part is in memory at a time, so that it can be sent again when its answer gets lost, and so that a slow input does
//! not hold a request open.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anabranch_model::blob::{
    BlobKey, BlobMeta, Body, BodyOptions, BucketName, CompleteOptions, ETag, Header, PartChoice, PartNumber,
    Properties, PutOptions, Upload, UploadOptions, WriteCondition, md5_of,
};
use anabranch_model::limits::UPLOAD_PARTS_MAX;
use anabranch_model::{Error, Result};
use bytes::Bytes;
use clap::Args;
use futures_util::stream;
use serde::Serialize;

use super::Session;
use super::place::{Place, written};
use crate::failure::Failure;
use crate::limits::{COPY_BYTES, PUT_PART_BYTES};
use crate::patience::Patience;
use crate::progress::Progress;
use crate::quantity::{Size, counted};

/// Arguments of `blob put`.
#[derive(Debug, Args)]
pub(super) struct PutArgs {
    /// The file; `-` for standard input
    file: PathBuf,
    /// Where it goes; a bucket alone, or a key that ends in a slash, takes the name of the file
    #[arg(value_name = "BUCKET/KEY")]
    place: String,
    /// What it contains, for instance text/plain
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Something to remember about it; may be given several times
    #[arg(long = "metadata", value_name = "NAME=VALUE", value_parser = parse_metadata)]
    metadata: Vec<(String, String)>,
    /// Refuse to replace a blob
    #[arg(long)]
    if_absent: bool,
}

fn parse_metadata(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("metadata is a name and a value, for instance camera=x100".to_owned()),
    }
}

impl PutArgs {
    fn properties(&self) -> Properties {
        let content_type = self.content_type.iter().map(|value| (Header::ContentType, value.clone()));
        Properties {
            headers: content_type.collect::<BTreeMap<_, _>>(),
            metadata: self.metadata.iter().cloned().collect(),
        }
    }

    fn condition(&self) -> WriteCondition {
        if self.if_absent { WriteCondition::IfAbsent } else { WriteCondition::None }
    }
}

pub(super) async fn put(session: &Session<'_>, args: &PutArgs) -> std::result::Result<(), Failure> {
    let place = Place::parse(&args.place)?;
    let is_stdin = args.file == Path::new("-");
    let file_name = if is_stdin { None } else { args.file.file_name().and_then(|name| name.to_str()) };
    let key = place.key_for(file_name)?;
    let source = Source::open(&args.file)?;
    // Asked first, so that nothing is read for a bucket that is not there.
    session.store.bucket(&place.bucket).await?;

    let mut transfer = Transfer {
        session,
        bucket: &place.bucket,
        key: &key,
        progress: Progress::new(session.clock, source.length_bytes),
        stored_bytes: 0,
    };
    let meta = transfer.run(source, args.properties(), args.condition()).await?;
    transfer.progress.finish();
    session.output.print(&PutReport {
        bucket: place.bucket.to_string(),
        key: key.as_str().to_owned(),
        shown: written(&place.bucket, &key),
        size: meta.size,
        etag: meta.etag.to_string(),
        parts: meta.parts,
    })
}

/// What is read, in parts.
struct Source {
    reader: Box<dyn Read + Send>,
    name: PathBuf,
    length_bytes: Option<u64>,
    part_bytes: u64,
}

impl Source {
    fn open(path: &Path) -> std::result::Result<Self, Failure> {
        if path == Path::new("-") {
            let name = PathBuf::from("standard input");
            return Ok(Source {
                reader: Box::new(io::stdin()),
                name,
                length_bytes: None,
                part_bytes: PUT_PART_BYTES,
            });
        }
        let failed = |error| Failure::io("read", path, &error);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(Failure::usage(
                format!("{} is a folder", path.display()),
                "put its files one by one",
            ));
        }
        let length_bytes = metadata.is_file().then_some(metadata.len());
        // So that the longest file fits into as many parts as there can be.
        let least = length_bytes.unwrap_or(0).div_ceil(UPLOAD_PARTS_MAX as u64);
        let part_bytes = PUT_PART_BYTES.max(least);
        Ok(Source { reader: Box::new(file), name: path.to_owned(), length_bytes, part_bytes })
    }

    /// The next part, shorter than the others if it is the last. Reads on a thread that may block.
    async fn next_part(mut self) -> std::result::Result<(Self, Bytes), Failure> {
        let read = tokio::task::spawn_blocking(move || {
            let mut part = Vec::new();
            let result = self.reader.by_ref().take(self.part_bytes).read_to_end(&mut part);
            (self, result.map(|_| Bytes::from(part)))
        });
        match read.await {
            Ok((source, Ok(part))) => Ok((source, part)),
            Ok((source, Err(error))) => Err(Failure::io("read", &source.name, &error)),
            Err(error) => Err(Failure::new("io", format!("reading broke off: {error}"), "report this")),
        }
    }

    /// Whether a part of this size may have others behind it.
    fn may_go_on(&self, part: &Bytes) -> bool {
        part.len() as u64 == self.part_bytes
    }
}

/// A body that is in memory, in pieces.
fn body_of(bytes: &Bytes) -> Body {
    let bytes = bytes.clone();
    let starts = (0..bytes.len()).step_by(COPY_BYTES);
    Box::pin(stream::iter(
        starts.map(move |start| Ok(bytes.slice(start..bytes.len().min(start + COPY_BYTES)))),
    ))
}

/// A body is verified on its way by its MD5, and recognised by it afterwards.
fn verified(bytes: &Bytes, md5: [u8; 16]) -> BodyOptions {
    BodyOptions { size: Some(bytes.len() as u64), md5: Some(md5), ..BodyOptions::default() }
}

/// One file on its way.
struct Transfer<'a> {
    session: &'a Session<'a>,
    bucket: &'a BucketName,
    key: &'a BlobKey,
    progress: Progress<'a>,
    stored_bytes: u64,
}

impl Transfer<'_> {
    async fn run(
        &mut self,
        source: Source,
        properties: Properties,
        condition: WriteCondition,
    ) -> std::result::Result<BlobMeta, Failure> {
        let (source, first) = source.next_part().await?;
        if !source.may_go_on(&first) {
            let md5 = md5_of(&first);
            let options = PutOptions { properties, condition, body: verified(&first, md5) };
            return Ok(self.put_at_once(&first, options, &ETag::of_md5(md5)).await?);
        }
        let store = self.session.store;
        let options = UploadOptions { properties, checksum: None };
        let upload = store.begin_upload(self.bucket, self.key, options).await?;
        let stored = self.put_parts(&upload, source, first, condition).await;
        if stored.is_err() {
            // What cannot be removed now is shown by the listing of uploads; the failure is what matters here.
            let _ = store.abort_upload(&upload).await;
        }
        stored
    }

    async fn put_at_once(&mut self, bytes: &Bytes, options: PutOptions, etag: &ETag) -> Result<BlobMeta> {
        let mut patience = Patience::new(self.session.clock);
        let mut unanswered = false;
        loop {
            let put = self.session.store.put(self.bucket, self.key, body_of(bytes), options.clone());
            match put.await {
                Ok(meta) => return Ok(meta),
                Err(error @ Error::PreconditionFailed(_)) if unanswered => {
                    return self.found(etag, error).await;
                }
                Err(error) => {
                    unanswered |= matches!(error, Error::Unavailable(_));
                    patience.wait(error).await?;
                }
            }
        }
    }

    /// What an earlier attempt has stored whose answer got lost; the refusal of the last attempt if it has not.
    async fn found(&self, etag: &ETag, refusal: Error) -> Result<BlobMeta> {
        match self.session.store.head(self.bucket, self.key).await {
            Ok(meta) if meta.etag == *etag => Ok(meta),
            _ => Err(refusal),
        }
    }

    async fn put_parts(
        &mut self,
        upload: &Upload,
        mut source: Source,
        mut part: Bytes,
        condition: WriteCondition,
    ) -> std::result::Result<BlobMeta, Failure> {
        let (mut choices, mut md5s) = (Vec::new(), Vec::new());
        // A last part without bytes says that the one before was the last.
        while !part.is_empty() {
            let md5 = md5_of(&part);
            let number = PartNumber::new(choices.len() as u64 + 1)?;
            choices.push(self.put_part(upload, number, &part, verified(&part, md5)).await?);
            md5s.push(md5);
            self.stored_bytes += part.len() as u64;
            let stored = self.stored_bytes;
            self.progress.show(stored, || format!("{} stored", Size(stored)));
            if !source.may_go_on(&part) {
                break;
            }
            (source, part) = source.next_part().await?;
        }
        let options =
            CompleteOptions { condition, size: Some(self.stored_bytes), ..CompleteOptions::default() };
        Ok(self.complete(upload, &choices, options, &ETag::of_parts(&md5s)).await?)
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        bytes: &Bytes,
        options: BodyOptions,
    ) -> Result<PartChoice> {
        let mut patience = Patience::new(self.session.clock);
        loop {
            match self.session.store.put_part(upload, number, body_of(bytes), options.clone()).await {
                Ok(part) => return Ok(PartChoice::from(&part)),
                Err(error) => patience.wait(error).await?,
            }
        }
    }

    async fn complete(
        &self,
        upload: &Upload,
        choices: &[PartChoice],
        options: CompleteOptions,
        etag: &ETag,
    ) -> Result<BlobMeta> {
        let mut patience = Patience::new(self.session.clock);
        let mut unanswered = false;
        loop {
            match self.session.store.complete_upload(upload, choices, options.clone()).await {
                Ok(meta) => return Ok(meta),
                Err(error @ Error::UploadNotFound(_)) if unanswered => return self.found(etag, error).await,
                Err(error) => {
                    unanswered |= matches!(error, Error::Unavailable(_));
                    patience.wait(error).await?;
                }
            }
        }
    }
}

#[derive(Serialize)]
struct PutReport {
    bucket: String,
    key: String,
    #[serde(skip)]
    shown: String,
    size: u64,
    etag: String,
    parts: Option<u16>,
}

impl fmt::Display for PutReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stored {} ({}", self.shown, Size(self.size))?;
        if let Some(parts) = self.parts {
            write!(f, " in {}", counted(u64::from(parts), "part"))?;
        }
        f.write_str(")")
    }
}
