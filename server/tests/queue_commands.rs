//! Every command on queues, through a real port with the reference behind it, whose clock the test moves.

mod harness;

use std::time::Duration;

use harness::reference::Reference;
use harness::{Data, Ran, Server, finish, run, run_with_input};
use serde_json::json;

#[track_caller]
fn says(ran: Ran, text: &str) {
    assert_eq!(ran.succeeded().stdout, format!("{text}\n"));
}

#[test]
fn create_ls_and_rm() {
    let store = Reference::start();
    let listed = store.queue(&["ls"]).succeeded();
    assert!(listed.stdout.contains("no queues yet"), "{listed:#?}");
    says(
        store.queue(&["create", "dead"]),
        "created queue dead: received messages are hidden for 30s, messages are kept for 4d",
    );
    says(
        store.queue(&[
            "create",
            "orders",
            "--dead-letters",
            "dead",
            "--retention",
            "7d",
            "--visibility",
            "2m",
        ]),
        "created queue orders: received messages are hidden for 2m, messages are kept for 7d, dead letters go to dead",
    );
    let created = store.queue(&["create", "rides.fifo", "--deduplicate-content", "--json"]).json();
    assert_eq!((&created["name"], &created["fifo"]), (&json!("rides.fifo"), &json!(true)));

    let listed = store.queue(&["ls"]).succeeded();
    let lines = listed.lines();
    assert_eq!(lines.len(), 4, "{listed:#?}");
    assert!(lines[0].starts_with("QUEUE") && lines[0].ends_with("CREATED"), "{listed:#?}");
    let words: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(words[..7], ["orders", "0", "0", "0", "-", "7d", "dead"]);
    let listed = store.queue(&["ls", "or", "--json"]).json();
    assert_eq!(listed["queues"].as_array().unwrap().len(), 1);
    assert_eq!(listed["queues"][0]["receives_max"], 10);

    says(store.queue(&["rm", "orders", "--yes"]), "removed queue orders with all its messages");
    assert_eq!(store.queue(&["rm", "dead", "--yes", "--json"]).json(), json!({"removed": "dead"}));
}

#[test]
fn send_receive_and_delete() {
    let store = Reference::start();
    store.queue(&["create", "orders"]).succeeded();
    let sent = store.queue(&["send", "orders", "hello"]).succeeded();
    assert!(sent.stdout.starts_with("sent 1 message (5 B) to queue orders: "), "{sent:#?}");
    says(store.queue(&["receive", "orders"]), "hello");
    let ran = store.queue(&["receive", "orders"]).succeeded();
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.starts_with("note: no message came")),
        ("", true),
        "{ran:#?}"
    );

    // Nobody deleted it, so it comes back.
    store.queues.advance(Duration::from_secs(30));
    let again = store.queue(&["receive", "orders", "--delete", "--json"]).json_lines();
    assert_eq!((&again[0]["body"], &again[0]["receive_count"]), (&json!("hello"), &json!(2)));
    store.queues.advance(Duration::from_secs(30));
    assert_eq!(store.queue(&["receive", "orders"]).succeeded().stdout, "");

    let lines: String = (0..25).map(|number| format!("{number}\n")).collect();
    says(store.send_lines(&["orders"], &lines), "sent 25 messages (40 B) to queue orders");
    let ran = store.queue(&["receive", "orders", "--count", "100", "--delete"]).succeeded();
    let mut numbers: Vec<u32> = ran.stdout.lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..25).collect::<Vec<u32>>());
    let counts = &store.queue(&["ls", "--json"]).json()["queues"][0];
    assert_eq!((&counts["visible"], &counts["in_flight"]), (&json!(0), &json!(0)));
}

#[test]
fn what_is_said_about_messages_arrives() {
    let store = Reference::start();
    store.queue(&["create", "rides.fifo", "--deduplicate-content"]).succeeded();
    let arguments = ["rides.fifo", "--group", "g", "--attribute", "colour=blue"];
    store.send_lines(&arguments, "one\ntwo\none\n").succeeded();
    store.queue(&["send", "rides.fifo", "one", "--group", "g", "--deduplication-id", "again"]).succeeded();
    let received = store.queue(&["receive", "rides.fifo", "-n", "9", "--json", "--delete"]).json_lines();
    let bodies: Vec<&str> = received.iter().map(|message| message["body"].as_str().unwrap()).collect();
    assert_eq!(bodies, ["one", "two", "one"], "a duplicate is not received, and the order is kept");
    assert_eq!(received[0]["attributes"], json!({"colour": {"text": "blue"}}));
    assert_eq!(received[0]["group"], "g");

    store.queue(&["create", "bytes"]).succeeded();
    let command = store.data.command_on("queue", ["send", "bytes"]);
    run_with_input(command, b"\xff\x00\n").succeeded();
    let received = store.queue(&["receive", "bytes", "--json", "--visibility", "0s"]).json_lines();
    assert_eq!(received[0]["body_base64"], "/wA=");
    assert_eq!(store.queue(&["receive", "bytes"]).succeeded().stdout, "\\xff\0\n");
    store.queue(&["send", "bytes", "later", "--delay", "10m"]).succeeded();
    assert_eq!(store.queue(&["ls", "bytes", "--json"]).json()["queues"][0]["delayed"], 1);
}

#[test]
fn a_receive_waits_for_a_message() {
    let store = Reference::start();
    store.queue(&["create", "orders"]).succeeded();
    let child = store.data.command_on("queue", ["receive", "orders", "--wait", "1m"]).spawn().unwrap();
    store.queue(&["send", "orders", "at last"]).succeeded();
    assert_eq!(finish(child).succeeded().stdout, "at last\n");
}

