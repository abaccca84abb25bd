//! A change to an item, as the stream of a table's changes carries it.

use super::encoding::{damaged, put_count, take_byte, take_count};
use super::options::ChangeView;
use super::value::Item;
use crate::clock::Timestamp;
use crate::error::Result;

/// Version of the encoding, in its first byte.
const VERSION: u8 = 1;
const INSERT: u8 = 1;
const MODIFY: u8 = 2;
const REMOVE: u8 = 3;
/// Bits of the byte behind the event.
const HAS_NEW: u8 = 1;
const HAS_OLD: u8 = 2;
const EXPIRED: u8 = 4;

/// What happened to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// It did not exist before.
    Insert,
    /// It exists, and looks different.
    Modify,
    /// It exists no more.
    Remove,
}

/// A change to one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub event: Event,
    /// The attributes of the item's key.
    pub keys: Item,
    /// The item afterwards, if it exists and the view shows it.
    pub new: Option<Item>,
    /// The item before, if it existed and the view shows it.
    pub old: Option<Item>,
    /// When it happened.
    pub at: Timestamp,
    /// Bytes of the key and of the images.
    pub size: u64,
    /// Whether the item's time had come; otherwise somebody made the change.
    pub expired: bool,
}

impl Change {
    /// The change from one image to another; none if they are the same. `expired` is about a removal.
    pub fn between(
        keys: Item,
        old: Option<&Item>,
        new: Option<&Item>,
        view: ChangeView,
        at: Timestamp,
        expired: bool,
    ) -> Option<Change> {
        let event = match (old, new) {
            (None, None) => return None,
            (Some(old), Some(new)) if old == new => return None,
            (None, Some(_)) => Event::Insert,
            (Some(_), Some(_)) => Event::Modify,
            (Some(_), None) => Event::Remove,
        };
        let new = new.filter(|_| matches!(view, ChangeView::New | ChangeView::Both)).cloned();
        let old = old.filter(|_| matches!(view, ChangeView::Old | ChangeView::Both)).cloned();
        let images = [&new, &old].into_iter().flatten().map(Item::size).sum::<usize>();
        let size = (keys.size() + images) as u64;
        Some(Change { event, keys, new, old, at, size, expired })
    }

    /// The bytes of this change, the same in every version.
    pub fn encode(&self) -> Vec<u8> {
        let event = match self.event {
            Event::Insert => INSERT,
            Event::Modify => MODIFY,
            Event::Remove => REMOVE,
        };
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = flag(self.new.is_some(), HAS_NEW)
            | flag(self.old.is_some(), HAS_OLD)
            | flag(self.expired, EXPIRED);
        let mut bytes = vec![VERSION, event, flags];
        put_count(self.at.as_millis(), &mut bytes);
        put_count(self.size, &mut bytes);
        self.keys.encode(&mut bytes);
        for image in [&self.new, &self.old].into_iter().flatten() {
            image.encode(&mut bytes);
        }
        bytes
    }

    /// The change with these bytes.
    pub fn decode(mut from: &[u8]) -> Result<Change> {
        let from = &mut from;
        if take_byte(from)? != VERSION {
            return Err(damaged());
        }
        let event = match take_byte(from)? {
            INSERT => Event::Insert,
            MODIFY => Event::Modify,
            REMOVE => Event::Remove,
            _ => return Err(damaged()),
        };
        let flags = take_byte(from)?;
        let at = Timestamp::from_millis(take_count(from)?);
        let size = take_count(from)?;
        let keys = Item::decode(from)?;
        let new = (flags & HAS_NEW != 0).then(|| Item::decode(from)).transpose()?;
        let old = (flags & HAS_OLD != 0).then(|| Item::decode(from)).transpose()?;
        if !from.is_empty() || flags > (HAS_NEW | HAS_OLD | EXPIRED) {
            return Err(damaged());
        }
        Ok(Change { event, keys, new, old, at, size, expired: flags & EXPIRED != 0 })
    }
}
