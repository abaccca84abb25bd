//! MD5 of many texts at once: partition keys, and the bodies of messages.
//!
//! A digest is one long chain of dependent steps, so most of a processor stands still while it computes one. Lanes of equal
//! steps fill that time: four texts take little longer than one, and batches of records have hundreds.
//!
//! What must hold: the digests are those of RFC 1321, whatever the number of texts and their lengths.

use md5::{Digest, Md5};

/// Texts of one pass.
const LANES: usize = 4;

const BLOCK_BYTES: usize = 64;
/// What stands behind a text: one byte, and the number of its bits.
const ENDING_BYTES: usize = 1 + 8;

/// The same word of every lane.
type Words = [u32; LANES];

/// A block of every lane.
type Blocks = [[u8; BLOCK_BYTES]; LANES];

/// The MD5 digests of texts in their order, read as big-endian numbers; for each much faster than one alone.
pub fn md5_of_each<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Vec<u128> {
    let texts: Vec<&[u8]> = texts.collect();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    // Those of one pass are to be of about the same length. Partition keys mostly are.
    if texts.windows(2).any(|pair| blocks(pair[0]) != blocks(pair[1])) {
        order.sort_by_key(|index| blocks(texts[*index]));
    }
    let mut digests = vec![0; texts.len()];
    for indices in order.chunks(LANES) {
        if let [index] = indices {
            digests[*index] = u128::from_be_bytes(Md5::digest(texts[*index]).into());
            continue;
        }
        let lanes = std::array::from_fn(|lane| indices.get(lane).map_or(&[][..], |index| texts[*index]));
        indices.iter().zip(pass(lanes)).for_each(|(index, digest)| digests[*index] = digest);
    }
    digests
}

/// Blocks of a text with its ending.
fn blocks(text: &[u8]) -> usize {
    (text.len() + ENDING_BYTES).div_ceil(BLOCK_BYTES)
}

fn pass(texts: [&[u8]; LANES]) -> [u128; LANES] {
    let (mut sums, mut digests) = (Sums::START, [0; LANES]);
    let mut block = [[0; BLOCK_BYTES]; LANES];
    for number in 0..texts.map(blocks).into_iter().max().unwrap_or_default() {
        texts.iter().zip(&mut block).for_each(|(text, block)| fill(block, text, number));
        sums.add(&block);
        for (lane, text) in texts.iter().enumerate() {
            if number + 1 == blocks(text) {
                digests[lane] = sums.digest(lane);
            }
        }
    }
    digests
}

/// Puts a part of a text with its ending into a block. Behind the last nothing counts.
fn fill(block: &mut [u8; BLOCK_BYTES], text: &[u8], number: usize) {
    let rest = text.get(number * BLOCK_BYTES..).unwrap_or_default();
    if let Some(whole) = rest.first_chunk() {
        *block = *whole;
        return;
    }
    *block = [0; BLOCK_BYTES];
    block[..rest.len()].copy_from_slice(rest);
    if number * BLOCK_BYTES <= text.len() {
        block[rest.len()] = 0x80;
    }
    if rest.len() + ENDING_BYTES <= BLOCK_BYTES {
        let bits = text.len() as u64 * 8;
        block[BLOCK_BYTES - 8..].copy_from_slice(&bits.to_le_bytes());
    }
}

/// The four sums of every lane.
#[derive(Clone, Copy)]
struct Sums {
    a: Words,
    b: Words,
    c: Words,
    d: Words,
}

impl Sums {
    const START: Sums = Sums {
        a: [0x6745_2301; LANES],
        b: [0xefcd_ab89; LANES],
        c: [0x98ba_dcfe; LANES],
        d: [0x1032_5476; LANES],
    };

