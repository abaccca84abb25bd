//! Accepts connections of one port, at most so many at a time, until the signal to stop; then lets the requests in
//! progress finish.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anabranch_wire::{BoxError, OverTls};
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::guard::Ends;
use super::http2::speak_http2;
use super::preface::{Language, Opened, open};
use super::stall::Stalling;
use super::stop::Stop;
use crate::limits::{DRAIN_WAIT_MAX, HEAD_BYTES_MAX, HEAD_WAIT_MAX, HEADERS_MAX, WRITE_STALL_MAX};

/// What a client gets that comes when the port is full. Nobody reads its request first.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// What a client on another machine gets that does not speak TLS where it must.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 42\r\nconnection: close\r\n\r\n\
    from other machines, this port is https://";
/// How long accepting pauses after a failure such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port and what is behind it.
pub(crate) struct Port {
    /// The name of the port in metrics and logs.
    pub(crate) name: &'static str,
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
    /// TLS, where clients may speak it.
    pub(crate) tls: Option<TlsAcceptor>,
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
            Ok((connection, there)) => match room.clone().try_acquire_owned() {
                Ok(place) => {
                    let service = Introduced::new(&connection, there, port.router.clone());
                    let tls = port.tls.clone();
                    tokio::spawn(serve_connection(port.name, connection, service, tls, stop.clone(), place));
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
    ends: Ends,
    /// Whether nobody else can read what is said.
    tls: bool,
    inner: TowerToHyperService<Router>,
}

impl Introduced {
    fn new(connection: &TcpStream, there: SocketAddr, router: Router) -> Self {
        // Whoever cannot be told where he came in has come in nowhere that counts as this machine.
        let here = connection.local_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |here| here.ip());
        let ends = Ends { here, there: there.ip() };
        Introduced { ends, tls: false, inner: TowerToHyperService::new(router) }
    }
}

impl Service<Request<Incoming>> for Introduced {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.ends);
        if self.tls {
            request.extensions_mut().insert(OverTls);
        }
        self.inner.call(request)
    }
}

async fn serve_connection(
    name: &'static str,
    connection: TcpStream,
    service: Introduced,
    tls: Option<TlsAcceptor>,
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
    // What follows is large, and a connection that says nothing does not get as far.
    let result = match opened {
        Ok(Ok((Language::Tls, connection))) => Box::pin(speak_tls(connection, service, tls, stop)).await,
        Ok(Ok((_, connection))) if tls.is_some() && !service.ends.are_one_machine() => {
            refuse_plain(connection).await;
            Ok(())
        }
        Ok(Ok((language, connection))) => Box::pin(speak(language, connection, service, stop)).await,
        // Nothing was asked, so nothing is owed.
        Ok(Err(_)) | Err(_) => Ok(()),
    };
    if let Err(error) = result {
        debug!(port = name, %error, "a connection failed");
    }
    gauge.decrement(1);
}

/// A connection whose bytes somebody reads and writes.
trait Bytewise: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Bytewise for S {}

/// HTTP inside TLS. Whatever both sides agreed on in the handshake, the first bytes tell.
async fn speak_tls(
    connection: Opened<TcpStream>,
    mut service: Introduced,
    tls: Option<TlsAcceptor>,
    stop: Stop,
) -> Result<(), BoxError> {
    let Some(tls) = tls else { return Err("the client speaks TLS, and this port does not".into()) };
    let opening = async { open(tls.accept(connection).await?).await };
    let (language, connection) = tokio::time::timeout(HEAD_WAIT_MAX, opening).await??;
    service.tls = true;
    speak(language, connection, service, stop).await
}

async fn speak<S: Bytewise>(
    language: Language,
    connection: Opened<S>,
    service: Introduced,
    stop: Stop,
) -> Result<(), BoxError> {
    match language {
        Language::Http1 => speak_http1(connection, service, stop).await?,
        Language::Http2 => speak_http2(connection, service, stop).await?,
        Language::Tls => return Err("the client speaks TLS inside TLS".into()),
    }
    Ok(())
}

async fn speak_http1<S: Bytewise>(
    connection: Opened<S>,
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

/// Tells another machine to speak TLS. Its request is not read, because it may hold what nobody should overhear.
async fn refuse_plain(mut connection: Opened<TcpStream>) {
    let _ = tokio::time::timeout(HEAD_WAIT_MAX, connection.write_all(PLAIN)).await;
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

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use tokio::io::AsyncReadExt as _;

    use super::super::stop::Stopper;
    use super::*;

    /// What a client gets that sends these bytes and then nothing.
    async fn answered(sent: &[u8]) -> String {
        let (here, mut there) = tokio::io::duplex(1 << 20);
        there.write_all(sent).await.unwrap();
        let Ok(Ok((language, opened))) = tokio::time::timeout(HEAD_WAIT_MAX, open(here)).await else {
            return String::new();
        };
        let router =
            Router::new().route("/", post(|body: axum::body::Bytes| async move { body.len().to_string() }));
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let ends = Ends { here, there: here };
        let service = Introduced { ends, tls: false, inner: TowerToHyperService::new(router) };
        let (_stopper, stop) = Stopper::new();
        // Time goes by itself, as fast as somebody waits for it.
        let spoken =
            tokio::time::timeout(Duration::from_secs(3_600), speak(language, opened, service, stop)).await;
        assert!(spoken.is_ok(), "after an hour it is still there: {}", sent.escape_ascii());
        let mut bytes = Vec::new();
        let _ = there.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_no_more_is_given_up() {
        let whole = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
        assert!(answered(whole.as_bytes()).await.starts_with("HTTP/1.1 200"), "and then it says nothing");
        let http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        // The last one begins a head and does not end it.
        let head = format!("{http2}\0\0\0\x04\0\0\0\0\0\0\0\x03\x01\x01\0\0\0\x01\u{0}\u{0}\u{0}");
        for half in ["P", "POST / HTTP/1.1\r\nhost", "PRI * HTTP/2.0\r\n\r\nSM", http2, &head] {
            let answer = answered(half.as_bytes()).await;
            assert!(!answer.starts_with("HTTP/1.1 200"), "{half}: {answer}");
        }
    }
}
