//! The frames of a segment as they lie in its file, found without the engine.

use anabranch_sim::SimDisk;

use super::run::SEGMENT_BYTES;

pub const HEADER_BYTES: u64 = 80;
const MAGIC: &[u8] = b"ANB1";

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Records,
    Catalogue,
    Opened,
    End,
}

/// One frame.
#[derive(Clone, Debug)]
pub struct Frame {
    pub path: String,
    /// Where it begins in its file.
    pub offset: u64,
    pub position: u64,
    pub kind: Kind,
    /// Where its records were written first.
    pub origin: u64,
    pub payload_bytes: u64,
}

impl Frame {
    /// Whether the cleaner wrote it.
    pub fn is_moved(&self) -> bool {
        self.kind == Kind::Records && self.origin != self.position
    }
}

/// The frames of all segments that belong to their files, in the order of their positions.
pub fn frames(disk: &SimDisk) -> Vec<Frame> {
    let mut paths = disk.paths();
    paths.retain(|path| path.starts_with("journal/"));
    paths.iter().flat_map(|path| frames_of(disk, path)).collect()
}

fn frames_of(disk: &SimDisk, path: &str) -> Vec<Frame> {
    let digits = path.trim_start_matches("journal/").trim_end_matches(".segment");
    let start = u64::from_str_radix(digits, 16).expect("a segment's name is its number") * SEGMENT_BYTES;
    let bytes = disk.contents(path).expect("it is there");
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (mut found, mut at) = (Vec::new(), 0usize);
    while at + HEADER_BYTES as usize <= bytes.len()
        && &bytes[at..at + 4] == MAGIC
        && u64_at(at + 24) == start + at as u64
    {
        let payload_bytes = u64::from(u32::from_le_bytes(bytes[at + 8..at + 12].try_into().expect("four")));
        let kind = match bytes[at + 16] {
            1 => Kind::Records,
            2 => Kind::Catalogue,
            3 => Kind::Opened,
            _ => Kind::End,
        };
        let (offset, position, origin) = (at as u64, start + at as u64, u64_at(at + 48));
        found.push(Frame { path: path.to_owned(), offset, position, kind, origin, payload_bytes });
        at += (HEADER_BYTES + payload_bytes).next_multiple_of(8) as usize;
    }
    found
}
