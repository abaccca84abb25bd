//! Errors, full disks, decay and forgotten syncs.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;

use anabranch_model::{Disk, DiskFile, Open};
use anabranch_sim::{Fault, SimDisk, SyncEvent, SyncKind};

fn write(file: &dyn DiskFile, offset: u64, data: &[u8]) -> io::Result<()> {
    file.write_all_at(offset, &[IoSlice::new(data)])
}

fn create(disk: &SimDisk, path: &str) -> Arc<dyn DiskFile> {
    disk.open(path, Open::CreateNew).unwrap()
}

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

/// The contents of a file in many crashes right now.
fn crashes(disk: &SimDisk, path: &str) -> Vec<Vec<u8>> {
    let now = disk.operations();
    (0..300).map(|seed| disk.crash_at(now, seed).contents(path).unwrap()).collect()
}

#[test]
fn a_full_disk_refuses_growth_and_takes_what_was_reserved() {
    let disk = SimDisk::new();
    disk.set_capacity(Some(1000));
    let (a, b) = (create(&disk, "a"), create(&disk, "b"));
    a.allocate(800).unwrap();
    assert_eq!(kind(b.allocate(300)), ErrorKind::StorageFull);
    assert_eq!(kind(b.set_len(300)), ErrorKind::StorageFull);
    assert_eq!(b.len().unwrap(), 0);
    write(&*a, 0, &[1; 800]).unwrap();
    write(&*b, 0, &[1; 200]).unwrap();
    write(&*a, 100, &[2; 700]).unwrap();
    assert_eq!(kind(write(&*a, 799, &[3; 2])), ErrorKind::StorageFull);
}

#[test]
fn a_write_that_does_not_fit_has_written_its_beginning() {
    let disk = SimDisk::new();
    disk.set_capacity(Some(1000));
    let file = create(&disk, "file");
    assert_eq!(kind(write(&*file, 0, &[1; 1001])), ErrorKind::StorageFull);
    assert_eq!(disk.contents("file").unwrap(), [1; 1000]);
    assert_eq!(kind(write(&*file, 2000, &[1; 10])), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 1000);
}

#[test]
fn room_comes_back_with_the_last_name_and_handle() {
    let disk = SimDisk::new();
    disk.set_capacity(Some(1000));
    let (a, b) = (create(&disk, "a"), create(&disk, "b"));
    write(&*a, 0, &[1; 1000]).unwrap();
    disk.remove("a").unwrap();
    assert_eq!(kind(b.allocate(1)), ErrorKind::StorageFull, "a handle still holds the room");
    drop(a);
    b.allocate(1000).unwrap();
    b.set_len(10).unwrap();
    create(&disk, "c").allocate(990).unwrap();
    disk.rename("c", "b").unwrap();
    drop(b);
    create(&disk, "d").allocate(10).unwrap();
    disk.set_capacity(None);
    create(&disk, "e").allocate(1 << 30).unwrap();
}

#[test]
fn a_handle_follows_its_file() {
    let disk = SimDisk::new();
    let file = create(&disk, "old");
    disk.rename("old", "new").unwrap();
    write(&*file, 0, b"renamed").unwrap();
    assert_eq!(disk.contents("new").unwrap(), b"renamed");
    file.sync().unwrap();
    disk.remove("new").unwrap();
    write(&*file, 0, b"removed").unwrap();
    let mut bytes = [0; 7];
    file.read_exact_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"removed");
    file.sync().unwrap();
    let event = |path: &str| SyncEvent { kind: SyncKind::File, path: path.to_owned() };
    assert_eq!(disk.syncs(), [event("new"), event("new")]);
    let other = create(&disk, "new");
    assert_eq!(other.len().unwrap(), 0);
}

#[test]
fn a_failed_sync_leaves_doubt_that_a_later_one_does_not_remove() {
    let disk = SimDisk::new();
    let file = create(&disk, "file");
    disk.sync_directory("").unwrap();
    write(&*file, 0, &[1; 100]).unwrap();
    disk.fail_syncs(Fault::next("fi*"));
    assert!(file.sync().is_err());
    write(&*file, 600, &[2; 100]).unwrap();
    file.sync().unwrap();
    let found = crashes(&disk, "file");
    assert!(found.iter().all(|bytes| bytes.len() == 700 && bytes[600..] == [2; 100]));
    assert!(found.iter().any(|bytes| bytes[..100] == [1; 100]));
    assert!(found.iter().any(|bytes| bytes[..100] == [0; 100]));
}

#[test]
fn a_failed_sync_of_a_folder_leaves_its_entries_open() {
    let disk = SimDisk::new();
    create(&disk, "file");
    disk.fail_syncs(Fault::each(""));
    assert!(disk.sync_directory("").is_err());
    let now = disk.operations();
    assert!((0..300).any(|seed| disk.crash_at(now, seed).paths().is_empty()));
    disk.clear_faults();
    disk.sync_directory("").unwrap();
    let now = disk.operations();
    assert!((0..300).all(|seed| disk.crash_at(now, seed).paths() == ["file"]));
}

