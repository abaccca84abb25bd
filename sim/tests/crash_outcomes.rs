//! The interesting outcomes really happen: a simulator that obeys the laws by losing nothing finds nothing.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::IoSlice;
use std::sync::Arc;

use anabranch_model::{Disk, DiskFile, Open};
use anabranch_sim::{Rng, SimDisk};

const SEEDS: u64 = 1000;
/// An outcome that fewer than one seed in a hundred shows is too rare to be found by a test of the engine.
const OFTEN: usize = SEEDS as usize / 100;

fn write(file: &dyn DiskFile, offset: u64, data: &[u8]) {
    file.write_all_at(offset, &[IoSlice::new(data)]).unwrap();
}

/// A file of `length` bytes of value 1, all durable.
fn durable_file(disk: &SimDisk, path: &str, length: usize) -> Arc<dyn DiskFile> {
    let file = disk.open(path, Open::CreateNew).unwrap();
    write(&*file, 0, &vec![1; length]);
    file.sync().unwrap();
    disk.sync_directory("").unwrap();
    file
}

/// In how many crashes right now `outcome` is seen.
fn count(disk: &SimDisk, outcome: impl Fn(&SimDisk) -> bool) -> usize {
    let now = disk.operations();
    (0..SEEDS).filter(|seed| outcome(&disk.crash_at(now, *seed))).count()
}

fn assert_often(what: &str, disk: &SimDisk, outcome: impl Fn(&SimDisk) -> bool) {
    let times = count(disk, outcome);
    assert!(times >= OFTEN, "{what}: {times} of {SEEDS}");
}

#[test]
fn a_write_is_kept_lost_or_torn_between_sectors_and_never_inside_one() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "file", 4096);
    // From the middle of a sector to the middle of another.
    write(&*file, 700, &[2; 2000]);
    let bytes = |image: &SimDisk| image.contents("file").unwrap();
    let changed = |image: &SimDisk| bytes(image).iter().filter(|byte| **byte == 2).count();
    assert_often("kept", &disk, |image| changed(image) == 2000);
    assert_often("lost", &disk, |image| changed(image) == 0);
    assert_often("torn", &disk, |image| (1..2000).contains(&changed(image)));
    assert_often("torn in the middle", &disk, |image| {
        let bytes = bytes(image);
        bytes[700] == 2 && bytes[1500] == 1 && bytes[2699] == 2
    });
    let whole_sectors = |image: &SimDisk| {
        let bytes = bytes(image);
        let boundaries = [700, 1024, 1536, 2048, 2560, 2700];
        boundaries.windows(2).all(|ends| bytes[ends[0]..ends[1]].iter().all(|byte| *byte == bytes[ends[0]]))
            && bytes[..700].iter().chain(&bytes[2700..]).all(|byte| *byte == 1)
    };
    assert_eq!(count(&disk, whole_sectors), SEEDS as usize);
}

#[test]
fn a_write_is_lost_and_a_later_one_kept() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "file", 4096);
    write(&*file, 0, &[2; 512]);
    write(&*file, 2048, &[3; 512]);
    let found = |image: &SimDisk| {
        let bytes = image.contents("file").unwrap();
        (bytes[0] == 2, bytes[2048] == 3)
    };
    assert_often("only the later", &disk, |image| found(image) == (false, true));
    assert_often("only the earlier", &disk, |image| found(image) == (true, false));
    assert_often("the older of two for one place", &disk, {
        write(&*file, 0, &[4; 512]);
        |image| image.contents("file").unwrap()[0] == 2
    });
}

#[test]
fn of_many_writes_the_oldest_or_the_newest_are_kept() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "file", 40 * 512);
    (0..40).for_each(|sector| write(&*file, sector * 512, &[2; 512]));
    let kept = |image: &SimDisk| {
        let bytes = image.contents("file").unwrap();
        (0..40).map(|sector| bytes[sector * 512] == 2).collect::<Vec<_>>()
    };
    let some = |kept: &[bool]| kept.contains(&true) && kept.contains(&false);
    assert_often("the oldest", &disk, |image| {
        some(&kept(image)) && kept(image).is_sorted_by_key(|kept| !kept)
    });
    assert_often("the newest", &disk, |image| some(&kept(image)) && kept(image).is_sorted());
}

#[test]
fn of_many_entries_any_is_kept_without_those_before_it() {
    let disk = SimDisk::new();
    for name in ["a", "b", "c"] {
        disk.open(name, Open::CreateNew).unwrap();
    }
    assert_often("only the last", &disk, |image| image.paths() == ["c"]);
    assert_often("only the first", &disk, |image| image.paths() == ["a"]);
    assert_often("all but the second", &disk, |image| image.paths() == ["a", "c"]);
}

#[test]
fn an_append_leaves_any_length_and_zeros_in_place_of_bytes() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "file", 100);
    write(&*file, 100, &[2; 2000]);
    let bytes = |image: &SimDisk| image.contents("file").unwrap();
    assert_often("the old length", &disk, |image| bytes(image).len() == 100);
    assert_often("the new length and bytes", &disk, |image| bytes(image)[100..] == [2; 2000]);
    assert_often("a length between", &disk, |image| (101..2100).contains(&bytes(image).len()));
    assert_often("length without bytes", &disk, |image| bytes(image)[100..] == [0; 2000]);
    assert_often("a hole before bytes", &disk, |image| {
        let bytes = bytes(image);
        bytes.len() == 2100 && bytes[100] == 0 && bytes[2099] == 2
    });
}

