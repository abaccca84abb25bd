//! Reading: a position becomes a sequence number, entries say where the frames lie, and every byte that is handed out
//! has passed its checksum.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{
    Batch, Error, Next, Position, ReadLimit, Record, Result, SequenceNumber, ShardId, StreamName, Timestamp,
};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::sync::OwnedSemaphorePermit;

use super::locate::end_of;
use super::records::{decode, number, sequence};
use super::shard::Shard;
use crate::budget::part_of;
use crate::core::Core;
use crate::journal::frame::payload_range;
use crate::journal::{Header, Segment};
use crate::state::Entry;

/// Frames that lie this close together are read in one go.
const GAP_BYTES_MAX: u64 = 4 << 10;
/// A task reads this much from the page cache before it lets others have their turn.
const TURN_BYTES_MAX: usize = 2 << 20;
/// One go reads this much at most, unless a single frame is larger.
const SPAN_BYTES_MAX: u64 = 1 << 20;
/// Records are made of this much at a time, while it is still in the processor's cache.
const PART_BYTES_MAX: usize = 1 << 20;

impl Core {
    /// Reads a batch. See [`ShardSource::read`](anabranch_model::ShardSource::read).
    pub async fn read(
        self: &Arc<Self>,
        name: &StreamName,
        id: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let (_, shard) = self.catalogue.shard(name, id)?;
        if self.shard_limits {
            let admitted = shard.throttle.lock().read(self.clock.elapsed());
            admitted.map_err(|too_fast| Error::Throttled {
                shard: id.clone(),
                limit: too_fast.limit,
                retry_after: too_fast.retry_after,
            })?;
        }
        let batch = self.read_shard(&shard, from, limit.clamped()).await?;
        if self.shard_limits {
            shard.throttle.lock().have_read(batch.records.iter().map(Record::size).sum());
        }
        Ok(batch)
    }

    /// Where a read from this position would begin. See [`ShardSource::settle`](anabranch_model::ShardSource::settle).
    pub async fn settle(
        self: &Arc<Self>,
        name: &StreamName,
        id: &ShardId,
        from: Position,
    ) -> Result<Position> {
        let (_, shard) = self.catalogue.shard(name, id)?;
        let start = match from {
            // Only a time has to be looked for where the disk may be waited for.
            Position::AtTimestamp(_) => {
                let core = self.clone();
                on_disk_thread(move || core.start(&shard, from)).await?
            }
            _ => self.start(&shard, from)?,
        };
        Ok(Position::At(number(start)))
    }

    /// What was trimmed last. See [`ShardSource::trimmed`](anabranch_model::ShardSource::trimmed).
    pub fn trimmed(&self, name: &StreamName, id: &ShardId) -> Result<Option<SequenceNumber>> {
        let (_, shard) = self.catalogue.shard(name, id)?;
        let (horizon, tail) = {
            let log = shard.log();
            (log.horizon, log.tail)
        };
        // Behind the last record there may be nothing yet, however far the horizon is.
        Ok((horizon > shard.opened).then(|| number(sequence(horizon, 0).min(tail) - 1)))
    }

    /// Reads a batch of a shard that was looked up before.
    pub async fn read_shard(
        self: &Arc<Self>,
        shard: &Arc<Shard>,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        // Only what needs the disk leaves this task.
        if let Some(batch) = self.nothing_new(shard, from) {
            return Ok(batch);
        }
        // What is in the page cache is read here: to hand it to another thread would cost as much again, and the caller would
        // find the records in the cache of another processor.
        if let Outcome::Read(batch) = self.try_read(shard, from, limit, Pace::Cached, None, None).await? {
            return Ok(batch);
        }
        let (mut last, mut permit) = (None, None);
        loop {
            let (core, shard) = (self.clone(), shard.clone());
            let read = move || {
                let read = core.try_read(&shard, from, limit, Pace::Disk, last, permit);
                read.now_or_never().expect("a thread that may wait lets nobody have a turn")
            };
            match on_disk_thread(read).await? {
                Outcome::Read(batch) => return Ok(batch),
                Outcome::NotCached => (last, permit) = (None, None),
                Outcome::Busy(bytes) => (last, permit) = (None, Some(self.budget.read(bytes).await?)),
                Outcome::Moved(plan) => (last, permit) = (Some(plan), None),
            }
        }
    }

