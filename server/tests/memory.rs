//! The server's memory stays near its budget, whatever clients do.

#![cfg(target_os = "linux")]

mod harness;

use std::fs;
use std::net::TcpStream;

use harness::{Data, Server, http};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The default budget of 64 MiB, and what the program itself needs with room for a busy day.
const PEAK_KIB_MAX: u64 = 128 << 10;
/// What an idle server holds for itself. The pages of the program are not in it: those of a build for tests are several times
/// as many as those of a release, whose figure is in `anabranch bench open`.
const IDLE_KIB_MAX: u64 = 12 << 10;

/// Connections that nobody uses, if the system lets us open as many.
const IDLE: u64 = 10_000;
/// What each of them may cost the server.
const IDLE_CONNECTION_KIB_MAX: u64 = 4;

/// A figure of `/proc/PID/status` in KiB.
fn memory(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid)).expect("the server runs");
    let line = status.lines().find(|line| line.starts_with(name)).expect("the system tells");
    line.split_whitespace().nth(1).and_then(|figure| figure.parse().ok()).expect("it is a number")
}

#[test]
fn an_idle_server_is_small() {
    let data = Data::new();
    let server = data.serve();
    let kib = memory(&server, "RssAnon:");
    assert!(kib < IDLE_KIB_MAX, "{kib} KiB");
}

#[test]
fn large_records_and_clients_that_do_not_read_stay_within_the_budget() {
    let data = Data::new();
    let server = data.serve();
    data.stream(&["create", "clicks", "--shards", "2"]).succeeded();
    // Nine megabytes of zero bytes in base64.
    let payload = "A".repeat(12 << 20);
    let append = |key: usize| {
        let body = format!(r#"{{"stream":"clicks","records":[{{"key":"{key}","data":"{payload}"}}]}}"#);
        http::post(server.listen, "/_anabranch/v1/append", &[], &body).status
    };
    let shard = |number: usize| format!(r#""stream":"clicks","shard":"shardId-{:012}""#, number % 2);
    let read = |number: usize| {
        let body = format!(r#"{{{},"from":"trim_horizon","records":10000,"bytes":10485760}}"#, shard(number));
        http::post(server.listen, "/_anabranch/v1/read", &[], &body).status
    };
    // These ask for everything and take nothing.
    let stuck: Vec<_> = (0..8)
        .map(|number| {
            let body = format!(r#"{{{},"from":"trim_horizon"}}"#, shard(number));
            let mut socket = http::connect(server.listen);
            let head = format!(
                "POST /_anabranch/v1/follow HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            std::io::Write::write_all(&mut socket, head.as_bytes()).unwrap();
            socket
        })
        .collect();
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || assert_eq!([append(number), append(number + 8)], [200, 200]));
        }
        for number in 0..8 {
            // A store whose memory is taken says so, which is an answer too.
            scope.spawn(move || assert!([200, 503].contains(&read(number))));
        }
    });
    drop(stuck);
    let kib = memory(&server, "VmHWM:");
    assert!(kib < PEAK_KIB_MAX, "{kib} KiB");
    server.stop().succeeded();
}

/// As many idle connections as this process may have, up to the number that is wanted.
fn idle_connections(server: &Server) -> Vec<TcpStream> {
    let limit = getrlimit(Resource::Nofile);
    let reachable = limit.maximum.unwrap_or(u64::MAX).min(IDLE + 200);
    setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), maximum: limit.maximum })
        .expect("it is within what is allowed");
    (0..reachable.saturating_sub(200)).map(|_| http::connect(server.listen)).collect()
}

#[test]
fn a_client_is_answered_beside_ten_thousand_that_say_nothing() {
    let data = Data::new();
    let server = data.serve();
    let call = || http::post(server.listen, "/", &["x-amz-target: AmazonSQS.ListQueues"], "{}").status;
    assert_eq!(call(), 200);
    let before = memory(&server, "RssAnon:");
    let idle = idle_connections(&server);
    assert!(idle.len() >= 500, "the system allows {} connections", idle.len());
    assert_eq!(call(), 200);
    let taken = memory(&server, "RssAnon:").saturating_sub(before);
    let allowed = idle.len() as u64 * IDLE_CONNECTION_KIB_MAX + 4_096;
    assert!(taken < allowed, "{} idle connections take {taken} KiB", idle.len());
    data.stream(&["create", "rides"]).succeeded();
    drop(idle);
    assert_eq!(call(), 200);
    server.stop().succeeded();
}
