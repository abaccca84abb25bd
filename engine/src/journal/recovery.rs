//! Recovery: walks the journal from the position that the state covers, and tells what is torn from what is damaged.
//!
//! Unsynced pages reach the disk in any order, so after a power loss good frames may lie behind a bad one. A bad frame
//! is damage only if a later frame proves that it had been durable; otherwise the journal ends before it. A new
//! opening starts a new epoch right there, and the walk never goes from a younger epoch back to an older one, so
//! whatever lies behind the cut never rejoins.
//!
//! A process may die, or stop after a failed sync, while the machine lives on. The next one then reads from the page
//! cache what is not on the disk, and no later sync has to write it. So the last write, which no frame proves, is
//! written again before anything is built on it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::frame::{ALIGNMENT, HEADER_BYTES, Header, Kind, MAGIC_BYTES, payload_range};
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
    /// The frames of the last write: sound, and proved durable by nothing.
    pub unproven: Range<u64>,
    proven: u64,
    /// Why the journal must not be written to, if state was lost.
    pub state_lost: Option<String>,
}

impl Recovered {
    /// A walk that has come to `end`.
    pub fn at(end: u64, epoch: u32, last_state: u64) -> Recovered {
        Recovered { end, epoch, last_state, unproven: end..end, proven: end, state_lost: None }
    }
}

/// Walks from `start` and shows each frame to `visit`.
pub fn walk(
    segments: &Segments,
    start: u64,
    epoch: u32,
    last_state: u64,
    visit: &mut dyn FnMut(Event<'_>) -> anabranch_model::Result<()>,
) -> anabranch_model::Result<Recovered> {
    let mut at = Recovered::at(start, epoch, last_state);
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
                    return Ok(ended(at, &segment, segments.bytes));
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
                let Some(next) = proof_of_damage(segments, next, at.end, at.epoch) else {
                    return Ok(ended(at, &segment, segments.bytes));
                };
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

/// The journal ends here, unless the file was cut: it had its whole length before it was used.
fn ended(mut at: Recovered, segment: &Segment, segment_bytes: u64) -> Recovered {
    if !segment.file.len().is_ok_and(|length| length >= segment_bytes) {
        at.state_lost = Some(format!(
            "segment {:016x} is shorter than it was made, and the end of the journal may be missing",
            segment.number
        ));
    }
    at
}

fn pass(at: &mut Recovered, header: &Header) {
    at.epoch = header.epoch;
    // Frames that were sealed together claim the same.
    if header.durable > at.proven {
        (at.proven, at.unproven.start) = (header.durable, header.position);
    }
    at.unproven.end = header.end();
    if header.kind.is_state() {
        at.last_state = header.position;
    }
    at.end = if header.kind == Kind::End { header.origin } else { header.end() };
}

/// Looks behind a bad frame at `bad` for one that was written after the bad one had been synced. If there is one,
/// returns the first sound header that belongs to the journal: the walk goes on there.
fn proof_of_damage(segments: &Segments, from: u64, bad: u64, epoch: u32) -> Option<Header> {
    let mut candidates: Vec<Header> = Vec::new();
    for segment in segments.all().into_iter().filter(|segment| segment.number >= bad / segments.bytes) {
        let start = segments.start_of(segment.number);
        for header in headers(&segment, start, from.max(start), segments.bytes) {
            if header.epoch < epoch {
                continue;
            }
            if header.durable > bad {
                // An opening found the journal sound up to its own first frame, so whatever lies before that belongs to
                // it. Without that frame, something older may be a remnant behind a cut.
                let belongs =
                    |candidate: &Header| header.kind == Kind::Opened || candidate.epoch == header.epoch;
                return Some(candidates.into_iter().find(belongs).unwrap_or(header));
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
    let (segment, mut offset, mut window) = (segment.clone(), from - start, Window::default());
    std::iter::from_fn(move || {
        while let Some(found) = window.find_magic(&segment, offset, segment_bytes) {
            offset = found + 1;
            let header = window
                .bytes(&segment, found, HEADER_BYTES)
                .ok()
                .and_then(|bytes| Header::decode(bytes, start + found));
            if header.is_some() {
                return header;
            }
        }
        None
    })
}

/// What a plain look at a segment finds.
pub enum Scanned {
    /// A frame with a sound header, and its payload as it is.
    Frame(Header, Vec<u8>),
    /// Nothing that can be told apart between two positions.
    Hole(u64, u64),
}

impl Scanned {
    /// Where it begins.
    pub fn position(&self) -> u64 {
        match self {
            Scanned::Frame(header, _) => header.position,
            Scanned::Hole(from, _) => *from,
        }
    }
}

/// The frames of one segment in order, until its end or until nothing more is found. Payloads come with frames of state
/// only; those of records are checked by whoever reads them.
pub fn scan(segments: &Segments, segment: &Arc<Segment>, start: u64) -> impl Iterator<Item = Scanned> {
    let (segment, segment_bytes, mut window) = (segment.clone(), segments.bytes, Window::default());
    let (mut at, mut epoch, mut over) = (start, 0, false);
    std::iter::from_fn(move || {
        if over || at >= start + segment_bytes {
            return None;
        }
        // Behind a younger epoch an older one is a remnant of what was cut off.
        let header = window.header(&segment, at - start, at).filter(|header| header.epoch >= epoch);
        let Some(header) = header else {
            let mut behind = headers(&segment, start, at + ALIGNMENT as u64, segment_bytes);
            let next = behind.find(|header| header.epoch >= epoch)?;
            let from = std::mem::replace(&mut at, next.position);
            return Some(Scanned::Hole(from, at));
        };
        (epoch, over) = (header.epoch, header.kind == Kind::End);
        at = header.end();
        let wanted = if header.kind.is_state() { header.payload_bytes as usize } else { 0 };
        let frame = window.bytes(&segment, header.position - start, HEADER_BYTES + wanted).ok()?;
        Some(Scanned::Frame(header, frame[HEADER_BYTES..].to_vec()))
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
        let Some(header) = self.header(segment, offset, position) else { return Found::Nothing };
        // A younger epoch begins where the older one was found to end; an older one here is a remnant behind a cut.
        if header.epoch < epoch {
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

    fn header(&mut self, segment: &Arc<Segment>, offset: u64, position: u64) -> Option<Header> {
        self.bytes(segment, offset, HEADER_BYTES).ok().and_then(|bytes| Header::decode(bytes, position))
    }

    /// The next place from `offset` on where a header could begin.
    fn find_magic(&mut self, segment: &Arc<Segment>, mut offset: u64, segment_bytes: u64) -> Option<u64> {
        while offset + HEADER_BYTES as u64 <= segment_bytes {
            self.bytes(segment, offset, HEADER_BYTES).ok()?;
            let ahead = &self.data[(offset - self.start) as usize..];
            if let Some(found) = memchr::memmem::find(ahead, &MAGIC_BYTES) {
                return Some(offset + found as u64);
            }
            // The magic may lie across the edge of the window.
            offset += (ahead.len() - MAGIC_BYTES.len() + 1) as u64;
        }
        None
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
