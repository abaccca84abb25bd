//! `anabranch up` from its first line to its last.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::{Data, Ran, Server, binary, http, run, run_with_input};
use rustix::process::Signal;

#[test]
fn it_says_in_one_line_that_it_is_ready() {
    let data = Data::new();
    let server = data.serve();
    let expected = format!(
        "anabranch is ready: http://{}, data in {}, monitor http://{} (ready in ",
        server.listen,
        data.path().display(),
        server.monitor
    );
    assert!(server.ready_line.starts_with(&expected), "{}", server.ready_line);
    assert!(server.ready_line.ends_with(" ms)\n"), "{}", server.ready_line);
    let ran = server.stop().succeeded();
    assert_eq!(ran.stdout, "", "one line and no more");
    assert!(ran.stderr.contains("ready") && ran.stderr.contains("draining"), "{}", ran.stderr);
}

#[test]
fn no_command_starts_the_server() {
    let data = Data::new();
    let mut command = binary();
    command.args(["--listen", "localhost:0", "--monitor", "[::1]:0", "--data"]).arg(data.path());
    // A machine without IPv6 cannot run this as it stands.
    if TcpListener::bind("[::1]:0").is_err() {
        command = binary();
        command.args(["--listen", "localhost:0", "--monitor", "127.0.0.1:0", "--data"]).arg(data.path());
    }
    Server::spawn(&mut command).stop().succeeded();
}

#[test]
fn the_monitor_answers() {
    let data = Data::new();
    let server = data.serve();
    data.stream(&["create", "clicks"]).succeeded();
    data.put_lines("clicks", "a\nb\n").succeeded();
    run(data.command_on("blob", ["create", "photos"])).succeeded();
    run_with_input(data.command_on("blob", ["put", "-", "photos/sea"]), &[7; 131_072]).succeeded();

    let health = http::get(server.monitor, "/health", &[]);
    assert_eq!((health.status, &health.json()["status"]), (200, &"ok".into()));

    let metrics = http::get(server.monitor, "/metrics", &[]);
    assert_eq!(metrics.status, 200);
    assert!(metrics.head.contains("text/plain; version=0.0.4"), "{}", metrics.head);
    for line in [
        "anabranch_http_requests_total{operation=\"append\",status=\"200\"} 1",
        "anabranch_http_request_duration_seconds_bucket{operation=\"append\",le=\"+Inf\"} 1",
        "anabranch_engine_streams 1",
        "anabranch_engine_buckets 1",
        "anabranch_blob_files_written_total 1",
        "anabranch_blob_file_bytes_written_total 131072",
        "anabranch_blob_folder_syncs_total 1",
        "anabranch_blob_files_doomed 0",
        "anabranch_engine_stopped 0",
        "# TYPE anabranch_journal_live_bytes gauge",
    ] {
        assert!(metrics.body.contains(line), "`{line}` is missing:\n{}", metrics.body);
    }
    assert_eq!(http::get(server.monitor, "/", &[]).status, 404);
    assert_eq!(http::get(server.monitor, "/metrics", &["Origin: http://example.org"]).status, 403);
}

#[test]
fn a_second_server_is_refused_and_told_who_is_first() {
    let data = Data::new();
    let server = data.serve();
    let mut second = binary();
    second.args(["up", "--listen", "127.0.0.1:0", "--monitor", "127.0.0.1:0", "--data"]).arg(data.path());
    let (pid, listen, monitor) =
        (server.pid.to_string(), server.listen.to_string(), server.monitor.to_string());
    let ran = run(second).failed(1, &[&pid, "anabranch up", &listen, &monitor, "--data"]);
    assert_eq!(ran.stdout, "");
    data.stream(&["ls"]).succeeded();
    server.stop().succeeded();
    data.serve().stop().succeeded();
}

#[test]
fn both_signals_drain() {
    for signal in [Signal::TERM, Signal::INT] {
        let data = Data::new();
        let server = data.serve();
        data.stream(&["create", "clicks"]).succeeded();
        server.signal(signal);
        server.ended().succeeded();
        assert_eq!(data.stream(&["ls", "--json"]).json()["streams"][0]["name"], "clicks");
    }
}

#[test]
fn followers_do_not_hold_up_the_drain() {
    let data = Data::new();
    let server = data.serve();
    data.stream(&["create", "clicks", "--shards", "3"]).succeeded();
    let tail = data.command(["tail", "clicks"]).spawn().unwrap();
    let followed = (0..10_000)
        .any(|_| http::get(server.monitor, "/metrics", &[]).body.contains("anabranch_engine_followers 3"));
    assert!(followed, "the shards are never followed");
    let ran = server.stop().succeeded();
    assert!(!ran.stderr.contains("still in progress"), "{ran:#?}");
    // The server does not come back, which the command says after a while.
    harness::finish(tail).failed(1, &["anabranch up"]);
}