    /// Plans and reads. Only a task that others wait for yields in between.
    async fn try_read(
        &self,
        shard: &Shard,
        from: Position,
        limit: ReadLimit,
        pace: Pace,
        last: Option<Plan>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Outcome> {
        let plan = self.plan(shard, from, limit)?;
        let spans = spans(&plan.entries, self.segments.bytes);
        let bytes = spans.iter().map(|span| bytes_of(span)).sum();
        let mut permit = match permit.or_else(|| self.budget.try_read(bytes)) {
            Some(permit) => permit,
            None => return Ok(Outcome::Busy(bytes)),
        };
        // From here on the segments are held, and nobody recycles them.
        let held: Vec<Option<Arc<Segment>>> =
            spans.iter().map(|span| self.segments.holding(span[0].position)).collect();
        // The cleaner may have moved a frame after it was located; a second look finds it. What is missing in the same
        // place twice is really missing.
        if held.iter().any(Option::is_none) && last.as_ref() != Some(&plan) {
            return Ok(Outcome::Moved(plan));
        }
        let mut reading = Reading::new(&plan, limit);
        let (mut left, mut turn_bytes) = ((&spans[..], &held[..]), 0);
        while !left.0.is_empty() {
            let count = part_spans(left.0);
            let ((spans, more_spans), (held, more_held)) = (left.0.split_at(count), left.1.split_at(count));
            let bytes = spans.iter().map(|span| bytes_of(span)).sum();
            turn_bytes += bytes;
            if pace == Pace::Cached && turn_bytes > TURN_BYTES_MAX {
                tokio::task::yield_now().await;
                turn_bytes = bytes;
            }
            let share = part_of(&mut permit, bytes);
            let Some((buffer, payloads)) = self.fetch(shard, spans, held, pace, bytes, share) else {
                return Ok(Outcome::NotCached);
            };
            for (entry, payload) in payloads {
                if !reading.add(entry, payload.map(|range| buffer.slice(range))) {
                    let damaged = !reading.full;
                    return self.finish(shard, reading, damaged.then_some(entry)).map(Outcome::Read);
                }
            }
            left = (more_spans, more_held);
        }
        self.finish(shard, reading, None).map(Outcome::Read)
    }

    /// The answer to a reader at the end of a shard, who asks often.
    fn nothing_new(&self, shard: &Shard, from: Position) -> Option<Batch> {
        let log = shard.log();
        let from = match from {
            Position::Latest => log.tail,
            Position::At(sequence) => sequence.as_u128().unwrap_or(u128::MAX),
            Position::After(sequence) => sequence.next().as_u128().unwrap_or(u128::MAX),
            Position::TrimHorizon | Position::AtTimestamp(_) => return None,
        };
        (from >= log.tail).then(|| Batch {
            records: Vec::new(),
            next: match &log.closed {
                Some(closed) => Next::Ended(ids(&closed.children)),
                None => Next::At(Position::At(number(from))),
            },
            behind: Duration::ZERO,
        })
    }

    /// The first number that a read from a position covers.
    fn start(&self, shard: &Shard, from: Position) -> Result<u128> {
        let (horizon, tail) = {
            let log = shard.log();
            (sequence(log.horizon, 0), log.tail)
        };
        Ok(match from {
            Position::TrimHorizon => horizon,
            Position::Latest => tail,
            Position::At(sequence) => sequence.as_u128().unwrap_or(u128::MAX).max(horizon),
            Position::After(sequence) => sequence.next().as_u128().unwrap_or(u128::MAX).max(horizon),
            Position::AtTimestamp(time) => self.locate_time(shard, time.as_millis())?,
        })
    }

    /// Finds the frames that a read of this size from a position needs.
    fn plan(&self, shard: &Shard, from: Position, limit: ReadLimit) -> Result<Plan> {
        let from = self.start(shard, from)?;
        let (mut bytes, mut records, mut end) = (0, 0, 0);
        let mut entries = self.locate(shard, from, |entry| {
            let first_wanted =
                (from.saturating_sub(sequence(entry.origin, 0)) as u64).min(u64::from(entry.count));
            records += (u64::from(entry.count) - first_wanted) as usize;
            // What is read between two frames takes memory too.
            let gap = entry.position.checked_sub(end).filter(|gap| *gap <= GAP_BYTES_MAX).unwrap_or(0);
            end = entry.position + u64::from(entry.bytes);
            bytes += entry.bytes as usize + gap as usize;
            records >= limit.records || bytes >= limit.bytes
        })?;
        // The frame that goes over the limit would be read now for its first records, and again for the rest.
        if bytes > limit.bytes && entries.len() > 1 {
            entries.pop();
        }
        Ok(Plan { from, entries })
    }

    /// Reads the spans and checks every frame in them; `None` if that would take a wait that `pace` does not allow.
    fn fetch<'e>(
        &self,
        shard: &Shard,
        spans: &[&'e [Entry]],
        held: &[Option<Arc<Segment>>],
        pace: Pace,
        bytes: usize,
        permit: OwnedSemaphorePermit,
    ) -> Option<(Bytes, Vec<Found<'e>>)> {
        let mut buffer = self.budget.buffers.take(bytes, permit);
        let (mut payloads, mut start) = (Vec::new(), 0);
        for (span, segment) in spans.iter().zip(held) {
            let part = &mut buffer.bytes_mut()[start..start + bytes_of(span)];
            let whole = match segment {
                Some(segment) => self.read_span(segment, span[0].position, part, pace)?,
                None => false,
            };
            // Checked while it is still in the processor's cache.
            payloads.extend(span.iter().map(|entry| {
                let payload = if whole { payload_in(part, span[0].position, entry, shard) } else { None };
                (entry, payload.map(|range| range.start + start..range.end + start))
            }));
            start += part.len();
        }
        Some((Bytes::from_owner(buffer), payloads))
    }

    /// Whether the bytes could be read; `None` if `pace` does not allow the wait.
    fn read_span(&self, segment: &Segment, position: u64, buffer: &mut [u8], pace: Pace) -> Option<bool> {
        let offset = self.segments.offset(position);
        let outcome = match pace {
            Pace::Cached => match segment.file.read_cached_at(offset, buffer) {
                Ok(true) => Ok(()),
                // An error is the same at any pace; let the thread that may wait find out.
                Ok(false) | Err(_) => return None,
            },
            Pace::Disk => segment.file.read_exact_at(offset, buffer),
        };
        Some(
            outcome
                .inspect_err(|error| tracing::error!(%error, position, "a segment cannot be read"))
                .is_ok(),
        )
    }

    fn finish(&self, shard: &Shard, reading: Reading, damaged: Option<&Entry>) -> Result<Batch> {
        if let (Some(entry), true) = (damaged, reading.records.is_empty()) {
            return Err(self.damage(shard, reading.next, entry));
        }
        let log = shard.log();
        let caught_up = reading.next >= log.tail;
        let behind = match reading.records.last() {
            Some(record) if !caught_up => self.clock.now().since(record.arrival),
            None if !caught_up => self.clock.now().since(Timestamp::from_millis(log.last_arrival)),
            _ => Duration::ZERO,
        };
        let next = match &log.closed {
            Some(closed) if caught_up => Next::Ended(ids(&closed.children)),
            _ => Next::At(Position::At(number(reading.next))),
        };
        Ok(Batch { records: reading.records, next, behind })
    }

    fn damage(&self, shard: &Shard, from: u128, entry: &Entry) -> Error {
        metrics::counter!("anabranch_stream_damaged_frames_total").increment(1);
        tracing::error!(shard = %shard.id, stream = shard.key.stream, origin = entry.origin, "records are damaged");
        let from = from.max(sequence(entry.origin, 0));
        Error::Damaged { shard: shard.id.clone(), from: number(from), resume_at: number(end_of(entry)) }
    }
}

/// What a read has to fetch.
#[derive(Clone, PartialEq, Eq)]
struct Plan {
    /// The first number that is wanted.
    from: u128,
    entries: Vec<Entry>,
}

/// How long a read may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// It does not wait for the disk.
    Cached,
    /// It may.
    Disk,
}

