//! HTTP/2: with prior knowledge on a plain connection, as some clients of AWS speak it, or agreed on inside TLS.
//!
//! One timer for each connection sees to what nobody else limits: that requests come, that answers are taken, and that a
//! client lets go when it is told to.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::MissedTickBehavior;

use super::calls::{Call, Calls};
use super::stall::Stalling;
use super::stop::Stop;
use crate::limits::{
    GOODBYE_WAIT_MAX, HEAD_BYTES_MAX, HEAD_WAIT_MAX, PING_INTERVAL, PING_WAIT_MAX, STREAMS_MAX,
    WRITE_STALL_MAX,
};

/// How often a connection is looked at.
const TICK: Duration = Duration::from_secs(1);

/// What a service behind a connection answers.
type Routed = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;

/// A service whose calls are counted and whose answers are watched.
struct Watched<S> {
    calls: Arc<Calls>,
    inner: S,
}

impl<S> Service<Request<Incoming>> for Watched<S>
where
    S: Service<Request<Incoming>, Response = Routed, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Call>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Call>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let call = self.calls.begin();
        let answering = self.inner.call(request);
        Box::pin(async move { Ok(answering.await?.map(|body| call.answered(body))) })
    }
}

/// Speaks until the client leaves, says nothing for too long, or is asked to leave.
pub(super) async fn speak_http2<C, S>(connection: C, service: S, mut stop: Stop) -> hyper::Result<()>
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Routed, Error = Infallible>,
    S::Future: Send + 'static,
{
    let calls = Arc::new(Calls::default());
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_WAIT_MAX)
        .serve_connection(
            TokioIo::new(Stalling::new(connection, WRITE_STALL_MAX)),
            Watched { calls: calls.clone(), inner: service },
        );
    let mut served = std::pin::pin!(served);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut leaving = false;
    loop {
        let leave = tokio::select! {
            result = served.as_mut() => return result,
            () = stop.requested(), if !leaving => true,
            _ = ticks.tick() => {
                let quiet = calls.tick(ticks_of(WRITE_STALL_MAX));
                if leaving && quiet > ticks_of(GOODBYE_WAIT_MAX) {
                    return Ok(());
                }
                !leaving && quiet > ticks_of(HEAD_WAIT_MAX)
            }
        };
        if leave {
            // Who has just sent a request is still answered.
            served.as_mut().graceful_shutdown();
            calls.stir();
            leaving = true;
        }
    }
}

