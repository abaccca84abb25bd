//! Power is lost after every operation of scripted runs: what was acknowledged is there, once and in order, nothing is
//! invented, and the store goes on.
//!
//! The same holds when the process is killed and the machine lives on, and when the state is lost with the power.
//! `ANABRANCH_CRASH=workload:operation:seed`, as a failure prints it, looks at one crash only.

mod crash;

use anabranch_sim::SimDisk;
use crash::explore::Exploration;
use crash::frames::{Kind, frames};
use crash::workloads;

/// Seeds per moment; the first two lose everything that was not synced, and nothing.
const SEEDS: u64 = 4;

/// Seeds per moment when a process is killed: each runs the script again.
const KILL_SEEDS: u64 = 3;

fn lose_power(workload: &str) {
    let exploration = Exploration::of(workloads::named(workload));
    let crashes = exploration.lose_power(SEEDS).unwrap_or_else(|violation| panic!("{violation:?}"));
    let (operations, steps) = (exploration.run.disk.operations(), exploration.run.ledger.len());
    println!("{workload}: {crashes} crashes, at {operations} operations of {steps} steps");
}

fn kill_processes(workload: &str) {
    let exploration = Exploration::of(workloads::named(workload));
    let kills = exploration.kill_processes(KILL_SEEDS).unwrap_or_else(|violation| panic!("{violation:?}"));
    println!("{workload}: {kills} killed processes");
}

#[test]
fn there_are_enough_crash_points() {
    let moments = |workload| Exploration::of(workload).run.disk.operations() as u64 + 1;
    let crashes: u64 = workloads::ALL.into_iter().map(moments).sum::<u64>() * SEEDS;
    println!("the power is lost {crashes} times");
    assert!(crashes >= 10_000, "{crashes}");
}

#[test]
fn a_script_does_the_same_operations_every_time() {
    let log = |disk: &SimDisk| (0..disk.operations()).map(|at| disk.describe(at)).collect::<Vec<_>>();
    let bytes = |disk: &SimDisk| disk.paths().iter().map(|path| disk.contents(path).ok()).collect::<Vec<_>>();
    for workload in workloads::ALL {
        let [first, second] = [(), ()].map(|()| Exploration::of(workload).run.disk);
        assert_eq!(log(&first), log(&second), "{}", workload.name);
        assert!(bytes(&first) == bytes(&second), "{}: the same operations left other bytes", workload.name);
    }
}

#[test]
fn the_scripts_reach_what_they_are_for() {
    let (mut moved, mut recycled, mut openings, mut checkpoints) = (0, 0, 0, 0);
    for workload in workloads::ALL {
        let disk = Exploration::of(workload).run.disk;
        let frames = frames(&disk);
        moved += frames.iter().filter(|frame| frame.is_moved()).count();
        openings += frames.iter().filter(|frame| frame.kind == Kind::Opened).count();
        for operation in (0..disk.operations()).map(|at| disk.describe(at)) {
            recycled += usize::from(operation.starts_with("rename journal/"));
            checkpoints += usize::from(operation == "rename catalogue.new to catalogue");
        }
    }
    println!(
        "{moved} moved frames, {recycled} recycled segments, {openings} openings, {checkpoints} checkpoints"
    );
    assert!(moved >= 20 && recycled >= 20 && openings >= 20 && checkpoints >= 30);
}

#[test]
fn making_a_directory_survives_power_loss() {
    let exploration = Exploration::of(workloads::named("making"));
    let crashes = exploration.lose_power(40).unwrap_or_else(|violation| panic!("{violation:?}"));
    println!("making: {crashes} crashes");
}

#[test]
fn appending_survives_power_loss() {
    lose_power("appending");
}

#[test]
fn resharding_survives_power_loss() {
    lose_power("resharding");
}

#[test]
fn retention_survives_power_loss() {
    lose_power("retention");
}

#[test]
fn deleting_survives_power_loss() {
    lose_power("deleting");
}

#[test]
fn reopening_survives_power_loss() {
    lose_power("reopening");
}

#[test]
fn wandering_1_survives_power_loss() {
    lose_power("wandering-1");
}

#[test]
fn wandering_2_survives_power_loss() {
    lose_power("wandering-2");
}

#[test]
fn wandering_3_survives_power_loss() {
    lose_power("wandering-3");
}

#[test]
fn the_state_is_built_again_after_any_crash() {
    for workload in ["making", "appending", "resharding", "retention", "deleting", "reopening"] {
        let exploration = Exploration::of(workloads::named(workload));
        let crashes = exploration.lose_power_and_state(3).unwrap_or_else(|violation| panic!("{violation:?}"));
        println!("{workload}: {crashes} crashes with the state lost");
    }
}

#[test]
fn making_a_directory_survives_kills() {
    let exploration = Exploration::of(workloads::named("making"));
    let kills = exploration.kill_processes(20).unwrap_or_else(|violation| panic!("{violation:?}"));
    println!("making: {kills} killed processes");
}

#[test]
fn appending_survives_kills() {
    kill_processes("appending");
}

#[test]
fn resharding_survives_kills() {
    kill_processes("resharding");
}

#[test]
fn retention_survives_kills() {
    kill_processes("retention");
}

#[test]
fn deleting_survives_kills() {
    kill_processes("deleting");
}

#[test]
fn reopening_survives_kills() {
    kill_processes("reopening");
}
