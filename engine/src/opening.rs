//! Opening a directory: make it if it is new, load the state, walk the rest of the journal, begin a new epoch.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anabranch_model::{Clock, Disk, Error, Result};
use parking_lot::Mutex;

use crate::blob::Blobs;
use crate::budget::Budget;
use crate::core::{Core, Published};
use crate::directory::Format;
use crate::engine::Options;
use crate::journal::recovery::{Event, Recovered, walk};
use crate::journal::segments::FOLDER;
use crate::journal::{Header, Kind, Segments, Sequencer};
use crate::queue::Queues;
use crate::rebuild::{Rebuilt, rebuild, rows_lost};
use crate::rows::{Rows, change};
use crate::state::{CatalogueCopy, Checkpoint, Covered, Entry, Loaded, ShardKey, State, io_error};
use crate::stream::catalogue::Catalogue;
use crate::stream::operation::Operation;
use crate::stream::shard::Shard;
use crate::table::Tables;

/// An opened directory, before its first frame of the new epoch.
pub struct Opened {
    /// The parts.
    pub core: Core,
    /// The position that the state covers.
    pub covered: u64,
    /// The number of the last checkpoint.
    pub checkpoint: u64,
    /// Whether the last process to hold the directory shut it down.
    pub clean: bool,
}

/// Opens a directory.
pub fn open(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, options: &Options) -> Result<Opened> {
    let found = Format::read(&*disk)?;
    let format = match found {
        Some(format) => format,
        None => create(&disk, options.segment_bytes)?,
    };
    let budget = Arc::new(Budget::new(options.memory_bytes));
    let segments = Segments::open(disk.clone(), format.segment_bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Corrupt(format!("the folder `{FOLDER}` is missing: put the directory back from a backup"))
        }
        _ => io_error(error),
    });
    let segments = Arc::new(segments?);
    let Found { state, loaded, rebuilt, rows_lost } = look(&disk, &segments, budget.cache_bytes())?;
    let (checkpoint, covered) = (loaded.checkpoint, loaded.covered);
    let state = Arc::new(state);
    let rows = Rows::open(state.clone(), budget.rows_bytes())?;
    let catalogue = Catalogue::default();
    let doomed = load(&catalogue, &state, &segments, loaded)?;
    doomed.iter().for_each(|shard| catalogue.mark(shard));
    let mut core = Core {
        blobs: Blobs::new(disk.clone()),
        disk,
        clock,
        sequencer: Arc::new(Sequencer::new(segments.bytes, covered.position, covered.last_state)),
        segments,
        state,
        rows,
        catalogue,
        tables: Tables::default(),
        queues: Queues::new(options.in_flight_max),
        budget,
        published: Mutex::new(Published {
            position: covered.position,
            last_state: covered.last_state,
            last_catalogue: 0,
            uncollected: 0,
        }),
        shard_limits: options.shard_limits,
        epoch: covered.epoch,
        read_only: None,
        rows_lost,
    };
    let recovered = match found {
        Some(_) => replay(&core, covered)?,
        // Nothing was ever written to a directory that was made just now.
        None => Recovered::at(covered.position, 0, 0),
    };
    if core.rows_lost.is_none() {
        core.tables = Tables::load(&core.rows.snapshot()?)?;
        core.blobs.load(&core.rows)?;
        core.queues.load(&core.rows, core.now_ms())?;
    }
    settle(&mut core, &recovered, covered, rebuilt)?;
    Ok(Opened { core, covered: covered.position, checkpoint, clean: recovered.end == covered.position })
}

