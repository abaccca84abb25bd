//! The disk fills up: appends are refused, everything that gives room back goes on, and writing resumes by itself.

mod crash;

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Drive, Engine, Options, SystemClock};
use anabranch_model::limits::{RETENTION_MAX, RETENTION_MIN};
use anabranch_model::{
    Clock, Error, NewRecord, Next, Position, ReadLimit, ShardId, ShardSource, StreamName, StreamOptions,
    StreamStore,
};
use anabranch_sim::{SimClock, SimDisk};
use crash::explore::runtime;
use crash::run::{Call, Run, SEGMENT_BYTES, name, options};
use crash::world::World;

const HOUR: Duration = Duration::from_secs(3600);

/// Bytes of all files.
fn used(disk: &SimDisk) -> u64 {
    disk.paths().iter().map(|path| disk.file_len(path).expect("it is there")).sum()
}

fn assert_shown(run: &Run) {
    let world = run.world().expect("everything can be read");
    assert_eq!(world.difference(run.ledger.now()), None);
}

/// Appends until not even an empty record fits. Returns how many appends it took.
fn fill(run: &mut Run, stream: &'static str) -> usize {
    let mut sizes = [2_000, 200, 0].into_iter();
    let mut bytes = sizes.next();
    for count in 0..2_000 {
        let Some(size) = bytes else { return count };
        let call = run.append(stream, 1, size);
        match run.call(call) {
            Ok(()) => {}
            Err(Error::DiskFull) => bytes = sizes.next(),
            Err(error) => panic!("an append on a full disk: {error}"),
        }
    }
    panic!("the disk is never full");
}

fn create(stream: &'static str, retention: Duration) -> Call {
    Call::Create { stream, shards: 1, retention }
}

/// An engine on a disk with room for its state and some segments.
fn run(segments: u64) -> Run {
    let mut run = Run::start(&runtime());
    run.call(create("kept", RETENTION_MAX)).expect("create");
    let call = run.append("kept", 3, 100);
    run.call(call).expect("append");
    run.disk.set_capacity(Some(used(&run.disk) + segments * SEGMENT_BYTES));
    run
}

#[test]
fn a_full_disk_refuses_appends_and_nothing_that_gives_room_back() {
    let mut run = run(10);
    for cycle in 0..20 {
        run.call(create("bulk", RETENTION_MIN)).expect("create");
        let appended = fill(&mut run, "bulk");
        assert!(appended > 20, "cycle {cycle}: room for {appended} appends only");
        assert!(run.engine().status().disk_full);
        assert_eq!(run.call(create("more", RETENTION_MIN)), Err(Error::DiskFull));
        assert_shown(&run);
        run.call(Call::Retain { stream: "bulk", retention: 2 * RETENTION_MIN })
            .expect("a change of retention");
        run.upkeep();
        assert_shown(&run);
        if cycle % 2 == 0 {
            run.call(Call::Delete { stream: "bulk" }).expect("a deletion");
            run.upkeep();
        } else {
            run.advance(49 * HOUR);
            run.upkeep();
            run.call(Call::Delete { stream: "bulk" }).expect("a deletion");
            run.upkeep();
        }
        let call = run.append("kept", 1, 500);
        run.call(call).expect("appends resume");
        assert!(!run.engine().status().disk_full, "cycle {cycle}");
        assert_shown(&run);
    }
}

#[test]
fn many_changes_of_retention_on_a_full_disk_do_not_use_up_the_reserve() {
    let mut run = run(6);
    run.call(create("bulk", RETENTION_MIN)).expect("create");
    fill(&mut run, "bulk");
    for round in 0..100u32 {
        let retention = RETENTION_MIN * (1 + round % 2);
        run.call(Call::Retain { stream: "bulk", retention }).expect("a change of retention");
        if round % 25 == 24 {
            run.upkeep();
        }
    }
    run.call(Call::Delete { stream: "bulk" }).expect("a deletion");
    run.upkeep();
    let call = run.append("kept", 1, 500);
    run.call(call).expect("appends resume");
    assert_shown(&run);
}

#[test]
fn a_disk_that_others_fill_is_waited_for() {
    let mut run = run(10);
    run.call(create("bulk", RETENTION_MAX)).expect("create");
    for _ in 0..10 {
        let call = run.append("bulk", 1, 3_000);
        run.call(call).expect("append");
    }
    // Not one byte is left, not even for the state to grow.
    run.disk.set_capacity(Some(used(&run.disk)));
    fill(&mut run, "bulk");
    for _ in 0..5 {
        run.upkeep();
        assert_shown(&run);
    }
    run.disk.set_capacity(None);
    run.engine().prepare();
    let call = run.append("bulk", 4, 3_000);
    run.call(call).expect("appends resume");
    run.upkeep();
    run.reopen().expect("reopen");
    assert_shown(&run);
}

