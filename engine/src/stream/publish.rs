//! Publishing: what the sync has made durable becomes visible, in the order of the journal.

use std::sync::Arc;

use super::catalogue::Effect;
use super::shard::Shard;
use crate::core::Core;
use crate::journal::committer::Durable;
use crate::journal::{Publish, Segment};
use crate::rows::write::Written;
use crate::state::Entry;

impl Publish<Effect> for Core {
    fn publish(&self, frames: Vec<Durable<Effect>>, end: u64) {
        let mut published = self.published.lock();
        let segment =
            self.segments.holding(frames[0].position).expect("the committer has just written to it");
        for frame in frames {
            match frame.effect {
                Some(Effect::Appended { shard, count, arrival }) => {
                    let entry = entry(&frame.bytes, frame.position, frame.position, count, arrival);
                    published.uncollected += 1;
                    self.add_records(&segment, &shard, entry, Some(frame.bytes));
                }
                Some(Effect::Moved { shard, origin, count, arrival }) => {
                    let entry = entry(&frame.bytes, origin, frame.position, count, arrival);
                    published.uncollected += 1;
                    self.move_records(&segment, &shard, entry);
                }
                Some(Effect::Rows(written)) => {
                    published.last_state = frame.position;
                    self.show_rows(frame.position, *written);
                }
                Some(effect) => {
                    published.last_state = frame.position;
                    published.last_catalogue = frame.position;
                    self.catalogue.publish(effect);
                }
                None => {}
            }
        }
        published.position = end;
    }

    fn is_light(effect: &Effect) -> bool {
        matches!(effect, Effect::Appended { .. } | Effect::Moved { .. })
    }
}

impl Core {
    /// Adds a frame to a shard and tells its followers.
    pub fn add_records(&self, segment: &Segment, shard: &Arc<Shard>, entry: Entry, frame: Option<Vec<u8>>) {
        if entry.count > 0 {
            segment.add_live(u64::from(entry.bytes));
        }
        let mut log = shard.log();
        log.add(entry);
        if let Some(frame) = frame
            && !log.followers.is_empty()
        {
            super::follow::push(&self.budget, &log.followers, entry, frame);
        }
        self.catalogue.mark_locked(shard, log);
    }

    /// Shows changed rows, and lets go of their accepted values, which nobody needs from here on.
    fn show_rows(&self, position: u64, written: Written) {
        let Written { changes, accepted, then } = written;
        // In time: while it runs there is room for as much again.
        if self.rows.apply(position, changes) {
            self.sequencer.wake_upkeep();
        }
        self.rows.settle(position, &accepted);
        if let Some(then) = then {
            then(position);
        }
    }

    /// Remembers where the cleaner has put a frame.
    pub fn move_records(&self, segment: &Segment, shard: &Arc<Shard>, entry: Entry) {
        segment.add_live(u64::from(entry.bytes));
        let mut log = shard.log();
        log.repoint(entry);
        self.catalogue.mark_locked(shard, log);
    }
}

fn entry(frame: &[u8], origin: u64, position: u64, count: u32, arrival: u64) -> Entry {
    Entry { origin, position, bytes: frame.len() as u32, count, arrival }
}
