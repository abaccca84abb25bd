//! `anabranch up`: the server from its first line to its last.
//!
//! ```text
//!   settings ─▶ lock ─▶ ports ─▶ engine ─▶ serve, announce, a line on standard output
//!                                              │ SIGTERM or Ctrl-C
//!   exit 0 ◀─ engine closed ◀─ bots, requests and follows ended ◀─┘   (a second signal quits at once)
//! ```

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{DirectoryLock, Engine, Options, SystemClock};
use anabranch_model::Clock;
use clap::Args;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::api::wire::StatusReply;
use crate::backend::DirectoryArgs;
use crate::backup::Backups;
use crate::bots::{self, Bots};
use crate::config::{Address, Settings};
use crate::connect::{lock_failure, open_engine};
use crate::failure::Failure;
use crate::host::{AwsSettings, Host, StatusSource, guarded};
use crate::http::{Budget, Guard, Port, Stopper, serve};
use crate::limits::{KNOCKING_MAX, MONITOR_CONNECTIONS_MAX};
use crate::logging::{self, LogFormat};
use crate::monitor::{self, Monitor};
use crate::open_files;
use crate::output;
use crate::runtime::{self, Signals};
use crate::stores::Stores;
use crate::tls::Tls;

/// What the lock of a directory says about who holds it.
pub(crate) const COMMAND: &str = "anabranch up";

/// How often measurements are sorted into their classes.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Arguments of `anabranch up`.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// A configuration file in TOML: data, listen, monitor, memory, shard_limits, transition_ms, hosts, access_keys, tls,
    /// tls_cert, tls_key, flows (files with bots that run in the server)
    #[arg(long, env = "ANABRANCH_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The data directory; made if it does not exist [default: ./anabranch-data]
    #[arg(long, env = "ANABRANCH_DATA", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:4566]
    #[arg(long, env = "ANABRANCH_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<Address>,
    /// Where /health and /metrics are; port 0 takes a free one [default: 127.0.0.1:4580]
    #[arg(long, env = "ANABRANCH_MONITOR", value_name = "ADDR")]
    pub(crate) monitor: Option<Address>,
    /// Speak TLS too on the listen address, with a certificate that is made once and kept in the data directory
    #[arg(long, env = "ANABRANCH_TLS")]
    pub(crate) tls: bool,
    /// A certificate of your own for TLS, in PEM
    #[arg(long, env = "ANABRANCH_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, env = "ANABRANCH_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// What is logged: error, warn, info, debug, trace, or a directive as in RUST_LOG [default: info]
    #[arg(long, env = "ANABRANCH_LOG", value_name = "LEVEL")]
    log: Option<String>,
    /// How the log looks
    #[arg(long, env = "ANABRANCH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    #[command(flatten)]
    engine: DirectoryArgs,
}

/// Runs the server until a signal ends it.
pub(crate) fn run(args: &UpArgs) -> Result<(), Failure> {
    args.engine.check(
        "`anabranch up` serves a data directory, and with --engine aws there is none: AWS serves its data itself",
        "call AWS from each command, for instance `anabranch stream ls --engine aws`, or leave --engine aws (and \
         ANABRANCH_ENGINE) out",
    )?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let settings = Settings::load(args)?;
    logging::start(args.log.as_deref(), args.log_format, "info")?;
    open_files::raise_limit();
    let runtime = runtime::start()?;
    let result = runtime.block_on(up(&settings, clock));
    // Whatever still runs after the drain has had its time.
    runtime.shutdown_background();
    result
}

async fn up(settings: &Settings, clock: Arc<dyn Clock>) -> Result<(), Failure> {
    let mut signals = Signals::take_over()?;
    let lock = DirectoryLock::acquire(&settings.data, COMMAND)
        .map_err(|error| lock_failure(&settings.data, error))?;
    let listen = bind("listen", settings.listen)?;
    let monitor = bind("monitor", settings.monitor)?;
    let server = tokio::select! {
        server = Server::start(settings, clock.clone(), listen, monitor) => server?,
        signal = signals.next() => {
            info!(signal, "stopped before it was ready");
            return Ok(());
        }
    };
    lock.announce(reachable(server.listen), server.monitor)
        .map_err(|error| Failure::io("write the lock file of", &settings.data, &error))?;
    tell_ready(settings, &server, clock.elapsed());

    let signal = signals.next().await;
    info!(signal, "draining: requests in progress finish, new ones are refused");
    let result = tokio::select! {
        result = server.drain() => result,
        signal = signals.next() => {
            warn!(signal, "quitting at once");
            Err(Failure::Interrupted)
        }
    };
    // The directory is free only now, when nothing writes to it any more.
    drop(lock);
    result
}

/// Where commands on this machine find an address.
fn reachable(address: SocketAddr) -> SocketAddr {
    let loopback = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(loopback, address.port())
}

