//! `fleet`, `stream scale`, `stream traffic` and `stream put --aggregate`, as a person uses them.

mod harness;

use harness::{Data, run, run_with_input};
use serde_json::json;

#[test]
fn a_fleet_sends_what_it_says() {
    let data = Data::new();
    data.command_on("queue", ["create", "submissions"]).status().expect("a queue");
    let fleet = |more: &[&str]| {
        let mut arguments = vec!["submissions", "--rate", "400", "--duration", "1s", "--seed", "5", "--json"];
        arguments.extend(more);
        run(data.command_on("fleet", arguments))
    };
    let report = fleet(&["--broken", "json=0.25", "--broken", "base64=0.1"]).json();
    assert_eq!(report["sent"], 400);
    assert_eq!(report["failed"], 0);
    let number = |name: &str| report[name].as_u64().expect("a number");
    assert_eq!(number("valid") + number("broken"), 400);
    assert!((80..180).contains(&number("broken")), "{report}");
    let kinds = report["broken_by_kind"].as_object().expect("kinds");
    assert_eq!(kinds.keys().collect::<Vec<_>>(), ["base64", "json"]);
    let listed = run(data.command_on("queue", ["ls", "--json"])).json();
    assert_eq!(listed["queues"][0]["visible"], 400, "{listed}");

    let report =
        run(data
            .command_on("fleet", ["submissions", "--rate", "50", "--duration", "2s", "--burst", "0s:1s:3"]));
    let report = report.succeeded();
    assert!(report.stdout.starts_with("sent 200 submissions to queue submissions in "), "{report:#?}");
    let odd = fleet(&["--broken", "everything=1"]);
    assert!(
        odd.code == 2 && odd.stderr.contains("`everything` is no way of being broken: base64, "),
        "{odd:#?}"
    );
    run(data.command_on("fleet", ["submissions", "--rate", "0"])).failed(2, &["a rate of more than zero"]);
    run(data.command_on("fleet", ["missing"])).failed(2, &["queue `missing` does not exist"]);
}

#[test]
fn scaling_explains_itself_and_refuses_nonsense() {
    let data = Data::new();
    data.stream(&["create", "events", "--shards", "2"]).succeeded();
    data.stream(&["scale", "missing", "--dry-run"]).failed(2, &["stream `missing` does not exist"]);

    // Nothing was ever told, and a look makes no table.
    let dry = data.stream(&["scale", "events", "--dry-run"]).succeeded();
    assert!(dry.stdout.contains("nobody tells the traffic of stream events"), "{dry:#?}");
    assert_eq!(run(data.command_on("table", ["ls", "--json"])).json()["tables"], json!([]));
    let once = data.stream(&["scale", "events", "--once"]).succeeded();
    assert!(once.stdout.contains("nobody tells the traffic of stream events"), "{once:#?}");
    let shown = data.stream(&["traffic", "events", "--json"]).json();
    assert_eq!(shown["stream"], "events");
    assert_eq!(shown["shards"].as_array().expect("shards").len(), 2);
    assert_eq!(shown["shards"][0]["known"], json!(false));
    assert_eq!(data.stream(&["scale", "events", "--dry-run", "--json"]).json()["decisions"], json!([]));

    let file = data.path().join("scale.toml");
    let path = file.to_str().expect("a path");
    std::fs::write(&file, "[traffic_monitor]\nmerge_usage_threshold = 0.85\n").expect("a file");
    let refused = ["`merge_usage_threshold` (0.85)", "`split_usage_threshold` (0.8)", "scale.toml"];
    data.stream(&["scale", "events", "--config", path]).failed(2, &refused);
    std::fs::write(&file, "[traffic_monitor]\nobservation_period = 90\n").expect("a file");
    data.stream(&["scale", "events", "--config", path])
        .failed(2, &["`observation_period` (90 s)", "`entry_lifetime`"]);
}

#[test]
fn aggregates_hold_every_record() {
    let data = Data::new();
    data.stream(&["create", "rides", "--shards", "2"]).succeeded();
    let lines: String =
        (0..1_000).map(|number| format!("{{\"key\":\"k{}\",\"n\":{number}}}\n", number % 10)).collect();
    let put = data.command_on(
        "stream",
        ["put", "rides", "--lines", "--file", "-", "--key-field", "key", "--aggregate", "--json"],
    );
    let report = run_with_input(put, lines.as_bytes()).json();
    assert_eq!(report["records"], 1_000);
    let tail =
        data.command_on("stream", ["tail", "rides", "--from", "trim-horizon", "--no-follow", "--json"]);
    let tail = run(tail).succeeded();
    assert!(tail.json_lines().len() < 100, "many in one: {}", tail.json_lines().len());
}
