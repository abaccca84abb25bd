//! Finds what stands in a text for the second time.

/// How far back a repeat may reach.
pub(super) const WINDOW: usize = 32 << 10;
/// Shorter repeats are not looked for.
const REPEAT_MIN: usize = 4;
/// The longest that can be told of as one.
pub(super) const REPEAT_MAX: usize = 258;
/// The shortest that can be told of.
const TOLD_MIN: usize = 3;
const SLOT_BITS: u32 = 14;
/// Bytes without a repeat, as a power of two, behind which one more byte is left out between two looks. What does not repeat,
/// like an encoded picture, mostly goes on not repeating.
const PATIENCE_BITS: u32 = 6;

/// Bytes as they are, and then a repeat; the last ones of a block may have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// So many bytes as they are.
    pub(super) plain: usize,
    /// So many bytes again.
    pub(super) length: u16,
    /// From so far back.
    pub(super) distance: u16,
}

/// Where four bytes were seen last, by a hash of them. Positions are cut to 32 bits: what matters is how far back they are.
pub(super) struct Seen(Vec<u32>);

impl Seen {
    pub(super) fn new() -> Self {
        Seen(vec![0; 1 << SLOT_BITS])
    }

    /// Puts a position in its place, and returns how far back the one lies that was there.
    fn replace(&mut self, word: u32, at: usize) -> u32 {
        let slot = &mut self.0[(word.wrapping_mul(0x9e37_79b1) >> (32 - SLOT_BITS)) as usize];
        let at = at as u32;
        at.wrapping_sub(std::mem::replace(slot, at))
    }

    /// The runs of `text` from `start` on. What stands before has been looked at already, and before that were so many
    /// bytes more.
    pub(super) fn runs(&mut self, text: &[u8], start: usize, before: usize, runs: &mut Vec<Run>) {
        let (mut plain, mut at) = (start, start);
        while let Some(word) = word(text, at) {
            let distance = self.replace(word, before.wrapping_add(at)) as usize;
            // What lies too far back is compared as well, with itself: whether it does is a guess that processors get wrong.
            let known = 1 <= distance && distance <= WINDOW.min(at);
            let there = self::word(text, at - if known { distance } else { 0 });
            if !(known & (there == Some(word))) {
                at += 1 + ((at - plain) >> PATIENCE_BITS);
                continue;
            }
            let mut from = at;
            while from > plain && from > distance && text[from - 1] == text[from - 1 - distance] {
                from -= 1;
            }
            let to = at + REPEAT_MIN + common(&text[at + REPEAT_MIN..], &text[at + REPEAT_MIN - distance..]);
            tell(from - plain, to - from, distance, runs);
            (plain, at) = (to, to);
            // The end of a repeat is where the next one like it begins.
            if let Some(word) = self::word(text, to - 2) {
                self.replace(word, before.wrapping_add(to - 2));
            }
        }
        if plain < text.len() {
            runs.push(Run { plain: text.len() - plain, length: 0, distance: 0 });
        }
    }
}

/// A repeat in as many pieces as it takes.
fn tell(mut plain: usize, mut length: usize, distance: usize, runs: &mut Vec<Run>) {
    while length > 0 {
        let piece = match length {
            0..=REPEAT_MAX => length,
            // What is left is long enough to be told of.
            _ => REPEAT_MAX.min(length - TOLD_MIN),
        };
        runs.push(Run { plain, length: piece as u16, distance: distance as u16 });
        (plain, length) = (0, length - piece);
    }
}

fn word(text: &[u8], at: usize) -> Option<u32> {
    text.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// How many bytes two texts have in common at their beginning.
fn common(one: &[u8], other: &[u8]) -> usize {
    let mut length = 0;
    let (mut ones, mut others) = (one.chunks_exact(8), other.chunks_exact(8));
    for (one, other) in ones.by_ref().zip(others.by_ref()) {
        if one != other {
            break;
        }
        length += 8;
    }
    length + one[length..].iter().zip(&other[length..]).take_while(|(one, other)| one == other).count()
}