#[test]
fn an_ignored_sync_does_nothing_and_says_so_to_nobody() {
    let disk = SimDisk::new();
    disk.ignore_syncs(|event| event.kind == SyncKind::File && event.path == "ignored");
    let (ignored, honoured) = (create(&disk, "ignored"), create(&disk, "honoured"));
    disk.sync_directory("").unwrap();
    for file in [&ignored, &honoured] {
        write(&**file, 0, b"bytes").unwrap();
        file.sync().unwrap();
    }
    assert!(crashes(&disk, "honoured").iter().all(|bytes| bytes == b"bytes"));
    assert!(crashes(&disk, "ignored").iter().any(|bytes| bytes != b"bytes"));
    assert_eq!(disk.syncs().len(), 3);
    assert_eq!(disk.operations(), 7, "an ignored sync keeps its place in the log");
}

#[test]
fn failing_writes_and_reads_name_their_path() {
    let disk = SimDisk::new();
    let file = create(&disk, "file");
    write(&*file, 0, &[1; 100]).unwrap();
    disk.fail_writes(Fault::next("file").after(1));
    write(&*file, 0, &[2; 100]).unwrap();
    let error = write(&*file, 0, &[3; 100]).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    let bytes = disk.contents("file").unwrap();
    let written = bytes.iter().take_while(|byte| **byte == 3).count();
    assert!(bytes[written..].iter().all(|byte| *byte == 2), "a failed write leaves a beginning");
    disk.fail_writes(Fault::each("*"));
    assert!(file.allocate(1000).is_err() && file.set_len(0).is_err());
    disk.fail_reads(Fault::next("file"));
    assert!(file.read_exact_at(0, &mut [0; 1]).is_err());
    file.read_exact_at(0, &mut [0; 1]).unwrap();
}

#[test]
fn a_flipped_bit_is_there_before_and_after_every_crash() {
    let disk = SimDisk::new();
    let file = create(&disk, "file");
    disk.sync_directory("").unwrap();
    write(&*file, 0, &[0b1000; 10]).unwrap();
    file.sync().unwrap();
    write(&*file, 5, &[0b1001; 5]).unwrap();
    disk.flip_bit("file", 5, 3).unwrap();
    assert_eq!(disk.contents("file").unwrap()[4..7], [0b1000, 0b0001, 0b1001]);
    assert!(crashes(&disk, "file").iter().all(|bytes| bytes[5] & 0b1000 == 0 && bytes[4] == 0b1000));
    assert_eq!(kind(disk.flip_bit("file", 10, 0)), ErrorKind::InvalidInput);
    assert_eq!(kind(disk.flip_bit("nothing", 0, 0)), ErrorKind::NotFound);
}

#[test]
fn without_power_every_call_fails_and_a_crash_can_still_be_seen() {
    let disk = SimDisk::new();
    let file = create(&disk, "file");
    disk.sync_directory("").unwrap();
    disk.halt();
    let operations = disk.operations();
    assert!(file.len().is_err() && file.read_exact_at(0, &mut []).is_err());
    assert!(write(&*file, 0, b"x").is_err() && file.sync().is_err());
    assert!(file.allocate(1).is_err() && file.set_len(1).is_err());
    assert!(disk.open("file", Open::Existing).is_err() && disk.list("").is_err());
    assert!(disk.create_folder("f").is_err() && disk.sync_directory("").is_err());
    assert!(disk.rename("file", "b").is_err() && disk.remove("file").is_err());
    assert_eq!(disk.operations(), operations);
    let image = disk.crash_at(operations, 1);
    image.open("file", Open::Existing).unwrap().sync().unwrap();
}

#[test]
fn wrong_calls_get_the_errors_of_a_real_disk() {
    let disk = SimDisk::new();
    disk.create_folder("folder").unwrap();
    disk.create_folder("folder").unwrap();
    let file = create(&disk, "folder/file");
    assert_eq!(disk.list("").unwrap(), ["folder"]);
    assert_eq!(disk.list("folder").unwrap(), ["file"]);
    assert_eq!(kind(disk.open("folder/file", Open::CreateNew)), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.open("folder/other", Open::Existing)), ErrorKind::NotFound);
    assert_eq!(kind(disk.open("nowhere/file", Open::CreateNew)), ErrorKind::NotFound);
    assert_eq!(kind(disk.open("folder", Open::CreateIfMissing)), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.open("folder//file", Open::CreateIfMissing)), ErrorKind::InvalidInput);
    assert_eq!(kind(disk.open("../file", Open::CreateIfMissing)), ErrorKind::InvalidInput);
    assert_eq!(kind(disk.create_folder("a/b")), ErrorKind::NotFound);
    assert_eq!(kind(disk.create_folder("folder/file")), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.rename("nothing", "a")), ErrorKind::NotFound);
    assert_eq!(kind(disk.rename("folder/file", "nowhere/a")), ErrorKind::NotFound);
    assert_eq!(kind(disk.rename("folder/file", "folder")), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.remove("folder")), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.list("folder/file")), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.sync_directory("nowhere")), ErrorKind::NotFound);
    assert_eq!(kind(file.read_exact_at(0, &mut [0])), ErrorKind::UnexpectedEof);
    assert_eq!(kind(file.set_len(u64::MAX)), ErrorKind::FileTooLarge);
    assert_eq!(kind(write(&*file, u64::MAX, &[1])), ErrorKind::FileTooLarge);
}
