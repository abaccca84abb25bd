//! What a bot counts. The names are looked up once, for events are many.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Unit};

use crate::sink::Outcome;

/// A stretch of an event's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// From its source taking it to its bot having it.
    Source,
    /// Through the steps.
    Steps,
    /// Waiting for the others of its batch.
    Batch,
    /// Until it is durable in the sink.
    Sink,
    /// All of it.
    Whole,
}

impl Stage {
    const ALL: [Stage; 5] = [Stage::Source, Stage::Steps, Stage::Batch, Stage::Sink, Stage::Whole];

    fn word(self) -> &'static str {
        match self {
            Stage::Source => "source",
            Stage::Steps => "steps",
            Stage::Batch => "batch",
            Stage::Sink => "sink",
            Stage::Whole => "whole",
        }
    }
}

/// The figures of one bot.
pub(crate) struct Meter {
    stages: [Histogram; Stage::ALL.len()],
    done: Counter,
    failed: Counter,
    refused: Counter,
    behind: Gauge,
    available: Gauge,
    dead_letters: Counter,
    batches: Counter,
    batched_bytes: Counter,
}

impl Meter {
    pub(crate) fn new(bot: &str) -> Self {
        let bot = || bot.to_owned();
        let stage = |stage: Stage| metrics::histogram!("anabranch_bot_stage_seconds", "bot" => bot(), "stage" => stage.word());
        let ended = |word: &'static str| metrics::counter!("anabranch_bot_events_total", "bot" => bot(), "outcome" => word);
        let meter = Meter {
            stages: Stage::ALL.map(stage),
            done: ended("done"),
            failed: ended("failed"),
            refused: ended("refused"),
            behind: metrics::gauge!("anabranch_bot_behind_seconds", "bot" => bot()),
            available: metrics::gauge!("anabranch_bot_sink_available", "bot" => bot()),
            dead_letters: metrics::counter!("anabranch_bot_dead_letters_total", "bot" => bot()),
            batches: metrics::counter!("anabranch_bot_batches_total", "bot" => bot()),
            batched_bytes: metrics::counter!("anabranch_bot_batched_bytes_total", "bot" => bot()),
        };
        meter.available.set(1.0);
        meter
    }

    pub(crate) fn stage(&self, stage: Stage, taken: Duration) {
        self.stages[stage as usize].record(taken);
    }

    pub(crate) fn ended(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Done => self.done.increment(1),
            Outcome::Failed(_) | Outcome::Unavailable(_) => self.failed.increment(1),
            Outcome::Refused(_) => self.refused.increment(1),
        }
    }

    pub(crate) fn behind(&self, behind: Duration) {
        self.behind.set(behind.as_secs_f64());
    }

    pub(crate) fn available(&self, available: bool) {
        self.available.set(f64::from(u8::from(available)));
    }

    pub(crate) fn dead_letter(&self) {
        self.dead_letters.increment(1);
    }

    pub(crate) fn batch(&self, bytes: usize) {
        self.batches.increment(1);
        self.batched_bytes.increment(bytes as u64);
    }
}

/// Says what the figures are, to whoever shows them.
pub fn describe() {
    let stages = "Time of events by stage: source, steps, batch, sink, and whole from the source to the sink";
    metrics::describe_histogram!("anabranch_bot_stage_seconds", Unit::Seconds, stages);
    metrics::describe_counter!("anabranch_bot_events_total", Unit::Count, "Events by what became of them");
    metrics::describe_gauge!(
        "anabranch_bot_behind_seconds",
        Unit::Seconds,
        "How far a bot lies behind the end of its source"
    );
    metrics::describe_gauge!("anabranch_bot_sink_available", Unit::Count, "0 while a sink takes no events");
    metrics::describe_counter!(
        "anabranch_bot_dead_letters_total",
        Unit::Count,
        "Messages of queues that were given up; those of shards are counted by the consumer"
    );
    metrics::describe_counter!("anabranch_bot_batches_total", Unit::Count, "Batches that were written");
    metrics::describe_counter!("anabranch_bot_batched_bytes_total", Unit::Bytes, "Bytes of events in them");
}