#[test]
fn a_change_of_length_is_kept_or_lost() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "file", 1000);
    file.set_len(100).unwrap();
    assert_often("cut", &disk, |image| image.file_len("file").unwrap() == 100);
    assert_often("not cut", &disk, |image| image.contents("file").unwrap() == [1; 1000]);
    file.allocate(5000).unwrap();
    assert_often("cut and allocated", &disk, |image| {
        let bytes = image.contents("file").unwrap();
        bytes.len() == 5000 && bytes[100..] == [0; 4900]
    });
    assert_often("allocation lost", &disk, |image| image.file_len("file").unwrap() == 100);
}

#[test]
fn an_entry_is_lost_although_its_bytes_were_synced() {
    let disk = SimDisk::new();
    let file = disk.open("file", Open::CreateNew).unwrap();
    write(&*file, 0, b"synced");
    file.sync().unwrap();
    assert_often("lost", &disk, |image| image.paths().is_empty());
    assert_often("kept", &disk, |image| image.contents("file").is_ok_and(|bytes| bytes == b"synced"));
}

#[test]
fn a_durable_entry_leads_to_a_file_without_its_unsynced_bytes() {
    let disk = SimDisk::new();
    let file = disk.open("new", Open::CreateNew).unwrap();
    write(&*file, 0, b"unsynced");
    disk.rename("new", "name").unwrap();
    disk.sync_directory("").unwrap();
    assert_often("empty", &disk, |image| image.file_len("name").unwrap() == 0);
}

#[test]
fn a_removed_file_comes_back_with_its_durable_and_some_of_its_other_bytes() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "file", 1024);
    write(&*file, 0, &[2; 512]);
    disk.remove("file").unwrap();
    let first = |image: &SimDisk| image.contents("file").ok().map(|bytes| bytes[0]);
    assert_often("gone", &disk, |image| first(image).is_none());
    assert_often("back as it was synced", &disk, |image| first(image) == Some(1));
    assert_often("back with an unsynced write", &disk, |image| first(image) == Some(2));
    disk.sync_directory("").unwrap();
    assert_eq!(count(&disk, |image| image.paths().is_empty()), SEEDS as usize);
}

#[test]
fn a_replaced_file_is_the_old_or_the_new_one() {
    let disk = SimDisk::new();
    durable_file(&disk, "file", 1);
    let new = disk.open("file.new", Open::CreateNew).unwrap();
    write(&*new, 0, &[2]);
    new.sync().unwrap();
    disk.rename("file.new", "file").unwrap();
    assert_often("old", &disk, |image| image.contents("file").unwrap() == [1]);
    assert_often("new", &disk, |image| image.contents("file").unwrap() == [2]);
    assert_often("old, and the new one beside it", &disk, |image| {
        image.contents("file").unwrap() == [1] && image.paths().len() == 2
    });
}

#[test]
fn bytes_and_names_are_lost_independently() {
    let disk = SimDisk::new();
    let file = durable_file(&disk, "file", 1);
    write(&*file, 0, &[2]);
    disk.open("other", Open::CreateNew).unwrap();
    for (bytes, names) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_often(&format!("{bytes} {names}"), &disk, |image| {
            (image.contents("file").unwrap() == [2], image.paths().len() == 2) == (bytes, names)
        });
    }
}

/// A disk after a long random life, and its handles.
fn busy_disk(steps: usize) -> SimDisk {
    let (disk, mut rng) = (SimDisk::new(), Rng::new(42));
    let mut files = Vec::new();
    for step in 0..steps {
        if step % 100 == 0 {
            let file = disk.open(&format!("journal-{step}"), Open::CreateNew).unwrap();
            file.allocate(256 * 1024).unwrap();
            disk.sync_directory("").unwrap();
            files.push(file);
        }
        let file = &files[rng.below(files.len() as u64) as usize];
        match rng.below(10) {
            0..7 => {
                let data = vec![rng.next_u64() as u8; rng.below(4096) as usize];
                write(&**file, rng.below(250 * 1024), &data);
            }
            7 => drop(disk.open(&format!("note-{}", rng.below(5)), Open::CreateIfMissing).unwrap()),
            8 => drop(disk.rename(&format!("note-{}", rng.below(5)), &format!("note-{}", rng.below(5)))),
            _ => file.sync().unwrap(),
        }
    }
    disk
}

fn everything(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    disk.paths().into_iter().map(|path| (path.clone(), disk.contents(&path).unwrap())).collect()
}

#[test]
fn the_same_moment_and_seed_give_the_same_disk_by_every_road() {
    let disk = busy_disk(300);
    let again = busy_disk(300);
    for (point, operation) in disk.crash_points().zip(0..) {
        assert_eq!(point.operation(), operation);
        if operation % 7 == 0 {
            let expected = everything(&point.image(5));
            assert!(everything(&disk.crash_at(operation, 5)) == expected, "{}", disk.describe(operation));
            assert!(everything(&again.crash_at(operation, 5)) == expected, "{}", disk.describe(operation));
        }
    }
    assert_eq!(disk.crash_points().len(), disk.operations() + 1);
    assert!(everything(&disk.crash_point(disk.operations()).image_with_unsynced()) == everything(&disk));
}

#[test]
fn ten_thousand_crashes_of_a_long_log_take_seconds() {
    let disk = busy_disk(3000);
    let mut rng = Rng::new(1);
    for seed in 0..10_000 {
        let image = disk.crash_at(rng.below(disk.operations() as u64 + 1) as usize, seed);
        assert!(image.paths().len() <= disk.paths().len() + 5);
    }
}
