//! The control API and the AWS protocols on a port: guarded, observed, and drained when it is stopped.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::Clock;
use anabranch_wire::{Keys, Options, Wire};
use axum::{Router, middleware};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::api::wire::{EngineBody, StatusReply};
use crate::api::{self, Api};
use crate::backup::Backups;
use crate::http::{Budget, Guard, Observer, Port, Stopper, observe, refuse_strangers, serve};
use crate::open_files;
use crate::stores::Stores;

/// Bytes for requests where nobody says how much memory there is.
const REQUEST_BYTES: u64 = 64 << 20;

/// The name of every server.
const LOCALHOST: &str = "localhost";

/// Numbers about a server, made when somebody asks.
pub(crate) type StatusSource = Box<dyn Fn() -> StatusReply + Send + Sync>;

/// How the AWS protocols are served.
#[derive(Default)]
pub(crate) struct AwsSettings {
    /// Who may call. Without keys anyone may who is on this machine.
    pub(crate) keys: Keys,
    /// Names of this server beside `localhost`, below which buckets have names.
    pub(crate) hosts: Vec<String>,
    /// How long a stream says that it is not ready yet, after it was made or changed.
    pub(crate) transition: Duration,
    /// TLS, where clients may speak it.
    pub(crate) tls: Option<TlsAcceptor>,
}

/// A running control API. Dropping it ends it without waiting for requests in progress.
pub struct Host {
    address: SocketAddr,
    stopper: Stopper,
    task: JoinHandle<()>,
}

impl Host {
    /// Serves stores on a free port of this machine: whatever keeps the laws can be put behind the API.
    pub async fn start(stores: Stores) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let status = Box::new(|| StatusReply {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_seconds: 0,
            engine: EngineBody::default(),
        });
        let budget = Budget::new(REQUEST_BYTES);
        let (aws, clock) = (AwsSettings::default(), Arc::new(SystemClock::new()));
        Host::serve(listener, stores, aws, None, status, budget, clock)
    }

    /// Serves stores on a port that is bound already.
    pub(crate) fn serve(
        listener: TcpListener,
        stores: Stores,
        aws: AwsSettings,
        backups: Option<Backups>,
        status: StatusSource,
        budget: Budget,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stopper, stop) = Stopper::new();
        // Whoever signs is no web page in disguise, wherever he calls from.
        let unguarded = (!aws.keys.is_empty()).then_some(is_aws as fn(&str) -> bool);
        let guard = Guard { unguarded, hosts: aws.hosts.clone().into() };
        let names = aws.hosts.iter().cloned().chain([LOCALHOST.to_owned()]).collect();
        let wire = stores.ports().map(|ports| {
            Wire::new(Options {
                ports,
                clock: clock.clone(),
                memory: Arc::new(budget.clone()),
                stop: stop.watched(),
                transition: aws.transition,
            })
            .with_keys(aws.keys.clone())
            .with_hosts(names)
        });
        let api = Api { stores, wire, backups, status, budget, stop: stop.clone() };
        let port = Port {
            name: "listen",
            listener,
            router: guarded(api::router(Arc::new(api)), guard, clock, api_label),
            tls: aws.tls,
            connections_max: open_files::connections_max(),
        };
        Ok(Host { address, stopper, task: tokio::spawn(serve(port, stop)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses new requests, and returns when those in progress are answered.
    pub async fn stop(self) {
        self.stopper.stop();
        let _ = self.task.await;
    }
}

/// What stands in front of every port. Refusals are counted too, so counting comes first.
pub(crate) fn guarded(
    router: Router,
    guard: Guard,
    clock: Arc<dyn Clock>,
    label: fn(&str) -> &'static str,
) -> Router {
    router
        .layer(middleware::from_fn_with_state(guard, refuse_strangers))
        .layer(middleware::from_fn_with_state(Observer { clock, label }, observe))
}

fn api_label(path: &str) -> &'static str {
    match api::operation_at(path) {
        Some(operation) => operation,
        None if is_aws(path) => "aws",
        None => "other",
    }
}

fn is_aws(path: &str) -> bool {
    !path.starts_with(api::PREFIX)
}
