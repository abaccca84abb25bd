//! The disk fails for a moment: what was acknowledged stays, what was not is never acknowledged later, reads go on, and
//! whatever can be tried again is tried again.

mod crash;

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::limits::{RETENTION_MAX, RETENTION_MIN};
use anabranch_model::{
    Clock, Error, NewRecord, Position, ReadLimit, Result, ShardId, ShardSource, StreamOptions, StreamStore,
    Timestamp,
};
use anabranch_sim::{Fault, SimClock, SimDisk};
use crash::explore::runtime;
use crash::ledger::Ledger;
use crash::run::{Call, Run, name, options};
use crash::world::World;

const HOUR: Duration = Duration::from_secs(3600);

/// A store with a little of everything in it: records that a checkpoint covers, trimmed ones, and young ones.
fn run() -> Run {
    let mut run = Run::start(&runtime());
    run.call(Call::Create { stream: "a", shards: 2, retention: RETENTION_MAX }).expect("create");
    run.call(Call::Create { stream: "b", shards: 1, retention: RETENTION_MIN }).expect("create");
    for round in 0..8 {
        run.advance(6 * HOUR);
        let calls = vec![run.append("a", 3, 700), run.append("b", 2, 900)];
        run.group(calls).expect("append");
        if round % 3 == 2 {
            run.upkeep();
        }
    }
    assert_shown(&run);
    run
}

/// What readers see is what the ledger says.
fn assert_shown(run: &Run) {
    let world = run.world().expect("everything can be read");
    assert_eq!(world.difference(run.ledger.now()), None);
}

/// Appends a record and says what came of it.
fn try_append(run: &mut Run) -> Result<()> {
    let call = run.append("a", 1, 100);
    run.call(call)
}

/// Opens the same disk again and finds every step that was answered; a step that failed may be there as well.
fn open_again(run: Run) -> (Run, World) {
    let Run { disk, clock, ledger, .. } = run;
    let engine = open(&disk, &clock).expect("the directory opens");
    let runtime = runtime();
    let world = runtime.block_on(World::read(&engine)).expect("everything can be read");
    let run = Run::resume(&runtime, disk, clock, engine, world.clone());
    let (found, answered) = (world.records(), ledger.now().records());
    assert!(found >= answered, "{found} records are left of {answered}");
    (run, world)
}

fn open(disk: &SimDisk, clock: &SimClock) -> Result<Engine> {
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options())
}

/// Whatever the power takes now, the store shows what its ledger says.
fn assert_durable(run: &Run) {
    let point = run.disk.crash_point(run.disk.operations());
    for seed in 0..20 {
        let image = if seed == 0 { point.image_without_unsynced() } else { point.image(seed) };
        let clock = SimClock::new(run.clock.now());
        let engine = open(&image, &clock).expect("the directory opens");
        assert_eq!(engine.status().stopped, None, "seed {seed}");
        let world = runtime().block_on(World::read(&engine)).expect("everything can be read");
        let step = run.ledger.recognise(&world, run.disk.operations());
        assert_eq!(step, Ok(run.ledger.len()), "seed {seed}");
    }
}

/// Every stream is deleted and all room comes back, so no byte is counted wrongly.
fn assert_all_room_comes_back(run: &mut Run) {
    for stream in ["a", "b"] {
        run.call(Call::Delete { stream }).expect("delete");
    }
    run.upkeep();
    run.upkeep();
    assert_eq!(run.engine().status().live_bytes, 0);
}

#[test]
fn a_failed_sync_ends_all_writing_until_the_directory_is_opened_again() {
    let mut run = run();
    run.disk.fail_syncs(Fault::next("journal/*"));
    assert!(matches!(try_append(&mut run), Err(Error::Stopped(_))));
    for _ in 0..3 {
        assert!(matches!(try_append(&mut run), Err(Error::Stopped(_))), "a later append is acknowledged");
    }
    run.engine().upkeep();
    assert_shown(&run);
    let reason = run.engine().status().stopped.expect("it says that it has stopped");
    assert!(reason.contains("open the directory again"), "{reason}");
    // The kernel has dropped its doubts together with the error: what the next process finds may not be on the disk.
    let (mut run, _) = open_again(run);
    let call = run.append("a", 4, 200);
    run.call(call).expect("append");
    assert_shown(&run);
    assert_durable(&run);
}

