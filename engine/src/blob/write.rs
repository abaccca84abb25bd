//! Taking a body: short ones become a row, longer ones a file that is written piece by piece as it arrives.
//!
//! What must hold: when [`Core::take_body`] returns a file, its bytes and its name are durable. A call that fails or is
//! dropped leaves no file. A put that waits for its writer holds less than [`WAITING_BYTES`].

use std::sync::Arc;

use anabranch_model::Result;
use anabranch_model::blob::{Body, BodyDigest, BodyDigester, BodyOptions};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use super::block::BlockWriter;
use super::files::{Files, NewFile};
use super::layout::{FilePart, StoredBody};
use crate::core::Core;
use crate::state::io_error;
use crate::stream::read::on_disk_thread;

/// Bytes that are written in one step.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes from which on a put does not wait for more before it writes what it has.
const WAITING_BYTES: usize = 64 << 10;
/// Longest body that is kept in a row.
const INLINE_BYTES_MAX: u64 = 32 << 10;

/// A body that was taken.
pub struct TakenBody {
    /// What is known about it.
    pub digest: BodyDigest,
    /// Where it is.
    pub place: Place,
}

/// Where a body is that no row refers to yet.
pub enum Place {
    /// In memory, to be kept in a row.
    Inline(Bytes),
    /// In a file, durably.
    File(NewFile, u64),
    /// In files that have an owner already.
    Owned(Vec<FilePart>),
}

impl Place {
    /// How a row refers to it.
    pub fn stored(&self) -> StoredBody {
        match self {
            Place::Inline(_) => StoredBody::Inline,
            Place::File(file, bytes) => StoredBody::Files(vec![FilePart { id: file.id(), bytes: *bytes }]),
            Place::Owned(files) => StoredBody::Files(files.clone()),
        }
    }

    /// A frame that refers to it has its place in the journal.
    pub fn keep(&mut self) {
        if let Place::File(file, _) = self {
            file.keep();
        }
    }
}

impl Core {
    /// The longest body that is kept in a row. Its frame has to leave room in a segment for others.
    pub fn inline_bytes_max(&self) -> u64 {
        INLINE_BYTES_MAX.min(self.sequencer.frame_bytes_max() / 4)
    }

    /// Takes a body, or says why it is refused. One without bytes, or with up to `inline_max`, becomes no file.
    pub async fn take_body(&self, body: Body, options: BodyOptions, inline_max: u64) -> Result<TakenBody> {
        let mut digester = BodyDigester::new(options)?;
        let mut arriving = Arriving { body, left: None };
        let mut batch = arriving.gather().await?;
        if batch.last && batch.bytes as u64 <= inline_max {
            batch.pieces.iter().try_for_each(|piece| digester.update(piece))?;
            let place = Place::Inline(batch.pieces.concat().into());
            return Ok(TakenBody { digest: digester.finish()?, place });
        }
        let mut writing = Writing::Begun(self.blobs.files.clone(), self.epoch, Box::new(digester));
        loop {
            let permit = self.budget.write(batch.bytes).await;
            let step = move || {
                let _permit = permit;
                writing.write(batch)
            };
            match on_disk_thread(step).await? {
                Step::Next(next) => writing = next,
                Step::Done(taken) => return Ok(taken),
            }
            batch = arriving.gather().await?;
        }
    }
}

/// Pieces that are written in one step.
struct Batch {
    pieces: Vec<Bytes>,
    bytes: usize,
    /// No more follow.
    last: bool,
}

/// A body on its way in.
struct Arriving {
    body: Body,
    /// The rest of a piece that was too long for its batch.
    left: Option<Bytes>,
}

impl Arriving {
    async fn gather(&mut self) -> Result<Batch> {
        let mut batch = Batch { pieces: Vec::new(), bytes: 0, last: false };
        while batch.bytes < BATCH_BYTES {
            let next = match self.left.take() {
                Some(left) => Some(Ok(left)),
                None if batch.bytes < WAITING_BYTES => self.body.next().await,
                None => match self.body.next().now_or_never() {
                    Some(next) => next,
                    None => return Ok(batch),
                },
            };
            let Some(piece) = next else {
                batch.last = true;
                return Ok(batch);
            };
            self.add(&mut batch, piece?);
        }
        // A body that ends here is written and synced in one step.
        if self.left.is_none() {
            match self.body.next().now_or_never() {
                Some(None) => batch.last = true,
                Some(Some(piece)) => self.left = Some(piece?),
                None => {}
            }
        }
        Ok(batch)
    }

    fn add(&mut self, batch: &mut Batch, mut piece: Bytes) {
        let room = BATCH_BYTES - batch.bytes;
        if piece.len() > room {
            self.left = Some(piece.split_off(room));
        }
        if !piece.is_empty() {
            batch.bytes += piece.len();
            batch.pieces.push(piece);
        }
    }
}

/// A file that is being written. It goes with its file if nobody finishes it.
enum Writing {
    /// With the epoch that names its file.
    Begun(Arc<Files>, u32, Box<BodyDigester>),
    Open(Box<OpenFile>),
}

struct OpenFile {
    files: Arc<Files>,
    file: NewFile,
    writer: BlockWriter,
    digester: Box<BodyDigester>,
}

enum Step {
    Next(Writing),
    Done(TakenBody),
}

impl Writing {
    fn write(self, batch: Batch) -> Result<Step> {
        let mut open = match self {
            Writing::Open(open) => open,
            Writing::Begun(files, epoch, digester) => {
                let (file, handle) = NewFile::create(&files, epoch)?;
                let writer = BlockWriter::new(handle, file.id());
                Box::new(OpenFile { files, file, writer, digester })
            }
        };
        batch.pieces.iter().try_for_each(|piece| open.digester.update(piece))?;
        open.writer.write(&batch.pieces, batch.last).map_err(io_error)?;
        if !batch.last {
            return Ok(Step::Next(Writing::Open(open)));
        }
        let OpenFile { files, file, writer, digester } = *open;
        // What is refused needs no sync.
        let digest = digester.finish()?;
        writer.sync().map_err(io_error)?;
        files.sync_name(file.id()).map_err(io_error)?;
        Ok(Step::Done(TakenBody { digest, place: Place::File(file, writer.length()) }))
    }
}