/// An entry, and where its payload lies in the buffer, if it is what was written.
type Found<'e> = (&'e Entry, Option<Range<usize>>);

/// What became of an attempt to read.
enum Outcome {
    Read(Batch),
    /// It takes a wait for the disk.
    NotCached,
    /// The budget has no room for this many bytes now.
    Busy(usize),
    /// A frame is not where the plan says.
    Moved(Plan),
}

/// A batch in the making.
struct Reading {
    records: Vec<Record>,
    bytes: usize,
    /// The first number that is not in `records`.
    next: u128,
    limit: ReadLimit,
    full: bool,
}

impl Reading {
    fn new(plan: &Plan, limit: ReadLimit) -> Reading {
        let count: usize = plan.entries.iter().map(|entry| entry.count as usize).sum();
        let records = Vec::with_capacity(count.min(limit.records));
        Reading { records, bytes: 0, next: plan.from, limit, full: false }
    }

    /// Adds the records of a frame; false if the batch is full or the frame is damaged.
    fn add(&mut self, entry: &Entry, frame: Option<Bytes>) -> bool {
        if self.records.len() >= self.limit.records
            || (self.bytes >= self.limit.bytes && !self.records.is_empty())
        {
            self.full = true;
            return false;
        }
        let Some(payload) = frame else { return false };
        let (bytes, limit, already) = (&mut self.bytes, self.limit, self.records.len());
        let mut taken = already;
        let mut stopped_at = None;
        let outcome =
            decode(&payload, entry.origin, entry.arrival, self.next, &mut self.records, |number, size| {
                let fits = taken < limit.records && (taken == 0 || *bytes + size <= limit.bytes);
                if fits {
                    *bytes += size;
                    taken += 1;
                } else {
                    stopped_at = Some(number);
                }
                !fits
            });
        match outcome {
            Ok(true) => self.next = end_of(entry),
            Ok(false) => {
                self.full = true;
                self.next = stopped_at.unwrap_or(self.next);
            }
            // The checksum held, so this was written wrongly: as good as damaged.
            Err(_) => self.records.truncate(already),
        }
        matches!(outcome, Ok(true))
    }
}

