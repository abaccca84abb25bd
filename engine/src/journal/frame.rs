//! A frame: the unit that the journal writes, checks and recovers.
//!
//! ```text
//!  0  magic u32 │ header checksum u32 │ payload length u32 │ payload checksum u32
//! 16  kind u8 │ zero u8×3 │ epoch u32 │ position u64
//! 32  durable u64 │ last state u64
//! 48  origin u64 │ stream u64
//! 64  shard u32 │ count u32 │ arrival u64
//! 80  payload, padded with zeros to a multiple of 8
//! ```
//!
//! What must hold: a frame names its own position, so that bytes of an earlier life of a recycled segment never
//! validate; `durable` is what had been synced when the frame was written, so that it proves which earlier frames
//! can only be missing through damage; `last state` is the position of the last frame before this one that changed
//! state, so that a gap tells whether it swallowed records only. All integers are little-endian.

use std::ops::Range;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 80;
/// Frames begin at multiples of this.
pub const ALIGNMENT: usize = 8;

/// What every header begins with.
pub const MAGIC_BYTES: [u8; 4] = *b"ANB1";
const MAGIC: u32 = u32::from_le_bytes(MAGIC_BYTES);

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Records of one shard, appended or moved by the cleaner.
    Records = 1,
    /// A change of the catalogue: streams, shards, retention, trimming.
    Catalogue = 2,
    /// The first frame of an epoch.
    Opened = 3,
    /// The last frame of a segment; `origin` is the position where the journal goes on.
    End = 4,
    /// Changes of rows.
    Rows = 5,
}

impl Kind {
    fn from_u8(value: u8) -> Option<Kind> {
        match value {
            1 => Some(Kind::Records),
            2 => Some(Kind::Catalogue),
            3 => Some(Kind::Opened),
            4 => Some(Kind::End),
            5 => Some(Kind::Rows),
            _ => None,
        }
    }

    /// Whether replaying the journal without this frame gives another state. A lost frame of records is a hole that
    /// readers are told of; a lost frame of state cannot be passed over.
    pub fn is_state(self) -> bool {
        matches!(self, Kind::Catalogue | Kind::Rows)
    }
}

/// The fields of a header that say what the payload is; the journal adds the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// What the frame holds.
    pub kind: Kind,
    /// The position that gave the records their sequence numbers; `None` takes the frame's own.
    pub origin: Option<u64>,
    /// The stream of the records, or 0.
    pub stream: u64,
    /// The shard of the records, or 0.
    pub shard: u32,
    /// How many records there are.
    pub count: u32,
    /// When they arrived, in milliseconds since the Unix epoch.
    pub arrival: u64,
}

impl Label {
    /// A frame that belongs to no shard.
    pub fn bare(kind: Kind) -> Label {
        Label { kind, origin: None, stream: 0, shard: 0, count: 0, arrival: 0 }
    }
}

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the frame holds.
    pub kind: Kind,
    /// Which opening of the directory wrote it.
    pub epoch: u32,
    /// Where it stands.
    pub position: u64,
    /// Everything before this was synced when the frame was written.
    pub durable: u64,
    /// The last frame before this one that changed state.
    pub last_state: u64,
    /// What the sequence numbers of its records derive from.
    pub origin: u64,
    /// The stream of its records, or 0.
    pub stream: u64,
    /// The shard of its records, or 0.
    pub shard: u32,
    /// How many records it holds.
    pub count: u32,
    /// When they arrived.
    pub arrival: u64,
    /// Bytes of payload, padding excluded.
    pub payload_bytes: u32,
    payload_checksum: u32,
}

impl Header {
    /// Reads a header; `None` if the bytes are not one, or one of another place.
    pub fn decode(bytes: &[u8], position: u64) -> Option<Header> {
        if bytes.len() < HEADER_BYTES || u32_at(bytes, 0) != MAGIC || u64_at(bytes, 24) != position {
            return None;
        }
        if crc32fast::hash(&bytes[8..HEADER_BYTES]) != u32_at(bytes, 4) {
            return None;
        }
        Some(Header {
            payload_bytes: u32_at(bytes, 8),
            payload_checksum: u32_at(bytes, 12),
            kind: Kind::from_u8(bytes[16])?,
            epoch: u32_at(bytes, 20),
            position,
            durable: u64_at(bytes, 32),
            last_state: u64_at(bytes, 40),
            origin: u64_at(bytes, 48),
            stream: u64_at(bytes, 56),
            shard: u32_at(bytes, 64),
            count: u32_at(bytes, 68),
            arrival: u64_at(bytes, 72),
        })
    }

    /// Whether `payload` is what was written.
    pub fn matches(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes as usize && crc32fast::hash(payload) == self.payload_checksum
    }

    /// Bytes of the whole frame, padding included.
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.payload_bytes as usize) as u64
    }

    /// The position behind this frame.
    pub fn end(&self) -> u64 {
        self.position + self.frame_bytes()
    }
}