/// Makes a directory. `FORMAT` comes last: without it, whatever lies here was never used.
fn create(disk: &Arc<dyn Disk>, segment_bytes: u64) -> Result<Format> {
    disk.create_folder(FOLDER).map_err(io_error)?;
    let segments = Segments::open(disk.clone(), segment_bytes).map_err(io_error)?;
    if segments.any_written().map_err(io_error)? {
        return Err(Error::Corrupt(
            "the data directory has a journal and no file `FORMAT`: put that file back from a backup, or copy the one \
             of another directory with the same version and size of segments"
                .into(),
        ));
    }
    for segment in segments.all() {
        let number = segment.number;
        drop(segment);
        segments.discard(number).map_err(io_error)?;
    }
    let first = segments.prepare().map_err(io_error)?;
    let position = segments.start_of(first.number);
    let first = Checkpoint::first(position, segment_bytes);
    CatalogueCopy {
        covered: first.covered,
        streams: Vec::new(),
        shards: Vec::new(),
        documents: Some(Vec::new()),
    }
    .write(disk)?;
    State::create(disk, &first)?;
    let format = Format { segment_bytes };
    format.write(&**disk)?;
    Ok(format)
}

/// The state, of which nothing is changed yet.
struct Found {
    state: State,
    loaded: Loaded,
    /// What the file is to be replaced with.
    rebuilt: Option<Rebuilt>,
    /// Why there are no rows.
    rows_lost: Option<String>,
}

/// Looks at the state, or builds it again in memory if it cannot be trusted.
fn look(disk: &Arc<dyn Disk>, segments: &Arc<Segments>, cache_bytes: usize) -> Result<Found> {
    let looked = State::look(disk.clone(), segments.clone(), cache_bytes);
    let reason = match looked.and_then(|state| state.load().map(|loaded| (state, loaded))) {
        Ok((state, loaded)) => return Ok(Found { state, loaded, rebuilt: None, rows_lost: None }),
        Err(Error::Corrupt(reason)) => reason,
        Err(error) => return Err(error),
    };
    tracing::error!(reason, "the state is built again from the journal");
    let rebuilt = rebuild(disk, segments)?;
    let state = State::in_memory(disk.clone(), segments.clone(), cache_bytes, &rebuilt.checkpoint)?;
    let loaded = state.load()?;
    let rows_lost = rebuilt.rows_lost.then(|| rows_lost(&reason));
    Ok(Found { state, loaded, rebuilt: Some(rebuilt), rows_lost })
}

/// Fills the catalogue from the state. Returns shards of which only the index is left.
fn load(
    catalogue: &Catalogue,
    state: &State,
    segments: &Segments,
    loaded: Loaded,
) -> Result<Vec<Arc<Shard>>> {
    let live: BTreeMap<u64, u64> = loaded.segments.into_iter().collect();
    for segment in segments.all() {
        segment.add_live(live.get(&segment.number).copied().unwrap_or(0));
    }
    let mut doomed = Vec::new();
    let mut shards: HashMap<u64, Vec<Arc<Shard>>> = HashMap::new();
    for (key, row) in loaded.shards {
        let stored_last =
            state.block_at(key, u64::MAX)?.map_or(0, |block| block.entries[block.entries.len() - 1].origin);
        let is_doomed = row.doomed;
        let shard = Arc::new(Shard::load(key, row, stored_last));
        if is_doomed {
            doomed.push(shard);
        } else {
            shards.entry(key.stream).or_default().push(shard);
        }
    }
    for (id, row) in loaded.streams {
        catalogue.load(id, row, shards.remove(&id).unwrap_or_default())?;
    }
    Ok(doomed)
}

