//! A server of the AWS protocols on a real port, with an engine in a temporary folder behind it, and a client.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, SystemClock, SystemDisk};
use anabranch_model::{Admin, Clock, Document, Error, Owner, Page, Result, Timestamp};
use anabranch_wire::{Keys, Memory, Options, Ports, Reservation, Wire};
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A clock that runs as clocks do, and can be moved on.
#[derive(Clone)]
pub struct MovedClock {
    inner: Arc<SystemClock>,
    moved: Arc<Mutex<Duration>>,
}

impl MovedClock {
    fn new() -> Self {
        MovedClock { inner: Arc::new(SystemClock::new()), moved: Arc::default() }
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        *self.moved.lock() += by;
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        self.inner.now().plus(*self.moved.lock())
    }

    fn elapsed(&self) -> Duration {
        self.inner.elapsed() + *self.moved.lock()
    }
}

struct Plenty;

#[async_trait]
impl Memory for Plenty {
    async fn reserve(&self, _bytes: u64) -> Result<Reservation> {
        Ok(Box::new(()))
    }
}

/// The documents of a server that can be told to die at one of its writes. From then on it writes none.
#[derive(Clone)]
pub struct Mortal {
    engine: Engine,
    death: Arc<Mutex<Option<Death>>>,
}

/// When a server dies.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// Writes that it is still granted.
    pub writes: usize,
    /// Whether what the write says is kept that it dies at.
    pub behind: bool,
}

impl Mortal {
    fn new(engine: &Engine) -> Self {
        Mortal { engine: engine.clone(), death: Arc::default() }
    }

    /// Counts a write; false if nothing comes of it.
    fn lives(&self) -> bool {
        match &mut *self.death.lock() {
            None => true,
            Some(Death { writes: 0, .. }) => false,
            Some(Death { writes, .. }) => {
                *writes -= 1;
                true
            }
        }
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T>>) -> Result<T> {
        if self.lives() {
            return write.await;
        }
        let last = self.death.lock().replace(Death { writes: 0, behind: false });
        if last.is_some_and(|death| death.behind) {
            write.await?;
        }
        Err(Error::Stopped("the server has died".to_owned()))
    }
}

#[async_trait]
impl Admin for Mortal {
    async fn put_documents(&self, owner: &Owner, kind: &str, documents: Vec<Document>) -> Result<()> {
        self.write(self.engine.put_documents(owner, kind, documents)).await
    }

    async fn put_document_if_absent(&self, owner: &Owner, kind: &str, document: Document) -> Result<bool> {
        self.write(self.engine.put_document_if_absent(owner, kind, document)).await
    }

    async fn document(&self, owner: &Owner, kind: &str, name: &str) -> Result<Option<Bytes>> {
        self.engine.document(owner, kind, name).await
    }

    async fn documents(
        &self,
        owner: &Owner,
        kind: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Document>> {
        self.engine.documents(owner, kind, after, limit).await
    }

    async fn delete_documents(&self, owner: &Owner, kind: &str, names: Vec<String>) -> Result<()> {
        self.write(self.engine.delete_documents(owner, kind, names)).await
    }
}

/// The server and its client.
pub struct Harness {
    pub clock: MovedClock,
    pub address: SocketAddr,
    pub engine: Engine,
    shard_limits: bool,
    documents: Mortal,
    transition: Duration,
    keys: Keys,
    folder: TempDir,
    serving: JoinHandle<()>,
    stop: watch::Sender<bool>,
    http1: Client<HttpConnector, Full<Bytes>>,
    http2: Client<HttpConnector, Full<Bytes>>,
}

impl Harness {
    /// Starts a server on an empty folder.
    pub async fn start() -> Self {
        Harness::with_transition(Duration::ZERO).await
    }

    /// Starts a server whose resources take some time to get ready.
    pub async fn with_transition(transition: Duration) -> Self {
        Harness::with(transition, Keys::default(), false).await
    }

    /// Starts a server whose shards have the limits of Kinesis.
    pub async fn with_shard_limits() -> Self {
        Harness::with(Duration::ZERO, Keys::default(), true).await
    }

    /// Starts a server that lets in only what is signed with one of these keys.
    pub async fn with_keys(keys: Keys) -> Self {
        Harness::with(Duration::ZERO, keys, false).await
    }

    async fn with(transition: Duration, keys: Keys, shard_limits: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clock = MovedClock::new();
        let engine = open(folder.path(), &clock, shard_limits);
        let documents = Mortal::new(&engine);
        let (address, serving, stop) = serve(&engine, &documents, &clock, transition, &keys).await;
        let connector = HttpConnector::new();
        let http1 = Client::builder(TokioExecutor::new()).build(connector.clone());
        let http2 = Client::builder(TokioExecutor::new()).http2_only(true).build(connector);
        Harness {
            clock,
            address,
            engine,
            shard_limits,
            documents,
            transition,
            keys,
            folder,
            serving,
            stop,
            http1,
            http2,
        }
    }

    /// The server dies at one of the next writes of a document.
    pub fn dies(&self, death: Death) {
        *self.documents.death.lock() = Some(death);
    }

    /// Ends the server without a word and starts it again on what is left.
    pub async fn crash(self) -> Self {
        self.crash_and(|_| {}).await
    }

