//! `consumer run`: workers as processes on one server, through its control API and through the protocols of AWS.

mod harness;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use harness::{Data, PATIENCE, Ran, Server, binary, http, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A worker, and its records as they come.
struct Worker {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Worker {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the binary is there");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::sync_channel(10_000);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Worker { child, lines }
    }

    /// The payloads of the next records, in order.
    #[track_caller]
    fn next(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.record()["data"].as_str().expect("a text").to_owned()).collect()
    }

    #[track_caller]
    fn record(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a record comes in time");
        serde_json::from_str(&line).expect("a line of JSON")
    }

    /// Asks it to stop; what it had printed by then is lost to the caller.
    fn stop(self) -> Ran {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        harness::finish(self.child)
    }

    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

fn worker(data: &Data, name: &str, more: &[&str]) -> Command {
    let fixed = ["run", "billing", "orders", "--worker", name, "--lease-time", "2s", "--json"];
    data.command_on("consumer", [&fixed[..], more].concat())
}

fn served(shards: &str) -> (Data, Server) {
    let data = Data::new();
    let server = data.serve();
    data.stream(&["create", "orders", "--shards", shards]).succeeded();
    (data, server)
}

fn put(data: &Data, numbers: std::ops::Range<u32>) -> Vec<String> {
    let lines: Vec<_> = numbers.map(|number| format!("{number:04}")).collect();
    data.put_lines("orders", &format!("{}\n", lines.join("\n"))).succeeded();
    lines
}

#[track_caller]
fn consumer(data: &Data, arguments: &[&str]) -> Ran {
    run(data.command_on("consumer", arguments))
}

fn leases(data: &Data) -> Vec<Value> {
    let leases = consumer(data, &["leases", "billing", "--json"]).succeeded().json();
    leases["leases"].as_array().expect("a list").clone()
}

#[test]
fn what_is_printed_is_done_and_a_signal_ends_it_in_good_order() {
    let (data, _server) = served("1");
    let lines = put(&data, 0..10);
    let one = Worker::start(worker(&data, "one", &[]));
    let first = one.record();
    assert_eq!((&first["worker"], &first["shard"]), (&"one".into(), &"shardId-000000000000".into()));
    assert!(first["sequence"].as_str().expect("a text").parse::<u128>().is_ok(), "{first}");
    assert_eq!(one.next(9), lines[1..]);
    assert_eq!(one.stop().succeeded().stderr, "");
    let left = leases(&data);
    assert_eq!((&left[0]["owner"], left.len()), (&Value::Null, 1), "{left:?}");
    // Another one goes on behind it, and stops by itself behind the last record that is wanted.
    let lines = put(&data, 10..20);
    let ran = run(worker(&data, "two", &["--limit", "4"])).succeeded();
    let seen: Vec<_> = ran.json_lines().iter().map(|line| line["data"].clone()).collect();
    assert_eq!(seen, lines[..4]);
    let ran = run(data.command_on("consumer", ["run", "billing", "orders", "--limit", "6"])).succeeded();
    assert_eq!(ran.lines(), lines[4..], "without --json the payloads alone");
}

/// The lease of a worker that runs is set from outside, in both directions: what it does next does not undo that.
#[test]
fn a_checkpoint_is_set_while_a_worker_runs() {
    let (data, _server) = served("1");
    let lines = put(&data, 0..20);
    let one = Worker::start(worker(&data, "one", &[]));
    let records: Vec<_> = (0..20).map(|_| one.record()).collect();
    let sequence = |at: usize| records[at]["sequence"].as_str().expect("a text").to_owned();
    let lease = "shardId-000000000000";
    consumer(&data, &["checkpoint", "billing", lease, &sequence(15)]).succeeded();
    assert_eq!(one.next(5), lines[15..], "from this record on");
    consumer(&data, &["rewind", "billing", "trim-horizon"]).succeeded();
    assert_eq!(one.next(20), lines, "everything");
    let arrival = records[0]["arrival"].as_str().expect("a text").to_owned();
    consumer(&data, &["rewind", "billing", &arrival, "--stream", "orders"]).succeeded();
    assert_eq!(one.next(20), lines, "from this moment on");
    // Two at once: the later one counts, and nothing between them is read.
    consumer(&data, &["rewind", "billing", "trim-horizon"]).succeeded();
    consumer(&data, &["rewind", "billing", "latest"]).succeeded();
    // Nobody says when it has found the end, so records are put until one comes.
    let mut number = 20;
    let late = loop {
        put(&data, number..number + 1);
        number += 1;
        assert!(number < 2_000, "nothing comes any more");
        if let Ok(line) = one.lines.recv_timeout(Duration::from_millis(100)) {
            let record: Value = serde_json::from_str(&line).expect("a line of JSON");
            let data = record["data"].as_str().expect("a text").to_owned();
            if data.as_str() >= "0020" {
                break data;
            }
        }
    };
    assert!(late < format!("{number:04}"), "{late}");
    assert_eq!(one.stop().succeeded().stderr.matches("ERROR").count(), 0);
}

/// Shards that were read to their end long ago have no leases any more; with the stream's name they are read again.
#[test]
fn a_rewind_brings_older_shards_back() {
    let (data, _server) = served("1");
    let mut lines = put(&data, 0..10);
    data.stream(&["split", "orders", "shardId-000000000000"]).succeeded();
    lines.extend(put(&data, 10..30));
    run(worker(&data, "one", &["--limit", "30"])).succeeded();
    let delete = r#"{"leaseKey":"shardId-000000000000"}"#;
    run(data.command_on("table", ["delete", "billing", delete])).succeeded();
    let told = consumer(&data, &["rewind", "billing", "trim-horizon"]).succeeded();
    assert!(told.stderr.contains("--stream NAME"), "{told:#?}");
    assert_eq!(leases(&data).len(), 2);
    let told = consumer(&data, &["rewind", "billing", "trim-horizon", "--stream", "orders"]).succeeded();
    assert!(told.stdout.contains("1 lease for older shards"), "{told:#?}");
    let ran = run(worker(&data, "two", &["--limit", "30"])).succeeded();
    let seen: Vec<_> = ran.json_lines().iter().map(|line| line["data"].clone()).collect();
    assert_eq!(seen[..10], lines[..10], "the parent first");
    let mut all: Vec<_> = seen.iter().map(|data| data.as_str().expect("a text").to_owned()).collect();
    all.sort();
    assert_eq!(all, lines);
}

/// One worker through the control API, one through the protocols of AWS: they share the shards, and one takes over.
#[test]
fn workers_on_both_roads_share_an_application() {
    let (data, server) = served("4");
    let lines = put(&data, 0..40);
    let one = Worker::start(worker(&data, "one", &[]));
    let mut seen = one.next(40);
    let mut on_aws = binary();
    let endpoint = format!("http://{}", server.listen);
    on_aws.args(["consumer", "run", "billing", "orders", "--worker", "two", "--lease-time", "2s", "--json"]);
    on_aws.args(["--engine", "aws", "--region", "us-east-1", "--endpoint", &endpoint]);
    on_aws.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
    let two = Worker::start(on_aws);
    let of_two = || leases(&data).iter().filter(|lease| lease["owner"] == "two").count();
    assert!((0..10_000).any(|_| of_two() == 2), "two gets its share: {:?}", leases(&data));
    one.kill();
    let more = put(&data, 40..80);
    // The dead one may have printed some of them already, or some twice: it wrote its last checkpoint long ago.
    while !more.iter().all(|line| seen.contains(line)) {
        seen.extend(two.next(1));
    }
    assert!(lines.iter().all(|line| seen.contains(line)));
    assert_eq!(two.stop().succeeded().code, 0);
    assert!(leases(&data).iter().all(|lease| lease["owner"] == Value::Null), "{:?}", leases(&data));
}

/// By enhanced fan-out, over the wire: the consumer is registered under its name, what comes is pushed to the worker, and it
/// follows a shard into its children.
#[test]
fn a_worker_that_fans_out_has_its_records_pushed() {
    let (data, server) = served("1");
    let lines = put(&data, 0..20);
    let mut on_aws = binary();
    let endpoint = format!("http://{}", server.listen);
    on_aws.args(["consumer", "run", "billing", "orders", "--lease-time", "2s", "--json"]);
    on_aws.args(["--engine", "aws", "--region", "us-east-1", "--endpoint", &endpoint]);
    on_aws.args(["--fan-out", "billing-pushed"]);
    on_aws.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
    let one = Worker::start(on_aws);
    assert_eq!(one.next(20), lines);
    let more = put(&data, 20..40);
    assert_eq!(one.next(20), more, "what comes while it follows");
    data.stream(&["split", "orders", "shardId-000000000000"]).succeeded();
    let more = put(&data, 40..80);
    let mut of_children = one.next(40);
    of_children.sort();
    assert_eq!(of_children, more);
    let call = |operation: &str, body: &str| {
        let target = format!("x-amz-target: Kinesis_20131202.{operation}");
        let headers = [target.as_str(), "content-type: application/x-amz-json-1.1"];
        http::post(server.listen, "/", &headers, body).json()
    };
    let described = call("DescribeStreamSummary", r#"{"StreamName":"orders"}"#);
    let arn = &described["StreamDescriptionSummary"]["StreamARN"];
    let listed = call("ListStreamConsumers", &format!(r#"{{"StreamARN":{arn}}}"#));
    let consumers = listed["Consumers"].as_array().expect("a list");
    assert_eq!(consumers.len(), 1, "{listed}");
    assert_eq!(consumers[0]["ConsumerName"], "billing-pushed", "{listed}");
    let metrics = http::get(server.monitor, "/metrics", &[]).body;
    let calls = |operation: &str| {
        let named = format!("operation=\"{operation}\"");
        let of_operation =
            |line: &&str| line.starts_with("anabranch_wire_calls_total") && line.contains(&named);
        metrics.lines().any(|line| of_operation(&line))
    };
    assert!(calls("SubscribeToShard"), "it is pushed: {metrics}");
    assert_eq!(one.stop().succeeded().code, 0);
    let leases = leases(&data);
    assert_eq!(leases.len(), 3, "{leases:?}");
    assert!(leases.iter().all(|lease| lease["owner"] == Value::Null), "{leases:?}");
}

#[test]
fn what_cannot_be_is_said() {
    let (data, _server) = served("1");
    consumer(&data, &["run", "billing", "nowhere"]).failed(2, &["nowhere"]);
    consumer(&data, &["run", "billing", "orders", "--from", "42"]).failed(2, &["one shard", "checkpoint"]);
    consumer(&data, &["run", "billing", "orders", "--from", "soon"]).failed(2, &["soon"]);
    consumer(&data, &["run", "billing", "orders", "--lease-time", "0s"]).failed(2, &["lease time"]);
    consumer(&data, &["run", "bill ing", "orders"]).failed(2, &["bill ing"]);
    run(data.command_on("table", ["create", "taken", "--key", "id:S"])).succeeded();
    consumer(&data, &["run", "taken", "orders"]).failed(1, &["`taken`", "`leaseKey`"]);
}

/// What a table costs is a matter of AWS; on its protocols the setting arrives.
#[test]
fn tables_are_paid_for_as_the_command_says() {
    let (data, server) = served("1");
    put(&data, 0..1);
    let mode = |application: &str, more: &[&str]| {
        let mut command = binary();
        let endpoint = format!("http://{}", server.listen);
        command.args(["consumer", "run", application, "orders", "--limit", "1"]);
        command.args(["--engine", "aws", "--region", "us-east-1", "--endpoint", &endpoint]).args(more);
        command.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
        run(command).succeeded();
        let body = format!(r#"{{"TableName":"{application}"}}"#);
        let headers =
            ["x-amz-target: DynamoDB_20120810.DescribeTable", "content-type: application/x-amz-json-1.0"];
        http::post(server.listen, "/", &headers, &body).json()["Table"].clone()
    };
    let on_request = mode("by-request", &[]);
    assert_eq!(on_request["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST", "{on_request}");
    let reserved = mode("reserved", &["--capacity", "7,3"]);
    assert_ne!(reserved["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST", "{reserved}");
    assert_eq!(reserved["ProvisionedThroughput"]["ReadCapacityUnits"], 7, "{reserved}");
    let index = &reserved["GlobalSecondaryIndexes"][0];
    assert_eq!(index["ProvisionedThroughput"]["WriteCapacityUnits"], 3, "{reserved}");
    data.stream(&["ls", "--capacity", "1,1"]).failed(2, &["--capacity", "--engine aws"]);
}
