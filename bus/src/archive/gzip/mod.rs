//! A gzip file of lines that are at hand, made quickly: it takes a quarter of the time of the fastest level of zlib's kind,
//! and becomes smaller. The format is that of RFC 1951 and 1952.
//!
//! ```text
//!   head │ block │ block │ … │ checksum and length of the text
//!            └─ how long the code of each symbol is │ symbols: a byte, a repeat, the end
//! ```
//!
//! What must hold: the same text gives the same file, always.

mod huffman;
mod repeats;

use bytes::Bytes;
use huffman::Code;
use repeats::{Run, Seen};

/// Deflated, without a name or a time, by the fastest algorithm, on no system in particular.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];
/// The most that a block can hold that is stored as it is.
const STORED_BYTES_MAX: usize = u16::MAX as usize;
/// Bytes of text in a block: enough to be worth a code of its own, few enough for the caches of a processor, and as many as two
/// blocks hold that are stored.
const BLOCK_BYTES: usize = 2 * STORED_BYTES_MAX;
/// Symbols for bytes, for the end and for the lengths of repeats.
const SYMBOLS: usize = 286;
const END: usize = 256;
const DISTANCES: usize = 30;
/// The longest code of a symbol: four of them are gathered at a time, behind up to seven bits that wait.
const SYMBOL_BITS_MAX: u8 = 14;
const DISTANCE_BITS_MAX: u8 = 15;
/// Of the code that tells the lengths of the others, and the order in which its own are told.
const LENGTH_BITS_MAX: u8 = 7;
const LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The file of these pieces of a text, itself in pieces.
pub(super) fn compress<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Bytes> {
    let mut file = File::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let (now, later) = piece.split_at(piece.len().min(file.room()));
            file.text.extend_from_slice(now);
            if file.room() == 0 {
                file.write_block(false);
            }
            piece = later;
        }
    }
    file.finish()
}

/// A file that is being made.
struct File {
    /// What was written last, as far back as repeats reach, and from `start` on what is to be the next block.
    text: Vec<u8>,
    start: usize,
    /// Bytes of the whole before it.
    before: usize,
    seen: Seen,
    runs: Vec<Run>,
    checksum: crc32fast::Hasher,
    out: Bits,
    made: Vec<Bytes>,
}

impl File {
    fn new() -> File {
        File {
            text: Vec::with_capacity(repeats::WINDOW + BLOCK_BYTES),
            start: 0,
            before: 0,
            seen: Seen::new(),
            runs: Vec::new(),
            checksum: crc32fast::Hasher::new(),
            out: Bits { bytes: HEAD.to_vec(), length: HEAD.len(), waiting: 0, count: 0 },
            made: Vec::new(),
        }
    }

    /// Bytes that the next block has room for.
    fn room(&self) -> usize {
        self.start + BLOCK_BYTES - self.text.len()
    }

    fn write_block(&mut self, last: bool) {
        self.runs.clear();
        self.seen.runs(&self.text, self.start, self.before, &mut self.runs);
        let block = &self.text[self.start..];
        self.checksum.update(block);
        write_block(block, &self.runs, last, &mut self.out);
        self.made.push(self.out.take());
        let done = self.text.len().saturating_sub(repeats::WINDOW);
        self.text.drain(..done);
        self.start = self.text.len();
        self.before = self.before.wrapping_add(done);
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.write_block(true);
        let length = self.before.wrapping_add(self.start) as u32;
        let mut end = self.out.finish();
        end.extend_from_slice(&self.checksum.finalize().to_le_bytes());
        end.extend_from_slice(&length.to_le_bytes());
        self.made.push(end.into());
        self.made
    }
}