    /// Goes on by a block of every lane.
    fn add(&mut self, blocks: &Blocks) {
        let words: [Words; 16] = std::array::from_fn(|word| {
            std::array::from_fn(|lane| {
                let bytes = blocks[lane][word * 4..].first_chunk().expect("a block has sixteen words");
                u32::from_le_bytes(*bytes)
            })
        });
        let mut sums = *self;
        for i in (0..16).step_by(4) {
            let mix = |x: u32, y: u32, z: u32| (x & y) | (!x & z);
            sums.step::<7>(mix, &words[i], SINES[i]);
            sums.step::<12>(mix, &words[i + 1], SINES[i + 1]);
            sums.step::<17>(mix, &words[i + 2], SINES[i + 2]);
            sums.step::<22>(mix, &words[i + 3], SINES[i + 3]);
        }
        for i in (16..32).step_by(4) {
            let (mix, word) =
                (|x: u32, y: u32, z: u32| (x & z) | (y & !z), |i: usize| &words[(5 * i + 1) % 16]);
            sums.step::<5>(mix, word(i), SINES[i]);
            sums.step::<9>(mix, word(i + 1), SINES[i + 1]);
            sums.step::<14>(mix, word(i + 2), SINES[i + 2]);
            sums.step::<20>(mix, word(i + 3), SINES[i + 3]);
        }
        for i in (32..48).step_by(4) {
            let (mix, word) = (|x: u32, y: u32, z: u32| x ^ y ^ z, |i: usize| &words[(3 * i + 5) % 16]);
            sums.step::<4>(mix, word(i), SINES[i]);
            sums.step::<11>(mix, word(i + 1), SINES[i + 1]);
            sums.step::<16>(mix, word(i + 2), SINES[i + 2]);
            sums.step::<23>(mix, word(i + 3), SINES[i + 3]);
        }
        for i in (48..64).step_by(4) {
            let (mix, word) = (|x: u32, y: u32, z: u32| y ^ (x | !z), |i: usize| &words[7 * i % 16]);
            sums.step::<6>(mix, word(i), SINES[i]);
            sums.step::<10>(mix, word(i + 1), SINES[i + 1]);
            sums.step::<15>(mix, word(i + 2), SINES[i + 2]);
            sums.step::<21>(mix, word(i + 3), SINES[i + 3]);
        }
        let plus = |one: &mut Words, other: Words| {
            one.iter_mut().zip(other).for_each(|(one, other)| *one = one.wrapping_add(other));
        };
        plus(&mut self.a, sums.a);
        plus(&mut self.b, sums.b);
        plus(&mut self.c, sums.c);
        plus(&mut self.d, sums.d);
    }

    #[inline(always)]
    fn step<const TURN: u32>(&mut self, mix: impl Fn(u32, u32, u32) -> u32, word: &Words, sine: u32) {
        let Sums { a, b, c, d } = *self;
        let next = std::array::from_fn(|lane| {
            let mixed = mix(b[lane], c[lane], d[lane]);
            let sum = a[lane].wrapping_add(mixed).wrapping_add(word[lane]).wrapping_add(sine);
            sum.rotate_left(TURN).wrapping_add(b[lane])
        });
        *self = Sums { a: d, b: next, c: b, d: c };
    }

    fn digest(&self, lane: usize) -> u128 {
        let sum = |sums: &Words| u128::from(sums[lane].swap_bytes());
        sum(&self.a) << 96 | sum(&self.b) << 64 | sum(&self.c) << 32 | sum(&self.d)
    }
}

/// The first 32 bits behind the point of the sine of 1, 2, 3 and so on.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_by_one(texts: &[Vec<u8>]) -> Vec<u128> {
        texts.iter().map(|text| u128::from_be_bytes(Md5::digest(text).into())).collect()
    }

    #[test]
    fn every_length_ends_right() {
        let texts: Vec<Vec<u8>> = (0..400).map(|length| vec![length as u8; length]).collect();
        assert_eq!(md5_of_each(texts.iter().map(Vec::as_slice)), one_by_one(&texts));
    }

    proptest! {
        #[test]
        fn the_digests_of_many_are_those_of_each(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..12),
        ) {
            prop_assert_eq!(md5_of_each(texts.iter().map(Vec::as_slice)), one_by_one(&texts));
        }
    }
}
