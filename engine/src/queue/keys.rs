//! Keys of the rows of queues. See `docs/on-disk.md` for the table.

use std::fmt;

use anabranch_model::queue::{MessageId, QueueName};
use anabranch_model::{Result, SequenceNumber};
use bytes::Bytes;

use crate::rows::Space;

const BODY: u8 = b'b';
const STATE: u8 = b's';
const WAITING: u8 = b'w';
const GROUP: u8 = b'g';

/// Bytes of the longest key without a name in it, so that a key is made in one piece.
const KEY_BYTES: usize = 33;

/// Bytes of the key of a row `waiting` that has not changed.
const UNLISTED_BYTES: usize = 29;

/// Digits of an identifier, and what stands between their groups.
const DIGITS: usize = 32 + 4;

/// Which message of a queue: the time of its send, and the frame that brought it with its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// When it was sent, in milliseconds. 48 bits.
    pub sent_at: u64,
    /// The frame.
    pub position: u64,
    /// Its index there.
    pub index: u16,
}

impl Place {
    /// No message lies before it.
    pub const FIRST: Place = Place { sent_at: 0, position: 0, index: 0 };
    /// No message lies behind it.
    pub const LAST: Place = Place { sent_at: (1 << 48) - 1, position: u64::MAX, index: u16::MAX };

    /// The place behind this one.
    pub fn next(self) -> Place {
        Place::from_u128(self.to_u128().saturating_add(1))
    }

    /// The number of the message in a queue that keeps an order.
    pub fn sequence(&self) -> SequenceNumber {
        SequenceNumber::from_u128(u128::from(self.position) << 16 | u128::from(self.index))
    }

    /// All of it in one number.
    pub fn to_u128(self) -> u128 {
        u128::from(self.sent_at) << 80 | u128::from(self.position) << 16 | u128::from(self.index)
    }

    /// The place that a number stands for.
    pub fn from_u128(number: u128) -> Place {
        Place { sent_at: (number >> 80) as u64, position: (number >> 16) as u64, index: number as u16 }
    }

    /// The identifier of a message that was sent here.
    pub fn id(&self) -> Result<MessageId> {
        MessageId::new(str::from_utf8(&self.digits()).unwrap_or_default())
    }

    /// The place in an identifier, which has one spelling.
    pub fn parse(text: &str) -> Option<Place> {
        let mut number = 0;
        for digit in text.bytes().filter(|digit| *digit != b'-') {
            number = number << 4 | u128::from(char::from(digit).to_digit(16)?);
        }
        let place = Place::from_u128(number);
        (place.digits() == *text.as_bytes()).then_some(place)
    }

    /// Its number in groups of hexadecimal digits, as identifiers mostly look.
    fn digits(&self) -> [u8; DIGITS] {
        let (mut text, mut at) = ([b'-'; DIGITS], 0);
        for (index, byte) in self.bytes().into_iter().enumerate() {
            at += usize::from(matches!(index, 4 | 6 | 8 | 10));
            for digit in [byte >> 4, byte & 15] {
                text[at] = b"0123456789abcdef"[usize::from(digit)];
                at += 1;
            }
        }
        text
    }

    fn bytes(&self) -> [u8; 16] {
        self.to_u128().to_be_bytes()
    }

    fn ending(&self) -> [u8; 10] {
        let mut ending = [0; 10];
        ending.copy_from_slice(&self.bytes()[6..]);
        ending
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.digits()).unwrap_or_default())
    }
}

/// The row of a queue in the catalogue.
pub fn queue(name: &QueueName) -> Bytes {
    [&[Space::Queues as u8], name.as_str().as_bytes()].concat().into()
}

