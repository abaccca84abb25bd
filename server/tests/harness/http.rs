//! HTTP as a stranger speaks it: bytes over a socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::PATIENCE;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A connection that does not wait for ever.
pub fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends `request` as it is and reads until the server closes the connection.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let mut socket = connect(address);
    // A server that refuses early does not read everything.
    let _ = socket.write_all(request);
    read_answer(&mut socket)
}

pub fn read_answer(socket: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// A GET with these headers besides `Host` and `Connection`.
pub fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Answer {
    exchange(address, &head("GET", address, path, headers))
}

/// A POST of JSON with these headers besides the usual ones.
pub fn post(address: SocketAddr, path: &str, headers: &[&str], body: &str) -> Answer {
    let length = format!("content-length: {}", body.len());
    let mut all = vec!["content-type: application/json", &length];
    all.extend(headers);
    let mut request = head("POST", address, path, &all);
    request.extend(body.as_bytes());
    exchange(address, &request)
}

fn head(method: &str, address: SocketAddr, path: &str, headers: &[&str]) -> Vec<u8> {
    let mut lines = vec![format!("{method} {path} HTTP/1.1"), "connection: close".to_owned()];
    if !headers.iter().any(|header| header.to_ascii_lowercase().starts_with("host:")) {
        lines.push(format!("host: {address}"));
    }
    lines.extend(headers.iter().map(|header| (*header).to_owned()));
    format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes()
}
