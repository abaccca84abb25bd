//! Telemetry with the real binary: a server with limits, a fleet, `flows/telemetry.toml`, and what is in the stream at the end;
//! the bot is killed on the way, or the whole server with it. And files that cannot be run.

mod harness;

use std::path::Path;
use std::process::Command;

use anabranch_model::Dice;
use harness::bot::Bot;
use harness::telemetry::{LOOKS, Place, complete, flow, flow_with};
use harness::{Data, Server, binary, run};

fn bot(data: &Data, file: &Path) -> Bot {
    let mut command = binary();
    command.arg("run").arg(file).arg("--data").arg(data.path());
    Bot::start(command)
}

/// Commands on a directory.
fn on(data: &Data) -> impl Fn(&[&str]) -> Command {
    |arguments| data.command_on(arguments[0], &arguments[1..])
}

fn serve(data: &Data, config: &str) -> Server {
    let path = data.path().with_extension("toml");
    std::fs::write(&path, config).expect("a file");
    Server::start(&data.path(), &["--config", path.to_str().expect("a path")])
}

/// Makes everything that the flow names.
fn prepare(data: &Data) {
    for queue in ["submissions", "submissions-broken", "submissions-dead"] {
        run(data.command_on("queue", ["create", queue])).succeeded();
    }
    data.stream(&["create", "events"]).succeeded();
}

/// A server with limits and everything that the flow names.
fn prepared() -> (Data, Server) {
    let data = Data::new();
    let server = serve(&data, "shard_limits = true\n");
    prepare(&data);
    (data, server)
}

#[test]
fn every_event_of_a_fleet_arrives_once_and_in_order() {
    let (data, _server) = prepared();
    let on = on(&data);
    let place = Place(&on);
    let bot = bot(&data, &flow());
    let report = place.fleet("60", "4s", "3");
    place.drained();
    let (events, repeated) = place.events();
    complete(&events, std::slice::from_ref(&report));
    assert_eq!(repeated, 0, "without a fault nothing is repeated");
    assert!(report["broken"].as_u64().expect("a count") > 0, "{report}");
    assert!(place.left("submissions-broken") > 0, "a sample is kept");
    assert_eq!(place.left("submissions-dead"), 0);
    // The process tells its traffic to whoever asks.
    let traffic = data.stream(&["traffic", "events", "--json"]).json();
    assert_eq!(traffic["shards"][0]["known"], true, "{traffic}");
    bot.stop();
}

#[test]
fn a_bot_that_is_killed_loses_nothing() {
    let (data, _server) = prepared();
    let on = on(&data);
    let place = Place(&on);
    // Others wait for what a killed bot has in hand no longer than this.
    let text = flow_with(&[("visibility_timeout = 60", "visibility_timeout = 3")]);
    let file = data.path().with_extension("flow.toml");
    std::fs::write(&file, text).expect("a file");
    let report = place.fleet("200", "2s", "3");
    for _ in 0..3 {
        let before = place.left("submissions");
        let bot = bot(&data, &file);
        for _ in 0..LOOKS {
            if place.left("submissions") < before {
                break;
            }
        }
        drop(bot);
    }
    let bot = bot(&data, &file);
    place.drained();
    bot.stop();
    complete(&place.events().0, &[report]);
}

#[test]
fn a_server_that_is_killed_with_its_bot_loses_nothing() {
    for seed in 0..2 {
        let data = Data::new();
        let text = flow_with(&[
            ("visibility_timeout = 60", "visibility_timeout = 2"),
            // A submission that was in hand at every death is still none to give up.
            ("max_retry_attempts = 3", "max_retry_attempts = 100"),
            ("observation_period = 10", "observation_period = 1"),
            ("entry_lifetime = 60", "entry_lifetime = 2"),
            ("merge_cooldown = 300", "merge_cooldown = 2"),
        ]);
        std::fs::write(data.path().with_extension("flow.toml"), text).expect("a file");
        let config = "shard_limits = true\nflows = [\"data.flow.toml\"]\n";
        let mut server = serve(&data, config);
        prepare(&data);
        let (on, dice) = (on(&data), Dice::new(seed));
        let place = Place(&on);
        let mut reports = Vec::new();
        for round in 0..5 {
            reports.push(place.fleet("200", "1s", &format!("{}", seed * 100 + round)));
            // A death at any moment: while much waits, while little does, while shards are split or merged.
            for _ in 0..dice.roll() % 12 {
                place.left("submissions");
            }
            server.kill();
            server = serve(&data, config);
        }
        place.drained();
        let (events, _) = place.events();
        complete(&events, &reports);
        assert_eq!(place.left("submissions-dead"), 0);
        server.stop().succeeded();
    }
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
    let schema = data.path().with_extension("schema.json");
    let schema = schema.to_str().expect("a path");
    for wrong in ["{", "{\"type\": 7}", "{\"format\": \"no-such-format\"}"] {
        std::fs::write(schema, wrong).expect("a file");
        refused(
            "# schema = \"docs/telemetry-submission.schema.json\"",
            &format!("schema = \"{schema}\""),
            &["data.schema.json cannot be used", "line "],
        );
    }
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
