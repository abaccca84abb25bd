//! The materialised state: catalogue and index of the journal in `state.redb`, committed together with the position
//! of the journal that it covers.
//!
//! | table | key | value | lives |
//! |---|---|---|---|
//! | `meta` | `covered` | position, epoch, last state frame | always |
//! | `meta` | `checkpoint` | number of the last checkpoint | always |
//! | `streams` | stream | name, creation, retention, next shard number | while the stream exists |
//! | `shards` | stream, shard | range, lineage, horizon, tail | until retention or deletion has removed its index |
//! | `index` | stream, shard, first origin | up to 128 entries that say where frames lie | while a frame is live |
//! | `segments` | segment | live bytes | while the segment exists |
//! | `rows` | space, owner, the owner's own key | what queues, tables and blobs keep (see `rows`) | until it is removed, or its owner is |
//!
//! What must hold: only durable frames reach this file; a value carries a checksum over its key and itself, since
//! redb verifies its own only when it repairs; the file can be behind the journal, never ahead of it.

pub mod backend;
pub mod catalogue;
pub mod checkpoint;
pub mod copy;
pub mod index;
pub mod reference;
mod scratch;
mod stored;

use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anabranch_model::{Disk, DiskFile, Error, Open, Result};
use parking_lot::{Mutex, RwLock};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use rustix::io::Errno;

use crate::encoding::{Put, Take};
use crate::journal::Segments;
use backend::DiskBackend;
pub use catalogue::{ClosedRow, ShardKey, ShardRow, StreamRow};
pub use checkpoint::{Checkpoint, Outcome, ShardChange};
pub use copy::{COPY_FILE, CatalogueCopy};
pub use index::{Block, Entry};
use scratch::Scratch;
pub use stored::Stored;

pub(crate) type Table = TableDefinition<'static, &'static [u8], &'static [u8]>;
pub(crate) const META: Table = TableDefinition::new("meta");
pub(crate) const STREAMS: Table = TableDefinition::new("streams");
pub(crate) const SHARDS: Table = TableDefinition::new("shards");
pub(crate) const INDEX: Table = TableDefinition::new("index");
pub(crate) const SEGMENTS: Table = TableDefinition::new("segments");
pub(crate) const ROWS: Table = TableDefinition::new("rows");
pub(crate) const COVERED: &[u8] = b"covered";
pub(crate) const CHECKPOINT: &[u8] = b"checkpoint";

/// The file.
pub const FILE: &str = "state.redb";
const FILE_NEW: &str = "state.redb.new";
/// A file up to this size is verified whole when it is opened; in a larger one each value still carries its checksum.
const VERIFIED_BYTES_MAX: u64 = 256 << 20;

/// How much of the journal the state contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    /// Everything before this position.
    pub position: u64,
    /// The epoch at that position.
    pub epoch: u32,
    /// The last state frame before that position.
    pub last_state: u64,
}

/// Everything but the index, as it was at [`Covered::position`].
#[derive(Debug)]
pub struct Loaded {
    /// The number of the last checkpoint.
    pub checkpoint: u64,
    /// How far this goes.
    pub covered: Covered,
    /// Streams by identifier.
    pub streams: Vec<(u64, StreamRow)>,
    /// Shards in the order of streams and numbers.
    pub shards: Vec<(ShardKey, ShardRow)>,
    /// Live bytes of segments.
    pub segments: Vec<(u64, u64)>,
}

/// The open file. After a failed commit it is opened anew at the next use.
pub struct State {
    disk: Arc<dyn Disk>,
    /// Where values stand that are not in the file.
    segments: Arc<Segments>,
    cache_bytes: usize,
    /// Stands in for the file as long as nothing may be written to the directory.
    scratch: Mutex<Option<Arc<Scratch>>>,
    database: RwLock<Option<Opened>>,
    /// How often the file was given up, so that a reader of an earlier opening can be told.
    openings: Arc<AtomicU64>,
    /// Nobody opens the file here any more.
    shut: AtomicBool,
    /// The checkpoint that failed last, and what it does if it is in the file all the same.
    failed: Mutex<Option<(u64, Outcome)>>,
}