/// How many ticks a time has.
fn ticks_of(time: Duration) -> u32 {
    time.div_duration_f64(TICK).ceil() as u32
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::Body;
    use axum::routing::get;
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Empty};
    use hyper::client::conn::http2::{Builder, SendRequest};
    use tokio::io::{AsyncWriteExt as _, DuplexStream};
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::super::stop::Stopper;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const LARGE_BYTES: usize = 1 << 20;

    /// Counts the answers that hold it.
    struct Held(Arc<AtomicUsize>);

    impl Held {
        fn new(count: &Arc<AtomicUsize>) -> Self {
            count.fetch_add(1, Ordering::SeqCst);
            Held(count.clone())
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Large answers, which are counted until they are gone; small ones; and one that never comes.
    fn router(held: Arc<AtomicUsize>) -> Router {
        let large = move || {
            let parts = futures_util::stream::unfold((Held::new(&held), false), |(held, done)| async move {
                (!done).then(|| (Ok::<_, Infallible>(Bytes::from(vec![7; LARGE_BYTES])), (held, true)))
            });
            std::future::ready(Body::from_stream(parts))
        };
        let never =
            || async { Body::from_stream(futures_util::stream::pending::<Result<Bytes, Infallible>>()) };
        Router::new().route("/large", get(large)).route("/small", get("small")).route("/never", get(never))
    }

    struct Served {
        stopper: Stopper,
        there: DuplexStream,
        serving: JoinHandle<hyper::Result<()>>,
        held: Arc<AtomicUsize>,
    }

    fn serve() -> Served {
        let (here, there) = tokio::io::duplex(1 << 20);
        let (stopper, stop) = Stopper::new();
        let held = Arc::new(AtomicUsize::new(0));
        let service = TowerToHyperService::new(router(held.clone()));
        let serving = tokio::spawn(speak_http2(here, service, stop));
        Served { stopper, there, serving, held }
    }

    /// A client that answers pings and takes so many bytes of an answer before it reads them.
    async fn client(
        there: DuplexStream,
        window: u32,
    ) -> (SendRequest<Empty<Bytes>>, JoinHandle<hyper::Result<()>>) {
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .handshake(TokioIo::new(there))
            .await
            .unwrap();
        (sender, tokio::spawn(connection))
    }

    async fn ask(sender: &mut SendRequest<Empty<Bytes>>, path: &str) -> hyper::Result<Response<Incoming>> {
        let request = Request::get(format!("http://localhost{path}")).body(Empty::new()).unwrap();
        sender.send_request(request).await
    }

    async fn pass(time: Duration) {
        let _ = timeout(time, std::future::pending::<()>()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_takes_is_dropped_and_the_others_go_on() {
        let Served { stopper: _stopper, there, held, serving: _serving } = serve();
        let (mut sender, _connection) = client(there, 1_000).await;
        let untaken = ask(&mut sender, "/large").await.unwrap();
        pass(WRITE_STALL_MAX / 2).await;
        assert_eq!(held.load(Ordering::SeqCst), 1, "it has some time");
        for _ in 0..3 {
            pass(WRITE_STALL_MAX / 2).await;
            let small = ask(&mut sender, "/small").await.unwrap().into_body().collect().await.unwrap();
            assert_eq!(small.to_bytes(), "small");
        }
        assert_eq!(held.load(Ordering::SeqCst), 0, "what was read for it is gone");
        untaken.into_body().collect().await.expect_err("and the client knows that it did not get all");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_its_time_gets_everything() {
        let Served { stopper: _stopper, there, held: _held, serving: _serving } = serve();
        let (mut sender, _connection) = client(there, 64 << 10).await;
        let mut body = ask(&mut sender, "/large").await.unwrap().into_body();
        let mut count = 0;
        while let Some(frame) = body.frame().await {
            count += frame.unwrap().into_data().unwrap().len();
            pass(WRITE_STALL_MAX / 8).await;
        }
        assert_eq!(count, LARGE_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_asks_for_nothing_is_let_go() {
        let Served { stopper: _stopper, there, held: _held, serving } = serve();
        let (mut sender, connection) = client(there, 1_000).await;
        ask(&mut sender, "/small").await.unwrap();
        pass(HEAD_WAIT_MAX / 2).await;
        ask(&mut sender, "/small").await.expect("it was not idle for long");
        let never = ask(&mut sender, "/never").await.unwrap();
        pass(HOUR).await;
        ask(&mut sender, "/small").await.expect("a call was open all the time");
        drop(never);
        // The client may be the first to close, when it was told to leave.
        let _ = timeout(HEAD_WAIT_MAX * 2, serving)
            .await
            .expect("it is closed though pings are answered")
            .unwrap();
        let _ = timeout(TICK, connection).await.expect("the client sees the end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_half_is_let_go_too() {
        let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        for sent in ["PRI ", preface] {
            let Served { stopper: _stopper, mut there, held: _held, serving } = serve();
            there.write_all(sent.as_bytes()).await.unwrap();
            let _ = timeout(HEAD_WAIT_MAX * 2, serving).await.expect("nothing was asked");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_long_for_a_client_that_does_not_let_go() {
        let Served { stopper, mut there, held: _held, mut serving } = serve();
        there.write_all(b"PRI ").await.unwrap();
        pass(TICK).await;
        stopper.stop();
        let wait = crate::limits::DRAIN_WAIT_MAX / 2;
        timeout(wait, &mut serving).await.expect("it owes nothing").unwrap().unwrap();
        let Served { stopper, there, held: _held, mut serving } = serve();
        let (mut sender, _connection) = client(there, 1_000).await;
        let never = ask(&mut sender, "/never").await.unwrap();
        stopper.stop();
        timeout(wait, &mut serving).await.expect_err("a call is open");
        drop(never);
        timeout(wait, serving).await.expect("nothing more is owed").unwrap().unwrap();
    }
}
