//! Law 4 of `anabranch_model::disk`: what a crash may do to the names of files.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;

use anabranch_model::{Disk, Open};
use anabranch_sim::SimDisk;
use proptest::prelude::*;

const FOLDERS: [&str; 2] = ["", "folder"];
const NAMES: [&str; 6] = ["a", "b", "c", "folder/a", "folder/b", "folder/c"];

#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Rename(usize, usize),
    Remove(usize),
    Sync(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = || 0..NAMES.len();
    let step = prop_oneof![
        3 => name().prop_map(Step::Create),
        // Inside one folder: which sync covers a rename between two is tested apart.
        3 => (0..2usize, 0..3usize, 0..3usize).prop_map(|(f, from, to)| Step::Rename(f * 3 + from, f * 3 + to)),
        2 => name().prop_map(Step::Remove),
        2 => (0..FOLDERS.len()).prop_map(Step::Sync),
    ];
    prop::collection::vec(step, 1..25)
}

/// For every name, the files it has led to since its folder was synced. A file is known by its contents.
#[derive(Clone, Default)]
struct Oracle {
    now: BTreeMap<&'static str, u8>,
    since: BTreeMap<&'static str, BTreeSet<Option<u8>>>,
}

impl Oracle {
    fn note(&mut self) {
        for name in NAMES {
            self.since.entry(name).or_default().insert(self.now.get(name).copied());
        }
    }

    fn sync(&mut self, folder: &str) {
        for name in NAMES {
            if name.rsplit_once('/').map_or("", |(parent, _)| parent) == folder {
                self.since.remove(name);
            }
        }
        self.note();
    }
}

/// Does a step if it applies, on the disk and in the oracle.
fn perform(disk: &SimDisk, oracle: &mut Oracle, step: &Step, tag: u8) {
    match *step {
        Step::Create(name) if !oracle.now.contains_key(NAMES[name]) => {
            let file = disk.open(NAMES[name], Open::CreateNew).unwrap();
            file.write_all_at(0, &[IoSlice::new(&[tag])]).unwrap();
            file.sync().unwrap();
            oracle.now.insert(NAMES[name], tag);
        }
        Step::Rename(from, to) if oracle.now.contains_key(NAMES[from]) => {
            disk.rename(NAMES[from], NAMES[to]).unwrap();
            let tag = oracle.now.remove(NAMES[from]).unwrap();
            oracle.now.insert(NAMES[to], tag);
        }
        Step::Remove(name) if oracle.now.contains_key(NAMES[name]) => {
            disk.remove(NAMES[name]).unwrap();
            oracle.now.remove(NAMES[name]);
        }
        Step::Sync(folder) => {
            disk.sync_directory(FOLDERS[folder]).unwrap();
            oracle.sync(FOLDERS[folder]);
        }
        _ => {}
    }
    oracle.note();
}

fn files(disk: &SimDisk) -> BTreeMap<String, u8> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.contents(&path).unwrap()[0])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_crash_shows_the_old_or_a_newer_state_of_every_name(steps in steps(), seed: u64) {
        let disk = SimDisk::new();
        disk.create_folder("folder").unwrap();
        disk.sync_directory("").unwrap();
        let mut oracle = Oracle::default();
        oracle.note();
        let mut moments = vec![(disk.operations(), oracle.clone())];
        for (tag, step) in steps.iter().enumerate() {
            perform(&disk, &mut oracle, step, tag as u8);
            moments.push((disk.operations(), oracle.clone()));
        }
        for (operation, oracle) in moments {
            let all = files(&disk.crash_point(operation).image_with_unsynced());
            prop_assert!(all.iter().map(|(name, tag)| (name.as_str(), *tag)).eq(oracle.now.clone()));
            for seed in seed..seed.saturating_add(12) {
                let found = files(&disk.crash_at(operation, seed));
                for name in NAMES {
                    let state = found.get(name).copied();
                    prop_assert!(oracle.since[name].contains(&state), "{name} leads to {state:?}");
                }
                let distinct: BTreeSet<u8> = found.values().copied().collect();
                prop_assert_eq!(distinct.len(), found.len(), "one file has two names: a rename is half done");
            }
        }
    }
}

/// The images of the last moment of a disk for many seeds.
fn images(disk: &SimDisk) -> impl Iterator<Item = BTreeMap<String, u8>> {
    let point = disk.crash_point(disk.operations());
    (0..500).map(move |seed| files(&point.image(seed)))
}

fn create(disk: &SimDisk, path: &str, tag: u8) {
    let file = disk.open(path, Open::CreateNew).unwrap();
    file.write_all_at(0, &[IoSlice::new(&[tag])]).unwrap();
    file.sync().unwrap();
}

#[test]
fn a_rename_between_folders_is_durable_with_its_target_and_never_half_done() {
    let disk = SimDisk::new();
    disk.create_folder("from").unwrap();
    disk.create_folder("to").unwrap();
    create(&disk, "from/file", 1);
    for folder in ["", "from", "to"] {
        disk.sync_directory(folder).unwrap();
    }
    disk.rename("from/file", "to/file").unwrap();
    let seen: BTreeSet<Vec<String>> = images(&disk).map(|files| files.into_keys().collect()).collect();
    assert_eq!(seen, BTreeSet::from([vec!["from/file".to_owned()], vec!["to/file".to_owned()]]));

    disk.sync_directory("to").unwrap();
    assert!(images(&disk).all(|files| files.into_keys().eq(["to/file"])));
}

#[test]
fn a_sync_that_reuses_the_old_name_of_a_file_does_not_lose_the_file() {
    let disk = SimDisk::new();
    disk.create_folder("to").unwrap();
    create(&disk, "file", 1);
    disk.sync_directory("").unwrap();
    disk.rename("file", "to/file").unwrap();
    create(&disk, "file", 2);
    disk.sync_directory("").unwrap();
    assert!(images(&disk).all(|files| files.into_values().eq([2, 1])));
}

#[test]
fn a_kept_rename_takes_its_old_name_away_whatever_stood_there() {
    let disk = SimDisk::new();
    create(&disk, "a", 1);
    disk.sync_directory("").unwrap();
    disk.remove("a").unwrap();
    create(&disk, "a", 2);
    disk.rename("a", "b").unwrap();
    assert!(images(&disk).all(|files| !(files.contains_key("a") && files.contains_key("b"))));
}

#[test]
fn a_sync_of_one_folder_leaves_the_entries_of_another_open() {
    let disk = SimDisk::new();
    disk.create_folder("folder").unwrap();
    disk.sync_directory("").unwrap();
    create(&disk, "folder/file", 1);
    disk.sync_directory("").unwrap();
    assert!(images(&disk).any(|files| files.is_empty()));
    disk.sync_directory("folder").unwrap();
    assert!(images(&disk).all(|files| files.len() == 1));
}

#[test]
fn a_folder_that_was_not_synced_takes_its_files_with_it() {
    let disk = SimDisk::new();
    disk.create_folder("folder").unwrap();
    create(&disk, "folder/file", 1);
    disk.sync_directory("folder").unwrap();
    assert!(images(&disk).any(|files| files.is_empty()));
    disk.sync_directory("").unwrap();
    assert!(images(&disk).all(|files| files.len() == 1), "the entry in it was synced already");
}