impl State {
    /// Makes the file with what `checkpoint` says. The name appears only when the contents are durable.
    pub fn create(disk: &Arc<dyn Disk>, checkpoint: &Checkpoint) -> Result<()> {
        if disk.list("").map_err(io_error)?.iter().any(|name| name == FILE_NEW) {
            disk.remove(FILE_NEW).map_err(io_error)?;
        }
        let file = disk.open(FILE_NEW, Open::CreateNew).map_err(io_error)?;
        fill(file, checkpoint)?;
        // A name that is lost is no loss: the state can be built again, and whoever opens the directory syncs the root.
        disk.rename(FILE_NEW, FILE).map_err(io_error)
    }

    /// Opens and verifies the file without a change to it: what is written stays in memory until [`State::begin_to_write`].
    pub fn look(disk: Arc<dyn Disk>, segments: Arc<Segments>, cache_bytes: usize) -> Result<State> {
        let file = open_file(&disk)?;
        let small = file.len().map_err(io_error)? <= VERIFIED_BYTES_MAX;
        let scratch = Scratch::over(file).map_err(io_error)?;
        let state = State::on(scratch, disk, segments, cache_bytes);
        let mut database = state.open_database()?;
        if small && !guarded(|| Ok(database.check_integrity()?)).map_err(store_error)? {
            return Err(Error::Corrupt(format!("`{FILE}` is damaged: its checksums do not match")));
        }
        guarded(|| stored::ensure(&database)).map_err(store_error)?;
        *state.database.write() = Some(database);
        Ok(state)
    }

    /// A state in memory with what `checkpoint` says, beside a file that cannot be trusted.
    pub fn in_memory(
        disk: Arc<dyn Disk>,
        segments: Arc<Segments>,
        cache_bytes: usize,
        checkpoint: &Checkpoint,
    ) -> Result<State> {
        let state = State::on(Scratch::empty(), disk, segments, cache_bytes);
        let scratch = state.scratch.lock().clone();
        if let Some(scratch) = scratch {
            fill(scratch, checkpoint)?;
        }
        Ok(state)
    }

    fn on(scratch: Scratch, disk: Arc<dyn Disk>, segments: Arc<Segments>, cache_bytes: usize) -> State {
        State {
            disk,
            segments,
            cache_bytes,
            scratch: Mutex::new(Some(Arc::new(scratch))),
            database: RwLock::default(),
            openings: Arc::default(),
            shut: AtomicBool::new(false),
            failed: Mutex::default(),
        }
    }

    /// From now on what is written goes to the file.
    pub fn begin_to_write(&self) -> Result<()> {
        *self.scratch.lock() = None;
        self.forget();
        self.with(stored::ensure)
    }

    /// Reads everything but the index.
    pub fn load(&self) -> Result<Loaded> {
        self.with(|database| {
            let read = database.begin_read()?;
            let meta = read.open_table(META)?;
            let covered = meta.get(COVERED)?.ok_or_else(|| damaged(META))?;
            let covered = Covered::decode(unseal(META, COVERED, covered.value())?)?;
            Ok(Loaded {
                checkpoint: checkpoint::checkpoint_number(&read)?,
                covered,
                streams: all(&read, STREAMS, |k, v| Ok((u64_key(k)?, StreamRow::decode(v)?)))?,
                shards: all(&read, SHARDS, |k, v| Ok((ShardKey::decode(k)?, ShardRow::decode(v)?)))?,
                segments: all(&read, SEGMENTS, |k, v| Ok((u64_key(k)?, Take(v).u64()?)))?,
            })
        })
    }

    /// The last block of a shard's index that begins at `origin` or before.
    pub fn block_at(&self, shard: ShardKey, origin: u64) -> Result<Option<Block>> {
        self.block(shard, 0, origin, true)
    }

    /// The first block of a shard's index that begins behind `origin`.
    pub fn block_after(&self, shard: ShardKey, origin: u64) -> Result<Option<Block>> {
        self.block(shard, origin.saturating_add(1), u64::MAX, false)
    }

