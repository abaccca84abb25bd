//! Scripts that take an engine through everything it does: making, appending, resharding, trimming, cleaning,
//! checkpoints, recycling, deleting, shutting down and opening again.

use std::time::Duration;

use anabranch_model::limits::{RETENTION_MAX, RETENTION_MIN};
use anabranch_model::{NewRecord, Result};
use anabranch_sim::Rng;

use super::run::{Call, Run, SEGMENT_BYTES, name};

const HOUR: Duration = Duration::from_secs(3600);
/// Bytes of a frame's header, and of what stands before a record in it.
const HEADER_BYTES: u64 = 80;
const RECORD_HEADER_BYTES: u64 = 6;

/// A script with its name.
#[derive(Clone, Copy)]
pub struct Workload {
    pub name: &'static str,
    script: Script,
}

#[derive(Clone, Copy)]
enum Script {
    Written(fn(&mut Run) -> Result<()>),
    /// What the dice with this seed say.
    Wandering(u64),
}

impl Workload {
    /// Takes an engine through the script.
    pub fn play(&self, run: &mut Run) -> Result<()> {
        match self.script {
            Script::Written(script) => script(run),
            Script::Wandering(seed) => wandering(run, seed),
        }
    }

    const fn written(name: &'static str, script: fn(&mut Run) -> Result<()>) -> Workload {
        Workload { name, script: Script::Written(script) }
    }

    /// A script of chance.
    pub const fn wandering(name: &'static str, seed: u64) -> Workload {
        Workload { name, script: Script::Wandering(seed) }
    }
}

/// Every script.
pub const ALL: [Workload; 9] = [
    Workload::written("making", making),
    Workload::written("appending", appending),
    Workload::written("resharding", resharding),
    Workload::written("retention", retention),
    Workload::written("deleting", deleting),
    Workload::written("reopening", reopening),
    Workload::wandering("wandering-1", 1),
    Workload::wandering("wandering-2", 2),
    Workload::wandering("wandering-3", 3),
];

/// The script with this name.
pub fn named(name: &str) -> Workload {
    let found = ALL.into_iter().find(|workload| workload.name == name);
    found.unwrap_or_else(|| panic!("there is no workload `{name}`"))
}

fn create(stream: &'static str, shards: usize, retention: Duration) -> Call {
    Call::Create { stream, shards, retention }
}

/// A directory is made, and used for the first time: short, so that it can be looked at with many seeds.
fn making(run: &mut Run) -> Result<()> {
    run.call(create("one", 1, RETENTION_MIN))?;
    let single = run.append("one", 1, 40);
    run.call(single)
}

/// Single records, batches over several shards, and calls that share one write, over several segments and without a
/// checkpoint: an opening has to walk all of it.
fn appending(run: &mut Run) -> Result<()> {
    run.call(create("one", 1, RETENTION_MIN))?;
    run.call(create("three", 3, RETENTION_MAX))?;
    for round in 0..14 {
        run.advance(HOUR / 10);
        let single = run.append("one", 1, 40 + 300 * (round % 3));
        run.call(single)?;
        let batch = run.append("three", 7, 60);
        run.call(batch)?;
        let calls = vec![
            run.append("one", 1, 10),
            run.append("three", 5, 450),
            run.append("one", 2, 700),
            run.append("three", 1, 0),
        ];
        run.group(calls)?;
        if round == 7 {
            let calls = vec![run.append("one", 1, 99), create("late", 2, RETENTION_MIN)];
            run.group(calls)?;
        }
        if round > 7 {
            let large = run.append("late", 2, 2_500);
            run.call(large)?;
        }
    }
    Ok(())
}

/// Splits and merges, alone and in one write with appends, before and behind checkpoints.
fn resharding(run: &mut Run) -> Result<()> {
    run.call(create("tree", 2, RETENTION_MIN))?;
    for round in 0..7 {
        run.advance(HOUR);
        let calls = vec![run.append("tree", 6, 80), run.split("tree", round % 2), run.append("tree", 6, 90)];
        run.group(calls)?;
        let batch = run.append("tree", 9, 350);
        run.call(batch)?;
        if round % 2 == 1 {
            run.call(run.merge("tree", 1))?;
            let calls = vec![run.append("tree", 3, 50), run.merge("tree", 0), run.append("tree", 4, 50)];
            run.group(calls)?;
        }
        if round % 3 == 2 {
            run.upkeep();
        }
        if round == 4 {
            run.call(Call::Retain { stream: "tree", retention: RETENTION_MAX })?;
        }
    }
    Ok(())
}

