//! Counts requests and measures how long their answers take to begin.

use std::sync::Arc;

use anabranch_model::Clock;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

/// What a request is measured with.
#[derive(Clone)]
pub(crate) struct Observer {
    pub(crate) clock: Arc<dyn Clock>,
    /// The label of a path. There are few labels, whatever clients ask for.
    pub(crate) label: fn(&str) -> &'static str,
}

/// Counts and measures a request.
pub(crate) async fn observe(State(observer): State<Observer>, request: Request, next: Next) -> Response {
    let operation = (observer.label)(request.uri().path());
    let start = observer.clock.elapsed();
    let response = next.run(request).await;
    let taken = observer.clock.elapsed().saturating_sub(start);
    let status = response.status().as_u16().to_string();
    metrics::counter!("anabranch_http_requests_total", "operation" => operation, "status" => status)
        .increment(1);
    metrics::histogram!("anabranch_http_request_duration_seconds", "operation" => operation)
        .record(taken.as_secs_f64());
    response
}
