//! Bits decay, files are cut and disappear: nothing wrong is ever served, damage is reported, and what lies beside it
//! stays readable.

mod crash;

use std::time::Duration;

use anabranch_model::limits::{RETENTION_MAX, RETENTION_MIN};
use anabranch_model::{BlobStore, BucketName, Clock, Disk, Error, NewRecord, Open, StreamStore};
use anabranch_sim::{Rng, SimClock, SimDisk};
use crash::explore::{Exploration, runtime};
use crash::frames::{Frame, HEADER_BYTES, Kind, frames};
use crash::run::{Call, Run, START, name};
use crash::specimen::{Fate, Specimen, Tally};
use crash::survey::Survey;
use crash::workloads;
use crash::world::World;

const HOUR: Duration = Duration::from_secs(3600);

const SPECIMENS: [&str; 5] = ["retention", "resharding", "reopening", "deleting", "appending"];

fn specimens() -> impl Iterator<Item = Specimen> {
    SPECIMENS.into_iter().flat_map(|workload| [Specimen::crashed(workload), Specimen::closed(workload)])
}

#[test]
fn flipped_bits_anywhere_in_the_journal() {
    for specimen in specimens() {
        let (mut rng, mut tally, copy) = (Rng::new(1), Tally::default(), specimen.copy());
        let mut paths = copy.paths();
        paths.retain(|path| path.starts_with("journal/"));
        for _ in 0..120 {
            let path = &paths[rng.below(paths.len() as u64) as usize];
            let offset = rng.below(copy.file_len(path).expect("it is there"));
            tally.add(specimen.flip(path, offset, rng.below(8) as u8));
        }
        assert_eq!(tally.refused, 0, "a damaged journal is never a reason not to open");
        assert!(tally.reported > 0);
        println!("{}, unproven {}: {tally:?}", specimen.exploration.workload.name, specimen.unproven);
    }
}

#[test]
fn flipped_bits_in_the_header_of_every_frame() {
    for specimen in specimens() {
        let (mut rng, mut tally) = (Rng::new(2), Tally::default());
        for frame in frames(&specimen.copy()) {
            let fate = specimen.flip(&frame.path, frame.offset + rng.below(HEADER_BYTES), rng.below(8) as u8);
            assert_fits(&specimen, &frame, &fate);
            tally.add(fate);
        }
        println!("{}, unproven {}: {tally:?}", specimen.exploration.workload.name, specimen.unproven);
    }
}

/// Only the loss of a state frame that no checkpoint covers makes a directory read-only.
fn assert_fits(specimen: &Specimen, frame: &Frame, fate: &Fate) {
    match fate {
        Fate::Refused(error) => panic!("{frame:?}: it does not open: {error}"),
        Fate::Opened(survey, _) => {
            if survey.stopped.is_some() {
                assert!(frame.kind == Kind::Catalogue && frame.position >= specimen.covered, "{frame:?}");
            }
        }
    }
}

#[test]
fn flipped_bits_in_the_payload_of_every_frame() {
    for specimen in specimens() {
        let (mut rng, mut tally) = (Rng::new(3), Tally::default());
        for frame in frames(&specimen.copy()).into_iter().filter(|frame| frame.payload_bytes > 0) {
            let offset = frame.offset + HEADER_BYTES + rng.below(frame.payload_bytes);
            let fate = specimen.flip(&frame.path, offset, rng.below(8) as u8);
            assert_fits(&specimen, &frame, &fate);
            tally.add(fate);
        }
        println!("{}, unproven {}: {tally:?}", specimen.exploration.workload.name, specimen.unproven);
    }
}

#[test]
fn flipped_bits_in_the_state_are_healed() {
    for specimen in
        ["retention", "resharding"].into_iter().flat_map(|w| [Specimen::crashed(w), Specimen::closed(w)])
    {
        let (mut rng, mut tally) = (Rng::new(4), Tally::default());
        let bytes = specimen.copy().contents("state.redb").expect("it is there");
        let used: Vec<u64> = (0..bytes.len() as u64).filter(|at| bytes[*at as usize] != 0).collect();
        for round in 0..250 {
            // The header of the file is where the most depends on every bit.
            let offset =
                if round % 5 == 0 { rng.below(320) } else { used[rng.below(used.len() as u64) as usize] };
            let fate = specimen.flip("state.redb", offset, rng.below(8) as u8);
            if let Fate::Refused(error) = &fate {
                panic!("the state at {offset}: {error}");
            }
            tally.add(fate);
        }
        assert_eq!(tally.unharmed, 250, "{tally:?}");
    }
}

