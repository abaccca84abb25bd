//! Rows beside a plain map, whatever the order of writes, checkpoints and failures.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use anabranch_model::Disk;
use anabranch_sim::SimDisk;
use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::journal::Segments;
use crate::journal::segments::FOLDER;
use crate::state::{Checkpoint, Covered};

/// What can happen to rows.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    PutFresh(u8),
    PutPlaced(u8),
    Remove(u8),
    RemoveFresh(u8),
    Bury,
    /// A checkpoint, which the file gets or not.
    Checkpoint {
        stored: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..8, any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        2 => any::<u8>().prop_map(Step::PutFresh),
        2 => any::<u8>().prop_map(Step::PutPlaced),
        2 => (0u8..8).prop_map(Step::Remove),
        2 => any::<u8>().prop_map(Step::RemoveFresh),
        1 => Just(Step::Bury),
        2 => any::<bool>().prop_map(|stored| Step::Checkpoint { stored }),
    ]
}

struct World {
    rows: Rows,
    state: Arc<State>,
    expected: BTreeMap<Vec<u8>, Vec<u8>>,
    position: u64,
    checkpoint: u64,
    /// A checkpoint that was collected and not stored: it comes first.
    failed: Option<Checkpoint>,
}

impl World {
    fn new() -> World {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
        State::create(&disk, &Checkpoint::first(4096, 1 << 20)).expect("made");
        disk.create_folder(FOLDER).expect("made");
        let segments = Arc::new(Segments::open(disk.clone(), 1 << 20).expect("opens"));
        let state = Arc::new(State::look(disk, segments, 1 << 20).expect("opens"));
        state.begin_to_write().expect("opens");
        let rows = Rows::open(state.clone(), 1 << 20).expect("opens");
        World { rows, state, expected: BTreeMap::new(), position: 0, checkpoint: 0, failed: None }
    }

