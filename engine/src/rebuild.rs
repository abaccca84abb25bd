//! Building `state.redb` again from the journal and the copy of the catalogue, when the file is damaged or lost.
//!
//! Sealed segments are read from front to back; what the active one holds behind the covered position is left to the
//! ordinary recovery. Frames of streams that are gone, and records below the horizon, are dead and stay so.
//!
//! Rows cannot be built again, documents aside. Where there were others the streams are built in memory only, and the directory is
//! left as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_model::{Disk, Error, Result};

use crate::journal::recovery::{Scanned, scan};
use crate::journal::{Header, Kind, Segments};
use crate::rows::change::{self, with_places};
use crate::rows::{Change, Overlay, is_document};
use crate::state::{CatalogueCopy, Checkpoint, Covered, Entry, FILE, ShardChange, ShardKey, State, io_error};
use crate::stream::catalogue::Catalogue;
use crate::stream::locate::end_of;
use crate::stream::operation::Operation;
use crate::stream::shard::Shard;

const FILE_DAMAGED: &str = "state.redb.damaged";

/// What the journal and the copy of the catalogue say.
pub struct Rebuilt {
    /// What the state is to contain.
    pub checkpoint: Checkpoint,
    /// There were rows that nobody has any more.
    pub rows_lost: bool,
}

impl Rebuilt {
    /// Makes the file anew. What is left of the old one is put aside.
    pub fn store(&self, disk: &Arc<dyn Disk>) -> Result<()> {
        if disk.list("").map_err(io_error)?.iter().any(|name| name == FILE) {
            disk.rename(FILE, FILE_DAMAGED).map_err(io_error)?;
        }
        State::create(disk, &self.checkpoint)
    }
}

/// Finds out what the state has to be, and changes nothing.
pub fn rebuild(disk: &Arc<dyn Disk>, segments: &Segments) -> Result<Rebuilt> {
    let copy = CatalogueCopy::read(disk)?;
    let mut rows = Overlay::default();
    let documents = copy.documents.iter().flatten();
    documents.for_each(|(key, value)| rows.set(key.clone(), Some(value.clone()), 0, false));
    let active = segments.all().into_iter().rev().find(|segment| {
        let start = segments.start_of(segment.number);
        scan(segments, segment, start).next().is_some_and(|first| first.position() == start)
    });
    let active_start = active.map_or(0, |segment| segments.start_of(segment.number));
    let mut work = Rebuilding {
        target: copy.covered.position.max(active_start),
        covered: copy.covered,
        catalogue: Catalogue::default(),
        entries: BTreeMap::new(),
        rows,
        rows_lost: copy.documents.is_none(),
        holes: Vec::new(),
    };
    work.load(&copy)?;
    for segment in segments.all() {
        let start = segments.start_of(segment.number);
        for scanned in scan(segments, &segment, start) {
            work.add(scanned, segments)?;
        }
    }
    let rows_lost = work.rows_lost;
    Ok(Rebuilt { checkpoint: work.finish(segments), rows_lost })
}

struct Rebuilding {
    /// The state is to contain everything before this position.
    target: u64,
    covered: Covered,
    catalogue: Catalogue,
    entries: BTreeMap<ShardKey, BTreeMap<u64, Entry>>,
    /// Documents.
    rows: Overlay,
    /// There was another row.
    rows_lost: bool,
    holes: Vec<(u64, u64)>,
}

impl Rebuilding {
    fn load(&mut self, copy: &CatalogueCopy) -> Result<()> {
        for (id, row) in &copy.streams {
            let shards = copy.shards.iter().filter(|(key, _)| key.stream == *id);
            let shards = shards.map(|(key, row)| Arc::new(Shard::load(*key, row.clone(), 0))).collect();
            self.catalogue.load(*id, row.clone(), shards)?;
        }
        Ok(())
    }

    fn add(&mut self, scanned: Scanned, segments: &Segments) -> Result<()> {
        match scanned {
            Scanned::Hole(from, to) if from < self.target => self.holes.push((from, to)),
            Scanned::Hole(..) => {}
            Scanned::Frame(header, _) if header.position >= self.target => {
                if self.rows_lost && header.position == self.target {
                    self.covered.last_state = header.last_state;
                }
                self.add_moved(&header);
            }
            Scanned::Frame(header, payload) => {
                if header.position >= self.covered.position {
                    self.covered.epoch = header.epoch;
                    self.expect_state(&header, segments)?;
                }
                match header.kind {
                    Kind::Records => self.add_records(&header),
                    Kind::Catalogue if header.position >= self.covered.position => {
                        let sense = header.matches(&payload).then(|| Operation::decode(&payload));
                        let operation = sense.and_then(|sense| sense.ok());
                        let replayed = operation.map(|done| self.catalogue.replay(done, header.position));
                        if !matches!(replayed, Some(Ok(()))) {
                            return Err(lost(header.position));
                        }
                        self.covered.last_state = header.position;
                    }
                    Kind::Rows if header.position >= self.covered.position => {
                        if !self.rows_lost {
                            let sense = header.matches(&payload).then(|| change::decode(&payload));
                            let changes =
                                sense.and_then(|sense| sense.ok()).ok_or_else(|| lost(header.position))?;
                            self.add_documents(header.position, changes);
                        }
                        self.covered.last_state = header.position;
                    }
                    Kind::Catalogue | Kind::Rows | Kind::Opened | Kind::End => {}
                }
            }
        }
        Ok(())
    }

