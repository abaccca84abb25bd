//! Rows: the ordered map from bytes to bytes in which queues, tables and blobs keep what they know.
//!
//! A write is one frame of the journal with all its changes, so it happens as a whole or not at all. It is *accepted*
//! when it has its place in the journal, and *visible* when the frame is durable; a checkpoint then stores it in
//! `state.redb`, and the journal may forget it. Old rows therefore pin no segment.
//!
//! ```text
//!   accepted            pending rows, by key          what the next condition is checked against
//!      │ durable
//!   visible, active     rows since the checkpoint     ┐
//!      │ a checkpoint begins                          │ what readers see: a snapshot of all three,
//!   visible, frozen     rows of the checkpoint        │ the upper ones win
//!      │ it is durable                                │
//!   stored              the table `rows`              ┘
//! ```
//!
//! What must hold: no reader sees a row that is not durable; a condition sees every row that was accepted before it; a
//! snapshot never changes.
//!
//! A key begins with its [`Space`] and mostly with the number of the queue, table or bucket that owns it. Numbers are
//! given once ([`Accepting::next_number`]), so what a deleted one leaves behind can be swept up later: the delete
//! writes one row that names the dead prefix ([`bury`]), and checkpoints remove what is below it.

pub mod accept;
pub mod change;
mod overlay;
pub mod snapshot;
mod stripes;
#[cfg(test)]
mod tests;
pub mod write;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use anabranch_model::{Error, Result};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

pub use accept::Accepting;
pub use change::{Change, Key};
pub use overlay::Overlay;
use snapshot::Visible;
pub use snapshot::{Order, Snapshot};
use stripes::Stripes;

use crate::state::{State, Stored};

/// What the first byte of a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Space {
    /// Prefixes whose rows are to be removed.
    Dead = 0x00,
    /// Values of the engine itself.
    Meta = 0x01,
    /// Queues by name.
    Queues = 0x10,
    /// What a queue holds.
    QueueRows = 0x11,
    /// Tables by name.
    Tables = 0x20,
    /// Items, entries of indexes, and counts.
    Table = 0x21,
    /// Records of streams of changes.
    Changes = 0x22,
    /// Streams of changes by name.
    ChangeLogs = 0x23,
    /// Tokens of transactions.
    Tokens = 0x24,
    /// Buckets by name, dead ones, and the files of blobs.
    Buckets = 0x30,
    /// What is in a bucket, by its number.
    BucketRows = 0x31,
    /// Documents that only a server keeps, by owner.
    Documents = 0x40,
}

/// Where documents lie, and what says which of them are dead.
pub const DOCUMENT_SPACES: [Space; 2] = [Space::Dead, Space::Documents];

/// Whether a row is a document, or says that some are dead. Rows of other owners begin with a number that
/// [`Accepting::next_number`] gave, so their first frame has another row too.
pub fn is_document(key: &[u8]) -> bool {
    key.first().is_some_and(|space| DOCUMENT_SPACES.iter().any(|documents| *documents as u8 == *space))
}

/// The key of the next number that an owner of rows gets.
const NEXT_NUMBER: &[u8] = &[Space::Meta as u8, b'n'];

/// What is known of one row.
enum Seen {
    /// What it is.
    Above(Option<Bytes>),
    /// It is what is stored.
    Below(Stored),
}

/// A row as it was at one moment.
pub struct Glimpse {
    row: Option<Bytes>,
    /// Where it was found, if that was below the rows in memory.
    stored: Option<Stored>,
}

impl Glimpse {
    /// What it was.
    pub fn row(&self) -> Option<&Bytes> {
        self.row.as_ref()
    }
}