#[test]
fn a_second_signal_quits_at_once() {
    let data = Data::new();
    let server = data.serve();
    data.stream(&["create", "clicks"]).succeeded();
    // A request that never ends: its body is announced and does not come.
    let mut stuck = http::connect(server.listen);
    let head = format!(
        "POST /_anabranch/v1/append HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{",
        server.listen
    );
    std::io::Write::write_all(&mut stuck, head.as_bytes()).unwrap();
    // An answer on another connection does not prove that the first request was seen, so wait for the server to
    // count the connection.
    let mut counted = false;
    for _ in 0..1_000 {
        let metrics = http::get(server.monitor, "/metrics", &[]).body;
        if metrics.contains("anabranch_http_connections{port=\"listen\"} 1") {
            counted = true;
            break;
        }
    }
    assert!(counted, "the connection is never seen");
    // Two at once are one: `timeout` signals a process and then its group.
    server.signal(Signal::TERM);
    server.signal(Signal::TERM);
    // Draining shows in the health, which tells that the first signal was heard.
    let mut draining = false;
    for _ in 0..10_000 {
        if http::get(server.monitor, "/health", &[]).body.contains("draining") {
            draining = true;
            break;
        }
    }
    assert!(draining, "the first signal is never heard");
    // Longer than a signal counts as the first again.
    std::thread::park_timeout(Duration::from_secs(1));
    assert!(http::get(server.monitor, "/health", &[]).body.contains("draining"), "it quit for one signal");
    server.signal(Signal::TERM);
    let ran = server.ended();
    assert_eq!(ran.code, 130, "{ran:#?}");
    assert!(ran.stderr.contains("quitting at once"), "{ran:#?}");
}

#[test]
fn an_address_beyond_loopback_is_refused() {
    for (flag, address) in [
        ("--listen", "0.0.0.0:0"),
        ("--monitor", "0.0.0.0:0"),
        ("--listen", "[::]:0"),
        ("--listen", "192.0.2.1:4566"),
    ] {
        let data = Data::new();
        let mut command = binary();
        command.args(["up", flag, address, "--data"]).arg(data.path());
        run(command).failed(2, &[address, "authentication", "127.0.0.1", &flag[2..]]);
        assert!(!data.path().exists(), "nothing was made");
    }
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, other) in [("--listen", "--monitor"), ("--monitor", "--listen")] {
        let data = Data::new();
        let mut command = binary();
        command.args(["up", flag, &address, other, "127.0.0.1:0", "--data"]).arg(data.path());
        let free = format!("{flag} 127.0.0.1:0");
        run(command).failed(1, &[&address, "taken", &free]);
    }
}

#[test]
fn one_address_for_both_ports_is_refused() {
    let mut command = binary();
    command.args(["up", "--listen", "127.0.0.1:4999", "--monitor", "127.0.0.1:4999"]);
    run(command).failed(2, &["the same address", "127.0.0.1:4999"]);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let inside = file.join("data");
    let mut command = binary();
    command.args(["up", "--listen", "127.0.0.1:0", "--monitor", "127.0.0.1:0", "--data"]).arg(&inside);
    run(command).failed(1, &["data directory", &inside.display().to_string()]);
}

#[test]
fn logs_can_be_json() {
    let data = Data::new();
    let server = Server::start(&data.path(), &["--log-format", "json", "--log", "info"]);
    let ran = server.stop().succeeded();
    let lines: Vec<serde_json::Value> =
        ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["message"] == "ready" && line["level"] == "INFO"), "{lines:#?}");

    let mut command = binary();
    command.args(["up", "--log", "no=such=filter"]);
    run(command).failed(2, &["log filter", "info"]);
}

/// What was written to queues, tables and blobs is in the state alone; records are in the journal.
#[test]
fn a_damaged_state_is_open_for_reading_and_left_as_it_is() {
    let data = Data::new();
    data.stream(&["create", "clicks"]).succeeded();
    data.put_lines("clicks", "a\nb\n").succeeded();
    run(data.command_on("queue", ["create", "orders"])).succeeded();
    run_with_input(data.command_on("queue", ["send", "orders"]), b"order\n").succeeded();
    let state = data.path().join("state.redb");
    let mut bytes = std::fs::read(&state).unwrap();
    // Wherever the file has something, one bit is another.
    bytes[4096..].iter_mut().filter(|byte| **byte != 0).for_each(|byte| *byte ^= 1);
    std::fs::write(&state, bytes).unwrap();
    let before = contents(&data.path());

    // Without a server, and with one.
    for served in [false, true] {
        let server = served.then(|| data.serve());
        let tail = data.stream(&["tail", "clicks", "--from", "trim-horizon", "--no-follow"]).succeeded();
        assert!(tail.stdout.contains('a') && tail.stdout.contains('b'), "{tail:#?}");
        let words = ["open for reading only", "anabranch restore", "hint: "];
        let refused = |ran: Ran| {
            assert_eq!(ran.code, 1, "{ran:#?}");
            assert!(words.iter().all(|part| ran.stderr.contains(part)), "{ran:#?}");
        };
        refused(data.put_lines("clicks", "c\n"));
        refused(run_with_input(data.command_on("queue", ["send", "orders"]), b"another\n"));
        refused(run(data.command_on("queue", ["receive", "orders"])));
        refused(run(data.command_on("queue", ["ls"])));
        refused(run(data.command_on("blob", ["ls"])));
        let Some(server) = server else { continue };
        assert!(server.ready_line.contains("ready"), "{}", server.ready_line);
        let health = http::get(server.monitor, "/health", &[]);
        assert_eq!((health.status, &health.json()["status"]), (503, &"stopped".into()));
        let reason = health.json()["reason"].as_str().unwrap().to_owned();
        assert!(words[..2].iter().all(|part| reason.contains(part)), "{reason}");
        let ran = server.stop().succeeded();
        assert!(
            ran.stdout.contains("open for reading only") && ran.stderr.contains("open for reading only"),
            "{ran:#?}"
        );
    }
    assert!(contents(&data.path()) == before, "a file has changed");
}

/// Every file of a data directory, but for the one that says who holds it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else if !path.ends_with("LOCK") {
            found.insert(path.clone(), std::fs::read(&path).expect("a file"));
        }
    }
    found
}