#[test]
fn flipped_bits_in_small_files() {
    let specimen = Specimen::crashed("resharding");
    let length = |path| specimen.copy().file_len(path).expect("it is there");
    let (format, catalogue, mut rng) = (length("FORMAT"), length("catalogue"), Rng::new(6));
    let everywhere = (0..format).map(|offset| ("FORMAT", offset));
    let here_and_there = (0..100).map(|_| ("catalogue", rng.below(catalogue)));
    for (path, offset) in everywhere.chain(here_and_there) {
        for bit in [0, 3, 7] {
            let Fate::Opened(survey, _) = specimen.flip(path, offset, bit) else {
                panic!("{path} at {offset}, bit {bit}: one flipped bit is healed")
            };
            assert_eq!((survey.damages(), survey.stopped), (0, None));
        }
    }
}

#[test]
fn two_damaged_files_are_refused_with_words() {
    let specimen = Specimen::closed("resharding");
    let copy = specimen.copy();
    copy.remove("state.redb").expect("removed");
    copy.flip_bit("catalogue", 40, 2).expect("flipped");
    let Err(Error::Corrupt(text)) = specimen.open(&copy) else { panic!("it opens") };
    assert!(text.contains("backup"), "{text}");
    let copy = specimen.copy();
    copy.flip_bit("FORMAT", 10, 2).expect("flipped");
    copy.flip_bit("FORMAT", 70, 2).expect("flipped");
    let Err(Error::Corrupt(text)) = specimen.open(&copy) else { panic!("it opens") };
    assert!(text.contains("FORMAT") && text.contains("backup"), "{text}");
}

#[test]
fn a_lost_state_and_a_damaged_journal_are_never_patched_together_wrongly() {
    for mut specimen in
        [Specimen::crashed("resharding"), Specimen::closed("retention"), Specimen::crashed("reopening")]
    {
        // Without the state nobody knows that the last write was covered.
        specimen.unproven = specimen.exploration.run.ledger.last_group();
        let (mut rng, mut tally) = (Rng::new(7), Tally::default());
        for frame in frames(&specimen.copy()) {
            for place in [rng.below(HEADER_BYTES), (HEADER_BYTES + frame.payload_bytes).saturating_sub(1)] {
                let (copy, bit) = (specimen.copy(), rng.below(8) as u8);
                copy.remove("state.redb").expect("removed");
                copy.flip_bit(&frame.path, frame.offset + place, bit).expect("flipped");
                let fate =
                    specimen.examine(&format!("no state, and bit {bit} at {place} of {frame:?}"), &copy);
                if let Fate::Refused(error) = &fate {
                    assert!(matches!(error, Error::Corrupt(text) if text.contains("backup")), "{error}");
                    assert_eq!(
                        frame.kind,
                        Kind::Catalogue,
                        "only lost state is a reason to refuse: {frame:?}"
                    );
                }
                tally.add(fate);
            }
        }
        println!("{}, unproven {}: {tally:?}", specimen.exploration.workload.name, specimen.unproven);
    }
}

#[test]
fn files_are_missing_or_cut() {
    for specimen in specimens() {
        let (mut rng, mut tally) = (Rng::new(5), Tally::default());
        for path in specimen.copy().paths() {
            let copy = specimen.copy();
            copy.remove(&path).expect("removed");
            let fate = specimen.examine(&format!("{path} is missing"), &copy);
            match (&fate, path.as_str()) {
                (Fate::Refused(Error::Corrupt(text)), "FORMAT") => assert!(text.contains("backup"), "{text}"),
                (Fate::Opened(_, _), path) if path != "FORMAT" => {}
                (Fate::Refused(error), path) => panic!("without {path}: {error}"),
                (Fate::Opened(_, _), path) => panic!("it opens without {path}"),
            }
            tally.add(fate);
            for _ in 0..4 {
                let copy = specimen.copy();
                let length = rng.below(copy.file_len(&path).expect("it is there"));
                let file = copy.open(&path, Open::Existing).expect("it opens");
                file.set_len(length).expect("cut");
                tally.add(specimen.examine(&format!("{path} has {length} bytes"), &copy));
            }
        }
        println!("{}, unproven {}: {tally:?}", specimen.exploration.workload.name, specimen.unproven);
    }
}