fn replay(core: &Core, covered: Covered) -> Result<Recovered> {
    walk(&core.segments, covered.position, covered.epoch, covered.last_state, &mut |event| match event {
        Event::Frame(header, payload) => match header.kind {
            Kind::Records => {
                replay_records(core, header);
                Ok(())
            }
            Kind::Catalogue => Operation::decode(payload)
                .and_then(|operation| core.catalogue.replay(operation, header.position))
                .map_err(|_| Error::Corrupt(format!("the operation at {} makes no sense", header.position))),
            Kind::Rows if core.rows_lost.is_some() => Ok(()),
            Kind::Rows => change::decode(payload)
                .map(|changes| {
                    core.rows.apply(header.position, changes);
                })
                .map_err(|_| Error::Corrupt(format!("the rows at {} make no sense", header.position))),
            Kind::Opened | Kind::End => Ok(()),
        },
        Event::DamagedRecords(header) => {
            tracing::error!(position = header.position, count = header.count, "records are damaged");
            // A copy that the cleaner made is not needed: the original stays until a checkpoint covers the move.
            if header.origin == header.position {
                replay_records(core, header);
            }
            Ok(())
        }
        Event::Hole(from, to) => {
            tracing::error!(from, to, "frames of the journal are damaged: readers are told of the hole");
            // Which shards lost records cannot be told, so every reader who passes the place is told.
            for (_, shard) in core.catalogue.all_shards() {
                if shard.log().closed.is_none() {
                    let arrival = shard.log().last_arrival;
                    shard.log().add(Entry { origin: from, position: from, bytes: 0, count: 0, arrival });
                    core.catalogue.mark(&shard);
                }
            }
            Ok(())
        }
    })
}

fn replay_records(core: &Core, header: &Header) {
    let key = ShardKey { stream: header.stream, number: header.shard };
    let Some((_, shard)) = core.catalogue.shard_by_key(key) else { return };
    let Some(segment) = core.segments.holding(header.position) else { return };
    let entry = Entry {
        origin: header.origin,
        position: header.position,
        bytes: header.frame_bytes() as u32,
        count: header.count,
        arrival: header.arrival,
    };
    if header.origin == header.position {
        let mut accepted = shard.arrival_accepted.lock();
        *accepted = (*accepted).max(header.arrival);
        drop(accepted);
        core.add_records(&segment, &shard, entry, None);
    } else {
        core.move_records(&segment, &shard, entry);
    }
}

/// Goes on where the journal ends; files that nothing refers to are free. Only here it is known whether the directory may be
/// written to, and nothing in it has changed before.
fn settle(core: &mut Core, recovered: &Recovered, covered: Covered, rebuilt: Option<Rebuilt>) -> Result<()> {
    core.sequencer = Arc::new(Sequencer::new(core.segments.bytes, recovered.end, recovered.last_state));
    core.epoch = recovered.epoch;
    *core.published.lock() = Published {
        position: recovered.end,
        last_state: recovered.last_state,
        last_catalogue: 0,
        uncollected: 0,
    };
    let lost: Vec<&str> = core.rows_lost.iter().chain(&recovered.state_lost).map(String::as_str).collect();
    if !lost.is_empty() {
        let reason = format!("the directory is open for reading only: {}", lost.join("; and "));
        tracing::error!("{reason}");
        core.rows_lost = core.rows_lost.is_some().then(|| reason.clone());
        core.read_only = Some(reason);
        return Ok(());
    }
    if let Some(rebuilt) = rebuilt {
        rebuilt.store(&core.disk)?;
    }
    // The process before this one may have ended between giving `FORMAT` its name and making that name durable, and
    // without it the directory counts as unused.
    core.disk.sync_directory("").map_err(io_error)?;
    core.state.begin_to_write()?;
    core.segments.write_again(recovered.unproven.clone()).map_err(io_error)?;
    let (first, active) = (covered.position / core.segments.bytes, recovered.end / core.segments.bytes);
    // Segments that the copy of the catalogue needs wait for the first checkpoint, which brings it up to date.
    let copied =
        CatalogueCopy::read(&core.disk).is_ok_and(|copy| copy.covered.last_state == covered.last_state);
    let idle = |number: u64, live: u64| number > active || (number < first && live == 0 && copied);
    let numbers: Vec<(u64, u64)> = core.segments.all().iter().map(|s| (s.number, s.live())).collect();
    for (number, _) in numbers.into_iter().filter(|(number, live)| idle(*number, *live)) {
        if let Err(error) = core.segments.retire(number) {
            tracing::warn!(%error, segment = number, "an unused segment cannot be removed");
        }
    }
    Ok(())
}
