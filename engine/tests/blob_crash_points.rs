//! Power is lost after every operation of a script with blobs: what was acknowledged is there and whole, nothing is
//! there by halves, files without an owner are collected, and every sync of a body is needed.

mod blob_crash;

use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_sim::{SimDisk, SyncKind};
use blob_crash::{Exploration, joining, script};

/// Seeds per moment; the first two lose everything that was not synced, and nothing.
const SEEDS: u64 = 5;

#[test]
fn blobs_survive_power_loss() {
    let exploration = Exploration::on(SimDisk::new(), script);
    let crashes = exploration.lose_power(SEEDS).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{crashes} crashes, at {} operations", exploration.operations());
    assert!(crashes >= 1_000, "{crashes} crashes are few");
}

#[test]
fn joined_blobs_survive_power_loss() {
    let exploration = Exploration::on(SimDisk::new(), joining);
    let crashes = exploration.lose_power(2).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{crashes} crashes, at {} operations", exploration.operations());
}

/// Leaves out the syncs of files or folders that `left_out` names, and expects a crash to show it.
fn is_needed(what: &str, left_out: impl Fn(SyncKind, &str) -> bool + Send + Sync + 'static) {
    let disk = SimDisk::new();
    disk.ignore_syncs(move |event| left_out(event.kind, &event.path));
    match Exploration::on(disk, script).lose_power(SEEDS) {
        Err(violation) => println!("without {what}: {violation}"),
        Ok(crashes) => panic!("in {crashes} crashes nobody notices that {what} is left out"),
    }
}

#[test]
fn the_sync_of_the_root_is_needed() {
    let disk = SimDisk::new();
    Exploration::on(disk.clone(), script);
    let operations: Vec<String> = (0..disk.operations()).map(|at| disk.describe(at)).collect();
    let made = operations.iter().position(|operation| operation == "create folder blobs").expect("made");
    let is_root = |operation: &&String| operation.starts_with("sync directory '':");
    let before = operations[..made].iter().filter(is_root).count();
    let seen = AtomicUsize::new(0);
    is_needed("the sync of the root", move |kind, path| {
        kind == SyncKind::Directory && path.is_empty() && seen.fetch_add(1, Ordering::Relaxed) == before
    });
}

#[test]
fn the_sync_of_a_body_is_needed() {
    is_needed("the sync of a body", |kind, path| kind == SyncKind::File && path.starts_with("blobs/"));
}

#[test]
fn the_sync_of_the_folder_of_a_body_is_needed() {
    is_needed("the sync of a body's folder", |kind, path| {
        kind == SyncKind::Directory && path.starts_with("blobs/")
    });
}

#[test]
fn the_sync_of_the_folder_of_folders_is_needed() {
    is_needed("the sync of the folder of folders", |kind, path| {
        kind == SyncKind::Directory && path == "blobs"
    });
}
