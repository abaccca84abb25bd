//! MD5 of many short keys at once.
//!
//! A digest is one long chain of dependent steps, so most of a processor stands still while it computes one. Lanes of equal
//! steps fill that time: four keys take little longer than one, and batches of records have hundreds.
//!
//! What must hold: the digests are those of RFC 1321, whatever the number of keys and their lengths.

/// Keys of one pass.
pub const LANES: usize = 4;

/// Longest key whose padding fits into one block with it.
pub const KEY_BYTES_MAX: usize = BLOCK_BYTES - 1 - LENGTH_BYTES;

const BLOCK_BYTES: usize = 64;
const LENGTH_BYTES: usize = 8;

/// The same word of every lane.
type Words = [u32; LANES];

/// Blocks of up to [`LANES`] keys.
pub struct Blocks([[u8; BLOCK_BYTES]; LANES]);

impl Blocks {
    /// Lanes that hold nothing yet.
    pub fn new() -> Blocks {
        Blocks([[0; BLOCK_BYTES]; LANES])
    }

    /// Puts a key of at most [`KEY_BYTES_MAX`] bytes into a lane, padded.
    pub fn put(&mut self, lane: usize, key: &[u8]) {
        let block = &mut self.0[lane];
        block[..key.len()].copy_from_slice(key);
        block[key.len()] = 0x80;
        block[key.len() + 1..].fill(0);
        block[BLOCK_BYTES - LENGTH_BYTES..].copy_from_slice(&(key.len() as u64 * 8).to_le_bytes());
    }

    /// The digest of each lane, read as a big-endian number.
    pub fn digests(&self) -> [u128; LANES] {
        let words: [Words; 16] = std::array::from_fn(|word| {
            std::array::from_fn(|lane| {
                let bytes = self.0[lane][word * 4..].first_chunk().expect("a block has sixteen words");
                u32::from_le_bytes(*bytes)
            })
        });
        let mut sums = Sums::START;
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
        sums.digests()
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

    fn digests(&self) -> [u128; LANES] {
        std::array::from_fn(|lane| {
            let sum =
                |sums: &Words, start: &Words| u128::from(sums[lane].wrapping_add(start[lane]).swap_bytes());
            sum(&self.a, &Sums::START.a) << 96
                | sum(&self.b, &Sums::START.b) << 64
                | sum(&self.c, &Sums::START.c) << 32
                | sum(&self.d, &Sums::START.d)
        })
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