fn tell_ready(settings: &Settings, server: &Server, taken: Duration) {
    let (data, taken_ms) = (settings.data.display(), taken.as_millis());
    info!(listen = %server.listen, monitor = %server.monitor, %data, taken_ms, "ready");
    let scheme = if server.trust.is_some() { "https" } else { "http" };
    let mut line = format!(
        "anabranch is ready: {scheme}://{}, data in {data}, monitor http://{} (ready in {taken_ms} ms)\n",
        server.listen, server.monitor
    );
    if let Some(Some(root)) = &server.trust {
        let root = std::path::absolute(root).unwrap_or_else(|_| root.clone());
        let root = root.display();
        line += &format!(
            "clients trust it with AWS_CA_BUNDLE={root} NODE_EXTRA_CA_CERTS={root} SSL_CERT_FILE={root}\n"
        );
    }
    if let Some(reason) = server.engine.status().stopped {
        line += &format!("nothing can be written: {reason}\n");
    }
    // A server whose output nobody reads still serves.
    let _ = output::write_out(line.as_bytes());
}

/// What runs between ready and drained.
struct Server {
    listen: SocketAddr,
    /// Set if TLS is spoken: what clients have to be told to trust, if anything.
    trust: Option<Option<PathBuf>>,
    monitor: SocketAddr,
    engine: Engine,
    health: Monitor,
    api: Host,
    /// The monitor outlives the rest, so that it can tell of the drain.
    monitor_stopper: Stopper,
    monitor_task: JoinHandle<()>,
    bots: Bots,
}

impl Server {
    async fn start(
        settings: &Settings,
        clock: Arc<dyn Clock>,
        listen: TcpListener,
        monitor: TcpListener,
    ) -> Result<Self, Failure> {
        let no_address = |error| Failure::io("find the address of", &settings.data, &error);
        let monitor_address = monitor.local_addr().map_err(no_address)?;

        let health = Monitor::start()?;
        let (monitor_stopper, monitor_stop) = Stopper::new();
        let monitor_port = Port {
            name: "monitor",
            listener: monitor,
            router: guarded(monitor::router(health.clone()), Guard::default(), clock.clone(), monitor::label),
            tls: None,
            connections_max: MONITOR_CONNECTIONS_MAX,
        };
        let monitor_task = tokio::spawn(serve(monitor_port, monitor_stop.clone()));
        tokio::spawn(keep_metrics(health.clone()));

        // A quarter of the memory is for requests on their way in; the engine deals out the rest.
        let request_bytes = settings.memory_bytes / 4;
        let options = Options {
            memory_bytes: settings.memory_bytes - request_bytes,
            shard_limits: settings.shard_limits,
            ..Options::default()
        };
        let engine = open_engine(&settings.data, options, clock.clone()).await?;

        let status = status_of(engine.clone(), clock.clone());
        let (stores, backups) = (Stores::of(&engine), Backups::new(&engine, &settings.data));
        let ports = bots::ports(&stores, None, clock.clone())?;
        let tls = match &settings.tls {
            Some(source) => {
                let address = listen.local_addr().map_err(no_address)?;
                Some(Tls::start(source, &settings.data, address, clock.now())?)
            }
            None => None,
        };
        let (acceptor, trust) = tls.map_or((None, None), |tls| (Some(tls.acceptor), Some(tls.root)));
        let aws = AwsSettings {
            keys: settings.access_keys.clone(),
            hosts: settings.hosts.clone(),
            transition: settings.transition,
            tls: acceptor,
        };
        let budget = Budget::new(request_bytes);
        let api =
            Host::serve(listen, stores, aws, Some(backups), status, budget, clock).map_err(no_address)?;
        health.serving(engine.clone());
        Ok(Server {
            listen: api.address(),
            trust,
            monitor: monitor_address,
            engine,
            health,
            api,
            monitor_stopper,
            monitor_task,
            bots: Bots::patiently(&settings.flows, &ports),
        })
    }

    /// Refuses, drains, closes: three steps in this order. Bots are callers that happen to be here.
    async fn drain(self) -> Result<(), Failure> {
        self.health.draining();
        self.bots.stop().await;
        self.api.stop().await;
        let closed = self.engine.close().await;
        self.monitor_stopper.stop();
        let _ = self.monitor_task.await;
        closed?;
        info!("stopped");
        Ok(())
    }
}

fn status_of(engine: Engine, clock: Arc<dyn Clock>) -> StatusSource {
    let started_at = clock.elapsed();
    Box::new(move || StatusReply {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        uptime_seconds: clock.elapsed().saturating_sub(started_at).as_secs(),
        engine: engine.status().into(),
    })
}

async fn keep_metrics(monitor: Monitor) {
    let mut upkeep = tokio::time::interval(METRICS_UPKEEP);
    loop {
        upkeep.tick().await;
        monitor.run_upkeep();
    }
}

fn bind(name: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    listen(address).map_err(|error| {
        let free = SocketAddr::new(address.ip(), 0);
        let (message, hint) = match error.kind() {
            io::ErrorKind::AddrInUse => (
                format!("the {name} address {address} is taken by another program"),
                format!("stop that program, or choose another port: --{name} {free} takes a free one"),
            ),
            _ => (
                format!("cannot listen on the {name} address {address}: {error}"),
                format!("choose another address: --{name} {free} takes a free port"),
            ),
        };
        Failure::new("address", message, hint)
    })
}

/// Listens with room for many who come at once: whoever finds none waits for a second before he knocks again.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The port is free as soon as the server before is gone, whatever is left of its connections.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(KNOCKING_MAX)
}
