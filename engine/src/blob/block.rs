//! How a body stands in its file: blocks of 64 KiB, each with its checksum at its end.
//!
//! ```text
//!  │ 65,532 bytes of the body │ CRC-32 │ 65,532 bytes │ CRC-32 │ … │ the rest, at least one byte │ CRC-32 │
//! ```
//!
//! The checksum covers the id of the file and the number of the block as well: a block that stands at the wrong place is
//! noticed like one whose bits have turned. Blocks begin at multiples of 64 KiB, so that a reader of a range reads and
//! verifies only the blocks that it touches.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use anabranch_model::DiskFile;
use bytes::Bytes;
use crc32fast::Hasher;

/// Bytes of a block in the file.
const BLOCK_BYTES: u64 = 64 << 10;
const CHECKSUM_BYTES: u64 = 4;
/// Bytes of the body in a block.
pub const DATA_BYTES: u64 = BLOCK_BYTES - CHECKSUM_BYTES;

fn hasher(id: u64, block: u64) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(&id.to_le_bytes());
    hasher.update(&block.to_le_bytes());
    hasher
}

/// Writes a body front to back.
pub struct BlockWriter {
    file: Arc<dyn DiskFile>,
    id: u64,
    /// Bytes of the body so far.
    length: u64,
    /// Of the block that is not full yet.
    running: Hasher,
}

/// What is written in one step: a slice of a piece, or a checksum.
enum Segment {
    Data(usize, Range<usize>),
    Checksum([u8; CHECKSUM_BYTES as usize]),
}

impl BlockWriter {
    /// A writer for a file that is empty.
    pub fn new(file: Arc<dyn DiskFile>, id: u64) -> BlockWriter {
        BlockWriter { file, id, length: 0, running: hasher(id, 0) }
    }

    /// Bytes of the body so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Writes the next pieces, without copying them. Behind the last ones stands the last checksum.
    pub fn write(&mut self, pieces: &[Bytes], last: bool) -> io::Result<()> {
        let offset = self.length / DATA_BYTES * BLOCK_BYTES + self.length % DATA_BYTES;
        let mut segments = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            self.cut(number, piece, &mut segments);
        }
        if last && !self.length.is_multiple_of(DATA_BYTES) {
            segments.push(Segment::Checksum(self.running.clone().finalize().to_le_bytes()));
        }
        let parts: Vec<IoSlice<'_>> = segments
            .iter()
            .map(|segment| match segment {
                Segment::Data(number, range) => IoSlice::new(&pieces[*number][range.clone()]),
                Segment::Checksum(bytes) => IoSlice::new(bytes),
            })
            .collect();
        if parts.is_empty() { Ok(()) } else { self.file.write_all_at(offset, &parts) }
    }

    fn cut(&mut self, number: usize, piece: &[u8], segments: &mut Vec<Segment>) {
        let mut at = 0;
        while at < piece.len() {
            let room = DATA_BYTES - self.length % DATA_BYTES;
            let end = piece.len().min(at + room as usize);
            self.running.update(&piece[at..end]);
            segments.push(Segment::Data(number, at..end));
            self.length += (end - at) as u64;
            at = end;
            if self.length.is_multiple_of(DATA_BYTES) {
                let next = hasher(self.id, self.length / DATA_BYTES);
                let full = std::mem::replace(&mut self.running, next);
                segments.push(Segment::Checksum(full.finalize().to_le_bytes()));
            }
        }
    }

    /// Makes what was written durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Blocks of a file, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    id: u64,
    first: u64,
    /// Bytes of the body in these blocks.
    data: u64,
}

impl Span {
    /// The blocks with the first bytes of `range`, at most `blocks_max`, of a file with `length` bytes of a body.
    pub fn of(id: u64, length: u64, range: &Range<u64>, blocks_max: u64) -> Span {
        let first = range.start / DATA_BYTES;
        let behind = range.end.div_ceil(DATA_BYTES).min(first + blocks_max);
        Span { id, first, data: length.min(behind * DATA_BYTES) - first * DATA_BYTES }
    }

    /// Which bytes of the body these are.
    pub fn range(&self) -> Range<u64> {
        let start = self.first * DATA_BYTES;
        start..start + self.data
    }

