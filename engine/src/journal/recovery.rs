//! Recovery: walks the journal from the position that the state covers, and tells what is torn from what is damaged.
//!
//! Unsynced pages reach the disk in any order, so after a power loss good frames may lie behind a bad one. A bad frame
//! is damage only if a later frame proves that it had been durable; otherwise the journal ends before it. A new
//! opening starts a new epoch right there, and the walk never goes from a younger epoch back to an older one, so
//! whatever lies behind the cut never rejoins.

use std::io;
use std::sync::Arc;

use super::frame::{ALIGNMENT, HEADER_BYTES, Header, Kind, payload_range};
use super::segments::{Segment, Segments};

/// What the walk meets.
pub enum Event<'a> {
    /// A sound frame.
    Frame(&'a Header, &'a [u8]),
    /// A frame of records whose header is sound and whose payload is not.
    DamagedRecords(&'a Header),
    /// Frames of records that cannot even be told apart: everything from the first position to the second.
    Hole(u64, u64),
}

/// Where the walk ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The first position that can be written.
    pub end: u64,
    /// The epoch of the last frame.
    pub epoch: u32,
    /// The last frame that changed state.
    pub last_state: u64,
    /// Why the journal must not be written to, if state was lost.
    pub state_lost: Option<String>,
}

/// Walks from `start` and shows each frame to `visit`.
pub fn walk(
    segments: &Segments,
    start: u64,
    epoch: u32,
    last_state: u64,
    visit: &mut dyn FnMut(Event<'_>) -> anabranch_model::Result<()>,
) -> anabranch_model::Result<Recovered> {
    let mut at = Recovered { end: start, epoch, last_state, state_lost: None };
    let mut window = Window::default();
    loop {
        let Some(segment) = segments.holding(at.end) else {
            at.state_lost = Some(format!(
                "the journal goes on in segment {:016x}, and that file is missing",
                at.end / segments.bytes
            ));
            return Ok(at);
        };
        match window.frame(&segment, segments.offset(at.end), at.end, at.epoch) {
            Found::Sound(header, payload) => {
                visit(Event::Frame(&header, payload))?;
                pass(&mut at, &header);
            }
            Found::BadPayload(header) => {
                if proof_of_damage(segments, header.end(), at.end, at.epoch).is_none() {
                    return Ok(at);
                }
                match header.kind {
                    Kind::Records => visit(Event::DamagedRecords(&header))?,
                    _ => {
                        at.state_lost = Some(format!("the state frame at {} is damaged", header.position));
                        return Ok(at);
                    }
                }
                pass(&mut at, &header);
            }
            Found::Nothing => {
                let next = at.end + ALIGNMENT as u64;
                let Some(next) = proof_of_damage(segments, next, at.end, at.epoch) else { return Ok(at) };
                if next.last_state != at.last_state {
                    at.state_lost = Some(format!(
                        "state frames between {} and {} of the journal are damaged",
                        at.end, next.position
                    ));
                    return Ok(at);
                }
                visit(Event::Hole(at.end, next.position))?;
                at.end = next.position;
                at.epoch = next.epoch;
            }
        }
    }
}

fn pass(at: &mut Recovered, header: &Header) {
    at.epoch = header.epoch;
    if header.kind.is_state() {
        at.last_state = header.position;
    }
    at.end = if header.kind == Kind::End { header.origin } else { header.end() };
}

/// Looks behind a bad frame at `bad` for one that was written after the bad one had been synced. If there is one,
/// returns the first sound header of that epoch: the walk goes on there.
fn proof_of_damage(segments: &Segments, from: u64, bad: u64, epoch: u32) -> Option<Header> {
    let mut candidates: Vec<Header> = Vec::new();
    for segment in segments.all().into_iter().filter(|segment| segment.number >= bad / segments.bytes) {
        let start = segments.start_of(segment.number);
        for header in headers(&segment, start, from.max(start), segments.bytes) {
            if header.epoch < epoch {
                continue;
            }
            if header.durable > bad {
                let first = candidates.into_iter().find(|candidate| candidate.epoch == header.epoch);
                return Some(first.unwrap_or(header));
            }
            candidates.push(header);
        }
    }
    None
}

/// All sound headers of a segment from a position on, wherever they begin.
fn headers(
    segment: &Arc<Segment>,
    start: u64,
    from: u64,
    segment_bytes: u64,
) -> impl Iterator<Item = Header> {
    let (file, mut offset, mut window) = (segment.clone(), from - start, Window::default());
    std::iter::from_fn(move || {
        while offset + HEADER_BYTES as u64 <= segment_bytes {
            let header = window
                .bytes(&file, offset, HEADER_BYTES)
                .ok()
                .and_then(|b| Header::decode(b, start + offset));
            offset += ALIGNMENT as u64;
            if header.is_some() {
                return header;
            }
        }
        None
    })
}

enum Found<'a> {
    Sound(Header, &'a [u8]),
    BadPayload(Header),
    Nothing,
}

/// A piece of a segment in memory.
#[derive(Default)]
pub struct Window {
    segment: u64,
    start: u64,
    data: Vec<u8>,
}

/// Bytes that are read ahead.
const WINDOW_BYTES: usize = 1 << 20;

impl Window {
    fn frame(&mut self, segment: &Arc<Segment>, offset: u64, position: u64, epoch: u32) -> Found<'_> {
        let Some(header) =
            self.bytes(segment, offset, HEADER_BYTES).ok().and_then(|bytes| Header::decode(bytes, position))
        else {
            return Found::Nothing;
        };
        // A younger epoch begins with its own first frame; anything else is a remnant of an older one.
        if header.epoch != epoch && !(header.kind == Kind::Opened && header.epoch > epoch) {
            return Found::Nothing;
        }
        let frame_bytes = HEADER_BYTES + header.payload_bytes as usize;
        match self.bytes(segment, offset, frame_bytes) {
            Ok(bytes) if header.matches(&bytes[payload_range(header.payload_bytes)]) => {
                Found::Sound(header, &bytes[payload_range(header.payload_bytes)])
            }
            _ => Found::BadPayload(header),
        }
    }

    /// `length` bytes of a segment, read ahead.
    pub fn bytes(&mut self, segment: &Arc<Segment>, offset: u64, length: usize) -> io::Result<&[u8]> {
        let covered = segment.number == self.segment
            && offset >= self.start
            && offset + length as u64 <= self.start + self.data.len() as u64;
        if !covered {
            let available = segment.file.len()?.saturating_sub(offset);
            if available < length as u64 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.data.resize(length.max(WINDOW_BYTES.min(available as usize)), 0);
            self.segment = u64::MAX;
            segment.file.read_exact_at(offset, &mut self.data)?;
            (self.segment, self.start) = (segment.number, offset);
        }
        let from = (offset - self.start) as usize;
        Ok(&self.data[from..from + length])
    }
}