/// All rows.
pub struct Rows {
    state: Arc<State>,
    visible: RwLock<Visible>,
    pending: Stripes,
    /// Bytes that wait for a checkpoint. It is a hint, so that nobody needs the lock to look.
    bytes: AtomicUsize,
    /// Bytes in memory beyond which writers wait for a checkpoint.
    bytes_max: usize,
    /// Told when a checkpoint has made room, or could not.
    room: Notify,
    /// Why the last checkpoint failed.
    failure: Mutex<Option<Error>>,
    /// Dead rows were found that the last checkpoint did not remove.
    unswept: AtomicBool,
    /// There is a row that is no document, or was one.
    beyond_documents: AtomicBool,
    /// How often documents changed in this opening.
    documents_changed: AtomicU64,
}

impl Rows {
    /// The rows of a state, with room for so many bytes that no checkpoint has stored yet.
    pub fn open(state: Arc<State>, bytes_max: usize) -> Result<Rows> {
        let stored = state.view()?;
        let (used, beyond_documents) = (stored.any()?, stored.any_beyond_documents()?);
        let visible = RwLock::new(Visible::new(stored));
        Ok(Rows {
            state,
            visible,
            pending: Stripes::default(),
            bytes: AtomicUsize::new(0),
            bytes_max,
            room: Notify::new(),
            failure: Mutex::default(),
            unswept: AtomicBool::new(used),
            beyond_documents: AtomicBool::new(beyond_documents),
            documents_changed: AtomicU64::new(0),
        })
    }