/// Where the payload of an entry's frame lies in `bytes`, which begin at `start`, if it is what was written.
fn payload_in(bytes: &[u8], start: u64, entry: &Entry, shard: &Shard) -> Option<Range<usize>> {
    let at = (entry.position - start) as usize;
    let frame = &bytes[at..at + entry.bytes as usize];
    let header = Header::decode(frame, entry.position)?;
    let same = (header.origin, header.stream, header.shard, header.count)
        == (entry.origin, shard.key.stream, shard.key.number, entry.count);
    let payload = payload_range(header.payload_bytes);
    let sound = same && header.matches(frame.get(payload.clone())?);
    sound.then_some(at + payload.start..at + payload.end)
}

/// Entries that are read in one go: in one segment, close together, in rising positions.
fn spans(entries: &[Entry], segment_bytes: u64) -> Vec<&[Entry]> {
    let mut spans = Vec::new();
    let mut start = 0;
    for next in 1..=entries.len() {
        let goes_on = next < entries.len() && {
            let (first, last, entry) = (&entries[start], &entries[next - 1], &entries[next]);
            let end = last.position + u64::from(last.bytes);
            entry.position >= end
                && entry.position - end <= GAP_BYTES_MAX
                && entry.position / segment_bytes == first.position / segment_bytes
                && entry.position + u64::from(entry.bytes) - first.position <= SPAN_BYTES_MAX
        };
        if !goes_on {
            spans.push(&entries[start..next]);
            start = next;
        }
    }
    spans
}

/// How many of these spans make one part: at least one.
fn part_spans(spans: &[&[Entry]]) -> usize {
    let mut bytes = 0;
    let fits = |span: &&&[Entry]| {
        bytes += bytes_of(span);
        bytes <= PART_BYTES_MAX
    };
    spans.iter().take_while(fits).count().max(1)
}

/// From the beginning of the first frame to the end of the last.
fn bytes_of(span: &[Entry]) -> usize {
    let last = &span[span.len() - 1];
    (last.position + u64::from(last.bytes) - span[0].position) as usize
}

fn ids(numbers: &[u32]) -> Vec<ShardId> {
    numbers.iter().map(|number| ShardId::numbered(u64::from(*number))).collect()
}

/// Runs what may wait for the disk where waiting is allowed.
pub async fn on_disk_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::Stopped("it is shutting down".into())),
    }
}