    /// The same, with something done to the folder before it starts again.
    pub async fn crash_and(self, change: impl FnOnce(&Path)) -> Self {
        let Harness { engine, documents, serving, .. } = self;
        serving.abort();
        let _ = serving.await;
        drop((engine, documents));
        change(self.folder.path());
        let engine = open(self.folder.path(), &self.clock, self.shard_limits);
        let documents = Mortal::new(&engine);
        let (address, serving, stop) =
            serve(&engine, &documents, &self.clock, self.transition, &self.keys).await;
        Harness { engine, documents, address, serving, stop, ..self }
    }

    /// Changes a byte of each of these texts where they lie on the disk.
    pub fn damage(&self, texts: &[String]) {
        let mut folders = vec![self.folder.path().to_owned()];
        let mut found = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let content = std::fs::read(&path).expect("a file");
                // Files are made larger than what is in them.
                let written = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
                for text in texts {
                    let mut windows = content[..written].windows(text.len());
                    let Some(at) = windows.position(|window| window == text.as_bytes()) else { continue };
                    file.write_all_at(&[content[at] ^ 1], at as u64).expect("a byte");
                    found += 1;
                }
            }
        }
        assert_eq!(found, texts.len(), "some are nowhere, or twice");
    }

    /// The same stores without a port, as a server that was told to stop: nothing waits for news.
    pub fn stopped_wire(&self, keys: &Keys) -> Wire {
        let (_, stop) = watch::channel(true);
        wire(&self.engine, &self.documents, &self.clock, Duration::ZERO, keys, stop)
    }

    /// Tells the server to stop, as a signal would.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Sends a request and waits for the head of the answer.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.http1.request(self.addressed(request)).await.expect("an answer")
    }

    /// The same, by HTTP/2 with prior knowledge.
    pub async fn send_http2(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.http2.request(self.addressed(request)).await.expect("an answer")
    }

    fn addressed(&self, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = format!("http://{}{path}", self.address).parse().expect("an address");
        request
    }

    /// Sends a request and reads the whole answer.
    pub async fn exchange(&self, request: Request<Full<Bytes>>) -> (StatusCode, HeaderMap, Bytes) {
        whole(self.send(request).await).await
    }

    /// Calls an operation in JSON: `Kinesis_20131202.PutRecord`.
    pub async fn call(&self, target: &str, body: Value) -> (StatusCode, Value) {
        let (status, _, bytes) = self.exchange(json_request(target, body.to_string())).await;
        let value =
            if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("JSON") };
        (status, value)
    }

    /// Calls an operation that must succeed.
    pub async fn done(&self, target: &str, body: Value) -> Value {
        let (status, value) = self.call(target, body).await;
        assert_eq!(status, StatusCode::OK, "{target}: {value}");
        value
    }

    /// Calls an operation that must be refused, and returns the code and the message.
    pub async fn refused(&self, target: &str, body: Value) -> (String, String) {
        let (status, value) = self.call(target, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{target}: {value}");
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        // Secrets Manager spells it with a capital letter.
        let message = ["message", "Message"].map(text).concat();
        (text("__type"), message)
    }
}

/// A call in JSON.
pub fn json_request(target: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post("/")
        .header("content-type", "application/x-amz-json-1.1")
        .header("x-amz-target", target)
        .body(Full::new(body.into()))
        .expect("a request")
}

/// Reads the whole of an answer.
pub async fn whole(response: Response<Incoming>) -> (StatusCode, HeaderMap, Bytes) {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    (parts.status, parts.headers, bytes)
}

fn open(folder: &Path, clock: &MovedClock, shard_limits: bool) -> Engine {
    let disk = SystemDisk::open(folder).expect("the folder opens");
    let options = anabranch_engine::Options { shard_limits, ..anabranch_engine::Options::default() };
    Engine::open(Arc::new(disk), Arc::new(clock.clone()), options).expect("the directory opens")
}

async fn serve(
    engine: &Engine,
    documents: &Mortal,
    clock: &MovedClock,
    transition: Duration,
    keys: &Keys,
) -> (SocketAddr, JoinHandle<()>, watch::Sender<bool>) {
    let (stop, stopped) = watch::channel(false);
    let wire = Arc::new(wire(engine, documents, clock, transition, keys, stopped));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let Ok((connection, _)) = listener.accept().await else { return };
            let wire = wire.clone();
            connections.spawn(async move {
                let service = hyper::service::service_fn(move |request| {
                    let wire = wire.clone();
                    async move { Ok::<_, std::convert::Infallible>(wire.handle(request).await) }
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                // A client that goes away is no failure.
                let _ = builder.serve_connection(TokioIo::new(connection), service).await;
            });
        }
    });
    (address, serving, stop)
}

fn wire(
    engine: &Engine,
    documents: &Mortal,
    clock: &MovedClock,
    transition: Duration,
    keys: &Keys,
    stop: watch::Receiver<bool>,
) -> Wire {
    let store = Arc::new(engine.clone());
    let wire = Wire::new(Options {
        ports: Ports {
            streams: store.clone(),
            queues: store.clone(),
            tables: store.clone(),
            blobs: store,
            admin: Arc::new(documents.clone()),
        },
        clock: Arc::new(clock.clone()),
        memory: Arc::new(Plenty),
        stop,
        transition,
    });
    wire.with_keys(keys.clone())
}
