//! What a producer and a scaler count.

use std::time::Duration;

use anabranch_model::StreamName;

fn name(stream: &StreamName) -> String {
    stream.as_str().to_owned()
}

pub(crate) fn stored(stream: &StreamName, records: usize, bytes: usize) {
    metrics::counter!("anabranch_producer_records_total", "stream" => name(stream)).increment(records as u64);
    metrics::counter!("anabranch_producer_bytes_total", "stream" => name(stream)).increment(bytes as u64);
}

pub(crate) fn lost(stream: &StreamName, certain: bool) {
    let state = if certain { "not_stored" } else { "unknown" };
    metrics::counter!("anabranch_producer_lost_total", "stream" => name(stream), "state" => state)
        .increment(1);
}

pub(crate) fn retried(stream: &StreamName, records: usize) {
    metrics::counter!("anabranch_producer_retries_total", "stream" => name(stream)).increment(records as u64);
}

pub(crate) fn throttled(stream: &StreamName, records: usize) {
    metrics::counter!("anabranch_producer_throttles_total", "stream" => name(stream))
        .increment(records as u64);
}

pub(crate) fn append(stream: &StreamName, took: Duration) {
    metrics::histogram!("anabranch_producer_append_seconds", "stream" => name(stream)).record(took);
}

pub(crate) fn shards(stream: &StreamName, shards: usize) {
    metrics::gauge!("anabranch_producer_shards", "stream" => name(stream)).set(shards as f64);
}

pub(crate) fn usage(stream: &StreamName, shard: &str, usage: f64) {
    metrics::gauge!("anabranch_scaler_usage", "stream" => name(stream), "shard" => shard.to_owned())
        .set(usage);
}

pub(crate) fn decision(stream: &StreamName, kind: &'static str) {
    metrics::counter!("anabranch_scaler_decisions_total", "stream" => name(stream), "kind" => kind)
        .increment(1);
}
