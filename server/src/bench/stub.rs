//! A server of AWS's protocols that answers at once: every operation has one answer, ready before it is asked for.
//!
//! It runs on threads of its own, and what it costs is not counted.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Answers by the operation that is asked for.
pub(crate) type Answers = HashMap<&'static str, String>;

/// What the head of an answer about a blob says. Nobody looks at it in other answers.
const OF_BLOBS: &str = "date: Thu, 05 Nov 2026 00:00:00 GMT\r\nlast-modified: Thu, 05 Nov 2026 00:00:00 GMT\r\n\
                        etag: \"0123456789abcdef0123456789abcdef\"\r\n";

/// Starts a server; it runs until the process ends. Its connections are few: those of one client.
pub(crate) fn start(answers: Answers) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let answers: Arc<HashMap<&str, Vec<u8>>> =
        Arc::new(answers.into_iter().map(|(name, body)| (name, whole(200, &body))).collect());
    std::thread::Builder::new().name("stub".to_owned()).spawn(move || {
        for connection in listener.incoming().flatten() {
            let answers = answers.clone();
            // A client that goes away ends its thread.
            let serving = std::thread::Builder::new().spawn(move || serve(connection, &answers));
            if serving.is_err() {
                return;
            }
        }
    })?;
    Ok(address)
}

fn whole(status: u16, body: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} _\r\ncontent-type: application/x-amz-json-1.1\r\ncontent-length: {}\r\n{OF_BLOBS}\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

fn serve(connection: TcpStream, answers: &HashMap<&str, Vec<u8>>) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let unknown = whole(400, r#"{"__type":"UnknownOperationException"}"#);
    let mut answering = connection.try_clone()?;
    let mut reader = BufReader::with_capacity(1 << 16, connection);
    let (mut line, mut body) = (String::new(), Vec::new());
    loop {
        let (mut operation, mut length) = (String::new(), 0_u64);
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let header = line.trim_end();
            if header.is_empty() {
                break;
            }
            if operation.is_empty() {
                // The first line begins with the method, by which what has no target is known.
                operation = header.split(' ').next().unwrap_or_default().to_owned();
            }
            let Some((name, value)) = header.split_once(": ") else { continue };
            if name.eq_ignore_ascii_case("x-amz-target") {
                operation = value.rsplit('.').next().unwrap_or_default().to_owned();
            } else if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().unwrap_or(0);
            }
        }
        body.clear();
        (&mut reader).take(length).read_to_end(&mut body)?;
        answering.write_all(answers.get(operation.as_str()).unwrap_or(&unknown))?;
    }
}
