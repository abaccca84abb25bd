//! The commands on AWS: the same words and the same output, with servers of AWS's protocols that we did not write.

mod harness;
#[path = "../../aws/tests/peer/mod.rs"]
mod peer;

use std::process::Command;

use harness::{Ran, binary, run, run_with_input};
use peer::Peer;
use peer::stub::{Answer, Stub};
use serde_json::json;

/// Where nobody listens: the machine's metadata cannot be asked, and must not be waited for.
const NOWHERE: &str = "http://127.0.0.1:9";

/// A command with no setting of AWS but these.
fn bare(arguments: &[&str]) -> Command {
    let mut command = binary();
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    command.env("HOME", "/nonexistent").env("AWS_EC2_METADATA_SERVICE_ENDPOINT", NOWHERE);
    command.args(arguments).args(["--engine", "aws"]);
    command
}

fn on(endpoint: &str, arguments: &[&str]) -> Command {
    let mut command = bare(arguments);
    command.args(["--endpoint", endpoint, "--region", "us-east-1"]);
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "very secret");
    command
}

/// Runs commands on a server from a test that has a runtime.
async fn ran(command: Command) -> Ran {
    tokio::task::spawn_blocking(move || run(command)).await.expect("the command ran")
}

async fn ran_with_input(command: Command, input: &'static str) -> Ran {
    tokio::task::spawn_blocking(move || run_with_input(command, input.as_bytes()))
        .await
        .expect("the command ran")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_command_works_on_aws() {
    let moto = Peer::moto().await;
    let endpoint = format!("http://{}", moto.address());
    let on = |arguments: &[&str]| on(&endpoint, arguments);

    ran(on(&["stream", "create", "clicks", "--shards", "2"])).await.succeeded();
    ran_with_input(on(&["stream", "put", "clicks", "--lines"]), "one\ntwo\nthree\n").await.succeeded();
    let tail =
        ran(on(&["stream", "tail", "clicks", "--from", "trim-horizon", "--no-follow", "--json"])).await;
    assert_eq!(tail.succeeded().json_lines().len(), 3);
    let described = ran(on(&["stream", "describe", "clicks", "--json"])).await.succeeded().json();
    assert_eq!(described["open_shards"], 2, "{described}");

    ran(on(&["queue", "create", "orders"])).await.succeeded();
    ran(on(&["queue", "send", "orders", "two shirts"])).await.succeeded();
    let got = ran(on(&["queue", "receive", "orders", "--delete", "--json"])).await.succeeded();
    assert!(got.stdout.contains("two shirts"), "{got:#?}");

    ran(on(&["table", "create", "riders", "--key", "id:S"])).await.succeeded();
    ran(on(&["table", "put", "riders", r#"{"id":"a","lifts":3}"#])).await.succeeded();
    let got = ran(on(&["table", "get", "riders", r#"{"id":"a"}"#, "--json"])).await.succeeded();
    assert!(got.stdout.contains("\"lifts\":3"), "{got:#?}");
    // The table has another key than the caller believes.
    ran(on(&["table", "get", "riders", r#"{"name":"a"}"#])).await.failed(2, &["id"]);

    ran(on(&["blob", "create", "photos"])).await.succeeded();
    ran_with_input(on(&["blob", "put", "-", "photos/2026/one"]), "a picture").await.succeeded();
    let got = ran(on(&["blob", "get", "photos/2026/one", "-"])).await.succeeded();
    assert_eq!(got.stdout, "a picture");

    let told = ran(on(&["stream", "ls", "--metrics", "emf", "--json"])).await.succeeded();
    let lines = told.json_lines();
    assert_eq!(lines[0]["streams"][0]["name"], "clicks");
    let calls = lines.iter().find(|line| line["action"] == "ListStreams" && line["result"] == "ok");
    let calls = calls.unwrap_or_else(|| panic!("{told:#?}"));
    assert_eq!(calls["anabranch_aws_calls_total"], 1);
    assert_eq!(calls["_aws"]["CloudWatchMetrics"][0]["Namespace"], "Anabranch");

    let well = ran(on(&[
        "doctor", "--stream", "clicks", "--queue", "orders", "--table", "riders", "--bucket", "photos",
        "--json",
    ]))
    .await;
    let checks = well.succeeded().json();
    for name in ["region", "credentials", "Kinesis", "SQS", "DynamoDB", "S3", "stream clicks", "table riders"]
    {
        let check = checks["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
        assert_eq!(check.unwrap_or_else(|| panic!("{name}: {checks}"))["result"], "ok", "{checks}");
    }
    let ill = ran(on(&["doctor", "--stream", "nowhere"])).await.failed(1, &["1 of"]);
    assert!(ill.stdout.contains("FAILED") && ill.stdout.contains("stream nowhere"), "{ill:#?}");
    assert!(!ill.stdout.contains("very secret") && !ill.stdout.contains("AKIDEXAMPLE"), "{ill:#?}");
}

#[test]
fn what_is_missing_is_named() {
    run(bare(&["stream", "ls", "--region", "eu-central-1"])).failed(1, &["credentials", "AWS_ACCESS_KEY_ID"]);
    let mut no_region = bare(&["queue", "ls"]);
    no_region.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
    run(no_region).failed(1, &["region", "AWS_REGION"]);
    run(bare(&["doctor"])).failed(1, &["1 of 1 check failed"]);
    let mut profile = bare(&["table", "ls", "--profile", "nobody", "--region", "eu-central-1"]);
    profile.env("AWS_CONFIG_FILE", "/nonexistent").env("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent");
    run(profile).failed(1, &["nobody"]);
}

#[test]
fn settings_of_aws_are_refused_without_it() {
    let mut command = binary();
    command.args(["stream", "ls", "--endpoint", "http://127.0.0.1:1"]);
    run(command).failed(2, &["--endpoint", "--engine aws"]);
}

/// What is about a directory of this machine says so at once: nobody is asked for credentials, and nothing is made.
#[test]
fn what_needs_a_directory_refuses_aws() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data_text = data.to_str().unwrap();
    for (arguments, what) in [
        (&["up", "--data", data_text][..], &["data directory", "stream ls --engine aws"][..]),
        (&["--data", data_text], &["data directory", "stream ls --engine aws"]),
        (&["up", "--endpoint", NOWHERE, "--region", "eu-central-1"], &["data directory"]),
        (&["backup", data_text], &["AWS has none", "point-in-time recovery"]),
        (&["restore", "/nonexistent/copy", "--data", data_text], &["AWS has none", "--data DIR"]),
        (&["bench", "append"], &["this machine", "bench aws"]),
    ] {
        run(bare(arguments)).failed(2, what);
        let mut by_environment = binary();
        by_environment.args(arguments).env("ANABRANCH_ENGINE", "aws");
        run(by_environment).failed(2, what);
    }
    assert!(!data.exists(), "a refused command has made a directory");
    let mut misplaced = binary();
    misplaced.args(["up", "--region", "eu-central-1"]);
    run(misplaced).failed(2, &["--region", "--engine aws"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_aws_is_told_apart() {
    let page = "<html><body>It works!</body></html>".to_string();
    let web =
        Stub::start(move |_, _| Answer::Full(200, vec!["content-type: text/html".to_string()], page.clone()))
            .await;
    for kind in ["stream", "queue", "table", "blob"] {
        ran(on(&web.endpoint(), &[kind, "ls"])).await.failed(1, &["endpoint"]);
    }
    ran(on(NOWHERE, &["stream", "ls"])).await.failed(1, &["Kinesis", "anabranch doctor"]);
    ran(on("127.0.0.1:1", &["stream", "ls"])).await.failed(1, &["127.0.0.1:1", "http://"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_permission_is_named() {
    let refuse = |_: &str, _: &str| Answer::failure(400, "AccessDeniedException", "User is not authorized");
    let strict = Stub::start(refuse).await;
    ran(on(&strict.endpoint(), &["stream", "ls"])).await.failed(1, &["kinesis:ListStreams"]);
    // S3 speaks another language than this stub.
    let told = ran(on(&strict.endpoint(), &["doctor", "--stream", "clicks"])).await.failed(1, &["2 of 9"]);
    for part in ["kinesis:ListStreams", "sqs:ListQueues", "kinesis:DescribeStreamSummary", "iam-policy"] {
        assert!(told.stdout.contains(part), "`{part}` is missing: {told:#?}");
    }
}

#[test]
fn policies_are_printed() {
    let policy = |arguments: &[&str]| {
        let mut command = binary();
        command.arg("iam-policy").args(arguments);
        run(command)
    };
    let told = policy(&["--stream", "clicks:read", "--region", "eu-central-1", "--account", "123456789012"]);
    let told = told.succeeded().json();
    let statement = &told["Statement"][0];
    assert_eq!(statement["Resource"], json!(["arn:aws:kinesis:eu-central-1:123456789012:stream/clicks"]));
    assert!(statement["Action"].as_array().unwrap().contains(&json!("kinesis:GetRecords")), "{told}");
    assert!(!told.to_string().contains("PutRecords"), "{told}");
    policy(&["--queue", "a", "--engine", "aws"]).succeeded();
    policy(&["--queue", "a", "--engine", "embedded"]).failed(2, &["asks AWS for nothing"]);
    policy(&[]).failed(2, &["Nothing is named"]);
    policy(&["--queue", "a:peek"]).failed(2, &["peek", "manage"]);
    policy(&["--table", "a", "--account", "me"]).failed(2, &["twelve digits"]);
}