    /// No change of state before this frame was passed over, but for rows that the journal has forgotten with their segment. The
    /// copy has every change of the catalogue that was in one.
    fn expect_state(&mut self, header: &Header, segments: &Segments) -> Result<()> {
        let forgotten = || self.rows_lost && segments.holding(header.last_state).is_none();
        if header.last_state != self.covered.last_state && !forgotten() {
            return Err(lost(header.last_state));
        }
        self.covered.last_state = header.last_state;
        Ok(())
    }

    /// Changes documents that the copy has. The journal may have forgotten other rows.
    fn add_documents(&mut self, position: u64, changes: Vec<Change>) {
        for (Change { key, value, .. }, place) in with_places(position, changes) {
            let key = key.at(position);
            self.rows_lost |= !is_document(&key);
            self.rows.set(key, value, place, false);
        }
    }

    fn add_records(&mut self, header: &Header) {
        let (key, entry) = entry_of(header);
        // Frames come in the order of their positions, so the youngest copy of a moved one stays.
        self.entries.entry(key).or_default().insert(entry.origin, entry);
    }

    /// Recovery takes care of what stands behind the target, and expects the state to know where a moved frame came
    /// from. If that place was recycled already, the move was durable, and the frame itself stands for it.
    fn add_moved(&mut self, header: &Header) {
        if header.kind == Kind::Records && header.origin < self.target {
            let (key, entry) = entry_of(header);
            self.entries.entry(key).or_default().entry(entry.origin).or_insert(entry);
        }
    }

    fn finish(mut self, segments: &Segments) -> Checkpoint {
        let mut live: BTreeMap<u64, u64> = segments.all().iter().map(|segment| (segment.number, 0)).collect();
        let mut shards = Vec::new();
        for (_, shard) in self.catalogue.all_shards() {
            let entries = self.entries.remove(&shard.key).unwrap_or_default();
            let change = self.change(&shard, entries);
            for entry in change.added.iter().filter(|entry| entry.count > 0) {
                *live.entry(entry.position / segments.bytes).or_default() += u64::from(entry.bytes);
            }
            shards.push(change);
        }
        let dirty = self.catalogue.all_rows();
        Checkpoint {
            number: 0,
            covered: Covered { position: self.target, ..self.covered },
            streams: dirty.into_iter().map(|(id, row)| (id, Some(row))).collect(),
            shards,
            rows: if self.rows_lost { Overlay::default() } else { self.rows },
            live,
            segment_bytes: segments.bytes,
        }
    }

    fn change(&self, shard: &Shard, mut entries: BTreeMap<u64, Entry>) -> ShardChange {
        let mut row = shard.current_row();
        let ends = row.closed.as_ref().map_or(u64::MAX, |closed| closed.position);
        for (from, _) in self.holes.iter().filter(|(from, to)| *from < ends && *to > row.opened) {
            let entry =
                Entry { origin: *from, position: *from, bytes: 0, count: 0, arrival: row.last_arrival };
            entries.entry(*from).or_insert(entry);
        }
        let added: Vec<Entry> = entries.into_values().filter(|entry| entry.origin >= row.horizon).collect();
        if let Some(last) = added.last() {
            row.tail = row.tail.max(end_of(last));
            row.last_arrival = row.last_arrival.max(last.arrival);
        }
        ShardChange { key: shard.key, row, added: Arc::new(added), moved: Arc::default() }
    }
}

fn lost(position: u64) -> Error {
    Error::Corrupt(format!(
        "`{FILE}` is damaged, and so is the frame at {position} of the journal without which it cannot be built again: \
         put the directory back from a backup"
    ))
}

/// What is lost where `why` is the state of the file, and what is to be done.
pub fn rows_lost(why: &str) -> String {
    format!(
        "the queues, tables, blobs and documents of this directory are lost ({why}), for the journal has the latest changes of them \
         only. Streams can be read. Put the directory back from a backup with `anabranch restore`; nothing is changed in this one"
    )
}

fn entry_of(header: &Header) -> (ShardKey, Entry) {
    let entry = Entry {
        origin: header.origin,
        position: header.position,
        bytes: header.frame_bytes() as u32,
        count: header.count,
        arrival: header.arrival,
    };
    (ShardKey { stream: header.stream, number: header.shard }, entry)
}
