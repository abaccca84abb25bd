//! The protocols on a port of this machine, with the engine in a temporary folder behind them, and a client that speaks
//! plain HTTP.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub mod sqs;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_wire::{Memory, Ports, Reservation, Wire};
use async_trait::async_trait;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A server that ends with the test.
pub struct Server {
    pub address: SocketAddr,
    pub engine: Engine,
    stop: watch::Sender<bool>,
    _folder: TempDir,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// A header, whose name is given in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let find = |line: &'_ str| line.split_once(": ").filter(|(found, _)| *found == name).is_some();
        self.head.lines().find(|line| find(line)).and_then(|line| Some(line.split_once(": ")?.1))
    }
}

struct Plenty;

#[async_trait]
impl Memory for Plenty {
    async fn reserve(&self, _bytes: u64) -> anabranch_model::Result<Reservation> {
        Ok(Box::new(()))
    }
}

impl Server {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = SystemDisk::open(folder.path()).unwrap();
        let clock = Arc::new(SystemClock::new());
        let engine = Engine::open(Arc::new(disk), clock.clone(), Options::default()).unwrap();
        let shared = Arc::new(engine.clone());
        let ports = Ports {
            streams: shared.clone(),
            queues: shared.clone(),
            tables: shared.clone(),
            blobs: shared.clone(),
            admin: shared,
        };
        let (stop, stopped) = watch::channel(false);
        let wire = Arc::new(Wire::new(anabranch_wire::Options {
            ports,
            clock,
            memory: Arc::new(Plenty),
            stop: stopped,
            transition: Duration::ZERO,
        }));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, wire));
        Server { address, engine, stop, _folder: folder }
    }

    /// Tells what waits that the server ends.
    pub fn stop(&self) {
        self.stop.send(true).unwrap();
    }

    /// Sends a POST with these headers and reads the answer.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("POST {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(body).await.unwrap();
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Sends a call in JSON.
    pub async fn json(&self, target: &str, version: &str, body: &str) -> Answer {
        let content_type = format!("application/x-amz-json-{version}");
        self.post("/", &[("x-amz-target", target), ("content-type", &content_type)], body.as_bytes()).await
    }

    /// Sends a form.
    pub async fn form(&self, path: &str, fields: &[(String, String)]) -> Answer {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let content_type = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");
        self.post(path, &[content_type], body.finish().as_bytes()).await
    }
}

async fn serve(listener: TcpListener, wire: Arc<Wire>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let wire = wire.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let wire = wire.clone();
                async move { Ok::<_, std::convert::Infallible>(wire.handle(request).await) }
            });
            // A client that goes away is no failure.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}