#[test]
fn a_missing_folder_is_named() {
    let specimen = Specimen::closed("resharding");
    let copy = SimDisk::new();
    for path in specimen.copy().paths().into_iter().filter(|path| !path.contains('/')) {
        let bytes = specimen.copy().contents(&path).expect("it is there");
        let file = copy.open(&path, Open::CreateNew).expect("created");
        file.write_all_at(0, &[std::io::IoSlice::new(&bytes)]).expect("written");
    }
    let Some(Error::Corrupt(text)) = specimen.open(&copy).err() else { panic!("it is not called corrupt") };
    assert!(text.contains("journal") && text.contains("backup"), "{text}");
}

#[test]
fn a_read_only_directory_is_left_as_it_is() {
    let specimen = Specimen::crashed("resharding");
    let frames = frames(&specimen.copy());
    let state =
        frames.iter().find(|frame| frame.kind == Kind::Catalogue && frame.position >= specimen.covered);
    let state = state.expect("the script ends with state that no checkpoint covers");
    let copy = specimen.copy();
    copy.flip_bit(&state.path, state.offset + HEADER_BYTES, 1).expect("flipped");
    let before: Vec<_> = copy
        .paths()
        .into_iter()
        .map(|path| (path.clone(), copy.contents(&path).expect("it is there")))
        .collect();
    let engine = specimen.open(&copy).expect("it opens");
    let reason = engine.status().stopped.expect("it says why nothing is written");
    assert!(reason.contains("reading only") && reason.contains("damaged"), "{reason}");
    let append = runtime().block_on(engine.append(&name("tree"), vec![NewRecord::new("k", "v")]));
    assert_eq!(append, Err(Error::Stopped(reason.clone())));
    let made = runtime().block_on(engine.create_bucket(&BucketName::new("photos").expect("a good name")));
    assert_eq!(made, Err(Error::Stopped(reason)));
    engine.upkeep();
    engine.prepare();
    runtime().block_on(engine.close()).expect("it shuts down");
    drop(engine);
    for (path, bytes) in &before {
        assert!(copy.contents(path).is_ok_and(|now| now == *bytes), "{path} has changed");
    }
    assert_eq!(copy.paths().len(), before.len(), "{:?}", copy.paths());
    let Fate::Opened(survey, _) = specimen.examine("opened again", &copy) else { panic!("it opens") };
    assert!(survey.stopped.is_some());
}

/// A directory whose segments hold few records of long retention among many that are past theirs.
fn uncleaned() -> Exploration {
    let mut exploration = Exploration::of(workloads::named("making"));
    let run = &mut exploration.run;
    for (stream, retention) in [("long", RETENTION_MAX), ("short", RETENTION_MIN)] {
        run.call(Call::Create { stream, shards: 1, retention }).expect("create");
    }
    for _ in 0..12 {
        let calls = vec![run.append("short", 3, 1_500), run.append("long", 1, 100)];
        run.group(calls).expect("append");
    }
    run.advance(25 * HOUR);
    exploration
}

#[test]
fn a_damaged_copy_of_a_moved_frame_does_no_harm() {
    let mut exploration = uncleaned();
    exploration.run.upkeep();
    let covered = exploration.run.engine().status().covered_position;
    for _ in 0..2 {
        let call = exploration.run.append("long", 1, 50);
        exploration.run.call(call).expect("append");
    }
    let unproven = exploration.run.ledger.last_group();
    let specimen = Specimen { exploration, unproven, covered };
    let moved =
        frames(&specimen.copy()).into_iter().filter(|frame| frame.is_moved() && frame.position >= covered);
    let moved: Vec<Frame> = moved.collect();
    assert!(!moved.is_empty(), "the cleaner has moved something that no checkpoint covers");
    for frame in moved {
        let Fate::Opened(survey, _) = specimen.flip(&frame.path, frame.offset + HEADER_BYTES + 30, 2) else {
            panic!("it does not open")
        };
        assert_eq!((survey.damages(), survey.stopped), (0, None), "the original of {frame:?} is still there");
    }
}