#[test]
fn a_full_disk_can_be_opened_again_wherever_the_power_was_lost() {
    let mut run = run(6);
    let capacity = used(&run.disk) + 6 * SEGMENT_BYTES;
    run.call(create("bulk", RETENTION_MIN)).expect("create");
    fill(&mut run, "bulk");
    run.upkeep();
    run.call(Call::Delete { stream: "bulk" }).expect("a deletion");
    run.upkeep();
    run.call(create("bulk", RETENTION_MIN)).expect("create");
    fill(&mut run, "bulk");
    let mut opened = 0;
    for point in run.disk.crash_points().skip(60) {
        for seed in 0..4 {
            let image = if seed == 0 { point.image_without_unsynced() } else { point.image(seed) };
            // What a removed file gave back is gone again if its removal was lost.
            image.set_capacity(Some(capacity.max(used(&image))));
            let clock = SimClock::new(run.clock.now());
            let engine = Engine::open(Arc::new(image), Arc::new(clock), options())
                .unwrap_or_else(|error| panic!("operation {}, seed {seed}: {error}", point.operation()));
            assert_eq!(engine.status().stopped, None, "operation {}, seed {seed}", point.operation());
            let world = runtime().block_on(World::read(&engine)).expect("everything can be read");
            run.ledger.recognise(&world, point.operation()).unwrap_or_else(|text| panic!("{text}"));
            opened += 1;
        }
    }
    println!("{opened} full disks opened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_its_own_threads_the_engine_resumes_by_itself() {
    let disk = SimDisk::new();
    let options = Options { drive: Drive::Threads, ..options() };
    let engine =
        Engine::open(Arc::new(disk.clone()), Arc::new(SystemClock::new()), options).expect("it opens");
    fill_and_resume(&engine, || disk.set_capacity(Some(used(&disk) + 20 * SEGMENT_BYTES)), 2_000).await;
    engine.close().await.expect("it shuts down");
}

/// Fills the disk, deletes what fills it, and waits for appends to succeed again.
async fn fill_and_resume(engine: &Engine, limit: impl FnOnce(), record_bytes: usize) {
    let (kept, bulk) = (name("kept"), name("bulk"));
    let week = StreamOptions { shards: 1, retention: 7 * RETENTION_MIN };
    engine.create_stream(&kept, week).await.expect("create");
    engine.create_stream(&bulk, week).await.expect("create");
    let first = engine.append(&kept, vec![NewRecord::new("k", "first")]).await.expect("append");
    limit();
    let record = || vec![NewRecord::new("k", vec![7; record_bytes])];
    let mut appended = 0;
    let refused = loop {
        match engine.append(&bulk, record()).await {
            Ok(_) => appended += 1,
            Err(error) => break error,
        }
        assert!(appended < 100_000, "the disk is never full");
    };
    assert_eq!(refused, Error::DiskFull);
    assert_eq!(count(engine, &bulk).await, appended, "everything can be read");
    engine.delete_stream(&bulk).await.expect("a deletion on a full disk");
    let resumed = tokio::time::timeout(Duration::from_secs(20), async {
        let mut tries = tokio::time::interval(Duration::from_millis(20));
        loop {
            tries.tick().await;
            match engine.append(&kept, record()).await {
                Ok(_) => return,
                Err(error) => assert_eq!(error, Error::DiskFull),
            }
        }
    });
    resumed.await.expect("appends resume");
    let world = World::read(engine).await.expect("everything can be read");
    let records = &world.streams[&kept].shards.values().next().expect("one shard").records;
    assert_eq!(Ok(records[0].sequence), first[0].clone().map(|place| place.sequence));
    assert_eq!(records.len(), 2);
}

/// How many records a stream of one shard has. They are not kept: there are more than the budget allows.
async fn count(engine: &Engine, stream: &StreamName) -> usize {
    let (mut records, mut from) = (0, Position::TrimHorizon);
    loop {
        let read = engine.read(stream, &ShardId::numbered(0), from, ReadLimit::default()).await;
        let batch = read.expect("reads go on");
        records += batch.records.len();
        match batch.next {
            Next::At(next) if !batch.records.is_empty() => from = next,
            _ => return records,
        }
    }
}

/// A small file system in memory, unmounted at the end.
#[cfg(target_os = "linux")]
mod mounted {
    use super::*;
    use anabranch_engine::SystemDisk;
    use std::path::Path;
    use std::process::Command;

    struct Mount(tempfile::TempDir);

    impl Mount {
        fn new(options: &str) -> std::result::Result<Mount, String> {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path());
            match mount.output() {
                Ok(output) if output.status.success() => Ok(Mount(folder)),
                Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                Err(error) => Err(error.to_string()),
            }
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
        }
    }

    fn open(folder: &Path) -> Engine {
        let disk = SystemDisk::open(folder).expect("the folder opens");
        let options = Options { segment_bytes: 4 << 20, ..Options::default() };
        Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), options).expect("the directory opens")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_real_file_system_that_is_full() {
        let mount = match Mount::new("size=64m") {
            Ok(mount) => mount,
            Err(reason) => return eprintln!("skipped, no file system can be mounted here: {reason}"),
        };
        let folder = mount.0.path().join("data");
        let engine = open(&folder);
        fill_and_resume(&engine, || {}, 100_000).await;
        // Full again, and opened in that state.
        let kept = name("kept");
        let refused = loop {
            let outcome = engine.append(&kept, vec![NewRecord::new("k", vec![1; 200_000])]).await;
            if let Err(error) = outcome {
                break error;
            }
        };
        assert_eq!(refused, Error::DiskFull);
        let before = count(&engine, &kept).await;
        engine.close().await.expect("it shuts down on a full disk");
        drop(engine);
        let engine = open(&folder);
        assert_eq!(count(&engine, &kept).await, before);
        engine.delete_stream(&kept).await.expect("a deletion");
        engine.close().await.expect("it shuts down");
    }
}
