//! What a consumer counts.

use std::time::Duration;

use crate::delivery::ShardInfo;

/// What became of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseEvent {
    Taken,
    Adopted,
    Lost,
    Released,
    HandedOver,
    Ended,
}

impl LeaseEvent {
    pub(crate) fn word(self) -> &'static str {
        match self {
            LeaseEvent::Taken => "taken",
            LeaseEvent::Adopted => "adopted",
            LeaseEvent::Lost => "lost",
            LeaseEvent::Released => "released",
            LeaseEvent::HandedOver => "handed_over",
            LeaseEvent::Ended => "ended",
        }
    }
}

pub(crate) fn lease(event: LeaseEvent) {
    metrics::counter!("anabranch_consumer_lease_events_total", "event" => event.word()).increment(1);
}

pub(crate) fn leases_held(application: &str, count: usize) {
    metrics::gauge!("anabranch_consumer_leases", "application" => application.to_owned()).set(count as f64);
}

pub(crate) fn leads(application: &str, leads: bool) {
    metrics::gauge!("anabranch_consumer_leader", "application" => application.to_owned())
        .set(f64::from(u8::from(leads)));
}

pub(crate) fn renewal_failed() {
    metrics::counter!("anabranch_consumer_renewal_failures_total").increment(1);
}

pub(crate) fn fetched(shard: &ShardInfo, records: usize, bytes: usize, behind: Duration) {
    let stream = shard.stream.as_str().to_owned();
    metrics::counter!("anabranch_consumer_records_total", "stream" => stream.clone())
        .increment(records as u64);
    metrics::counter!("anabranch_consumer_bytes_total", "stream" => stream.clone()).increment(bytes as u64);
    metrics::gauge!("anabranch_consumer_behind_seconds",
        "stream" => stream, "shard" => shard.shard.as_str().to_owned())
    .set(behind.as_secs_f64());
}

pub(crate) fn processed_age(shard: &ShardInfo, age: Duration) {
    metrics::histogram!("anabranch_consumer_age_seconds", "stream" => shard.stream.as_str().to_owned())
        .record(age);
}

pub(crate) fn retried(shard: &ShardInfo) {
    metrics::counter!("anabranch_consumer_retries_total", "stream" => shard.stream.as_str().to_owned())
        .increment(1);
}

pub(crate) fn failed_call(shard: &ShardInfo) {
    metrics::counter!("anabranch_consumer_failed_calls_total", "stream" => shard.stream.as_str().to_owned())
        .increment(1);
}

pub(crate) fn dead_letter(shard: &ShardInfo) {
    metrics::counter!("anabranch_consumer_dead_letters_total", "stream" => shard.stream.as_str().to_owned())
        .increment(1);
}

pub(crate) fn halted(shard: &ShardInfo) {
    metrics::counter!("anabranch_consumer_halts_total", "stream" => shard.stream.as_str().to_owned())
        .increment(1);
}

pub(crate) fn corrupt_aggregate(shard: &ShardInfo) {
    metrics::counter!("anabranch_consumer_corrupt_aggregates_total",
        "stream" => shard.stream.as_str().to_owned())
    .increment(1);
}

pub(crate) fn missing_payload(shard: &ShardInfo) {
    metrics::counter!("anabranch_consumer_missing_payloads_total",
        "stream" => shard.stream.as_str().to_owned())
    .increment(1);
}

/// Records of a shard were removed before they were read; how many is not known.
pub(crate) fn trimmed(shard: &ShardInfo) {
    metrics::counter!("anabranch_consumer_trimmed_total", "stream" => shard.stream.as_str().to_owned())
        .increment(1);
}

pub(crate) fn stalled(shard: &ShardInfo) {
    metrics::counter!("anabranch_consumer_stalls_total", "stream" => shard.stream.as_str().to_owned())
        .increment(1);
}

pub(crate) fn task_panicked(task: &'static str) {
    metrics::counter!("anabranch_consumer_panics_total", "task" => task).increment(1);
}

/// A checkpoint is written: how long the first record that it covers had waited for that since it was acknowledged, and how
/// much of it the write took.
pub(crate) fn checkpointed(application: &str, shard: &ShardInfo, waited: Duration, took: Duration) {
    let stream = shard.stream.as_str().to_owned();
    metrics::counter!("anabranch_consumer_checkpoints_total", "stream" => stream.clone()).increment(1);
    for (name, time) in [
        ("anabranch_consumer_checkpoint_seconds", waited),
        ("anabranch_consumer_checkpoint_write_seconds", took),
    ] {
        metrics::histogram!(name, "application" => application.to_owned(), "stream" => stream.clone())
            .record(time);
    }
}