/// All rows of an owner.
pub fn owner(number: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(KEY_BYTES);
    key.push(Space::QueueRows as u8);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// All rows of messages.
pub fn messages(number: u64) -> Vec<u8> {
    let mut key = owner(number);
    key.push(b'q');
    key
}

fn kind(number: u64, kind: u8) -> Vec<u8> {
    let mut key = messages(number);
    key.push(kind);
    key
}

/// What bodies of messages that are sent at this time begin with.
pub fn body_prefix(number: u64, sent_at: u64) -> Vec<u8> {
    let mut key = kind(number, BODY);
    key.extend_from_slice(&sent_at.to_be_bytes()[2..]);
    key
}

/// The body of a message.
pub fn body(number: u64, place: &Place) -> Bytes {
    let mut key = kind(number, BODY);
    key.extend_from_slice(&place.bytes());
    key.into()
}

/// Whether a row is the body of a message.
pub fn is_body(key: &[u8]) -> bool {
    key.len() == 27 && key[0] == Space::QueueRows as u8 && key[9..11] == [b'q', BODY]
}

/// The number of the queue that a row of [`owner`] belongs to.
pub fn owner_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(1..9)?.try_into().ok()?))
}

/// Between which keys the bodies lie, from a place on.
pub fn bodies(number: u64, from: &Place) -> (Bytes, Bytes) {
    (body(number, from), kind(number, BODY + 1).into())
}

/// What states of messages that are sent at this time begin with.
pub fn state_prefix(number: u64, sent_at: u64) -> Vec<u8> {
    let mut key = kind(number, STATE);
    key.extend_from_slice(&sent_at.to_be_bytes()[2..]);
    key
}

/// The state of a message.
pub fn state(number: u64, place: &Place) -> Bytes {
    let mut key = kind(number, STATE);
    key.extend_from_slice(&place.bytes());
    key.into()
}

/// Between which keys the states lie.
pub fn states(number: u64) -> (Bytes, Bytes) {
    (kind(number, STATE).into(), kind(number, STATE + 1).into())
}

/// The place at the end of the key of a body or a state.
pub fn place_of(key: &[u8]) -> Option<Place> {
    let start = key.len().checked_sub(16)?;
    Some(Place::from_u128(u128::from_be_bytes(key[start..].try_into().ok()?)))
}

/// What the rows of messages that become visible at this time begin with.
pub fn waiting_prefix(number: u64, due: u64) -> Vec<u8> {
    let mut key = kind(number, WAITING);
    key.extend_from_slice(&due.to_be_bytes());
    key
}

/// The row that shows a message when it is due. `change` makes each key new, however often a message comes and goes.
pub fn waiting(number: u64, due: u64, place: &Place, change: u32) -> Bytes {
    let mut key = waiting_prefix(number, due);
    key.extend_from_slice(&place.ending());
    if change > 0 {
        key.extend_from_slice(&change.to_be_bytes());
    }
    key.into()
}

/// The key that the row of a message would have if it had one: it was visible when it was sent, and nobody has received
/// it.
pub fn unlisted(number: u64, place: &Place) -> [u8; UNLISTED_BYTES] {
    let mut key = [0; UNLISTED_BYTES];
    key[0] = Space::QueueRows as u8;
    key[1..9].copy_from_slice(&number.to_be_bytes());
    key[9..11].copy_from_slice(&[b'q', WAITING]);
    key[11..19].copy_from_slice(&place.sent_at.to_be_bytes());
    key[19..].copy_from_slice(&place.ending());
    key
}

/// Where a message lies at least whose row would stand at such a key or behind it.
pub fn unlisted_place(key: &[u8]) -> Place {
    let (sent_at, position, index) = waiting_parts(key).unwrap_or_default();
    Place { sent_at, position, index }
}

/// Behind the last of these rows.
pub fn waiting_end(number: u64) -> Bytes {
    kind(number, WAITING + 1).into()
}

/// When the message of such a row is due, its frame and its index.
pub fn waiting_parts(key: &[u8]) -> Option<(u64, u64, u16)> {
    let rest = key.get(11..)?;
    let due = u64::from_be_bytes(rest.get(..8)?.try_into().ok()?);
    let (position, index) = ending(rest.get(8..18)?)?;
    Some((due, position, index))
}

fn ending(bytes: &[u8]) -> Option<(u64, u16)> {
    let position = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    let index = u16::from_be_bytes(bytes.get(8..10)?.try_into().ok()?);
    Some((position, index))
}