/// Streams with short and long retention share segments: records are trimmed, survivors moved, segments recycled, and
/// closed shards go.
fn retention(run: &mut Run) -> Result<()> {
    run.call(create("short", 2, RETENTION_MIN))?;
    run.call(create("long", 1, RETENTION_MAX))?;
    for round in 0..16 {
        run.advance(5 * HOUR);
        let calls = vec![run.append("short", 4, 900), run.append("long", 1, 250)];
        run.group(calls)?;
        let batch = run.append("short", 2, 1_500);
        run.call(batch)?;
        if round == 3 {
            run.call(run.split("short", 0))?;
        }
        if round % 2 == 1 {
            run.upkeep();
        }
        if round == 12 {
            run.call(Call::Retain { stream: "long", retention: RETENTION_MIN })?;
        }
    }
    // Behind this checkpoint come frames that the cleaner moves, and others that prove them durable.
    run.upkeep();
    for _ in 0..3 {
        let calls = vec![run.append("short", 3, 200), run.append("long", 1, 30)];
        run.group(calls)?;
    }
    Ok(())
}

/// Streams are deleted with their records and made again under the same name.
fn deleting(run: &mut Run) -> Result<()> {
    run.call(create("kept", 1, RETENTION_MAX))?;
    for round in 0..5 {
        run.call(create("doomed", 2, RETENTION_MAX))?;
        for _ in 0..3 {
            run.advance(HOUR);
            let calls = vec![run.append("doomed", 6, 600), run.append("kept", 1, 150)];
            run.group(calls)?;
        }
        if round % 2 == 0 {
            run.upkeep();
        }
        let calls =
            vec![run.append("doomed", 2, 30), Call::Delete { stream: "doomed" }, run.append("kept", 1, 30)];
        run.group(calls)?;
        run.upkeep();
    }
    Ok(())
}

/// The directory is shut down and opened again, with segments that are full to the brim and with ones that are not.
fn reopening(run: &mut Run) -> Result<()> {
    run.call(create("tide", 2, RETENTION_MIN))?;
    for (round, left) in [88, 80, 160, 152, 240, 4_000].into_iter().enumerate() {
        run.advance(7 * HOUR);
        let batch = run.append("tide", 4, 500);
        run.call(batch)?;
        fill(run, "tide", left)?;
        if round % 2 == 0 {
            run.reopen()?
        } else {
            run.reopen_after_kill()?
        }
        let batch = run.append("tide", 3, 700);
        run.call(batch)?;
        if round % 3 == 1 {
            run.upkeep();
        }
    }
    // The last write before an opening has several frames, and nothing but the opening proves them.
    let calls = vec![run.append("tide", 4, 100), run.append("tide", 5, 60), run.append("tide", 4, 80)];
    run.group(calls)?;
    run.reopen_after_kill()?;
    let batch = run.append("tide", 2, 50);
    run.call(batch)
}

/// Appends a record that leaves `left` bytes in the active segment.
fn fill(run: &mut Run, stream: &'static str, left: u64) -> Result<()> {
    let room = SEGMENT_BYTES - run.engine().status().journal_position % SEGMENT_BYTES;
    let key = "brim";
    let data = room.checked_sub(left + HEADER_BYTES + RECORD_HEADER_BYTES + key.len() as u64);
    let data = data.expect("the segment has more room than that");
    let records = vec![NewRecord::new(key, vec![b'~'; data as usize])];
    run.call(Call::Append { stream, records })?;
    let room = SEGMENT_BYTES - run.engine().status().journal_position % SEGMENT_BYTES;
    assert_eq!(room, left, "the segment is filled to the byte");
    Ok(())
}

const STREAMS: [&str; 3] = ["red", "green", "blue"];

/// Whatever the dice say.
fn wandering(run: &mut Run, seed: u64) -> Result<()> {
    let mut rng = Rng::new(seed);
    run.call(create("red", 2, RETENTION_MIN))?;
    for _ in 0..60 {
        run.advance(Duration::from_secs(rng.below(4 * 3600)));
        let stream = STREAMS[rng.below(3) as usize];
        let Some(state) = run.ledger.now().streams.get(&name(stream)) else {
            let retention = if rng.chance(0.5) { RETENTION_MIN } else { RETENTION_MAX };
            run.call(create(stream, 1 + rng.below(3) as usize, retention))?;
            continue;
        };
        let open = state.open().len();
        match rng.below(20) {
            0 if run.ledger.now().streams.len() > 1 => run.call(Call::Delete { stream })?,
            1 => run.call(Call::Retain { stream, retention: RETENTION_MIN * (1 + rng.below(3) as u32) })?,
            2 | 3 if open < 6 => run.call(run.split(stream, rng.below(open as u64) as usize))?,
            4 | 5 if open > 1 => run.call(run.merge(stream, rng.below(open as u64 - 1) as usize))?,
            6 => run.reopen()?,
            7 => run.reopen_after_kill()?,
            8..=10 => run.upkeep(),
            11..=14 => {
                let calls = (0..1 + rng.below(4))
                    .map(|_| run.append(stream, 1 + rng.below(3) as usize, rng.below(900) as usize))
                    .collect();
                run.group(calls)?;
            }
            _ => {
                let batch = run.append(stream, 1 + rng.below(9) as usize, rng.below(700) as usize);
                run.call(batch)?;
            }
        }
    }
    Ok(())
}
