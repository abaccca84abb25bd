//! Reading a body: blocks are read as the reader takes them, verified, and handed out without a copy.
//!
//! What must hold: no byte is handed out before the checksum of its block was compared. A reader holds its files, so
//! that it finishes with the body it began, and at most [`BLOCKS_MAX`] blocks of memory under the read budget.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use anabranch_model::blob::{self, Blob, BlobKey, Body, BucketName, GetOptions};
use anabranch_model::{DiskFile, Error, Result};
use bytes::Bytes;
use futures_util::stream;

use super::block::Span;
use super::files::{Files, Hold};
use super::layout::{self, FilePart, StoredBlob, StoredBody};
use super::malformed;
use crate::budget::{Budget, Held};
use crate::core::Core;
use crate::state::io_error;
use crate::stream::read::on_disk_thread;

/// Blocks that are read in one step.
const BLOCKS_MAX: u64 = 4;

/// A blob whose body stays as it is.
pub struct Found {
    /// Its row.
    pub stored: StoredBlob,
    /// The body, if it is in a row.
    inline: Bytes,
    hold: Hold,
}

impl Core {
    /// A blob, with its body held.
    pub fn find_blob(&self, bucket: &BucketName, key: &BlobKey) -> Result<Found> {
        let number = self.blobs.bucket(bucket)?.number;
        let row_key = layout::blob_key(number, key);
        loop {
            let snapshot = self.rows.snapshot()?;
            let row =
                snapshot.get(&row_key)?.ok_or_else(|| Error::BlobNotFound(bucket.clone(), key.clone()))?;
            let stored = StoredBlob::decode(&row).map_err(|_| malformed(bucket, key))?;
            let hold = self.blobs.files.hold(stored.body.files());
            if stored.body == StoredBody::Inline {
                let inline = snapshot.get(&layout::inline_key(number, key))?;
                let inline = inline.filter(|body| body.len() as u64 == stored.meta.size);
                let inline = inline.ok_or_else(|| damaged(bucket, key, "its row has another length"))?;
                return Ok(Found { stored, inline, hold });
            }
            // Whoever replaced it in between may have removed the files before they were held.
            if self.rows.get(&row_key)?.as_ref() == Some(&row) {
                return Ok(Found { stored, inline: Bytes::new(), hold });
            }
        }
    }

    /// Opens a blob for reading.
    pub async fn open_blob(&self, bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Result<Blob> {
        let found = self.find_blob(bucket, key)?;
        let meta = found.stored.meta.clone();
        options.conditions.check(key, &meta)?;
        let parts = found.stored.part_sizes();
        let part = match options.range {
            Some(blob::Range::Part(number)) => {
                found.stored.part_checksums.get(usize::from(number.get()) - 1).cloned()
            }
            _ => None,
        };
        let range = options.range.map_or(Ok(0..meta.size), |range| range.resolve(meta.size, &parts))?;
        let body = self.open_body(bucket, key, found, range.clone()).await?;
        Ok(Blob { meta, range, part, body })
    }

    /// Opens the body of a blob.
    pub async fn open_body(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        found: Found,
        range: Range<u64>,
    ) -> Result<Body> {
        let Found { stored, inline, hold } = found;
        let mut ready = VecDeque::new();
        let mut range = range;
        if stored.body == StoredBody::Inline && !range.is_empty() {
            let permit = self.budget.read(inline.len()).await?;
            let held = Bytes::from_owner(Held::new(inline.to_vec(), permit));
            ready.push_back(held.slice(range.start as usize..range.end as usize));
            range = range.end..range.end;
        }
        let StoredBody::Files(files) = stored.body else {
            return Ok(Box::pin(stream::iter(ready.into_iter().map(Ok))));
        };
        let reader = Reader {
            budget: self.budget.clone(),
            registry: self.blobs.files.clone(),
            blob: (bucket.clone(), key.clone()),
            files,
            _hold: hold,
            number: 0,
            start: 0,
            open: None,
            at: range,
            ready,
        };
        Ok(Box::pin(stream::unfold(reader, |mut reader| async move {
            match reader.next().await {
                Ok(piece) => piece.map(|piece| (Ok(piece), reader)),
                Err(error) => {
                    reader.at = 0..0;
                    Some((Err(error), reader))
                }
            }
        })))
    }
}

/// A body on its way out.
struct Reader {
    /// Not the whole engine: a reader may outlive it, and must not keep its state open.
    budget: Arc<Budget>,
    registry: Arc<Files>,
    blob: (BucketName, BlobKey),
    files: Vec<FilePart>,
    _hold: Hold,
    /// The file that `at` lies in, and where it begins in the body.
    number: usize,
    start: u64,
    open: Option<Arc<dyn DiskFile>>,
    /// What is still to be read.
    at: Range<u64>,
    /// What was read and not taken.
    ready: VecDeque<Bytes>,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        if let Some(piece) = self.ready.pop_front() {
            return Ok(Some(piece));
        }
        if self.at.is_empty() {
            return Ok(None);
        }
        let file = self.seek()?;
        let wanted = self.at.start - self.start..(self.at.end - self.start).min(file.bytes);
        let span = Span::of(file.id, file.bytes, &wanted, BLOCKS_MAX);
        let (buffer, blocks) = self.read(file.id, span).await?;
        let mut block_start = span.range().start;
        for block in blocks {
            let block_end = block_start + block.len() as u64;
            let (from, to) = (wanted.start.max(block_start), wanted.end.min(block_end));
            let at = |position: u64| block.start + (position - block_start) as usize;
            self.ready.push_back(buffer.slice(at(from)..at(to)));
            block_start = block_end;
        }
        self.at.start = self.start + span.range().end.min(wanted.end);
        Ok(self.ready.pop_front())
    }