    /// Where they begin in the file.
    pub fn offset(&self) -> u64 {
        self.first * BLOCK_BYTES
    }

    /// Bytes in the file.
    pub fn file_bytes(&self) -> usize {
        (self.data + self.data.div_ceil(DATA_BYTES) * CHECKSUM_BYTES) as usize
    }

    /// The bytes of the body in each block of `buffer`, which was read from the file; none if one is damaged.
    pub fn verify(&self, buffer: &[u8]) -> Option<Vec<Range<usize>>> {
        let mut ranges = Vec::new();
        for (number, block) in buffer.chunks(BLOCK_BYTES as usize).enumerate() {
            let (data, checksum) = block.split_last_chunk::<4>()?;
            let mut hasher = hasher(self.id, self.first + number as u64);
            hasher.update(data);
            if hasher.finalize() != u32::from_le_bytes(*checksum) {
                return None;
            }
            let start = number * BLOCK_BYTES as usize;
            ranges.push(start..start + data.len());
        }
        Some(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_model::{Disk, Open};
    use anabranch_sim::SimDisk;
    use proptest::prelude::*;

    fn written(length: usize, piece: usize) -> (SimDisk, Vec<u8>) {
        let disk = SimDisk::new();
        let bytes: Vec<u8> = (0..length).map(|at| (at * 31 + at / 251) as u8).collect();
        let mut writer = BlockWriter::new(disk.open("f", Open::CreateNew).expect("made"), 7);
        let pieces: Vec<Bytes> = bytes.chunks(piece).map(Bytes::copy_from_slice).collect();
        let (most, last) = pieces.split_at(pieces.len() / 2);
        writer.write(most, false).expect("written");
        writer.write(last, true).expect("written");
        assert_eq!(writer.length(), length as u64);
        (disk, bytes)
    }

    fn read(
        disk: &SimDisk,
        length: u64,
        range: Range<u64>,
        blocks_max: u64,
    ) -> Option<(Range<u64>, Vec<u8>)> {
        let span = Span::of(7, length, &range, blocks_max);
        let mut buffer = vec![0; span.file_bytes()];
        let file = disk.open("f", Open::Existing).expect("opens");
        file.read_exact_at(span.offset(), &mut buffer).expect("is there");
        let ranges = span.verify(&buffer)?;
        Some((span.range(), ranges.into_iter().flat_map(|range| buffer[range].to_vec()).collect()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn ranges_come_back(length in 1_usize..300_000, piece in 1_usize..100_000, from: u16, bytes in 1_u64..200_000) {
            let piece = piece.max(length / 500);
            let (disk, body) = written(length, piece);
            let start = u64::from(from) * length as u64 / 65_536;
            let range = start..(start + bytes).min(length as u64);
            let (seen, read) = read(&disk, length as u64, range.clone(), 4).expect("sound");
            prop_assert!(seen.start <= range.start && seen.end > range.start);
            prop_assert!(seen.end >= range.end || seen.end - seen.start == 4 * DATA_BYTES);
            prop_assert_eq!(&read[..], &body[seen.start as usize..seen.end as usize]);
        }

        #[test]
        fn a_turned_bit_is_noticed(length in 1_usize..200_000, at: u32, bit in 0_u8..8) {
            let (disk, _) = written(length, 10_000.max(length / 100));
            let offset = u64::from(at) % disk.file_len("f").expect("a file");
            disk.flip_bit("f", offset, bit).expect("turned");
            let block = offset / BLOCK_BYTES * DATA_BYTES;
            prop_assert_eq!(read(&disk, length as u64, block..block + 1, 1), None);
        }
    }

    #[test]
    fn a_block_at_the_wrong_place_is_noticed() {
        let (disk, _) = written(3 * DATA_BYTES as usize, 50_000);
        let file = disk.open("f", Open::Existing).expect("opens");
        let mut block = vec![0; BLOCK_BYTES as usize];
        file.read_exact_at(0, &mut block).expect("read");
        file.write_all_at(BLOCK_BYTES, &[IoSlice::new(&block)]).expect("written");
        let second = DATA_BYTES..2 * DATA_BYTES;
        assert_eq!(read(&disk, 3 * DATA_BYTES, second, 1), None);
    }
}
