//! The cleaner: writes what is live in a segment again at the end of the journal, so that the segment can be recycled
//! although streams with long and short retention share it with messages. Records keep the sequence numbers that they
//! have, and messages their places.

use std::sync::Arc;

use anabranch_model::{Error, Result};
use bytes::Bytes;

use crate::core::{Core, Halt};
use crate::journal::frame::{HEADER_BYTES, payload_range};
use crate::journal::recovery::Window;
use crate::journal::sequencer::Done;
use crate::journal::{Draft, Header, Kind, Label, Refusal, Segment, Urgency};
use crate::rows::Change;
use crate::rows::change::{self, with_places};
use crate::state::ShardKey;
use crate::state::reference::{Reference, STAYING_BYTES_MIN};
use crate::stream::catalogue::Effect;
use crate::stream::records::sequence;
use crate::stream::shard::Shard;

/// Bytes that are in flight at most.
const BATCH_BYTES: u64 = 1 << 20;

/// Messages that are to be written again.
#[derive(Default)]
struct Messages {
    keys: Vec<Bytes>,
    bytes: u64,
    /// Bytes of those that were written again already.
    written_bytes: u64,
}

impl Core {
    /// Moves every live frame and message out of a segment, as far as there is memory for messages. Returns how many
    /// there were. A damaged frame is an error that comes last: what can be moved is.
    pub fn clean(&self, number: u64, settle: &mut dyn FnMut(Done)) -> Result<usize> {
        let start = self.segments.start_of(number);
        let Some(segment) = self.segments.holding(start) else { return Ok(0) };
        let (mut window, mut offset, mut moved) = (Window::default(), 0, 0);
        let (mut batch, mut batch_bytes) = (Vec::new(), 0);
        let (mut messages, mut damage) = (Messages::default(), None);
        loop {
            let header = header_at(&mut window, &segment, offset, start)?;
            match header.kind {
                Kind::End => break,
                Kind::Records => {
                    if let Some(shard) = self.live_shard(&header)? {
                        let payload = payload_at(&mut window, &segment, offset, &header)?;
                        batch.push((copy(&header, payload), shard));
                        batch_bytes += header.frame_bytes();
                        moved += 1;
                    }
                }
                Kind::Rows if header.payload_bytes as usize >= STAYING_BYTES_MIN => {
                    match payload_at(&mut window, &segment, offset, &header).and_then(|payload| {
                        change::decode(payload).map_err(|_| damaged(header.position, &"changes"))
                    }) {
                        Ok(changes) => moved += self.add_messages(header.position, changes, &mut messages)?,
                        Err(error) => damage = Some(error),
                    }
                }
                Kind::Rows | Kind::Catalogue | Kind::Opened => {}
            }
            offset += header.frame_bytes();
            if batch_bytes >= BATCH_BYTES {
                self.write_again(std::mem::take(&mut batch), settle)?;
                batch_bytes = 0;
            }
            if messages.bytes >= BATCH_BYTES {
                messages.written_bytes += std::mem::take(&mut messages.bytes);
                self.write_messages_again(std::mem::take(&mut messages.keys), settle)?;
            }
        }
        self.write_again(batch, settle)?;
        self.write_messages_again(messages.keys, settle)?;
        damage.map_or(Ok(moved), Err)
    }

    /// Adds the messages that still stand in a frame. They are in memory until a checkpoint comes, so the others wait for
    /// it if there are many.
    fn add_messages(&self, position: u64, changes: Vec<Change>, messages: &mut Messages) -> Result<usize> {
        if messages.written_bytes > 0 && self.rows.is_checkpoint_due() {
            return Ok(0);
        }
        let mut added = 0;
        for (Change { key, value, .. }, place) in with_places(position, changes) {
            let (key, bytes) = (key.at(position), value.map_or(0, |value| value.len()));
            if Reference::suits(&key, bytes) && self.rows.stays_at(&key)? == Some(place) {
                messages.keys.push(key);
                messages.bytes += bytes as u64;
                added += 1;
            }
        }
        Ok(added)
    }

    /// The shard that still refers to the frame at this place.
    fn live_shard(&self, header: &Header) -> Result<Option<Arc<Shard>>> {
        let key = ShardKey { stream: header.stream, number: header.shard };
        let Some((_, shard)) = self.catalogue.shard_by_key(key) else { return Ok(None) };
        if header.origin < shard.log().horizon {
            return Ok(None);
        }
        let entry = self.locate(&shard, sequence(header.origin, 0), |_| true)?;
        let here =
            |entry: &crate::state::Entry| (entry.origin, entry.position) == (header.origin, header.position);
        Ok(entry.first().is_some_and(here).then_some(shard))
    }

    fn write_again(&self, batch: Vec<(Draft, Arc<Shard>)>, settle: &mut dyn FnMut(Done)) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut turn =
            self.turn(batch.iter().map(|(draft, _)| draft.bytes()), Urgency::Upkeep).map_err(|halt| {
                match halt {
                    Halt::Refused(Refusal::Stopped(reason)) => Error::Stopped(reason),
                    Halt::Refused(_) => Error::DiskFull,
                    Halt::Failed(error) => error,
                }
            })?;
        for (draft, shard) in batch {
            let label = *draft.label();
            let origin = label.origin.expect("a copy names its origin");
            let effect = Effect::Moved { shard, origin, count: label.count, arrival: label.arrival };
            turn.push(draft, |_| Some(effect));
        }
        let done = turn.finish(None);
        metrics::counter!("anabranch_cleaner_moved_bytes_total").increment(BATCH_BYTES);
        settle(done);
        Ok(())
    }
}

fn header_at(window: &mut Window, segment: &Arc<Segment>, offset: u64, start: u64) -> Result<Header> {
    let bytes =
        window.bytes(segment, offset, HEADER_BYTES).map_err(|error| damaged(start + offset, &error))?;
    Header::decode(bytes, start + offset).ok_or_else(|| damaged(start + offset, &"header"))
}

fn payload_at<'w>(
    window: &'w mut Window,
    segment: &Arc<Segment>,
    offset: u64,
    header: &Header,
) -> Result<&'w [u8]> {
    let frame = HEADER_BYTES + header.payload_bytes as usize;
    let bytes = window.bytes(segment, offset, frame).map_err(|error| damaged(header.position, &error))?;
    let payload = &bytes[payload_range(header.payload_bytes)];
    if header.matches(payload) { Ok(payload) } else { Err(damaged(header.position, &"checksum")) }
}

fn copy(header: &Header, payload: &[u8]) -> Draft {
    let label = Label {
        kind: Kind::Records,
        origin: Some(header.origin),
        stream: header.stream,
        shard: header.shard,
        count: header.count,
        arrival: header.arrival,
    };
    Draft::new(label, payload.len(), |buffer| buffer.extend_from_slice(payload))
}

fn damaged(position: u64, what: &dyn std::fmt::Display) -> Error {
    Error::Corrupt(format!("the frame at {position} cannot be read: {what}"))
}