#[test]
fn a_failed_write_ends_all_writing_too() {
    let mut run = run();
    run.disk.fail_writes(Fault::next("journal/*.segment"));
    assert!(matches!(try_append(&mut run), Err(Error::Stopped(_))));
    assert!(matches!(try_append(&mut run), Err(Error::Stopped(_))));
    assert_shown(&run);
    let (mut run, _) = open_again(run);
    let call = run.append("a", 4, 200);
    run.call(call).expect("append");
    assert_durable(&run);
}

#[test]
fn a_failed_sync_of_the_folder_is_tried_again_and_leaks_no_file() {
    let mut run = run();
    run.upkeep();
    let files = run.disk.paths().len();
    run.disk.fail_syncs(Fault::each("journal"));
    let mut refused = None;
    for _ in 0..40 {
        let call = run.append("a", 1, 3_000);
        if let Err(error) = run.call(call) {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused.map(|error| error.next_move()), Some(anabranch_model::NextMove::Retry));
    for _ in 0..30 {
        run.engine().prepare();
        assert!(try_append(&mut run).is_ok() || run.engine().status().frames_waiting == 0);
    }
    assert_shown(&run);
    assert!(run.disk.paths().len() <= files + 3, "files leak: {:?}", run.disk.paths());
    run.disk.clear_faults();
    run.engine().prepare();
    for _ in 0..20 {
        let call = run.append("a", 1, 3_000);
        run.call(call).expect("append");
    }
    assert_shown(&run);
    assert_durable(&run);
}

/// Lets the `count`-th call on a file of the state fail in a checkpoint, and tries again.
fn checkpoint_with(plant: impl Fn(&SimDisk, usize)) -> usize {
    for count in 0.. {
        let mut run = run();
        let call = run.append("a", 2, 50);
        run.call(call).expect("append");
        run.advance(20 * HOUR);
        let before = run.engine().status().covered_position;
        plant(&run.disk, count);
        run.upkeep();
        let failed = run.engine().status().covered_position == before;
        run.disk.clear_faults();
        assert_shown(&run);
        let call = run.append("b", 3, 50);
        run.call(call).expect("append goes on");
        run.upkeep();
        assert!(
            run.engine().status().covered_position > before,
            "count {count}: the checkpoint is not tried again"
        );
        assert_shown(&run);
        assert_durable(&run);
        run.reopen().expect("reopen");
        assert_shown(&run);
        assert_all_room_comes_back(&mut run);
        if !failed && count > 3 {
            return count;
        }
        assert!(count < 200, "checkpoints never get through");
    }
    unreachable!()
}

#[test]
fn a_checkpoint_whose_sync_fails_is_tried_again() {
    let syncs = checkpoint_with(|disk, count| disk.fail_syncs(Fault::next("state.redb").after(count)));
    println!("{syncs} syncs of the state failed in turn");
}

#[test]
fn a_checkpoint_whose_write_fails_is_tried_again() {
    let writes = checkpoint_with(|disk, count| disk.fail_writes(Fault::next("state.redb").after(count)));
    println!("{writes} writes of the state failed in turn");
}

#[test]
fn a_copy_of_the_catalogue_that_fails_is_made_again() {
    checkpoint_with(|disk, count| match count {
        0 => disk.fail_syncs(Fault::next("catalogue.new")),
        1 => disk.fail_writes(Fault::next("catalogue.new")),
        _ => disk.fail_syncs(Fault::next("")),
    });
}

#[test]
fn a_failed_read_of_the_state_fails_one_call_only() {
    let mut run = run();
    run.reopen().expect("reopen");
    let shard = ShardId::numbered(0);
    let read = |run: &Run| {
        run.wait(run.engine().read(&name("a"), &shard, Position::TrimHorizon, ReadLimit::default()))
    };
    run.disk.fail_reads(Fault::next("state.redb"));
    // Whatever it had in its cache it need not read.
    let _ = read(&run);
    run.disk.clear_faults();
    for _ in 0..3 {
        assert!(!read(&run).expect("reading goes on").records.is_empty());
    }
    assert_shown(&run);
    let call = run.append("a", 1, 10);
    run.call(call).expect("append");
    run.upkeep();
    assert_shown(&run);
    assert_all_room_comes_back(&mut run);
}

#[test]
fn a_failed_read_of_a_segment_is_reported_and_passes() {
    let mut run = run();
    run.reopen().expect("reopen");
    run.disk.fail_reads(Fault::each("journal/*"));
    let shard = ShardId::numbered(0);
    let outcome =
        run.wait(run.engine().read(&name("b"), &shard, Position::TrimHorizon, ReadLimit::default()));
    assert!(outcome.is_err(), "{outcome:?}");
    run.disk.clear_faults();
    assert_shown(&run);
}

#[test]
fn a_clock_that_jumps_back_neither_reorders_nor_resurrects() {
    let mut run = run();
    let ledger: Ledger = run.ledger.clone();
    let before = run.world().expect("reading");
    let shards = |world: &World| world.streams[&name("b")].shards.clone();
    run.clock.jump_to(run.clock.now().minus(200 * HOUR));
    run.upkeep();
    assert_eq!(run.world().expect("reading"), before, "nothing is back");
    // The ledger believes in the clock, so it does not follow this part.
    let engine = run.engine().clone();
    for round in 0..6 {
        let records = (0..3).map(|i| NewRecord::new(format!("late-{round}-{i}"), vec![7; 600])).collect();
        run.call(Call::Append { stream: "b", records }).expect("append");
        if round == 2 {
            run.reopen().expect("reopen");
        }
    }
    drop((engine, ledger));
    let world = run.world().expect("reading");
    assert_eq!(world.flaw(), None, "arrival never decreases");
    let records = &shards(&world)[&ShardId::numbered(0)].records;
    assert!(records.len() >= 18);
    run.clock.jump_to(run.clock.now().plus(400 * HOUR));
    run.engine().upkeep();
    let world = run.world().expect("reading");
    assert!(shards(&world)[&ShardId::numbered(0)].records.is_empty(), "everything is past its retention");
    run.clock.jump_to(run.clock.now().minus(400 * HOUR));
    run.reopen().expect("reopen");
    assert!(shards(&run.world().expect("reading"))[&ShardId::numbered(0)].records.is_empty());
}

/// How many threads of this process have a name.
#[cfg(target_os = "linux")]
fn threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("this process has threads").flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|found| found.trim_end() == name).count()
}

/// Waits until so many threads have a name, which each gives itself when it begins.
#[cfg(target_os = "linux")]
fn comes_to(name: &str, count: usize) -> bool {
    (0..100_000).any(|_| {
        std::thread::yield_now();
        threads(name) == count
    })
}

/// After a failed sync there is nothing more to write: the threads of the journal end, instead of asking for ever.
#[cfg(target_os = "linux")]
#[test]
fn a_stopped_journal_needs_no_thread() {
    let (disk, clock) = (SimDisk::new(), SimClock::new(Timestamp::from_millis(1)));
    let options = Options { drive: Drive::Threads, ..options() };
    let engine = Engine::open(Arc::new(disk.clone()), Arc::new(clock), options).expect("opens");
    assert!(["journal", "show", "upkeep"].iter().all(|name| comes_to(name, 1)));
    runtime().block_on(async {
        disk.fail_syncs(Fault::each("journal/*"));
        let made = engine.create_stream(&name("a"), StreamOptions::default()).await;
        assert!(matches!(made, Err(Error::Stopped(_))), "{made:?}");
    });
    for name in ["journal", "show"] {
        assert!(comes_to(name, 0), "`{name}` goes on, and has nothing to do");
    }
    assert_eq!(threads("upkeep"), 1);
}
