//! The flow of telemetry, and an audit of the stream that it writes.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

use super::run;

/// How often something is looked at before the test gives up; each look is a process.
pub const LOOKS: usize = 2_000;

/// The flow that the repository has.
pub fn flow() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("flows/telemetry.toml")
}

/// The flow with these words replaced.
pub fn flow_with(changes: &[(&str, &str)]) -> String {
    let mut text = std::fs::read_to_string(flow()).expect("the flow");
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

/// Where commands go: a directory, or servers of AWS's protocols.
pub struct Place<'a>(pub &'a dyn Fn(&[&str]) -> Command);

impl Place<'_> {
    pub fn left(&self, queue: &str) -> u64 {
        let listed = run((self.0)(&["queue", "ls", queue, "--json"])).json();
        let queues = listed["queues"].as_array().expect("queues").clone();
        let found = queues.into_iter().find(|found| found["name"] == queue).expect("the queue");
        ["visible", "in_flight", "delayed"].iter().map(|name| found[*name].as_u64().expect("a count")).sum()
    }

    #[track_caller]
    pub fn drained(&self) {
        for _ in 0..LOOKS {
            if self.left("submissions") == 0 {
                return;
            }
        }
        panic!("{} submissions are left", self.left("submissions"));
    }

    pub fn fleet(&self, rate: &str, seconds: &str, seed: &str) -> Json {
        let arguments =
            ["fleet", "submissions", "--rate", rate, "--duration", seconds, "--seed", seed, "--json"];
        run((self.0)(&arguments)).json()
    }

    /// The events in the stream by submission, repetitions dropped, and how many were dropped.
    pub fn events(&self) -> (BTreeMap<String, Vec<u64>>, usize) {
        let tail = ["stream", "tail", "events", "--from", "trim-horizon", "--no-follow", "--json"];
        let tail = run((self.0)(&tail)).succeeded();
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
}

/// Every event of every valid submission is there, in order, and nothing else.
#[track_caller]
pub fn complete(events: &BTreeMap<String, Vec<u64>>, reports: &[Json]) {
    for (submission, orders) in events {
        assert!(orders.iter().copied().eq(0..orders.len() as u64), "{submission}: {orders:?}");
    }
    let sum = |name: &str| reports.iter().map(|report| report[name].as_u64().expect("a count")).sum::<u64>();
    let count: usize = events.values().map(Vec::len).sum();
    assert_eq!((events.len() as u64, count as u64), (sum("valid"), sum("events")), "{reports:?}");
    assert_eq!(sum("failed"), 0, "the queue took everything: {reports:?}");
}
