//! A client of S3 that sends what it is told, and nothing else.

#![allow(dead_code, reason = "each suite uses a part of it")]

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Harness, whole};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The texts of all elements of this name.
    pub fn all(&self, element: &str) -> Vec<String> {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let text = self.text();
        let pieces = text.split(&open).skip(1).filter_map(|rest| rest.split_once(&close));
        pieces.map(|(value, _)| value.to_owned()).collect()
    }

    /// The text of the only element of this name.
    pub fn one(&self, element: &str) -> String {
        let all = self.all(element);
        assert_eq!(all.len(), 1, "{element} in {}", self.text());
        all[0].clone()
    }

    /// The code of a refusal, behind its status.
    pub fn refusal(&self) -> String {
        assert!(!self.status.is_success(), "{self:?}");
        format!("{} {}", self.status.as_u16(), self.one("Code"))
    }

    /// A header as text; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a text"))
    }
}

/// Sends a request: `PUT /bucket/key`.
pub async fn send(harness: &Harness, line: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    answer(harness.send(request(line, headers, body)).await).await
}

/// The same over HTTP/2.
pub async fn send_http2(
    harness: &Harness,
    line: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    answer(harness.send_http2(request(line, headers, body)).await).await
}

/// A request: `PUT /bucket/key`.
pub fn request(line: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, value.as_bytes());
    }
    request.body(Full::new(body.into())).expect("a request")
}

async fn answer(response: http::Response<hyper::body::Incoming>) -> Answer {
    let (status, headers, body) = whole(response).await;
    Answer { status, headers, body }
}

/// Sends a request that must succeed.
pub async fn done(harness: &Harness, line: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let answer = send(harness, line, headers, body).await;
    assert!(answer.status.is_success(), "{line}: {} {}", answer.status, answer.text());
    answer
}

/// Sends a request that must be refused, and returns how.
pub async fn refused(
    harness: &Harness,
    line: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> String {
    send(harness, line, headers, body).await.refusal()
}

/// A connection on which bytes are sent as they are.
pub struct Raw(TcpStream);

impl Raw {
    pub async fn open(harness: &Harness) -> Raw {
        Raw(TcpStream::connect(harness.address).await.expect("a connection"))
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("bytes go out");
    }

    /// Reads until the head of an answer is complete, and returns it.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.expect("an answer"));
        }
        String::from_utf8(head).expect("a text")
    }
}
