//! What a reader got, and whether it is right.

use std::collections::{BTreeMap, HashMap};

use anabranch_bus::{Event, Origin, Outcome, Sink};
use anabranch_model::SequenceNumber;
use async_trait::async_trait;
use parking_lot::Mutex;
use serde::Deserialize;

/// Takes what a reader reads, in the order in which it reads it.
#[derive(Default)]
pub struct Audit {
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    /// Where each event was seen first.
    places: HashMap<String, SequenceNumber>,
    /// The orders of each submission's events as they were seen first.
    orders: BTreeMap<String, Vec<u64>>,
    /// Events that the stream has more than once.
    repeated: usize,
}

#[derive(Deserialize)]
struct Seen {
    event_id: String,
    submission_id: String,
    order: u64,
}

#[async_trait]
impl Sink for Audit {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        let mut read = self.read.lock();
        for event in events {
            let Origin::Shard { sequence, .. } = &event.origin else { panic!("{:?}", event.origin) };
            let seen: Seen = serde_json::from_slice(&event.data).unwrap();
            match read.places.get(&seen.event_id) {
                // A reader may be given a record again, which is nothing against those who wrote it.
                Some(known) if known == sequence => {}
                Some(_) => read.repeated += 1,
                None => {
                    read.places.insert(seen.event_id, *sequence);
                    read.orders.entry(seen.submission_id).or_default().push(seen.order);
                }
            }
        }
        vec![Outcome::Done; events.len()]
    }
}

impl Audit {
    /// Events that were read, each once.
    pub fn count(&self) -> usize {
        self.read.lock().places.len()
    }

    /// Every event of every valid submission once and in order, and nothing else. Returns how many were in the stream again.
    #[track_caller]
    pub fn check(&self, valid: &BTreeMap<String, u64>) -> usize {
        let mut read = self.read.lock();
        for (submission, count) in valid {
            let orders = read.orders.remove(submission).unwrap_or_default();
            assert!(orders.iter().copied().eq(0..*count), "{submission} of {count} events: {orders:?}");
        }
        assert!(read.orders.is_empty(), "nobody sent these, or not like this: {:?}", read.orders.keys());
        read.repeated
    }
}