    fn block(&self, shard: ShardKey, first: u64, last: u64, from_the_end: bool) -> Result<Option<Block>> {
        self.with(|database| {
            let table = database.begin_read()?.open_table(INDEX)?;
            let (first, last) = (shard.index_key(first), shard.index_key(last));
            let mut range = table.range(&first[..]..=&last[..])?;
            let row = if from_the_end { range.next_back() } else { range.next() };
            let Some(row) = row else { return Ok(None) };
            let (key, value) = row?;
            Ok(Some(Block::decode(unseal(INDEX, key.value(), value.value())?)?))
        })
    }

    /// Shows the blocks of a shard's index in order, from the one that holds `origin` on, until `visit` says false.
    pub fn blocks_from(
        &self,
        shard: ShardKey,
        origin: u64,
        mut visit: impl FnMut(Block) -> bool,
    ) -> Result<()> {
        self.with(|database| {
            let table = database.begin_read()?.open_table(INDEX)?;
            let (first, from) = (shard.index_key(0), shard.index_key(origin));
            let last = shard.index_key(u64::MAX);
            let before = table.range(&first[..]..&from[..])?.next_back();
            for row in before.into_iter().chain(table.range(&from[..]..=&last[..])?) {
                let (key, value) = row?;
                let block = Block::decode(unseal(INDEX, key.value(), value.value())?)?;
                if block.entries[block.entries.len() - 1].origin >= origin && !visit(block) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Runs `action` on the database, opening it if a failure closed it.
    pub(crate) fn with<T>(
        &self,
        mut action: impl FnMut(&Database) -> std::result::Result<T, Fault>,
    ) -> Result<T> {
        loop {
            let outcome = self.database.read().as_ref().map(|database| guarded(|| action(database)));
            match outcome {
                Some(Ok(value)) => return Ok(value),
                Some(Err(fault)) => {
                    // After a failed call redb refuses every other until it is opened again.
                    if !matches!(fault, Fault::Damaged(_)) {
                        self.forget();
                    }
                    return Err(store_error(fault));
                }
                None => {}
            }
            let mut slot = self.database.write();
            if self.shut.load(Ordering::Acquire) {
                return Err(Error::Stopped("it was shut down".into()));
            }
            if slot.is_none() {
                *slot = Some(self.open_database()?);
            }
        }
    }

    fn open_database(&self) -> Result<Opened> {
        let scratch = self.scratch.lock().clone();
        let file: Arc<dyn DiskFile> = match scratch {
            Some(scratch) => scratch,
            None => open_file(&self.disk)?,
        };
        let mut builder = Database::builder();
        builder.set_cache_size(self.cache_bytes);
        let open = || builder.create_with_backend(DiskBackend::new(file));
        guarded(|| Ok(Opened(Some(open()?)))).map_err(store_error)
    }

    /// Closes the file for good: somebody else may open it from now on, and two who write to it would destroy it.
    pub fn shut(&self) {
        let mut database = self.database.write();
        self.openings.fetch_add(1, Ordering::AcqRel);
        self.shut.store(true, Ordering::Release);
        *database = None;
    }

    /// Closes the file, so that the next use opens it and finds what is really on the disk.
    fn forget(&self) {
        let mut database = self.database.write();
        self.openings.fetch_add(1, Ordering::AcqRel);
        *database = None;
    }
}

/// An open file, which is closed without a panic whatever is in it.
struct Opened(Option<Database>);

impl Deref for Opened {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Opened {
    fn deref_mut(&mut self) -> &mut Database {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let database = self.0.take();
        let _ = guarded(move || {
            drop(database);
            Ok(())
        });
    }
}

/// redb asserts what it believes of its own file, and a damaged one may break that.
fn guarded<T>(action: impl FnOnce() -> std::result::Result<T, Fault>) -> std::result::Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(action)).unwrap_or(Err(Fault::Panicked))
}

fn open_file(disk: &Arc<dyn Disk>) -> Result<Arc<dyn DiskFile>> {
    disk.open(FILE, Open::Existing).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Corrupt(format!("`{FILE}` is missing")),
        _ => io_error(error),
    })
}

/// Makes a database of what `checkpoint` says in an empty file.
fn fill(file: Arc<dyn DiskFile>, checkpoint: &Checkpoint) -> Result<()> {
    let database =
        Database::builder().create_with_backend(DiskBackend::new(file)).map_err(|e| store_error(e.into()))?;
    checkpoint::initialise(&database, checkpoint).map_err(store_error)
}

impl Covered {
    fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(20);
        bytes.put_u64(self.position);
        bytes.put_u32(self.epoch);
        bytes.put_u64(self.last_state);
        bytes
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Covered, Fault> {
        let mut take = Take(bytes);
        Ok(Covered { position: take.u64()?, epoch: take.u32()?, last_state: take.u64()? })
    }
}

/// What goes wrong between this module and redb.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A call of redb failed.
    Redb(redb::Error),
    /// redb met something it had thought impossible.
    Panicked,
    /// A value is not what was written.
    Damaged(String),
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Fault::Redb(error.into())
    }
}

