//! Telemetry with the real binary: a server with limits, a fleet, `flows/telemetry.toml`, and what is in the stream at the end;
//! the bot is killed on the way. And files that cannot be run.

mod harness;

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc;

use harness::{Data, PATIENCE, Server, binary, finish, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

/// How often something is looked at before the test gives up; each look is a process.
const LOOKS: usize = 2_000;

fn flow() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("flows/telemetry.toml")
}

/// `anabranch run`, which has said that it runs.
struct Bot {
    child: Option<Child>,
    log: Option<std::thread::JoinHandle<String>>,
}

impl Bot {
    #[track_caller]
    fn start(data: &Data, file: &Path) -> Self {
        let mut command: Command = binary();
        let mut child =
            command.arg("run").arg(file).arg("--data").arg(data.path()).spawn().expect("the binary");
        let mut stderr = child.stderr.take().expect("a pipe");
        let log = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).expect("the log");
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, receiver) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(PATIENCE).unwrap_or_default();
        if !line.starts_with("anabranch runs ") {
            let _ = child.kill();
            panic!("it does not run: {line} {}", log.join().expect("the log"));
        }
        Bot { child: Some(child), log: Some(log) }
    }

    #[track_caller]
    fn stop(mut self) {
        let child = self.child.take().expect("it runs");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
        let ran = finish(child);
        assert_eq!(ran.code, 0, "{}", self.log.take().expect("a log").join().expect("the log"));
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A server with limits and everything that the flow names.
fn prepared() -> (Data, Server) {
    let data = Data::new();
    let config = data.path().with_extension("toml");
    std::fs::write(&config, "shard_limits = true\n").expect("a file");
    let server = Server::start(&data.path(), &["--config", config.to_str().expect("a path")]);
    for queue in ["submissions", "submissions-broken", "submissions-dead"] {
        run(data.command_on("queue", ["create", queue])).succeeded();
    }
    data.stream(&["create", "events"]).succeeded();
    (data, server)
}

fn left(data: &Data, queue: &str) -> u64 {
    let listed = run(data.command_on("queue", ["ls", queue, "--json"])).json();
    let queues = listed["queues"].as_array().expect("queues").clone();
    let found = queues.into_iter().find(|found| found["name"] == queue).expect("the queue");
    ["visible", "in_flight", "delayed"].iter().map(|name| found[*name].as_u64().expect("a count")).sum()
}

#[track_caller]
fn drained(data: &Data) {
    for _ in 0..LOOKS {
        if left(data, "submissions") == 0 {
            return;
        }
    }
    panic!("{} submissions are left", left(data, "submissions"));
}

/// The events in the stream by submission, repetitions dropped, and how many were dropped.
fn events(data: &Data) -> (BTreeMap<String, Vec<u64>>, usize) {
    let tail =
        data.stream(&["tail", "events", "--from", "trim-horizon", "--no-follow", "--json"]).succeeded();
    let (mut seen, mut events, mut repeated) = (HashSet::new(), BTreeMap::<String, Vec<u64>>::new(), 0);
    for line in tail.json_lines() {
        let event: Json = serde_json::from_str(line["data"].as_str().expect("text")).expect("an event");
        match seen.insert(event["event_id"].to_string()) {
            true => {
                let submission = event["submission_id"].as_str().expect("an id").to_owned();
                events.entry(submission).or_default().push(event["order"].as_u64().expect("an order"));
            }
            false => repeated += 1,
        }
    }
    (events, repeated)
}

#[track_caller]
fn complete(events: &BTreeMap<String, Vec<u64>>, report: &Json) {
    for (submission, orders) in events {
        assert!(orders.iter().copied().eq(0..orders.len() as u64), "{submission}: {orders:?}");
    }
    let count: usize = events.values().map(Vec::len).sum();
    assert_eq!(
        (Json::from(events.len()), Json::from(count)),
        (report["valid"].clone(), report["events"].clone())
    );
}

fn fleet(data: &Data, rate: &str, seconds: &str) -> Json {
    run(data
        .command_on("fleet", ["submissions", "--rate", rate, "--duration", seconds, "--seed", "3", "--json"]))
    .json()
}

#[test]
fn every_event_of_a_fleet_arrives_once_and_in_order() {
    let (data, _server) = prepared();
    let bot = Bot::start(&data, &flow());
    let report = fleet(&data, "60", "4s");
    drained(&data);
    let (events, repeated) = events(&data);
    complete(&events, &report);
    assert_eq!(repeated, 0, "without a fault nothing is repeated");
    assert!(report["broken"].as_u64().expect("a count") > 0, "{report}");
    assert!(left(&data, "submissions-broken") > 0, "a sample is kept");
    assert_eq!(left(&data, "submissions-dead"), 0);
    // The process tells its traffic to whoever asks.
    let traffic = data.stream(&["traffic", "events", "--json"]).json();
    assert_eq!(traffic["shards"][0]["known"], true, "{traffic}");
    bot.stop();
}

#[test]
fn a_bot_that_is_killed_loses_nothing() {
    let (data, _server) = prepared();
    // Others wait for what a killed bot has in hand no longer than this.
    let text = std::fs::read_to_string(flow())
        .expect("the flow")
        .replace("visibility_timeout = 60", "visibility_timeout = 3");
    let file = data.path().with_extension("flow.toml");
    std::fs::write(&file, text).expect("a file");
    let report = fleet(&data, "200", "2s");
    for _ in 0..3 {
        let before = left(&data, "submissions");
        let bot = Bot::start(&data, &file);
        for _ in 0..LOOKS {
            if left(&data, "submissions") < before {
                break;
            }
        }
        drop(bot);
    }
    let bot = Bot::start(&data, &file);
    drained(&data);
    bot.stop();
    complete(&events(&data).0, &report);
}

#[test]
fn files_that_cannot_be_run_say_where_and_why() {
    let (data, _server) = prepared();
    let text = std::fs::read_to_string(flow()).expect("the flow");
    let file = data.path().with_extension("flow.toml");
    let refused = |from: &str, to: &str, what: &[&str]| {
        assert!(text.contains(from), "{from}");
        std::fs::write(&file, text.replace(from, to)).expect("a file");
        let mut command = binary();
        run({
            command.arg("run").arg(&file).arg("--data").arg(data.path());
            command
        })
        .failed(2, what);
    };
    refused(
        "merge_usage_threshold = 0.3 ",
        "merge_usage_threshold = 0.9 ",
        &["`merge_usage_threshold` (0.9)", "line "],
    );
    refused(
        "entry_lifetime = 60 ",
        "entry_lifetime = 5 ",
        &["`observation_period` (10 s)", "`entry_lifetime` (5 s)"],
    );
    refused(
        "max_number_of_messages = 10 ",
        "max_number_of_messages = 11 ",
        &["`max_number_of_messages` is 11"],
    );
    refused(
        "retry_interval = 1 ",
        "retry_interval = 90 ",
        &["`retry_interval` is 90", "`visibility_timeout`"],
    );
    refused(
        "# schema = \"docs/telemetry-submission.schema.json\"",
        "schema = \"/no/such.json\"",
        &["/no/such.json", "line "],
    );
    refused(
        "sink = { stream = \"events\" }",
        "sink = { stream = \"missing\" }",
        &["stream `missing` does not exist"],
    );
    refused("sink = { stream = \"events\" }", "sink = { blobs = \"events\" }", &["stream"]);
    refused("samples = \"submissions-broken\"", "samples = \"missing\"", &["queue `missing` does not exist"]);
    refused("samples_one_in = 10", "samples_one_in = 0", &["one in 0"]);
    refused("visibility_timeout = 60 ", "visibility = 60 ", &["unknown field `visibility`"]);
}