/// Bytes of a frame with a payload of this size.
pub const fn frame_bytes(payload: usize) -> usize {
    (HEADER_BYTES + payload).next_multiple_of(ALIGNMENT)
}

/// A frame on its way to the journal: payload complete and summed once it is closed, header still open.
#[derive(Debug)]
pub struct Draft {
    label: Label,
    buffer: Vec<u8>,
    payload_bytes: u32,
    payload_checksum: u32,
}

impl Draft {
    /// Makes a frame of up to `capacity` payload bytes, which `fill` appends to the buffer.
    pub fn new(label: Label, capacity: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Draft {
        let mut draft = Draft::open(label, capacity);
        fill(draft.payload());
        draft.close();
        draft
    }

    /// Begins a frame with room for so many bytes of payload. It has to be closed.
    pub fn open(label: Label, capacity: usize) -> Draft {
        let mut buffer = Vec::with_capacity(frame_bytes(capacity));
        buffer.resize(HEADER_BYTES, 0);
        Draft { label, buffer, payload_bytes: 0, payload_checksum: 0 }
    }

    /// What the payload of an open frame is appended to.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The payload is complete.
    pub fn close(&mut self) {
        let payload = &self.buffer[HEADER_BYTES..];
        self.payload_bytes = u32::try_from(payload.len()).expect("limits keep a frame below 4 GiB");
        self.payload_checksum = crc32fast::hash(payload);
        self.buffer.resize(self.buffer.len().next_multiple_of(ALIGNMENT), 0);
    }

    /// Bytes of the whole frame.
    pub fn bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// What the payload is.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Sets the arrival, which is known only once the order of the shard is.
    pub fn set_arrival(&mut self, arrival: u64) {
        self.label.arrival = arrival;
    }

    /// Sets where an [`Kind::End`] frame points.
    pub fn set_origin(&mut self, origin: u64) {
        self.label.origin = Some(origin);
    }

    /// Closes the header. From here on the bytes are what the disk gets.
    pub fn seal(mut self, epoch: u32, position: u64, durable: u64, last_state: u64) -> Vec<u8> {
        let b = &mut self.buffer[..HEADER_BYTES];
        put_u32(b, 0, MAGIC);
        put_u32(b, 8, self.payload_bytes);
        put_u32(b, 12, self.payload_checksum);
        b[16] = self.label.kind as u8;
        put_u32(b, 20, epoch);
        put_u64(b, 24, position);
        put_u64(b, 32, durable);
        put_u64(b, 40, last_state);
        put_u64(b, 48, self.label.origin.unwrap_or(position));
        put_u64(b, 56, self.label.stream);
        put_u32(b, 64, self.label.shard);
        put_u32(b, 68, self.label.count);
        put_u64(b, 72, self.label.arrival);
        let checksum = crc32fast::hash(&b[8..]);
        put_u32(b, 4, checksum);
        self.buffer
    }
}

/// Where the payload lies in a frame's bytes.
pub fn payload_range(payload_bytes: u32) -> Range<usize> {
    HEADER_BYTES..HEADER_BYTES + payload_bytes as usize
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sealed_frame_decodes_to_what_was_drafted(
            payload in proptest::collection::vec(any::<u8>(), 0..300),
            epoch: u32, at in 1u64..1 << 50, durable: u64, last_state: u64, stream: u64, shard: u32, count: u32, arrival: u64,
        ) {
            let label = Label { kind: Kind::Records, origin: None, stream, shard, count, arrival };
            let bytes = Draft::new(label, payload.len(), |b| b.extend_from_slice(&payload))
                .seal(epoch, at * 8, durable, last_state);
            let header = Header::decode(&bytes, at * 8).expect("decodes");
            prop_assert_eq!(bytes.len() % ALIGNMENT, 0);
            prop_assert_eq!(header.frame_bytes() as usize, bytes.len());
            prop_assert!(header.matches(&bytes[payload_range(header.payload_bytes)]));
            prop_assert_eq!((header.epoch, header.durable, header.last_state), (epoch, durable, last_state));
            prop_assert_eq!((header.stream, header.shard, header.count, header.arrival), (stream, shard, count, arrival));
            prop_assert_eq!(header.origin, at * 8);
        }

        #[test]
        fn every_flipped_bit_is_noticed(bit in 0usize..(HEADER_BYTES + 40) * 8) {
            let mut bytes = Draft::new(Label::bare(Kind::Catalogue), 40, |b| b.extend_from_slice(&[7; 40]))
                .seal(3, 4096, 2048, 1024);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let sound = Header::decode(&bytes, 4096).is_some_and(|h| h.matches(&bytes[payload_range(40)]));
            prop_assert!(!sound);
        }
    }

    #[test]
    fn a_frame_is_valid_only_where_it_was_written() {
        let bytes = Draft::new(Label::bare(Kind::Opened), 0, |_| {}).seal(1, 8192, 0, 0);
        assert!(Header::decode(&bytes, 8192).is_some());
        assert!(Header::decode(&bytes, 0).is_none());
    }
}
