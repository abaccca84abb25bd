//! Starts the queues and the streams of fakecloud, and nothing else of it: its own program brings some hundred services, and
//! takes half an hour to build.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::{Extension, Router};
use fakecloud_core::dispatch::{DispatchConfig, dispatch};
use fakecloud_core::multi_account::MultiAccountState;
use fakecloud_core::registry::ServiceRegistry;
use fakecloud_kinesis::KinesisService;
use fakecloud_sqs::SqsService;
use parking_lot::RwLock;
use tokio::net::TcpListener;

const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).expect("the port to listen on");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let endpoint = format!("http://{address}");
    let queues = Arc::new(RwLock::new(MultiAccountState::new(ACCOUNT, REGION, &endpoint)));
    let streams = Arc::new(RwLock::new(MultiAccountState::new(ACCOUNT, REGION, &endpoint)));
    let mut registry = ServiceRegistry::new();
    registry.register(Arc::new(SqsService::new(queues).with_region(REGION)));
    registry.register(Arc::new(KinesisService::new(streams)));
    let app = Router::new()
        .fallback(dispatch)
        .layer(Extension(Arc::new(registry)))
        .layer(Extension(Arc::new(DispatchConfig::new(REGION, ACCOUNT))))
        .into_make_service_with_connect_info::<SocketAddr>();
    let listener = TcpListener::bind(address).await.expect("a free port");
    axum::serve(listener, app).await.expect("a server that goes on");
}