    /// The rows as they are now.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let visible = self.visible.read();
        if visible.stored.is_current() {
            return Ok(Snapshot::of(&visible));
        }
        drop(visible);
        // A failed checkpoint closed the file. Whether the file has it or not, the frozen rows lie above.
        let mut visible = self.visible.write();
        if !visible.stored.is_current() {
            visible.stored = self.state.view()?;
        }
        Ok(Snapshot::of(&visible))
    }

    /// One row as it is now.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.glimpse(key).map(|seen| seen.row)
    }

    /// One row as it is now, for somebody who is going to ask for it again.
    pub fn glimpse(&self, key: &[u8]) -> Result<Glimpse> {
        loop {
            let stored = match self.in_memory(key)? {
                Seen::Above(row) => return Ok(Glimpse { row, stored: None }),
                Seen::Below(stored) => stored,
            };
            match stored.get(key) {
                // What a younger checkpoint has let go of may be written over by now.
                Err(Error::Corrupt(_)) if !self.visible.read().stored.is_same(&stored) => {}
                row => return row.map(|row| Glimpse { row, stored: Some(stored) }),
            }
        }
    }

    /// One row as it is now, which is what it was where no checkpoint came between and nothing lies above it.
    fn get_since(&self, key: &[u8], seen: &Glimpse) -> Result<Option<Bytes>> {
        match (self.in_memory(key)?, &seen.stored) {
            (Seen::Above(row), _) => Ok(row),
            (Seen::Below(now), Some(before)) if now.is_same(before) => Ok(seen.row.clone()),
            (Seen::Below(_), _) => self.get(key),
        }
    }

    /// Where the value of a row stands in the journal, if it is stored so and nothing lies above it.
    pub fn stays_at(&self, key: &[u8]) -> Result<Option<u64>> {
        match self.in_memory(key)? {
            Seen::Above(_) => Ok(None),
            Seen::Below(stored) => Ok(stored.reference(key)?.map(|reference| reference.position)),
        }
    }

    /// What lies above the stored rows. A snapshot of all rows would make the next write copy what it changes.
    fn in_memory(&self, key: &[u8]) -> Result<Seen> {
        let visible = self.visible.read();
        if let Some(row) = visible.in_memory(key) {
            return Ok(Seen::Above(row));
        }
        let stored = visible.stored.clone();
        drop(visible);
        Ok(Seen::Below(if stored.is_current() { stored } else { self.snapshot()?.into_stored() }))
    }

    /// Makes the changes of a durable frame visible. Returns true if they are the ones that make a checkpoint due.
    pub fn apply(&self, position: u64, changes: Vec<Change>) -> bool {
        self.note_kinds(&changes);
        let mut visible = self.visible.write();
        for (Change { key, value, fresh }, place) in change::with_places(position, changes) {
            visible.active.set(key.at(position), value, place, fresh);
        }
        let before = self.bytes();
        self.note_bytes(&visible);
        before < self.bytes_max / 2 && self.is_checkpoint_due()
    }

    fn note_bytes(&self, visible: &Visible) {
        self.bytes.store(visible.active.bytes() + visible.frozen.bytes(), Ordering::Relaxed);
    }

    /// Bytes that wait for a checkpoint, in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether a checkpoint should come at once.
    pub fn is_checkpoint_due(&self) -> bool {
        self.bytes() >= self.bytes_max / 2
    }

    /// Whether a checkpoint has something to do.
    pub fn is_dirty(&self) -> bool {
        self.unswept.load(Ordering::Relaxed) || !self.visible.read().active.is_empty()
    }

    fn note_kinds(&self, changes: &[Change]) {
        let documents = changes.iter().filter(|change| is_document(change.key.exact())).count();
        if documents < changes.len() {
            self.beyond_documents.store(true, Ordering::Relaxed);
        }
        if documents > 0 {
            self.documents_changed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether there is, or was, any row that is no document.
    pub fn any_beyond_documents(&self) -> bool {
        self.beyond_documents.load(Ordering::Relaxed)
    }

    /// Another number than before if documents changed since.
    pub fn documents_changed(&self) -> u64 {
        self.documents_changed.load(Ordering::Relaxed)
    }

    /// All documents and dead prefixes, unless they have more than `bytes_max`.
    pub fn documents(&self, bytes_max: usize) -> Result<Option<Vec<(Bytes, Bytes)>>> {
        let (snapshot, mut rows, mut bytes) = (self.snapshot()?, Vec::new(), 0);
        for space in DOCUMENT_SPACES {
            let bounds = [space as u8, space as u8 + 1];
            let bounds = (Bound::Included(&bounds[..1]), Bound::Excluded(&bounds[1..]));
            snapshot.range(bounds, Order::Forward, |key, value| {
                bytes += key.len() + value.len();
                rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
                Ok(if bytes > bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
        }
        Ok((bytes <= bytes_max).then_some(rows))
    }

    /// What the next checkpoint stores. The caller keeps others from publishing meanwhile.
    pub fn freeze(&self) -> Overlay {
        let mut visible = self.visible.write();
        let active = std::mem::take(&mut visible.active);
        visible.frozen.lay_above(active);
        self.note_bytes(&visible);
        visible.frozen.clone()
    }

    /// Lets go of what a checkpoint has stored.
    pub fn stored(&self, unswept: bool) {
        self.unswept.store(unswept, Ordering::Relaxed);
        match self.state.view() {
            Ok(view) => {
                let mut visible = self.visible.write();
                visible.stored = view;
                visible.frozen = Overlay::default();
                self.note_bytes(&visible);
                drop(visible);
                *self.failure.lock() = None;
            }
            // The next checkpoint stores them once more, which changes nothing.
            Err(error) => tracing::error!(%error, "stored rows stay in memory"),
        }
        self.room.notify_waiters();
    }

    /// Tells writers who wait for room that there is none.
    pub fn not_stored(&self, error: &Error) {
        *self.failure.lock() = Some(error.clone());
        self.room.notify_waiters();
    }

    /// Waits until there is room for another write. `hurry` asks for a checkpoint.
    pub async fn room(&self, hurry: impl Fn()) -> Result<()> {
        while self.bytes() > self.bytes_max {
            let mut told = std::pin::pin!(self.room.notified());
            told.as_mut().enable();
            if let Some(error) = self.failure.lock().clone() {
                return Err(error);
            }
            if self.bytes() <= self.bytes_max {
                break;
            }
            hurry();
            told.await;
        }
        Ok(())
    }
}

/// The change that lets checkpoints remove every row whose key begins with `prefix`. Nothing may be written there any
/// more.
pub fn bury(prefix: &[u8]) -> Change {
    Change::put([&[Space::Dead as u8], prefix].concat(), Vec::new())
}