fn write_block(text: &[u8], runs: &[Run], last: bool, out: &mut Bits) {
    let (symbols, distances) = count(text, runs);
    let codes = [Code::of(&symbols, SYMBOL_BITS_MAX), Code::of(&distances, DISTANCE_BITS_MAX)];
    let head = Head::of(&codes);
    let repeats = runs.iter().filter(|run| run.length > 0);
    let extra = repeats
        .map(|run| u64::from(length_symbol(run.length).1 + distance_symbol(run.distance).1))
        .sum::<u64>();
    let cost = head.cost() + codes[0].cost(&symbols) + codes[1].cost(&distances) + extra;
    if cost / 8 > text.len() as u64 {
        return out.store(text, last);
    }
    out.reserve(cost as usize / 8 + 16);
    out.put(u64::from(last) | 0b10 << 1, 3);
    head.write(out);
    let [symbol, distance] = codes;
    let bytes: [(u16, u8); 256] =
        std::array::from_fn(|byte| (symbol.symbols[byte] as u16, symbol.lengths[byte]));
    let mut rest = text;
    for run in runs {
        let (plain, behind) = rest.split_at(run.plain);
        rest = &behind[usize::from(run.length)..];
        let (fours, few) = plain.as_chunks();
        for four in fours {
            out.put_four(four.map(|byte| bytes[usize::from(byte)]));
            out.write();
        }
        few.iter().for_each(|byte| out.put_symbol(symbol.symbols[usize::from(*byte)]));
        out.write();
        if run.length > 0 {
            let (place, bits, base) = length_symbol(run.length);
            out.put_symbol(symbol.symbols[place]);
            out.put(u64::from(run.length - base), bits);
            let (place, bits, base) = distance_symbol(run.distance);
            out.put_symbol(distance.symbols[place]);
            out.put(u64::from(run.distance - base), bits);
            out.write();
        }
    }
    out.put_symbol(symbol.symbols[END]);
    out.write();
}

/// How often each symbol and each distance comes.
fn count(text: &[u8], runs: &[Run]) -> ([u32; SYMBOLS], [u32; DISTANCES]) {
    let (mut symbols, mut distances) = ([0; SYMBOLS], [0; DISTANCES]);
    // Equal bytes stand side by side often, and a count waits for the one before it: so there are several.
    let mut counts = [[0_u32; 256]; 4];
    let mut rest = text;
    for run in runs {
        let (plain, behind) = rest.split_at(run.plain);
        rest = &behind[usize::from(run.length)..];
        let (fours, few) = plain.as_chunks::<4>();
        for four in fours {
            four.iter().zip(&mut counts).for_each(|(byte, counts)| counts[usize::from(*byte)] += 1);
        }
        few.iter().for_each(|byte| counts[0][usize::from(*byte)] += 1);
        if run.length > 0 {
            symbols[length_symbol(run.length).0] += 1;
            distances[distance_symbol(run.distance).0] += 1;
        }
    }
    for (byte, symbol) in symbols[..256].iter_mut().enumerate() {
        *symbol = counts.iter().map(|counts| counts[byte]).sum();
    }
    symbols[END] = 1;
    (symbols, distances)
}

/// The symbol of a length, how many bits follow it, and the length that it stands for without them.
fn length_symbol(length: u16) -> (usize, u32, u16) {
    match length {
        258 => (285, 0, 258),
        3..=10 => (usize::from(length) + 254, 0, length),
        _ => {
            // Four symbols for each power of two.
            let bits = (length - 3).ilog2() - 2;
            let quarter = (length - 3) >> bits;
            (257 + 4 * bits as usize + usize::from(quarter), bits, (quarter << bits) + 3)
        }
    }
}

/// The same for a distance: two symbols for each power of two.
fn distance_symbol(distance: u16) -> (usize, u32, u16) {
    match distance - 1 {
        far @ 0..=3 => (usize::from(far), 0, distance),
        far => {
            let bits = far.ilog2() - 1;
            let half = far >> bits;
            (2 * bits as usize + usize::from(half), bits, (half << bits) + 1)
        }
    }
}

/// What stands before the symbols of a block: the lengths of their codes, themselves in a code.
struct Head {
    symbols: usize,
    distances: usize,
    /// A length or a repetition of lengths, with the bits that follow it.
    told: Vec<(usize, u64, u32)>,
    code: Code,
    counts: [u32; 19],
}