#[test]
fn dead_letters_go_back() {
    let store = Reference::start();
    store.queue(&["create", "dead"]).succeeded();
    store.queue(&["create", "orders", "--dead-letters", "dead", "--receives-max", "1"]).succeeded();
    store.send_lines(&["orders"], "a\nb\n").succeeded();
    for _ in 0..2 {
        store.queue(&["receive", "orders", "-n", "2"]).succeeded();
        store.queues.advance(Duration::from_secs(30));
    }
    let listed = store.queue(&["ls", "--json"]).json();
    assert_eq!((&listed["queues"][0]["visible"], &listed["queues"][1]["visible"]), (&json!(2), &json!(0)));
    says(store.queue(&["redrive", "dead"]), "moved 2 messages from queue dead back to where they came from");
    assert_eq!(store.queue(&["ls", "orders", "--json"]).json()["queues"][0]["visible"], 2);
    store.queue(&["redrive", "dead", "--cancel"]).failed(2, &["no move of queue dead runs"]);
    store.queue(&["redrive", "orders"]).failed(2, &["orders"]);
}

#[test]
fn purging_needs_a_yes() {
    let store = Reference::start();
    store.queue(&["create", "orders"]).succeeded();
    store.send_lines(&["orders"], "a\nb\n").succeeded();
    store.queue(&["purge", "orders"]).failed(2, &["confirmation", "--yes"]);
    store.queue(&["rm", "orders"]).failed(2, &["confirmation", "--yes"]);
    says(store.queue(&["purge", "orders", "--yes"]), "deleted all messages of queue orders");
    assert_eq!(store.queue(&["ls", "--json"]).json()["queues"][0]["visible"], 0);
}

#[test]
fn what_is_wrong_is_refused_with_a_hint() {
    let store = Reference::start();
    store.queue(&["create", "orders"]).succeeded();
    for arguments in [
        &["send", "nothing", "x"][..],
        &["receive", "nothing"],
        &["purge", "nothing", "--yes"],
        &["redrive", "nothing"],
        &["rm", "nothing", "--yes"],
        &["create", "new", "--dead-letters", "nothing"],
    ] {
        store.queue(arguments).failed(2, &["queue `nothing` does not exist", "queue ls"]);
    }
    store.queue(&["create", "orders"]).failed(2, &["exists already", "queue rm"]);
    store.queue(&["create", "a b"]).failed(2, &["queue name"]);
    store.queue(&["create", "new", "--retention", "30s"]).failed(2, &["retention of 30 seconds"]);
    store.queue(&["create", "new", "--deduplicate-content"]).failed(2, &["deduplication"]);
    store.queue(&["send", "orders", "x", "--delay", "16m"]).failed(2, &["delay"]);
    store.queue(&["send", "orders", "x", "--deduplication-id", "d"]).failed(2, &["duplicates"]);
    store.queue(&["receive", "orders", "--visibility", "13h"]).failed(2, &["visibility"]);
    let ran = store.send_lines(&["orders"], "good\n\nbad\n").failed(2, &["line 2: ", "empty body"]);
    assert!(ran.stderr.contains(" stored before that"), "{ran:#?}");
    let long = "x".repeat((1 << 20) + 1);
    store.send_lines(&["orders"], &long).failed(2, &["line 1: ", "1048577"]);
    let ran = store.queue(&["send", "nothing", "x", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(error["error"]["code"], "queue_not_found");
}

/// What needs no clock that can be moved, on a directory that nobody holds and through a server.
#[test]
fn the_engine_keeps_queues() {
    for serves in [false, true] {
        let data = Data::new();
        let _server: Option<Server> = serves.then(|| data.serve());
        let queue = |arguments: &[&str]| run(data.command_on("queue", arguments));
        queue(&["create", "dead"]).succeeded();
        queue(&["create", "orders", "--dead-letters", "dead", "--receives-max", "1"]).succeeded();
        let lines: String = (0..25).map(|number| format!("{number}\n")).collect();
        let send = data.command_on("queue", ["send", "orders"]);
        says(run_with_input(send, lines.as_bytes()), "sent 25 messages (40 B) to queue orders");
        let deleted = queue(&["receive", "orders", "-n", "20", "--delete"]).succeeded();
        assert_eq!(deleted.lines().len(), 20, "{deleted:#?}");
        let counts = |place: usize| {
            let found = queue(&["ls", "--json"]).json()["queues"][place].clone();
            [&found["visible"], &found["in_flight"]].map(|count| count.as_u64().unwrap())
        };
        assert_eq!(counts(1), [5, 0]);
        // Received once and visible again at once; the next receive makes dead letters of them.
        let seen = queue(&["receive", "orders", "-n", "5", "--visibility", "0s"]).succeeded();
        assert!(!seen.lines().is_empty(), "{seen:#?}");
        queue(&["receive", "orders", "-n", "100", "--visibility", "0s"]).succeeded();
        queue(&["receive", "orders", "-n", "100", "--visibility", "0s"]).succeeded();
        assert_eq!((counts(0), counts(1)), ([5, 0], [0, 0]));
        let moved = queue(&["redrive", "dead"]);
        says(moved, "moved 5 messages from queue dead back to where they came from");
        assert_eq!((counts(0), counts(1)), ([0, 0], [5, 0]));
        assert_eq!(queue(&["receive", "dead", "--wait", "1s"]).succeeded().stdout, "");
        queue(&["purge", "orders", "--yes"]).succeeded();
        assert_eq!(counts(1), [0, 0]);
        queue(&["rm", "orders", "--yes"]).succeeded();
        queue(&["send", "orders", "x"]).failed(2, &["queue `orders` does not exist", "queue ls"]);
    }
}

#[test]
fn without_data_there_is_nothing_to_read() {
    let data = Data::new();
    run(data.command_on("queue", ["ls"])).failed(2, &["no data directory", "anabranch up"]);
}
