//! Accepts connections of one port, at most so many at a time, until the signal to stop; then lets the requests in
//! progress finish.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{debug, warn};

use super::guard::Peer;
use super::preface::{Language, Opened, open};
use super::stall::Stalling;
use super::stop::Stop;
use crate::limits::{
    DRAIN_WAIT_MAX, HEAD_BYTES_MAX, HEAD_WAIT_MAX, HEADERS_MAX, PING_INTERVAL, PING_WAIT_MAX, STREAMS_MAX,
    WRITE_STALL_MAX,
};

/// What a client gets that comes when the port is full. Nobody reads its request first.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// How long accepting pauses after a failure such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port and what is behind it.
pub(crate) struct Port {
    /// The name of the port in metrics and logs.
    pub(crate) name: &'static str,
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
    pub(crate) connections_max: usize,
}

/// Serves until `stop`, then drains. Returns when every connection is closed or the time for it is over.
pub(crate) async fn serve(port: Port, mut stop: Stop) {
    let room = Arc::new(Semaphore::new(port.connections_max));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.requested() => break,
            accepted = port.listener.accept() => accepted,
        };
        match accepted {
            Ok((connection, peer)) => match room.clone().try_acquire_owned() {
                Ok(place) => {
                    tokio::spawn(serve_connection(
                        port.name,
                        connection,
                        Introduced {
                            peer: Peer(peer.ip()),
                            inner: TowerToHyperService::new(port.router.clone()),
                        },
                        stop.clone(),
                        place,
                    ));
                }
                Err(_) => turn_away(port.name, connection),
            },
            Err(error) => pause(port.name, &error, &mut stop).await,
        }
    }
    // Whoever connects from now on is refused by the system and knows at once.
    drop(port.listener);
    let all = u32::try_from(port.connections_max).unwrap_or(u32::MAX);
    if tokio::time::timeout(DRAIN_WAIT_MAX, room.acquire_many(all)).await.is_err() {
        warn!(port = port.name, "requests were still in progress at the end of the time to drain");
    }
}

/// A service that is told who calls.
#[derive(Clone)]
struct Introduced {
    peer: Peer,
    inner: TowerToHyperService<Router>,
}

impl Service<Request<Incoming>> for Introduced {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.inner.call(request)
    }
}

async fn serve_connection(
    name: &'static str,
    connection: TcpStream,
    service: Introduced,
    mut stop: Stop,
    _place: OwnedSemaphorePermit,
) {
    let gauge = metrics::gauge!("anabranch_http_connections", "port" => name);
    gauge.increment(1);
    // Small answers are not held back; a failure costs speed only.
    let _ = connection.set_nodelay(true);
    let opened = tokio::select! {
        opened = tokio::time::timeout(HEAD_WAIT_MAX, open(connection)) => opened,
        () = stop.requested() => {
            gauge.decrement(1);
            return;
        }
    };
    let result = match opened {
        Ok(Ok((Language::Http1, connection))) => speak_http1(connection, service, stop).await,
        Ok(Ok((Language::Http2, connection))) => speak_http2(connection, service, stop).await,
        // Nothing was asked, so nothing is owed.
        Ok(Err(_)) | Err(_) => Ok(()),
    };
    if let Err(error) = result {
        debug!(port = name, %error, "a connection failed");
    }
    gauge.decrement(1);
}

async fn speak_http1(
    connection: Opened<TcpStream>,
    service: Introduced,
    mut stop: Stop,
) -> hyper::Result<()> {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Stalling::new(connection, WRITE_STALL_MAX)), service);
    let mut served = std::pin::pin!(served);
    tokio::select! {
        result = served.as_mut() => result,
        () = stop.requested() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    }
}

/// HTTP/2 with prior knowledge, as some clients of AWS speak it on a plain port.
async fn speak_http2(
    connection: Opened<TcpStream>,
    service: Introduced,
    mut stop: Stop,
) -> hyper::Result<()> {
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_WAIT_MAX)
        .serve_connection(TokioIo::new(Stalling::new(connection, WRITE_STALL_MAX)), service);
    let mut served = std::pin::pin!(served);
    tokio::select! {
        result = served.as_mut() => result,
        () = stop.requested() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    }
}

fn turn_away(name: &'static str, connection: TcpStream) {
    metrics::counter!("anabranch_http_connections_refused_total", "port" => name).increment(1);
    warn!(port = name, "a connection was refused: too many are open");
    // The socket is new, so its buffer takes the few bytes; if not, the client sees the connection close.
    let _ = connection.into_std().and_then(|mut socket| socket.write_all(FULL));
}

async fn pause(name: &'static str, error: &io::Error, stop: &mut Stop) {
    warn!(port = name, %error, "a connection could not be accepted");
    let _ = tokio::time::timeout(ACCEPT_PAUSE, stop.requested()).await;
}