impl Head {
    fn of(codes: &[Code; 2]) -> Head {
        let upto = |code: &Code, least: usize| {
            code.lengths.iter().rposition(|length| *length > 0).map_or(least, |last| least.max(last + 1))
        };
        let (symbols, distances) = (upto(&codes[0], END + 1), upto(&codes[1], 1));
        let lengths = [&codes[0].lengths[..symbols], &codes[1].lengths[..distances]].concat();
        let (mut told, mut counts) = (Vec::new(), [0; 19]);
        let mut rest = &lengths[..];
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|length| *length == first).count();
            // Many zeros, some zeros, the last length some times more, or a length once.
            let (taken, symbol) = match (first, same) {
                (0, 11..) => (same.min(138), (18, same.min(138) as u64 - 11, 7)),
                (0, 3..) => (same, (17, same as u64 - 3, 3)),
                (_, 4..) => {
                    told.push((usize::from(*first), 0, 0));
                    counts[usize::from(*first)] += 1;
                    let more = (same - 1).min(6);
                    (more + 1, (16, more as u64 - 3, 2))
                }
                _ => (1, (usize::from(*first), 0, 0)),
            };
            told.push(symbol);
            counts[symbol.0] += 1;
            rest = &rest[taken..];
        }
        Head { symbols, distances, told, code: Code::of(&counts, LENGTH_BITS_MAX), counts }
    }

    /// How many of its own lengths are told.
    fn own(&self) -> usize {
        LENGTH_ORDER
            .iter()
            .rposition(|symbol| self.code.lengths[*symbol] > 0)
            .map_or(4, |last| (last + 1).max(4))
    }

    /// Its bits, with those that say what kind of block it is.
    fn cost(&self) -> u64 {
        let extra = self.told.iter().map(|(.., bits)| u64::from(*bits)).sum::<u64>();
        17 + 3 * self.own() as u64 + self.code.cost(&self.counts) + extra
    }

    fn write(&self, out: &mut Bits) {
        out.put(self.symbols as u64 - 257, 5);
        out.put(self.distances as u64 - 1, 5);
        out.put(self.own() as u64 - 4, 4);
        out.write();
        for symbol in &LENGTH_ORDER[..self.own()] {
            out.put(u64::from(self.code.lengths[*symbol]), 3);
            out.write();
        }
        for (symbol, extra, bits) in &self.told {
            out.put_symbol(self.code.symbols[*symbol]);
            out.put(*extra, *bits);
            out.write();
        }
    }
}

/// Bits on their way into bytes, the lowest first.
struct Bits {
    bytes: Vec<u8>,
    /// How many of the bytes are written.
    length: usize,
    waiting: u64,
    count: u32,
}

impl Bits {
    /// Makes room for so many bytes, and eight more.
    fn reserve(&mut self, bytes: usize) {
        self.bytes.resize(self.length + bytes + 8, 0);
    }

    fn put(&mut self, bits: u64, count: u32) {
        self.waiting |= bits << self.count;
        self.count += count;
    }

    /// Puts the code of a symbol.
    fn put_symbol(&mut self, symbol: u32) {
        self.put(u64::from(symbol & 0xffff), symbol >> 16);
    }

    /// Puts the codes of four symbols with their lengths. They are joined by twos first: one behind the other, each would wait
    /// for the one before it.
    fn put_four(&mut self, four: [(u16, u8); 4]) {
        let [(one, one_bits), (two, two_bits), (three, three_bits), (four, four_bits)] =
            four.map(|(code, bits)| (u64::from(code), u32::from(bits)));
        let (first, first_bits) = (one | two << one_bits, one_bits + two_bits);
        let (second, second_bits) = (three | four << three_bits, three_bits + four_bits);
        self.put(first | second << first_bits, first_bits + second_bits);
    }

    /// Writes what waits; less than a byte goes on waiting.
    fn write(&mut self) {
        self.bytes[self.length..self.length + 8].copy_from_slice(&self.waiting.to_le_bytes());
        self.length += self.count as usize / 8;
        self.waiting >>= self.count & !7;
        self.count &= 7;
    }

    /// Blocks that stand there as they are: as many as it takes, and one if there is no text.
    fn store(&mut self, mut text: &[u8], last: bool) {
        loop {
            let (chunk, rest) = text.split_at(text.len().min(STORED_BYTES_MAX));
            self.reserve(chunk.len() + 16);
            self.put(u64::from(last && rest.is_empty()), 3);
            self.put(0, (8 - self.count % 8) % 8);
            self.write();
            let length = chunk.len() as u64;
            self.put(length | (length ^ 0xffff) << 16, 32);
            self.write();
            self.bytes[self.length..self.length + chunk.len()].copy_from_slice(chunk);
            self.length += chunk.len();
            if rest.is_empty() {
                return;
            }
            text = rest;
        }
    }

    /// The bytes that are written. What is less than a byte goes on waiting.
    fn take(&mut self) -> Bytes {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(std::mem::take(&mut self.length));
        bytes.into()
    }

