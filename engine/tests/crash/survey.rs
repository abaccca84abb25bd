//! Everything that can be read of a store with damaged files, and what is wrong with it.
//!
//! What must hold: a record that is returned is one that was acknowledged, under its own number; one that is not
//! returned is reported.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_engine::Engine;
use anabranch_model::{
    Error, Next, Position, ReadLimit, Record, Result, SequenceNumber, ShardId, ShardSource, StreamName,
    StreamStore,
};

use super::ledger::Ledger;
use super::world::{World, brief};

/// More batches than any shard of a test has, damage included.
const STEPS_MAX: usize = 10_000;

/// What a reader gets who goes on behind whatever is damaged.
#[derive(Debug, Default)]
pub struct Survey {
    pub streams: BTreeMap<StreamName, BTreeMap<ShardId, ShardSurvey>>,
    /// Why nothing can be written, if so.
    pub stopped: Option<String>,
}

/// One shard.
#[derive(Debug, Default)]
pub struct ShardSurvey {
    pub records: Vec<Record>,
    /// Numbers that are reported as damaged: from the first to before the second.
    pub damaged: Vec<(SequenceNumber, SequenceNumber)>,
    /// What stopped the reading altogether.
    pub failed: Option<Error>,
}

impl Survey {
    /// Reads all that can be read.
    pub async fn of(engine: &Engine) -> Result<Survey> {
        let mut survey = Survey { stopped: engine.status().stopped, ..Survey::default() };
        for summary in engine.streams(None, 1_000).await?.entries {
            let mut shards = BTreeMap::new();
            for shard in engine.shards(&summary.name, None, 1_000).await?.entries {
                shards.insert(shard.id.clone(), survey_shard(engine, &summary.name, &shard.id).await);
            }
            survey.streams.insert(summary.name, shards);
        }
        Ok(survey)
    }

    /// How many ranges are reported as damaged.
    pub fn damages(&self) -> usize {
        self.streams.values().flat_map(BTreeMap::values).map(|shard| shard.damaged.len()).sum()
    }

    /// Compares with what was acknowledged, when `last` is left of it. `unproven` steps at the end of the ledger may be
    /// missing without a word: nothing tells their damage from a write that the power cut off.
    /// Returns how many steps lost records that are reported.
    pub fn judge(
        &self,
        ledger: &Ledger,
        unproven: usize,
        last: &World,
    ) -> std::result::Result<usize, String> {
        let all = given(ledger);
        for (stream, id, shard) in self.shards() {
            for record in &shard.records {
                match all.get(&record.sequence) {
                    Some((home, home_shard, wanted, _))
                        if (home, home_shard, wanted) == (stream, id, &record) => {}
                    Some((_, _, wanted, _)) => {
                        return Err(format!("{stream} {id}: {} instead of {}", brief(record), brief(wanted)));
                    }
                    None => return Err(format!("{stream} {id}: {} was never acknowledged", brief(record))),
                }
            }
            let numbers: Vec<SequenceNumber> = shard.records.iter().map(|record| record.sequence).collect();
            if !numbers.is_sorted_by(|a, b| a < b) {
                return Err(format!("{stream} {id}: the numbers are {numbers:?}"));
            }
        }
        let certain = ledger.len() - unproven;
        self.judge_losses(ledger.world(certain), last, &all)
    }

    fn judge_losses(
        &self,
        certain: &World,
        last: &World,
        all: &BTreeMap<SequenceNumber, (StreamName, ShardId, &Record, usize)>,
    ) -> std::result::Result<usize, String> {
        if self.stopped.is_some() {
            // State was lost, and it says so; what is shown is right, and the rest waits for a person.
            return Ok(0);
        }
        let mut frames = BTreeSet::new();
        for (name, stream) in &certain.streams {
            let Some(found) = self.streams.get(name) else {
                // It may have been deleted by a step that is not certain.
                if last.streams.contains_key(name) {
                    return Err(format!("stream {name} is gone"));
                }
                continue;
            };
            for (id, shard) in &stream.shards {
                let still = last.streams.get(name).and_then(|stream| stream.shards.get(id));
                let Some(found) = found.get(id) else {
                    if still.is_some() {
                        return Err(format!("{name} {id} is gone"));
                    }
                    continue;
                };
                if let Some(error) = &found.failed {
                    return Err(format!("{name} {id} cannot be read: {error}"));
                }
                for record in &shard.records {
                    if found.records.iter().any(|other| other.sequence == record.sequence) {
                        continue;
                    }
                    let reported = |(from, to): &(SequenceNumber, SequenceNumber)| {
                        (*from..*to).contains(&record.sequence)
                    };
                    let hole = |(from, to): &(SequenceNumber, SequenceNumber)| {
                        *to == from.next() && record.sequence >= *from
                    };
                    if found.damaged.iter().any(reported) || found.damaged.iter().any(hole) {
                        frames.insert(all[&record.sequence].3);
                    } else if still.is_some_and(|shard| shard.records.contains(record)) {
                        return Err(format!("{name} {id}: {} is lost without a word", brief(record)));
                    }
                }
            }
        }
        let holds = |world: &World, name, id, record: &Record| {
            let shards = world.streams.get(name).map(|stream| &stream.shards);
            shards.and_then(|shards| shards.get(id)).is_some_and(|shard| shard.records.contains(record))
        };
        for (name, id, shard) in self.shards() {
            if shard
                .records
                .iter()
                .any(|record| !holds(certain, name, id, record) && !holds(last, name, id, record))
            {
                return Err(format!("{name} {id}: trimmed or deleted records are back"));
            }
        }
        Ok(frames.len())
    }

    fn shards(&self) -> impl Iterator<Item = (&StreamName, &ShardId, &ShardSurvey)> {
        self.streams.iter().flat_map(|(name, shards)| shards.iter().map(move |(id, shard)| (name, id, shard)))
    }
}

/// Every record that was ever acknowledged, by its number, with its home and its step.
fn given(ledger: &Ledger) -> BTreeMap<SequenceNumber, (StreamName, ShardId, &Record, usize)> {
    let mut all = BTreeMap::new();
    for step in 0..=ledger.len() {
        for (name, stream) in &ledger.world(step).streams {
            for (id, shard) in &stream.shards {
                for record in &shard.records {
                    all.entry(record.sequence).or_insert_with(|| (name.clone(), id.clone(), record, step));
                }
            }
        }
    }
    all
}

async fn survey_shard(engine: &Engine, stream: &StreamName, shard: &ShardId) -> ShardSurvey {
    let mut survey = ShardSurvey::default();
    let mut from = Position::TrimHorizon;
    for _ in 0..STEPS_MAX {
        match engine.read(stream, shard, from, ReadLimit::default()).await {
            Ok(batch) => {
                let caught_up = batch.records.is_empty();
                survey.records.extend(batch.records);
                match batch.next {
                    Next::At(next) if !caught_up => from = next,
                    _ => return survey,
                }
            }
            Err(Error::Damaged { from: first, resume_at, .. }) => {
                assert!(first < resume_at, "damage from {first} to {resume_at} leads nowhere");
                survey.damaged.push((first, resume_at));
                from = Position::At(resume_at);
            }
            Err(error) => {
                survey.failed = Some(error);
                return survey;
            }
        }
    }
    panic!("a reading of {shard} does not end");
}
