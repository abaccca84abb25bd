//! Taking a body: short ones become a row, longer ones a file that is written piece by piece as it arrives.
//!
//! What must hold: when [`Core::take_body`] returns a file, its bytes and its name are durable. A call that fails or is
//! dropped leaves no file. A put that waits for its writer holds less than [`WAITING_BYTES`].

use std::sync::Arc;

use anabranch_model::Result;
use anabranch_model::blob::{Body, BodyDigest, BodyDigester, BodyOptions};
use bytes::{Bytes, BytesMut};
use futures_util::future::join;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::OwnedSemaphorePermit;

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
/// Bytes that are summed in one turn of a task.
const TURN_BYTES: usize = 256 << 10;
/// Pieces shorter than this are gathered in one: what belongs to a piece would be more than the piece.
const PIECE_BYTES_MIN: usize = 4 << 10;
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
        let mut writing = Writing::Begun(self.blobs.files.clone(), self.epoch);
        loop {
            let permit = self.budget.write(batch.bytes).await;
            let admitted = Arc::new(Admitted { batch, _permit: permit });
            let taken = admitted.clone();
            // Neither needs the other, and to sum a body takes longer than to bring it to a fast disk.
            let step = on_disk_thread(move || writing.write(&taken.batch));
            let (written, summed) = join(step, sum(&mut digester, &admitted.batch)).await;
            summed?;
            match written? {
                Step::Next(next) => writing = next,
                Step::Done(place) => return Ok(TakenBody { digest: digester.finish()?, place }),
            }
            batch = arriving.gather().await?;
        }
    }
}

/// A batch with the memory that it occupies, given back when nobody needs its pieces any more.
struct Admitted {
    batch: Batch,
    _permit: OwnedSemaphorePermit,
}

/// Sums pieces in the caller's task, which gives way to others before it has taken half a millisecond.
async fn sum(digester: &mut BodyDigester, batch: &Batch) -> Result<()> {
    let mut bytes = 0;
    for part in batch.pieces.iter().flat_map(|piece| piece.chunks(TURN_BYTES)) {
        if bytes + part.len() > TURN_BYTES {
            tokio::task::yield_now().await;
            bytes = 0;
        }
        digester.update(part)?;
        bytes += part.len();
    }
    Ok(())
}

/// Pieces that are written in one step.
#[derive(Default)]
struct Batch {
    pieces: Vec<Bytes>,
    /// Short pieces behind them that are not in one yet.
    short: BytesMut,
    bytes: usize,
    /// No more follow.
    last: bool,
}

impl Batch {
    fn add(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        if piece.len() < PIECE_BYTES_MIN {
            self.short.extend_from_slice(&piece);
        } else {
            self.gather_short();
            self.pieces.push(piece);
        }
    }

    fn gather_short(&mut self) {
        if !self.short.is_empty() {
            self.pieces.push(self.short.split().freeze());
        }
    }

    /// All pieces, in their order.
    fn finished(mut self, last: bool) -> Batch {
        self.gather_short();
        Batch { last, ..self }
    }
}

/// A body on its way in.
struct Arriving {
    body: Body,
    /// The rest of a piece that was too long for its batch.
    left: Option<Bytes>,
}

impl Arriving {
    async fn gather(&mut self) -> Result<Batch> {
        let mut batch = Batch::default();
        while batch.bytes < BATCH_BYTES {
            let next = match self.left.take() {
                Some(left) => Some(Ok(left)),
                None if batch.bytes < WAITING_BYTES => self.body.next().await,
                None => match self.body.next().now_or_never() {
                    Some(next) => next,
                    None => return Ok(batch.finished(false)),
                },
            };
            let Some(piece) = next else { return Ok(batch.finished(true)) };
            let (mut piece, room) = (piece?, BATCH_BYTES - batch.bytes);
            if piece.len() > room {
                self.left = Some(piece.split_off(room));
            }
            batch.add(piece);
        }
        // A body that ends here is written and synced in one step.
        let mut last = false;
        if self.left.is_none() {
            match self.body.next().now_or_never() {
                Some(None) => last = true,
                Some(Some(piece)) => self.left = Some(piece?),
                None => {}
            }
        }
        Ok(batch.finished(last))
    }
}

/// A file that is being written. It goes with its file if nobody finishes it.
enum Writing {
    /// With the epoch that names its file.
    Begun(Arc<Files>, u32),
    Open(Box<OpenFile>),
}

struct OpenFile {
    file: NewFile,
    writer: BlockWriter,
}

enum Step {
    Next(Writing),
    Done(Place),
}

impl Writing {
    fn write(self, batch: &Batch) -> Result<Step> {
        let mut open = match self {
            Writing::Open(open) => open,
            Writing::Begun(files, epoch) => {
                let (file, handle) = NewFile::create(&files, epoch)?;
                let writer = BlockWriter::new(handle, file.id());
                Box::new(OpenFile { file, writer })
            }
        };
        open.writer.write(&batch.pieces, batch.last).map_err(io_error)?;
        if !batch.last {
            return Ok(Step::Next(Writing::Open(open)));
        }
        let OpenFile { file, writer } = *open;
        writer.sync().map_err(io_error)?;
        file.sync_name().map_err(io_error)?;
        metrics::counter!("anabranch_blob_files_written_total").increment(1);
        metrics::counter!("anabranch_blob_file_bytes_written_total").increment(writer.length());
        Ok(Step::Done(Place::File(file, writer.length())))
    }
}