#[test]
fn damage_before_an_opening_takes_no_neighbour() {
    let mut exploration = Exploration::of(workloads::named("making"));
    let calls = (0..4).map(|_| exploration.run.append("one", 1, 60)).collect();
    exploration.run.group(calls).expect("append");
    exploration.run.reopen_after_kill().expect("reopen");
    let call = exploration.run.append("one", 1, 60);
    exploration.run.call(call).expect("append");
    let specimen = Specimen { exploration, unproven: 1, covered: 0 };
    // The four frames of one write: only the opening behind them proves that they had been durable.
    let frames = frames(&specimen.copy());
    let opened = frames.iter().rposition(|frame| frame.kind == Kind::Opened).expect("it was opened again");
    for frame in &frames[opened - 4..opened] {
        for place in [5, HEADER_BYTES + 5] {
            let Fate::Opened(survey, lost) = specimen.flip(&frame.path, frame.offset + place, 2) else {
                panic!("it does not open")
            };
            assert_eq!((survey.damages(), lost), (1, 1), "{frame:?} alone is reported");
        }
    }
}

#[test]
fn the_cleaner_leaves_a_damaged_segment_alone() {
    let mut exploration = uncleaned();
    exploration.run.close().expect("it shuts down");
    let specimen = Specimen { exploration, unproven: 0, covered: u64::MAX };
    // On a sound copy one sees which frames the cleaner takes.
    let sound = specimen.copy();
    let engine = specimen.open(&sound).expect("it opens");
    (0..3).for_each(|_| engine.upkeep());
    let before = frames(&specimen.copy());
    let moved: Vec<Frame> = frames(&sound).into_iter().filter(Frame::is_moved).collect();
    let taken = |frame: &&Frame| {
        frame.kind == Kind::Records
            && moved.iter().any(|copy| copy.origin == frame.origin && copy.position > frame.position)
            && !before.iter().any(|other| other.origin == frame.origin && other.position > frame.position)
    };
    let taken: Vec<&Frame> = before.iter().filter(taken).collect();
    assert!(!taken.is_empty(), "the cleaner has something to do");
    for frame in taken {
        let copy = specimen.copy();
        copy.flip_bit(&frame.path, frame.offset + HEADER_BYTES + 20, 4).expect("flipped");
        let engine = specimen.open(&copy).expect("it opens");
        (0..6).for_each(|_| engine.upkeep());
        let survey = runtime().block_on(Survey::of(&engine)).expect("listing");
        let mut left = specimen.exploration.run.ledger.now().clone();
        left.trim(specimen.exploration.run.clock.now());
        let lost = survey.judge(&specimen.exploration.run.ledger, 0, &left).expect("all else can be read");
        assert_eq!((lost, survey.damages()), (1, 1), "{frame:?} is reported");
        assert!(copy.paths().contains(&frame.path), "{} is gone, with what could be saved of it", frame.path);
    }
}

#[test]
fn what_was_cut_off_never_rejoins() {
    let mut exploration = Exploration::of(workloads::named("making"));
    let first = exploration.run.append("one", 1, 400);
    let second = exploration.run.append("one", 1, 30);
    exploration.run.group(vec![first, second]).expect("append");
    let specimen = Specimen { exploration, unproven: 2, covered: 0 };
    let copy = specimen.copy();
    let last: Vec<Frame> = frames(&copy).into_iter().rev().take(2).collect();
    let [second, first] = &last[..] else { panic!("two frames were written last") };
    // As if the power had been lost between the two: the first is torn, the second is whole.
    copy.flip_bit(&first.path, first.offset + HEADER_BYTES + 9, 0).expect("flipped");
    let engine = specimen.open(&copy).expect("it opens");
    let world = runtime().block_on(World::read(&engine)).expect("everything can be read");
    assert_eq!(world.records(), 1, "both are cut off");
    // The new frames end exactly where the old one begins.
    let mut run = Run::resume(&runtime(), copy, SimClock::new(START), engine, world);
    let data = second.offset - first.offset - 2 * HEADER_BYTES - "key".len() as u64 - 6;
    let records = vec![NewRecord::new("key", vec![7; data as usize])];
    run.call(Call::Append { stream: "one", records }).expect("append");
    assert_eq!(run.engine().status().journal_position, second.position);
    for _ in 0..2 {
        run.reopen_after_kill().expect("it opens again");
        let world = run.world().expect("everything can be read");
        assert_eq!(world.difference(run.ledger.now()), None);
    }
}
