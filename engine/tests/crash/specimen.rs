//! Directories with a history, to be damaged, and what became of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anabranch_engine::Engine;
use anabranch_model::{Clock, Error, Result};
use anabranch_sim::{SimClock, SimDisk};

use super::explore::{Exploration, runtime};
use super::run::options;
use super::survey::Survey;
use super::workloads;

/// A directory with a history, and what may be done to copies of it.
pub struct Specimen {
    pub exploration: Exploration,
    /// Steps at the end that only the last write holds, and no later frame and no checkpoint proves.
    pub unproven: usize,
    /// The position that the last checkpoint covers.
    pub covered: u64,
}

/// What became of a damaged directory.
pub enum Fate {
    /// It did not open, and said why.
    Refused(Error),
    /// It opened; the records of so many frames are reported as damaged.
    Opened(Survey, usize),
}

impl Specimen {
    /// A directory whose process died behind the last step.
    pub fn crashed(workload: &str) -> Specimen {
        let exploration = Exploration::of(workloads::named(workload));
        let unproven = exploration.run.ledger.last_group();
        let covered = exploration.run.engine().status().covered_position;
        Specimen { exploration, unproven, covered }
    }

    /// A directory that was shut down.
    pub fn closed(workload: &str) -> Specimen {
        let mut exploration = Exploration::of(workloads::named(workload));
        exploration.run.close().expect("it shuts down");
        Specimen { exploration, unproven: 0, covered: u64::MAX }
    }

    pub fn copy(&self) -> SimDisk {
        let disk = &self.exploration.run.disk;
        disk.crash_point(disk.operations()).image_with_unsynced()
    }

    /// Opens a damaged copy, reads everything, lets upkeep run over it, and reads again.
    pub fn examine(&self, what: &str, copy: &SimDisk) -> Fate {
        let look = || self.try_examine(copy);
        let outcome = catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| Err("it panicked".into()));
        outcome.unwrap_or_else(|text| panic!("{}, {what}: {text}", self.exploration.workload.name))
    }

    pub fn open(&self, copy: &SimDisk) -> Result<Engine> {
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
    pub fn flip(&self, path: &str, offset: u64, bit: u8) -> Fate {
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
pub struct Tally {
    pub refused: usize,
    pub read_only: usize,
    pub reported: usize,
    pub unharmed: usize,
}

impl Tally {
    pub fn add(&mut self, fate: Fate) {
        match fate {
            Fate::Refused(_) => self.refused += 1,
            Fate::Opened(survey, _) if survey.stopped.is_some() => self.read_only += 1,
            Fate::Opened(survey, _) if survey.damages() > 0 => self.reported += 1,
            Fate::Opened(_, _) => self.unharmed += 1,
        }
    }
}
