//! The monitor address: `/health` for whoever restarts servers, `/metrics` for Prometheus.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_engine::{Engine, Status};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use serde_json::json;

use crate::failure::Failure;

/// Upper bounds of the classes of durations, in seconds.
const DURATION_CLASSES: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 10.0];

/// What the server is doing, for whoever asks.
///
/// ```text
///   starting ──▶ serving ──▶ draining
/// ```
#[derive(Clone)]
pub(crate) struct Monitor {
    phase: Arc<Mutex<Phase>>,
    metrics: PrometheusHandle,
}

enum Phase {
    Starting,
    Serving(Engine),
    Draining,
}

impl Monitor {
    /// Collects metrics from now on.
    pub(crate) fn start() -> Result<Self, Failure> {
        let metrics = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &DURATION_CLASSES)
            .and_then(PrometheusBuilder::install_recorder)
            .map_err(|error| {
                Failure::new("metrics", format!("metrics cannot start: {error}"), "report this")
            })?;
        describe();
        Ok(Monitor { phase: Arc::new(Mutex::new(Phase::Starting)), metrics })
    }

    pub(crate) fn serving(&self, engine: Engine) {
        self.enter(Phase::Serving(engine));
    }

    pub(crate) fn draining(&self) {
        self.enter(Phase::Draining);
    }

    fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    /// Sorts measurements into their classes. Without it they pile up until somebody asks for them.
    pub(crate) fn run_upkeep(&self) {
        self.metrics.run_upkeep();
    }

    fn status(&self) -> Result<Status, (&'static str, &'static str)> {
        match &*self.phase.lock().unwrap_or_else(PoisonError::into_inner) {
            Phase::Starting => Err(("starting", "the data directory is being opened")),
            Phase::Serving(engine) => Ok(engine.status()),
            Phase::Draining => Err(("draining", "the server is shutting down")),
        }
    }
}

/// `/health` and `/metrics`.
pub(crate) fn router(monitor: Monitor) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(render))
        .fallback(unknown_path)
        .with_state(monitor)
}

/// The label of a path in metrics.
pub(crate) fn label(path: &str) -> &'static str {
    match path {
        "/health" => "health",
        "/metrics" => "metrics",
        _ => "other",
    }
}

async fn health(State(monitor): State<Monitor>) -> Response {
    let (state, reason) = match monitor.status() {
        Ok(Status { stopped: Some(reason), .. }) => ("stopped", reason),
        Ok(Status { disk_full: true, .. }) => {
            ("disk_full", "the disk is full: writes are refused until there is room".to_owned())
        }
        Ok(_) => {
            let body = json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") });
            return Json(body).into_response();
        }
        Err((state, reason)) => (state, reason.to_owned()),
    };
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": state, "reason": reason }))).into_response()
}

async fn render(State(monitor): State<Monitor>) -> Response {
    if let Ok(status) = monitor.status() {
        publish(&status);
    }
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], monitor.metrics.render()).into_response()
}

async fn unknown_path() -> (StatusCode, Json<serde_json::Value>) {
    let message = "nothing is served here: the monitor answers /health and /metrics";
    (StatusCode::NOT_FOUND, Json(json!({ "message": message })))
}

/// Numbers that the engine keeps anyway become gauges when somebody looks at them.
fn publish(status: &Status) {
    gauge!("anabranch_engine_stopped").set(f64::from(u8::from(status.stopped.is_some())));
    gauge!("anabranch_engine_disk_full").set(f64::from(u8::from(status.disk_full)));
    gauge!("anabranch_engine_epoch").set(f64::from(status.epoch));
    gauge!("anabranch_engine_streams").set(status.streams as f64);
    gauge!("anabranch_engine_shards").set(status.shards as f64);
    gauge!("anabranch_engine_followers").set(status.followers as f64);
    gauge!("anabranch_engine_buckets").set(status.buckets as f64);
    gauge!("anabranch_blob_files_doomed").set(status.body_files_doomed as f64);
    gauge!("anabranch_journal_position_bytes").set(status.journal_position as f64);
    gauge!("anabranch_journal_uncovered_bytes")
        .set(status.journal_position.saturating_sub(status.covered_position) as f64);
    gauge!("anabranch_journal_segments").set(status.segments as f64);
    gauge!("anabranch_journal_segments_dead").set(status.segments_dead as f64);
    gauge!("anabranch_journal_segment_bytes").set(status.segment_bytes as f64);
    gauge!("anabranch_journal_live_bytes").set(status.live_bytes as f64);
    gauge!("anabranch_journal_oldest_segment").set(status.oldest_segment.unwrap_or(0) as f64);
    gauge!("anabranch_journal_oldest_segment_live_bytes").set(status.oldest_segment_live_bytes as f64);
    gauge!("anabranch_journal_frames_waiting").set(status.frames_waiting as f64);
    gauge!("anabranch_memory_budget_bytes").set(status.budget_bytes as f64);
    gauge!("anabranch_memory_used_bytes").set(status.budget_used_bytes as f64);
}

fn describe() {
    crate::api::describe_metrics();
    anabranch_bus::describe_metrics();
    describe_counter!("anabranch_http_requests_total", Unit::Count, "Requests by operation and status");
    describe_histogram!(
        "anabranch_http_request_duration_seconds",
        Unit::Seconds,
        "Time until an answer begins"
    );
    describe_gauge!("anabranch_http_connections", Unit::Count, "Open connections");
    describe_counter!(
        "anabranch_http_connections_refused_total",
        Unit::Count,
        "Connections that were refused because too many were open"
    );
    for (name, unit, text) in [
        (
            "anabranch_engine_stopped",
            Unit::Count,
            "1 if nothing can be written until the directory is reopened",
        ),
        ("anabranch_engine_disk_full", Unit::Count, "1 while the disk has no room for the next segment"),
        ("anabranch_engine_epoch", Unit::Count, "How often the directory was opened"),
        ("anabranch_engine_streams", Unit::Count, "Streams"),
        ("anabranch_engine_shards", Unit::Count, "Shards, open and closed"),
        ("anabranch_engine_followers", Unit::Count, "Followers of shards"),
        ("anabranch_engine_buckets", Unit::Count, "Buckets"),
        (
            "anabranch_blob_files_doomed",
            Unit::Count,
            "Files of bodies that no blob owns and that are still to be removed",
        ),
        ("anabranch_journal_position_bytes", Unit::Bytes, "The end of the journal"),
        ("anabranch_journal_uncovered_bytes", Unit::Bytes, "What an opening after a crash would walk"),
        ("anabranch_journal_segments", Unit::Count, "Files of the journal in use"),
        ("anabranch_journal_segments_dead", Unit::Count, "Files of the journal that wait to be used again"),
        ("anabranch_journal_segment_bytes", Unit::Bytes, "Size of a file of the journal"),
        ("anabranch_journal_live_bytes", Unit::Bytes, "Bytes of frames that a shard refers to"),
        ("anabranch_journal_oldest_segment", Unit::Count, "The number of the oldest file in use"),
        (
            "anabranch_journal_oldest_segment_live_bytes",
            Unit::Bytes,
            "The live bytes that pin the oldest file",
        ),
        ("anabranch_journal_frames_waiting", Unit::Count, "Frames that wait for the disk"),
        ("anabranch_memory_budget_bytes", Unit::Bytes, "The byte budget of the engine"),
        ("anabranch_memory_used_bytes", Unit::Bytes, "How much of the byte budget is in use"),
    ] {
        describe_gauge!(name, unit, text);
    }
}
