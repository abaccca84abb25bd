//! Clients that send no end of frames, heads and bodies, or almost nothing for long, or come all at once: the others are
//! answered, and memory stays where it is.

#![cfg(target_os = "linux")]

mod harness;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use harness::{Data, PATIENCE, Server, http};
use rustix::process::Signal;

/// What a flood may cost beyond what the server has.
const TAKEN_KIB_MAX: u64 = 48 << 10;
/// Connections that are slow.
const SLOW: usize = 300;

/// Connections at once, of which nobody should have to knock twice.
const BURST: usize = 400;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// `POST http://localhost/`, by the numbers that HTTP/2 has for them.
const HEAD: &[u8] = b"\x83\x86\x84\x41\x09localhost";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn call(server: &Server) -> u16 {
    http::post(server.listen, "/", &["x-amz-target: AmazonSQS.ListQueues"], "{}").status
}

fn memory_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid)).expect("the server runs");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("the system tells");
    line.split_whitespace().nth(1).and_then(|figure| figure.parse().ok()).expect("it is a number")
}

/// Sends frames until the server has enough of them. Returns the kinds of the frames that it sent.
fn flood(server: &Server, frames: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut socket = http::connect(server.listen);
    let mut reading = socket.try_clone().expect("a second handle");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A connection that is reset has nothing more to say.
        let _ = reading.read_to_end(&mut bytes);
        bytes
    });
    let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let sent = std::iter::once(opening).chain(frames).all(|frame| socket.write_all(&frame).is_ok());
    if sent {
        let _ = socket.shutdown(std::net::Shutdown::Write);
    }
    kinds(&reader.join().expect("it only reads"))
}

fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [a, b, c, kind, ..] = *bytes {
        let length = u32::from_be_bytes([0, a, b, c]) as usize + 9;
        kinds.push(kind);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    kinds
}

/// The others are answered, and what the flood took is not kept.
fn check(what: &str, server: &Server, before: u64) {
    assert_eq!(call(server), 200, "{what}");
    let taken = memory_kib(server).saturating_sub(before);
    assert!(taken < TAKEN_KIB_MAX, "{what}: {taken} KiB are taken");
}

#[test]
fn floods_of_frames_are_cut_off_or_answered() {
    let data = Data::new();
    let server = data.serve();
    assert_eq!(call(&server), 200);
    let before = memory_kib(&server);

    // Each request is taken back before it can be answered.
    let reset = |number: u32| {
        let stream = 2 * number + 1;
        let head = frame(HEADERS, END_HEADERS | END_STREAM, stream, HEAD);
        [head, frame(RST_STREAM, 0, stream, &CANCEL)].concat()
    };
    flood(&server, (0..50_000).map(reset));
    check("rapid resets", &server, before);

    // A head that never ends.
    let endless = std::iter::once(frame(HEADERS, END_STREAM, 1, HEAD))
        .chain((0..10_000).map(|_| frame(CONTINUATION, 0, 1, &[0; 16 << 10])));
    let told = flood(&server, endless);
    assert!(told.contains(&GOAWAY), "a head without an end is not cut off: {told:?}");
    check("a head without an end", &server, before);

    // A head that is short as it is sent and very long as it is meant.
    let mut bomb = HEAD.to_vec();
    bomb.extend(b"\x40\x01a\x7f\xa1\x1e");
    bomb.extend([b'v'; 4_000]);
    bomb.extend([0xbe; 12_000]);
    let told = flood(&server, std::iter::once(frame(HEADERS, END_HEADERS | END_STREAM, 1, &bomb)));
    assert!(!told.is_empty(), "nothing was said about a head of {} bytes", 12_000 * 4_000);
    check("a head that grows", &server, before);

    // Questions that are all to be answered.
    flood(&server, (0..200_000_u64).map(|number| frame(PING, 0, 0, &number.to_be_bytes())));
    check("pings", &server, before);
    flood(&server, (0..200_000).map(|_| frame(SETTINGS, 0, 0, &[])));
    check("settings", &server, before);

    // Requests that are all begun, more than one connection may have, and never ended.
    let begun = (0..20_000).map(|number| frame(HEADERS, END_HEADERS, 2 * number + 1, HEAD));
    flood(&server, begun);
    check("requests without an end", &server, before);
    server.stop().succeeded();
}

/// A connection on which these bytes were sent, and nothing more.
fn begun(server: &Server, bytes: &str) -> TcpStream {
    let mut socket = http::connect(server.listen);
    socket.write_all(bytes.as_bytes()).expect("the server takes them");
    socket
}

#[test]
fn clients_that_never_finish_hold_nobody_up() {
    let data = Data::new();
    let server = data.serve();
    assert_eq!(call(&server), 200);
    let before = memory_kib(&server);
    let announced = "x-amz-target: AmazonSQS.ListQueues\r\ncontent-length: 1000\r\n\r\n{";
    let mut slow = Vec::new();
    for number in 0..SLOW {
        slow.push(begun(&server, "POST / HTTP/1.1\r\nhost: localhost\r\nx-amz-tar"));
        slow.push(begun(&server, &format!("POST / HTTP/1.1\r\nhost: localhost\r\n{announced}")));
        slow.push(begun(
            &server,
            &format!("PUT /bucket/{number} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"),
        ));
    }
    // A byte more from each, and they are no further.
    for socket in &mut slow {
        let _ = socket.write_all(b"a");
    }
    check("slow clients", &server, before);
    data.stream(&["create", "rides"]).succeeded();
    drop(slow);
    check("slow clients that are gone", &server, before);
    server.stop().succeeded();
}

#[test]
fn many_who_come_at_once_are_all_let_in() {
    let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("the system tells");
    let burst = BURST.min(allowed.trim().parse().expect("a number"));
    let data = Data::new();
    let server = data.serve();
    // Nobody accepts meanwhile, as when the machine is busy.
    server.signal(Signal::STOP);
    let mut sockets: Vec<TcpStream> = (0..burst)
        .map(|number| {
            TcpStream::connect_timeout(&server.listen, Duration::from_secs(5))
                .unwrap_or_else(|error| panic!("connection {number}: {error}"))
        })
        .collect();
    server.signal(Signal::CONT);
    let head = "host: localhost\r\nconnection: close\r\ncontent-length: 2\r\ncontent-type: application/json";
    for socket in &mut sockets {
        let request = format!("POST / HTTP/1.1\r\n{head}\r\nx-amz-target: AmazonSQS.ListQueues\r\n\r\n{{}}");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time");
        socket.write_all(request.as_bytes()).expect("the server takes it");
    }
    for socket in &mut sockets {
        assert_eq!(http::read_answer(socket).status, 200);
    }
    server.stop().succeeded();
}

#[test]
fn whoever_comes_when_the_port_is_full_is_told() {
    let data = Data::new();
    // Of so few files half are for connections.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 600 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_anabranch")]);
    command.args(["up", "--listen", "127.0.0.1:0", "--monitor", "127.0.0.1:0", "--data"]).arg(data.path());
    let server = Server::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut held: Vec<TcpStream> = (0..300).map(|_| begun(&server, "POST / HTTP/1.1\r\nhost: ")).collect();
    for _ in 0..20 {
        // It is told before it has asked.
        let told = http::read_answer(&mut http::connect(server.listen));
        assert_eq!((told.status, told.head.contains("connection: close")), (503, true), "{told:?}");
    }
    held.pop();
    let answered = (0..1_000).any(|_| call(&server) == 200);
    assert!(answered, "the place of a connection that is gone is not given to another");
    drop(held);
    server.stop().succeeded();
}