/// What the rows of a group begin with. No group has a zero byte in its name.
pub fn group_prefix(number: u64, group: &str) -> Vec<u8> {
    let mut key = kind(number, GROUP);
    key.extend_from_slice(group.as_bytes());
    key.push(0);
    key
}

/// The row of a message in its group.
pub fn group(number: u64, group: &str, place: &Place) -> Bytes {
    let mut key = group_prefix(number, group);
    key.extend_from_slice(&place.ending());
    key.into()
}

/// Behind the last row of a group.
pub fn group_end(number: u64, group: &str) -> Bytes {
    let mut key = group_prefix(number, group);
    key.pop();
    key.push(1);
    key.into()
}

/// The frame and the index at the end of a key that a frame completed.
pub fn placed(key: &[u8]) -> Option<(u64, u16)> {
    ending(key.get(key.len().checked_sub(10)?..)?)
}

/// All rows of recent sends. They lie under the number of the messages, so that a purge forgets them too.
pub fn recents(number: u64) -> Vec<u8> {
    let mut key = owner(number);
    key.push(b'd');
    key
}

/// What rows of recent sends of a window begin with.
pub fn recent(number: u64, window: u32) -> Vec<u8> {
    let mut key = recents(number);
    key.extend_from_slice(&window.to_be_bytes());
    key
}

/// What the rows of sends with one deduplication id begin with, within one window.
pub fn recent_prefix(number: u64, window: u32, scope: &str, id: &str) -> Vec<u8> {
    let mut key = recent(number, window);
    key.extend_from_slice(scope.as_bytes());
    key.push(0);
    key.extend_from_slice(id.as_bytes());
    key.push(0);
    key
}

/// What the rows of moves out of a queue begin with.
pub fn moves(number: u64) -> Vec<u8> {
    let mut key = owner(number);
    key.push(b't');
    key
}

/// The row of a move.
pub fn moving(number: u64, id: u64) -> Bytes {
    let mut key = moves(number);
    key.extend_from_slice(&id.to_be_bytes());
    key.into()
}

/// The key right behind another one.
pub fn next(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}

/// The first key that does not begin with `prefix`, whose last byte is not the largest.
pub fn behind(prefix: &[u8]) -> Bytes {
    let mut key = prefix.to_vec();
    if let Some(last) = key.last_mut() {
        *last += 1;
    }
    key.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_round_trip(sent_at in 0u64..1 << 48, position: u64, index: u16, due: u64, change: u32) {
            let place = Place { sent_at, position, index };
            prop_assert_eq!(Place::from_u128(place.to_u128()), place);
            prop_assert_eq!(Place::parse(&place.to_string()), Some(place));
            prop_assert_eq!(place_of(&body(7, &place)), Some(place));
            prop_assert_eq!((is_body(&body(7, &place)), owner_of(&body(7, &place))), (true, Some(7)));
            prop_assert!(!is_body(&state(7, &place)) && !is_body(&waiting(7, due, &place, change)));
            prop_assert_eq!(place_of(&state(7, &place)), Some(place));
            prop_assert_eq!(waiting_parts(&waiting(7, due, &place, change)), Some((due, position, index)));
            prop_assert_eq!(placed(&group(7, "g", &place)), Some((position, index)));
        }

        #[test]
        fn waiting_rows_sort_by_time(a: u64, b: u64, position: u64) {
            let place = Place { sent_at: 1, position, index: 0 };
            prop_assert_eq!(waiting(7, a, &place, 1).cmp(&waiting(7, b, &place, 1)), a.cmp(&b));
            prop_assert!(waiting(7, a, &place, 9) < waiting_end(7));
        }
    }

    #[test]
    fn other_spellings_are_no_places() {
        let text = Place { sent_at: 1, position: 2, index: 3 }.to_string();
        for other in [text.to_uppercase() + "0", text.replace('-', ""), "message-1".into(), String::new()] {
            assert_eq!(Place::parse(&other), None, "{other}");
        }
    }
}
