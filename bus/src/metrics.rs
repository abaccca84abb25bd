//! What a bot counts.

use std::time::Duration;

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

pub(crate) fn stage(bot: &str, stage: Stage, taken: Duration) {
    metrics::histogram!("anabranch_bot_stage_seconds", "bot" => bot.to_owned(), "stage" => stage.word())
        .record(taken);
}

pub(crate) fn ended(bot: &str, outcome: &Outcome) {
    let word = match outcome {
        Outcome::Done => "done",
        Outcome::Failed(_) => "failed",
        Outcome::Refused(_) => "refused",
        Outcome::Unavailable(_) => "unavailable",
    };
    metrics::counter!("anabranch_bot_events_total", "bot" => bot.to_owned(), "outcome" => word).increment(1);
}

pub(crate) fn behind(bot: &str, behind: Duration) {
    metrics::gauge!("anabranch_bot_behind_seconds", "bot" => bot.to_owned()).set(behind.as_secs_f64());
}

pub(crate) fn available(bot: &str, available: bool) {
    metrics::gauge!("anabranch_bot_sink_available", "bot" => bot.to_owned())
        .set(f64::from(u8::from(available)));
}

pub(crate) fn dead_letter(bot: &str) {
    metrics::counter!("anabranch_bot_dead_letters_total", "bot" => bot.to_owned()).increment(1);
}

pub(crate) fn batch(bot: &str, events: usize, bytes: usize) {
    let bot = || bot.to_owned();
    metrics::counter!("anabranch_bot_batches_total", "bot" => bot()).increment(1);
    metrics::counter!("anabranch_bot_batched_events_total", "bot" => bot()).increment(events as u64);
    metrics::counter!("anabranch_bot_batched_bytes_total", "bot" => bot()).increment(bytes as u64);
}