    fn apply(&mut self, change: Change) {
        self.position += 8;
        let key = change.key.clone().at(self.position).to_vec();
        match &change.value {
            Some(value) => self.expected.insert(key, value.to_vec()),
            None => self.expected.remove(&key),
        };
        self.rows.apply(self.position, vec![change]);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Put(key, value) => self.apply(Change::put(vec![2, key], vec![value])),
            Step::PutFresh(value) => {
                let key = [&[3][..], &self.position.to_be_bytes()].concat();
                self.apply(Change::put_fresh(key, vec![value]));
            }
            Step::PutPlaced(value) => self.apply(Change::put_placed(vec![4], u16::from(value), vec![value])),
            Step::Remove(key) => self.apply(Change::remove(vec![2, key])),
            Step::RemoveFresh(pick) => {
                let fresh: Vec<Vec<u8>> =
                    self.expected.range(vec![3]..vec![5]).map(|(k, _)| k.clone()).collect();
                if let Some(key) = fresh.get(usize::from(pick) % fresh.len().max(1)) {
                    self.apply(Change::remove(key.clone()));
                }
            }
            Step::Bury => {
                self.apply(bury(&[2]));
                // Nothing is written below a dead prefix any more; here the sweep follows at once.
                self.checkpoint(true);
                self.expected.retain(|key, _| key[0] != 2 && key[0] != Space::Dead as u8);
            }
            Step::Checkpoint { stored } => self.checkpoint(stored),
        }
    }

    fn checkpoint(&mut self, stored: bool) {
        let failed = self.failed.take();
        let repeated = failed.is_some();
        let checkpoint = failed.unwrap_or_else(|| self.collect());
        if !stored {
            self.failed = Some(checkpoint);
            return;
        }
        let outcome = self.state.commit(&checkpoint).expect("stored");
        self.rows.stored(outcome.unswept);
        if repeated {
            self.checkpoint(true);
        }
    }

    fn collect(&mut self) -> Checkpoint {
        self.checkpoint += 1;
        let covered = Covered { position: 4096 + self.position, epoch: 0, last_state: 0 };
        let first = Checkpoint::first(4096, 1 << 20);
        Checkpoint { number: self.checkpoint, covered, rows: self.rows.freeze(), ..first }
    }

    /// The rows that a range shows, and those of the map.
    fn compare(&self, bounds: snapshot::Bounds<'_>, order: Order) {
        let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> = self
            .expected
            .range((owned(bounds.0), owned(bounds.1)))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if order == Order::Backward {
            expected.reverse();
        }
        let mut found = Vec::new();
        let shown = self.rows.snapshot().expect("a snapshot").range(bounds, order, |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(ControlFlow::Continue(()))
        });
        shown.expect("a range");
        assert_eq!(found, expected, "{bounds:?} {order:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_are_what_was_written_last(steps in proptest::collection::vec(step(), 1..80), from: u8, to: u8) {
        let mut world = World::new();
        let mut early = None;
        for (at, step) in steps.into_iter().enumerate() {
            world.take(step);
            if at == 20 {
                early = Some((world.rows.snapshot().expect("a snapshot"), world.expected.clone()));
            }
        }
        for order in [Order::Forward, Order::Backward] {
            world.compare((Bound::Unbounded, Bound::Unbounded), order);
            let (from, to) = ([2, (from % 8).min(to % 8)], [2, (from % 8).max(to % 8) + 1]);
            world.compare((Bound::Included(&from), Bound::Excluded(&to)), order);
            world.compare((Bound::Excluded(&from), Bound::Included(&to)), order);
        }
        for (key, value) in &world.expected {
            prop_assert_eq!(world.rows.get(key).expect("read"), Some(Bytes::from(value.clone())));
        }
        prop_assert_eq!(world.rows.get(&[2, 99]).expect("read"), None);
        if let Some((snapshot, expected)) = early {
            let mut found = BTreeMap::new();
            let shown = snapshot.range((Bound::Unbounded, Bound::Unbounded), Order::Forward, |key, value| {
                found.insert(key.to_vec(), value.to_vec());
                Ok(ControlFlow::Continue(()))
            });
            shown.expect("a range");
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn what_came_and_went_between_checkpoints_is_never_stored() {
    let mut world = World::new();
    world.apply(Change::put_fresh(vec![3, 1], vec![0; 1000]));
    world.apply(Change::put_placed(vec![4], 0, vec![0; 1000]));
    assert!(world.rows.bytes() > 2000);
    let keys: Vec<Vec<u8>> = world.expected.keys().cloned().collect();
    keys.into_iter().for_each(|key| world.apply(Change::remove(key)));
    assert_eq!(world.rows.bytes(), 0);
    assert!(world.collect().rows.is_empty());
}

#[test]
fn a_condition_sees_what_was_accepted_before_it() {
    let world = World::new();
    let key = Bytes::from_static(&[2, 1]);
    let accepting = world.rows.accept(vec![key.clone()]);
    assert_eq!(accepting.get(&key), Ok(None));
    let changes = [Change::put(key.clone(), vec![7])];
    let accepted = accepting.accepted(8, &changes);
    let accepting = world.rows.accept(vec![key.clone()]);
    assert_eq!(accepting.get(&key), Ok(Some(Bytes::from_static(&[7]))));
    drop(accepting);
    assert_eq!(world.rows.get(&key), Ok(None), "it is not durable");
    world.rows.apply(8, changes.to_vec());
    world.rows.settle(8, &accepted);
    assert_eq!(world.rows.get(&key), Ok(Some(Bytes::from_static(&[7]))));
    assert_eq!(world.rows.accept(vec![key.clone()]).get(&key), Ok(Some(Bytes::from_static(&[7]))));
}

#[test]
fn a_row_that_was_seen_before_is_not_taken_for_a_later_one() {
    let mut world = World::new();
    let key = Bytes::from_static(&[2, 1]);
    let row = |value: u8| Ok(Some(Bytes::from(vec![value])));
    let found =
        |world: &World, seen: &Glimpse| world.rows.accept(vec![key.clone()]).get_since(&key, Some(seen));
    let absent = world.rows.glimpse(&key).expect("read");
    assert_eq!(absent.row(), None);
    assert_eq!(found(&world, &absent), Ok(None));
    world.apply(Change::put(key.clone(), vec![1]));
    assert_eq!(found(&world, &absent), row(1), "it lies above what was seen");
    let in_memory = world.rows.glimpse(&key).expect("read");
    world.checkpoint(true);
    assert_eq!(found(&world, &absent), row(1), "it is stored since");
    let stored = world.rows.glimpse(&key).expect("read");
    assert_eq!(found(&world, &stored), row(1));
    world.apply(Change::put(key.clone(), vec![2]));
    world.checkpoint(true);
    for seen in [&absent, &in_memory, &stored] {
        assert_eq!(found(&world, seen), row(2), "a younger one is stored");
    }
    let stored = world.rows.glimpse(&key).expect("read");
    let accepted = world.rows.accept(vec![key.clone()]).accepted(9_000, &[Change::put(key.clone(), vec![3])]);
    assert_eq!(found(&world, &stored), row(3), "it is accepted");
    world.rows.settle(9_000, &accepted);
    assert_eq!(found(&world, &stored), row(2));
}

#[test]
fn numbers_are_given_once() {
    let world = World::new();
    let mut numbers = Vec::new();
    for position in [8, 16, 24] {
        let accepting = world.rows.accept(vec![accept::next_number_key()]);
        let (number, change) = accepting.next_number().expect("a number");
        numbers.push(number);
        let accepted = accepting.accepted(position, std::slice::from_ref(&change));
        world.rows.apply(position, vec![change]);
        world.rows.settle(position, &accepted);
    }
    assert_eq!(numbers, [1, 2, 3]);
}

#[tokio::test]
async fn writers_wait_for_room_or_hear_why_there_is_none() {
    let mut world = World::new();
    world.rows.bytes_max = 1000;
    world.rows.room(|| panic!("there is room")).await.expect("room");
    world.apply(Change::put(vec![2, 1], vec![0; 2000]));
    world.rows.not_stored(&Error::DiskFull);
    assert_eq!(world.rows.room(|| {}).await, Err(Error::DiskFull));
    world.checkpoint(true);
    world.rows.room(|| {}).await.expect("room");
}
