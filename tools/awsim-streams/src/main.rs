//! Starts the streams of awsim, and nothing else of it: its own program brings some sixty services, and takes long to build.

use std::net::Ipv4Addr;
use std::sync::Arc;

use awsim_core::AppState;
use awsim_core::gateway::handle_request;
use awsim_kinesis::KinesisService;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use tokio::net::TcpListener;

/// What a request may have at most, as in awsim's own program.
const BODY_BYTES_MAX: usize = 100 << 20;

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).expect("the port to listen on");
    let mut state = AppState::new("us-east-1".to_string(), "000000000000".to_string());
    state.register(Arc::new(KinesisService::new()), Vec::new());
    let app =
        Router::new().fallback(handle_request).layer(DefaultBodyLimit::max(BODY_BYTES_MAX)).with_state(state);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("a free port");
    axum::serve(listener, app).await.expect("a server that goes on");
}
