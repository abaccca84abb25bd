//! Laws 1 to 3 of `anabranch_model::disk`: what a crash may do to the bytes and the length of a file.
//!
//! The oracle keeps, for every byte, the set of values it may have, and knows nothing of how the disk works.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::IoSlice;
use std::sync::Arc;

use anabranch_model::{Disk, DiskFile, Open};
use anabranch_sim::SimDisk;
use proptest::prelude::*;

const FILE: &str = "folder/file";

#[derive(Clone, Debug)]
enum Step {
    Write { offset: u64, length: usize, value: u8 },
    Allocate { length: u64 },
    SetLen { length: u64 },
    Sync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..6000, 1usize..3000, 1u8..=255)
            .prop_map(|(offset, length, value)| Step::Write { offset, length, value }),
        1 => (0u64..9000).prop_map(|length| Step::Allocate { length }),
        1 => (0u64..9000).prop_map(|length| Step::SetLen { length }),
        2 => Just(Step::Sync),
    ];
    prop::collection::vec(step, 1..20)
}

/// What a crash may show.
#[derive(Clone, Default)]
struct Oracle {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// For every offset, the values since the last sync.
    since: Vec<Vec<u8>>,
    lengths: Vec<u64>,
}

impl Oracle {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Write { offset, length, value } => {
                let end = *offset as usize + length;
                self.resize(self.now.len().max(end));
                self.now[*offset as usize..end].fill(*value);
                (*offset as usize..end).for_each(|at| self.since[at].push(*value));
                // A torn write may leave the file at the end of any of its sectors.
                let sectors =
                    (*offset as usize / 512 + 1..end.div_ceil(512)).map(|sector| sector as u64 * 512);
                self.lengths.extend(sectors);
                self.lengths.push(end as u64);
            }
            Step::Allocate { length } => self.resize(self.now.len().max(*length as usize)),
            Step::SetLen { length } => self.resize(*length as usize),
            Step::Sync => {
                *self = Oracle {
                    durable: self.now.clone(),
                    since: vec![Vec::new(); self.since.len()],
                    lengths: Vec::new(),
                    now: std::mem::take(&mut self.now),
                }
            }
        }
    }

    fn resize(&mut self, length: usize) {
        // A byte that is cut away, or comes into view without being written, may read as zero.
        self.since.resize(self.since.len().max(length), Vec::new());
        let range = self.now.len().min(length)..self.now.len().max(length);
        range.for_each(|at| self.since[at].push(0));
        self.now.resize(length, 0);
        self.lengths.push(length as u64);
    }

    fn check(&self, found: &[u8]) -> Result<(), TestCaseError> {
        let length = found.len() as u64;
        let known = length == self.durable.len() as u64 || self.lengths.contains(&length);
        prop_assert!(known, "length {length} was never that of the file");
        let cut = self.lengths.iter().any(|length| *length < self.durable.len() as u64);
        prop_assert!(cut || length >= self.durable.len() as u64, "synced bytes are missing");
        for (at, value) in found.iter().enumerate() {
            let durable = self.durable.get(at).copied().unwrap_or(0);
            let allowed = *value == durable || self.since[at].contains(value);
            prop_assert!(allowed, "byte {at} is {value}, durable {durable}, since {:?}", self.since[at]);
        }
        Ok(())
    }
}

fn prepared() -> (SimDisk, Arc<dyn DiskFile>) {
    let disk = SimDisk::new();
    disk.create_folder("folder").unwrap();
    disk.sync_directory("").unwrap();
    let file = disk.open(FILE, Open::CreateNew).unwrap();
    disk.sync_directory("folder").unwrap();
    (disk, file)
}

fn perform(file: &dyn DiskFile, step: &Step) {
    match step {
        Step::Write { offset, length, value } => {
            let data = vec![*value; *length];
            // Two parts, because the engine writes headers and bodies from different buffers.
            let (head, body) = data.split_at(length / 3);
            file.write_all_at(*offset, &[IoSlice::new(head), IoSlice::new(body)]).unwrap();
        }
        Step::Allocate { length } => file.allocate(*length).unwrap(),
        Step::SetLen { length } => file.set_len(*length).unwrap(),
        Step::Sync => file.sync().unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_crash_shows_only_bytes_that_the_laws_allow(steps in steps(), seed: u64) {
        let (disk, file) = prepared();
        let mut oracle = Oracle::default();
        let mut moments = vec![(disk.operations(), oracle.clone())];
        for step in &steps {
            perform(&*file, step);
            oracle.take(step);
            moments.push((disk.operations(), oracle.clone()));
        }
        prop_assert!(disk.contents(FILE).unwrap() == oracle.now);
        for (operation, oracle) in moments {
            let point = disk.crash_point(operation);
            prop_assert!(point.image_with_unsynced().contents(FILE).unwrap() == oracle.now);
            prop_assert!(point.image_without_unsynced().contents(FILE).unwrap() == oracle.durable);
            for seed in seed..seed.saturating_add(12) {
                oracle.check(&point.image(seed).contents(FILE).unwrap())?;
            }
        }
    }

    #[test]
    fn a_crash_after_a_crash_keeps_what_the_first_one_left(steps in steps(), seed: u64) {
        let (disk, file) = prepared();
        steps.iter().for_each(|step| perform(&*file, step));
        let first = disk.crash_at(disk.operations(), seed);
        let found = first.contents(FILE).unwrap();
        let reopened = first.open(FILE, Open::Existing).unwrap();
        reopened.write_all_at(found.len() as u64, &[IoSlice::new(b"tail")]).unwrap();
        reopened.set_len(found.len() as u64 + 9000).unwrap();
        let grown = first.contents(FILE).unwrap();
        prop_assert!(grown[found.len() + 4..].iter().all(|byte| *byte == 0), "lost bytes come back");
        prop_assert!(first.crash_at(0, seed).contents(FILE).unwrap() == found);
        let second = first.crash_at(1, seed).contents(FILE).unwrap();
        prop_assert!(second[..found.len()] == found, "an append damaged what was before it");
    }
}
