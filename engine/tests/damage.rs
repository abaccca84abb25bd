//! Bits decay, files are cut and disappear: nothing wrong is ever served, damage is reported, and what lies beside it
//! stays readable.

mod crash;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anabranch_engine::Engine;
use anabranch_model::{Clock, Disk, Error, NewRecord, Open, Result, StreamStore};
use anabranch_sim::{Rng, SimClock, SimDisk};
use crash::explore::{Exploration, runtime};
use crash::frames::{Frame, HEADER_BYTES, Kind, frames};
use crash::run::{name, options};
use crash::survey::Survey;
use crash::workloads;

/// A directory with a history, and what may be done to copies of it.
struct Specimen {
    exploration: Exploration,
    /// Steps at the end that only the last write holds, and no later frame and no checkpoint proves.
    unproven: usize,
    covered: u64,
}

/// What became of a damaged directory.
enum Fate {
    /// It did not open, and said why.
    Refused(Error),
    /// It opened; the records of so many frames are reported as damaged.
    Opened(Survey, usize),
}

impl Specimen {
    /// A directory whose process died behind the last step.
    fn crashed(workload: &str) -> Specimen {
        let exploration = Exploration::of(workloads::named(workload));
        let unproven = exploration.run.ledger.last_group();
        let covered = exploration.run.engine().status().covered_position;
        Specimen { exploration, unproven, covered }
    }

    /// A directory that was shut down.
    fn closed(workload: &str) -> Specimen {
        let mut exploration = Exploration::of(workloads::named(workload));
        exploration.run.close().expect("it shuts down");
        Specimen { exploration, unproven: 0, covered: u64::MAX }
    }

    fn copy(&self) -> SimDisk {
        let disk = &self.exploration.run.disk;
        disk.crash_point(disk.operations()).image_with_unsynced()
    }

    /// Opens a damaged copy, reads everything, lets upkeep run over it, and reads again.
    fn examine(&self, what: &str, copy: &SimDisk) -> Fate {
        let look = || self.try_examine(copy);
        let outcome = catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("it panicked".into()));
        outcome.unwrap_or_else(|text| panic!("{}, {what}: {text}", self.exploration.workload.name))
    }

    fn open(&self, copy: &SimDisk) -> Result<Engine> {
        let clock = SimClock::new(self.exploration.run.clock.now());
        Engine::open(Arc::new(copy.clone()), Arc::new(clock), options())
    }

    fn try_examine(&self, copy: &SimDisk) -> std::result::Result<Fate, String> {
        let (ledger, runtime) = (&self.exploration.run.ledger, runtime());
        let engine = match self.open(copy) {
            Ok(engine) => engine,
            Err(error) => return Ok(Fate::Refused(error)),
        };
        let survey = runtime.block_on(Survey::of(&engine)).map_err(|error| format!("listing: {error}"))?;
        let frames = survey.judge(ledger, self.unproven, ledger.now())?;
        let mut left = ledger.now().clone();
        left.trim(self.exploration.run.clock.now());
        engine.upkeep();
        engine.upkeep();
        let again =
            runtime.block_on(Survey::of(&engine)).map_err(|error| format!("listing again: {error}"))?;
        again.judge(ledger, self.unproven, &left).map_err(|text| format!("after upkeep: {text}"))?;
        Ok(Fate::Opened(survey, frames))
    }

    /// Flips one bit of a copy and examines it.
    fn flip(&self, path: &str, offset: u64, bit: u8) -> Fate {
        let copy = self.copy();
        copy.flip_bit(path, offset, bit).expect("the bit is there");
        let what = format!("bit {bit} of {path} at {offset}");
        let fate = self.examine(&what, &copy);
        if let Fate::Opened(_, frames) = &fate {
            assert!(*frames <= 1, "{}, {what}: {frames} frames are lost", self.exploration.workload.name);
        }
        fate
    }
}

/// How many directories met which fate.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    read_only: usize,
    reported: usize,
    unharmed: usize,
}

impl Tally {
    fn add(&mut self, fate: Fate) {
        match fate {
            Fate::Refused(_) => self.refused += 1,
            Fate::Opened(survey, _) if survey.stopped.is_some() => self.read_only += 1,
            Fate::Opened(survey, _) if survey.damages() > 0 => self.reported += 1,
            Fate::Opened(_, _) => self.unharmed += 1,
        }
    }
}

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
            if let Fate::Opened(survey, _) = &fate
                && frame.is_moved()
                && frame.position >= specimen.covered
            {
                assert_eq!(survey.damages(), 0, "the original of {frame:?} is still there");
            }
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
    assert_eq!(append, Err(Error::Stopped(reason)));
    engine.upkeep();
    engine.prepare();
    runtime().block_on(engine.close()).expect("it shuts down");
    drop(engine);
    for (path, bytes) in before.iter().filter(|(path, _)| path != "state.redb") {
        assert!(copy.contents(path).is_ok_and(|now| now == *bytes), "{path} has changed");
    }
    assert_eq!(copy.paths().len(), before.len(), "{:?}", copy.paths());
    // The state is opened for reading, which leaves marks; what it says is the same.
    let Fate::Opened(survey, _) = specimen.examine("opened again", &copy) else { panic!("it opens") };
    assert!(survey.stopped.is_some());
}

#[test]
fn the_cleaner_leaves_a_damaged_segment_alone() {
    let specimen = Specimen::closed("retention");
    let copy = specimen.copy();
    let engine = specimen.open(&copy).expect("it opens");
    let oldest = engine.status().oldest_segment.expect("there is one");
    drop(engine);
    // The oldest segment holds records of the stream with the long retention, and few of them.
    let frames = frames(&specimen.copy());
    let path = format!("journal/{oldest:016x}.segment");
    let long = frames.iter().rfind(|frame| frame.path == path && frame.payload_bytes > 200);
    let frame = long.expect("a frame of records");
    let copy = specimen.copy();
    copy.flip_bit(&frame.path, frame.offset + HEADER_BYTES + 100, 4).expect("flipped");
    let engine = specimen.open(&copy).expect("it opens");
    (0..6).for_each(|_| engine.upkeep());
    let survey = runtime().block_on(Survey::of(&engine)).expect("listing");
    let mut left = specimen.exploration.run.ledger.now().clone();
    left.trim(specimen.exploration.run.clock.now());
    survey.judge(&specimen.exploration.run.ledger, 0, &left).expect("all else can be read");
    if survey.damages() > 0 {
        assert!(copy.paths().contains(&path), "{path} is gone with what could still be saved of it");
    }
}