    fn finish(mut self) -> Vec<u8> {
        self.reserve(1);
        self.put(0, (8 - self.count % 8) % 8);
        self.write();
        self.bytes.truncate(self.length);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;

    fn comes_back(text: &[u8]) -> usize {
        let file = compress(text.chunks(1_000)).concat();
        let mut read = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut read).unwrap();
        assert!(read == text, "{} bytes became {}", text.len(), read.len());
        file.len()
    }

    /// Bytes that do not repeat, each below `kinds`.
    fn mixed(length: usize, kinds: u64) -> Vec<u8> {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            ((word >> 32) % kinds) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn texts_come_back_and_take_less_room() {
        assert!(comes_back(b"") < 30);
        assert!(comes_back(b"a") < 30);
        // What is as long as it can be told of, and what is longer, around the ends of blocks.
        for length in [
            3,
            4,
            258,
            259,
            260,
            261,
            262,
            BLOCK_BYTES - 1,
            BLOCK_BYTES,
            BLOCK_BYTES + 1,
            2 * BLOCK_BYTES,
            1 << 20,
        ] {
            let room = comes_back(&vec![b'x'; length]);
            assert!(room <= 60 + length / 100, "{length} equal bytes took {room}");
        }
        // What cannot take less takes hardly more.
        for length in [1, 100, STORED_BYTES_MAX, STORED_BYTES_MAX + 1, BLOCK_BYTES, 3 * BLOCK_BYTES + 7] {
            let room = comes_back(&mixed(length, 256));
            assert!(room <= length + 60, "{length} mixed bytes took {room}");
        }
        // Sixty-four kinds of bytes are six bits each.
        let room = comes_back(&mixed(200_000, 64));
        assert!((150_000..152_000).contains(&room), "{room}");
        let line = br#"{"eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb"}"#;
        let room = comes_back(&line.repeat(10_000));
        assert!(room < line.len() * 10_000 / 100, "{room}");
    }

    /// A repeat may reach exactly as far back as the format can tell, and what lies further is told again.
    #[test]
    fn repeats_reach_as_far_back_as_they_may() {
        for distance in [32_767, 32_768, 32_769, 65_536, 70_000] {
            let mut text = mixed(distance, 256);
            text.extend_from_within(..1_000);
            comes_back(&text);
        }
    }

    /// A symbol that is rare beyond measure has no code that is too long.
    #[test]
    fn rare_bytes_come_back() {
        let mut text = Vec::new();
        let (mut one, mut other) = (1, 1);
        for byte in 0..22 {
            text.extend(std::iter::repeat_n(byte, one));
            (one, other) = (other, one + other);
        }
        // Stirred, so that there is nothing to repeat.
        let mut stirred = mixed(text.len(), 256).into_iter().zip(text).collect::<Vec<_>>();
        stirred.sort_by_key(|(order, _)| *order);
        comes_back(&stirred.into_iter().map(|(_, byte)| byte).collect::<Vec<_>>());
    }

    #[test]
    fn every_length_and_distance_has_its_symbol() {
        let (mut next, mut last) = (3, 256);
        for length in 3..=258 {
            let (symbol, bits, base) = length_symbol(length);
            assert!(length >= base && length - base < 1 << bits, "{length}");
            assert!(symbol == last || symbol == last + 1 && base == length, "{length}");
            (next, last) = (length + 1, symbol);
        }
        assert_eq!((next, last), (259, 285));
        let mut last = 0;
        for distance in 1..=32_768 {
            let (symbol, bits, base) = distance_symbol(distance);
            assert!(distance >= base && distance - base < 1 << bits, "{distance}");
            assert!(symbol == last || symbol == last + 1 && base == distance, "{distance}");
            last = symbol;
        }
        assert_eq!(last, 29);
    }

    proptest! {
        /// Texts of pieces that come again, sometimes.
        #[test]
        fn any_text_comes_back(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
            order in prop::collection::vec(0_usize..20, 0..600),
        ) {
            let text: Vec<u8> = order.iter().flat_map(|place| &pieces[place % pieces.len()]).copied().collect();
            comes_back(&text);
            prop_assert_eq!(compress(text.chunks(7)).concat(), compress([&text[..]].into_iter()).concat());
        }
    }
}