impl From<crate::encoding::Malformed> for Fault {
    fn from(_: crate::encoding::Malformed) -> Self {
        Fault::Damaged(format!("`{FILE}` holds a value that cannot be read"))
    }
}

fn damaged(table: Table) -> Fault {
    use redb::TableHandle;
    Fault::Damaged(format!(
        "`{FILE}` is damaged: a value of table `{}` does not match its checksum; opening the directory again builds the file \
         anew, or says what is lost",
        table.name()
    ))
}

pub(crate) fn store_error(fault: Fault) -> Error {
    match fault {
        // A damaged header sends redb to places that do not exist, or is not recognised.
        Fault::Redb(redb::Error::Io(error))
            if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData) =>
        {
            Error::Corrupt(format!("`{FILE}` is damaged: {error}"))
        }
        Fault::Redb(redb::Error::Io(error)) => io_error(error),
        Fault::Redb(error) => Error::Corrupt(format!("`{FILE}`: {error}")),
        Fault::Panicked => Error::Corrupt(format!(
            "`{FILE}` is damaged: opening the directory again builds it anew, or says what is lost"
        )),
        Fault::Damaged(text) => Error::Corrupt(text),
    }
}

pub(crate) fn io_error(error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull => Error::DiskFull,
        // Not the disk lacks something, but this process, and only until others have closed theirs.
        _ if lacks_files(&error) => Error::Unavailable(format!("no file can be opened: {error}")),
        _ => Error::Stopped(format!("the disk failed: {error}")),
    }
}

/// Whether as many files are open as may be.
fn lacks_files(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Adds the checksum over key and value.
pub(crate) fn seal(key: &[u8], mut value: Vec<u8>) -> Vec<u8> {
    let checksum = checksum(key, &value);
    value.put_u32(checksum);
    value
}

/// Checks and removes the checksum.
pub(crate) fn unseal<'a>(table: Table, key: &[u8], sealed: &'a [u8]) -> std::result::Result<&'a [u8], Fault> {
    let (value, sum) = sealed.split_last_chunk::<4>().ok_or_else(|| damaged(table))?;
    if u32::from_le_bytes(*sum) == checksum(key, value) { Ok(value) } else { Err(damaged(table)) }
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

fn u64_key(key: &[u8]) -> std::result::Result<u64, Fault> {
    key.try_into().map(u64::from_be_bytes).map_err(|_| crate::encoding::Malformed.into())
}

fn all<T>(
    read: &redb::ReadTransaction,
    table: Table,
    decode: impl Fn(&[u8], &[u8]) -> std::result::Result<T, Fault>,
) -> std::result::Result<Vec<T>, Fault> {
    let mut rows = Vec::new();
    for row in read.open_table(table)?.iter()? {
        let (key, value) = row?;
        rows.push(decode(key.value(), unseal(table, key.value(), value.value())?)?);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_will_give_back_stops_nothing() {
        let error = |errno: Errno| io_error(errno.into());
        assert_eq!(error(Errno::NOSPC), Error::DiskFull);
        for errno in [Errno::MFILE, Errno::NFILE] {
            assert!(matches!(error(errno), Error::Unavailable(_)), "{errno}");
        }
        assert!(matches!(error(Errno::IO), Error::Stopped(_)));
    }
}
