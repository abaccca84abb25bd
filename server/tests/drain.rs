//! What a server has acknowledged is there after it was asked to stop, or killed, in the middle of the work.

mod harness;

use std::io::Write;
use std::process::{Child, Stdio};

use harness::{Data, Ran, Server};

/// A `put --lines` that gets numbers without end, until its input is closed or it ends.
fn endless_put(data: &Data) -> Child {
    let mut command = data.command(["put", "clicks", "--lines", "--key", "k", "--json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary is there");
    let mut stdin = child.stdin.take().expect("it is piped");
    std::thread::spawn(move || {
        for number in 0u64.. {
            if writeln!(stdin, "{number}").is_err() {
                break;
            }
        }
    });
    child
}

/// Checks that the records that `put` knows to be stored are there, in order and without a gap.
fn check(data: &Data, put: &Ran) {
    assert_eq!(put.code, 1, "the server went away: {put:#?}");
    let error: serde_json::Value = serde_json::from_str(&put.stderr).expect("errors are JSON");
    let acknowledged = error["error"]["stored"].as_u64().expect("it says how many");
    assert!(acknowledged >= 1_000, "{error}");
    let server = data.serve();
    let ran = data.stream(&["tail", "clicks", "--no-follow"]).succeeded();
    let mut expected = 0u64;
    for line in ran.stdout.lines() {
        let number: u64 = line.parse().expect("only numbers were stored");
        // A batch whose answer got lost may be there twice, but nothing may be left out.
        assert!(number <= expected, "{expected} is missing before {number}");
        expected = expected.max(number + 1);
    }
    assert!(expected >= acknowledged, "{acknowledged} were acknowledged, {expected} are there");
    server.stop().succeeded();
}

fn stored_before(end: impl FnOnce(Server)) -> (Data, Ran) {
    let data = Data::new();
    let server = data.serve();
    data.stream(&["create", "clicks"]).succeeded();
    let put = endless_put(&data);
    // Returns when two thousand records are there. The last of them can be seen before they are acknowledged.
    data.stream(&["tail", "clicks", "--limit", "2000"]).succeeded();
    end(server);
    let put = harness::finish(put);
    (data, put)
}

#[test]
fn a_stopped_server_keeps_what_it_acknowledged() {
    let (data, put) = stored_before(|server| {
        let ran = server.stop().succeeded();
        assert!(ran.stderr.contains("draining") && ran.stderr.contains("stopped"), "{ran:#?}");
    });
    check(&data, &put);
}

#[test]
fn a_killed_server_keeps_what_it_acknowledged() {
    let (data, put) = stored_before(Server::kill);
    check(&data, &put);
}