    /// The file that the next byte lies in.
    fn seek(&mut self) -> Result<FilePart> {
        loop {
            let Some(file) = self.files.get(self.number).copied() else {
                return Err(self.damaged("its files are shorter than it is"));
            };
            if self.at.start < self.start + file.bytes {
                return Ok(file);
            }
            self.start += file.bytes;
            self.number += 1;
            self.open = None;
        }
    }

    async fn read(&mut self, id: u64, span: Span) -> Result<(Bytes, Vec<Range<usize>>)> {
        let permit = self.budget.read(span.file_bytes()).await?;
        let mut buffer = self.budget.buffers.take(span.file_bytes(), permit);
        let cached = match &self.open {
            Some(file) => file.read_cached_at(span.offset(), buffer.bytes_mut()),
            None => Ok(false),
        };
        if !cached.map_err(|error| self.unreadable(error))? {
            let (files, open) = (self.registry.clone(), self.open.take());
            let read = on_disk_thread(move || Ok(fill(&files, open, id, span, buffer))).await?;
            let (file, filled) = read.map_err(|error| self.unreadable(error))?;
            (self.open, buffer) = (Some(file), filled);
        }
        match span.verify(buffer.as_ref()) {
            Some(blocks) => Ok((Bytes::from_owner(buffer), blocks)),
            None => Err(self.damaged("a checksum of its file is wrong")),
        }
    }

    fn unreadable(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::NotFound => self.damaged("its file is missing"),
            io::ErrorKind::UnexpectedEof => self.damaged("its file is too short"),
            _ => io_error(error),
        }
    }

    fn damaged(&self, why: &str) -> Error {
        let (bucket, key) = &self.blob;
        tracing::error!(%bucket, %key, why, "a blob is damaged");
        damaged(bucket, key, why)
    }
}

fn fill(
    files: &Files,
    open: Option<Arc<dyn DiskFile>>,
    id: u64,
    span: Span,
    mut buffer: Held,
) -> io::Result<(Arc<dyn DiskFile>, Held)> {
    let file = open.map_or_else(|| files.open(id), Ok)?;
    file.read_exact_at(span.offset(), buffer.bytes_mut())?;
    Ok((file, buffer))
}

fn damaged(bucket: &BucketName, key: &BlobKey, why: &str) -> Error {
    Error::Corrupt(format!("blob `{key}` in bucket `{bucket}` is damaged: {why}; put it again"))
}
