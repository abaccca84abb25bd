//! Change capture with the real binary: a table, `flows/cdc-archive.toml`, blobs, and the comparison of both; bots that are killed
//! on the way; and files with bots that cannot be run.

mod harness;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_model::table::{
    ChangeView, Column, ColumnKind, Item, KeyKind, KeySchema, KeyspaceShape, TableOptions, Write,
};
use anabranch_model::{BlobStore, BucketName, TableName, TableStore};
use harness::bot::Bot;
use harness::{Data, Ran, Server, binary, run, run_with_input};

/// How often something is looked at before the test gives up; each look is a process.
const LOOKS: usize = 2_000;

fn flow() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("flows/cdc-archive.toml")
}

fn started(data: &Data, file: &Path) -> Bot {
    let mut command = binary();
    command.arg("run").arg(file).arg("--data").arg(data.path());
    Bot::start(command)
}

fn on(data: &Data, kind: &str, arguments: &[&str]) -> Ran {
    run(data.command_on(kind, arguments))
}

/// What the flow names.
#[track_caller]
fn prepare(data: &Data) {
    on(data, "table", &["create", "people", "--key", "id:S", "--changes", "both"]).succeeded();
    on(data, "blob", &["create", "people-archive"]).succeeded();
    on(data, "queue", &["create", "people-archive-dead"]).succeeded();
}

#[track_caller]
fn put(data: &Data, numbers: std::ops::Range<usize>) {
    let lines: String =
        numbers.map(|number| format!("{{\"id\":\"p{number:05}\",\"n\":{number}}}\n")).collect();
    run_with_input(data.command_on("table", ["put", "people", "-"]), lines.as_bytes()).succeeded();
}

/// The keys of the archive.
#[track_caller]
fn keys(data: &Data) -> BTreeSet<String> {
    let listed =
        on(data, "blob", &["ls", "people-archive/tables/people/", "--recursive", "--json"]).succeeded();
    let key = |line: serde_json::Value| line["key"].as_str().expect("a key").to_owned();
    listed.json_lines().into_iter().map(key).filter(|key| !key.contains("/_manifest/")).collect()
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    assert!((0..LOOKS).any(|_| holds()), "{what}: never");
}

fn verify(data: &Data, arguments: &[&str]) -> Ran {
    let mut command = binary();
    command.args(["cdc", "verify"]).arg(flow()).arg("--data").arg(data.path()).args(arguments);
    run(command)
}

#[test]
fn changes_become_blobs_through_a_server() {
    let data = Data::new();
    let server = data.serve();
    prepare(&data);
    put(&data, 0..20);
    let bot = started(&data, &flow());
    until("twenty blobs", || keys(&data).len() == 20);
    on(&data, "table", &["update", "people", "{\"id\":\"p00007\"}", "--set", "n=700"]).succeeded();
    on(&data, "table", &["delete", "people", "{\"id\":\"p00008\"}"]).succeeded();
    until("two more", || keys(&data).len() == 22);
    bot.stop();

    let names = keys(&data);
    assert!(
        names.iter().all(|key| key.starts_with("tables/people/20") && key.ends_with(".json")),
        "{names:?}"
    );
    let bodies = names.iter().map(|key| {
        let ran = on(&data, "blob", &["get", &format!("people-archive/{key}"), "-"]).succeeded();
        serde_json::from_str::<serde_json::Value>(&ran.stdout).expect("a document")
    });
    let changed: Vec<_> = bodies.filter(|document| document["eventName"] == "MODIFY").collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0]["dynamodb"]["NewImage"]["n"]["N"], "700");
    assert_eq!(changed[0]["dynamodb"]["OldImage"]["n"]["N"], "7");

    let told = verify(&data, &[]).succeeded();
    assert!(told.stdout.contains("19 rows") && told.stdout.contains("22 changes in 22 blobs"), "{told:#?}");
    assert!(told.stdout.contains("they tell the same"), "{told:#?}");
    // A worker that stops properly leaves no owner behind.
    let leases = on(&data, "table", &["scan", "keyspaces-streamer-tables-people", "--json"]).succeeded();
    let leases = leases.json_lines();
    assert!(!leases.is_empty() && leases.iter().all(|lease| lease.get("leaseOwner").is_none()), "{leases:?}");
    server.stop().succeeded();

    // The same without a server, on the directory alone.
    put(&data, 100..103);
    let bot = started(&data, &flow());
    bot.stop();
    let told = verify(&data, &["--json"]);
    if told.code != 0 {
        // It was stopped before it had read everything; the next one goes on.
        assert_eq!(told.json()["found"]["missing"], 3, "{told:#?}");
    }
    let server = data.serve();
    let bot = started(&data, &flow());
    until("three more", || keys(&data).len() == 25);
    bot.stop();
    verify(&data, &[]).succeeded();
    server.stop().succeeded();
}

#[test]
fn planted_differences_are_found() {
    let data = Data::new();
    let _server = data.serve();
    prepare(&data);
    put(&data, 0..50);
    let bot = started(&data, &flow());
    until("fifty blobs", || keys(&data).len() == 50);
    bot.stop();
    verify(&data, &[]).succeeded();
    let names: Vec<String> = keys(&data).into_iter().collect();
    let place = |at: usize| format!("people-archive/{}", names[at]);
    let body = |at: usize| on(&data, "blob", &["get", &place(at), "-"]).succeeded().stdout;
    let (copied, altered) = (body(1), body(2).replace("\"S\":\"p0", "\"S\":\"q0").replacen("q0", "p0", 1));
    on(&data, "blob", &["rm", &place(0)]).succeeded();
    let copy = data.command_on("blob", ["put", "-", "people-archive/tables/people/copy.json"]);
    run_with_input(copy, copied.as_bytes()).succeeded();
    run_with_input(data.command_on("blob", ["put", "-", &place(2)]), altered.as_bytes()).succeeded();
    let found = verify(&data, &["--json"]);
    assert_eq!(found.code, 1, "{found:#?}");
    let report: serde_json::Value =
        serde_json::from_str(found.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!(report["found"], serde_json::json!({"missing": 1, "duplicated": 1, "altered": 1}), "{report}");
    let told = verify(&data, &[]).failed(1, &["differ in 3 places"]);
    assert!(told.stdout.contains("missing") && told.stdout.contains("duplicated"), "{told:#?}");
}

/// Bots killed without warning, while another goes on or not: nothing is lost and nothing is there twice.
#[test]
fn killed_bots_lose_nothing() {
    for batch in ["", "{ records = 25, seconds = 1 }", "{ format = \"parquet\", records = 25, seconds = 1 }"]
    {
        let (data, folder) = (Data::new(), tempfile::tempdir().expect("a folder"));
        let _server = data.serve();
        prepare(&data);
        let mut text = std::fs::read_to_string(flow()).expect("the flow");
        text = text.replace("seconds = 10, checkpoint_seconds = 10", "seconds = 1, checkpoint_seconds = 1");
        if !batch.is_empty() {
            text = text.replace(", key = \"{keyspace}/{table}/{date}/{sequence}.json\" }", " }");
            text += &format!("batch = {batch}\n");
        }
        let file = folder.path().join("flow.toml");
        std::fs::write(&file, text).expect("there is room");
        for round in 0..4 {
            put(&data, round * 300..(round + 1) * 300);
            let before = keys(&data).len();
            let bot = started(&data, &file);
            until("something", || keys(&data).len() > before);
            drop(bot);
        }
        let bot = started(&data, &file);
        let mut verify = binary();
        verify.args(["cdc", "verify"]).arg(&file).arg("--data").arg(data.path()).arg("--json");
        let mut last = None;
        until("everything", || {
            let mut command = Command::new(verify.get_program());
            command
                .args(verify.get_args())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            let ran = run(command);
            let clean = ran.code == 0;
            last = Some(ran);
            clean
        });
        bot.stop();
        let report = last.expect("a look").json();
        assert_eq!((&report["rows"], &report["changes"]), (&1_200.into(), &1_200.into()), "{report}");
        let dead = on(&data, "queue", &["receive", "people-archive-dead", "--json"]).succeeded();
        assert!(dead.json_lines().is_empty(), "{dead:#?}");
    }
}

/// A server runs the bots that its configuration names, as soon as there is what they need.
#[test]
fn a_server_runs_bots() {
    let (data, folder) = (Data::new(), tempfile::tempdir().expect("a folder"));
    std::fs::create_dir(folder.path().join("flows")).expect("there is room");
    std::fs::copy(flow(), folder.path().join("flows/archive.toml")).expect("there is room");
    let config = folder.path().join("anabranch.toml");
    std::fs::write(&config, "flows = [\"flows/archive.toml\"]\n").expect("there is room");
    let arguments = ["--config", config.to_str().expect("UTF-8")];
    let server = Server::start(&data.path(), &arguments);
    prepare(&data);
    put(&data, 0..10);
    until("ten blobs", || keys(&data).len() == 10);
    let metrics = harness::http::get(server.monitor, "/metrics", &[]);
    assert!(metrics.body.contains("anabranch_bot_stage_seconds"), "{}", metrics.body);
    let ran = server.stop().succeeded();
    assert!(ran.stderr.contains("a bot cannot begin yet"), "{}", ran.stderr);
    assert!(ran.stderr.contains("a bot has ended"), "{}", ran.stderr);
    put(&data, 10..12);
    let server = Server::start(&data.path(), &arguments);
    until("two more", || keys(&data).len() == 12);
    server.stop().succeeded();
    verify(&data, &[]).succeeded();

    std::fs::write(&config, "flows = [\"flows/none.toml\"]\n").expect("there is room");
    let up = |config: &Path| {
        let mut command = binary();
        command.args(["up", "--config"]).arg(config).arg("--data").arg(data.path());
        run(command)
    };
    up(&config).failed(1, &["none.toml"]);
    std::fs::write(folder.path().join("flows/archive.toml"), "[[bot]]\nnaam = 1\n").expect("there is room");
    std::fs::write(&config, "flows = [\"flows/archive.toml\"]\n").expect("there is room");
    up(&config).failed(2, &["archive.toml, line 2", "naam"]);
}

/// The same flow by the protocols of AWS: DynamoDB with its streams, S3 and SQS, all of them on the server's own port.
#[test]
fn changes_become_blobs_by_the_protocols_of_aws() {
    let data = Data::new();
    let server = data.serve();
    prepare(&data);
    put(&data, 0..20);
    let on_aws = |arguments: &[&str]| {
        let mut command = binary();
        command.args(arguments).arg(flow()).args(["--engine", "aws", "--region", "eu-north-1", "--endpoint"]);
        command.arg(format!("http://{}", server.listen));
        command.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
        command
    };
    let bot = Bot::start(on_aws(&["run"]));
    until("twenty blobs", || keys(&data).len() == 20);
    bot.stop();
    let told = run(on_aws(&["cdc", "verify"])).succeeded();
    assert!(told.stdout.contains("they tell the same"), "{told:#?}");
    let first = keys(&data).into_iter().next().expect("a key");
    let document = on(&data, "blob", &["get", &format!("people-archive/{first}"), "-"]).succeeded().json();
    assert_eq!(document["awsRegion"], "eu-north-1");
    server.stop().succeeded();
}

/// A table of a keyspace, through the server and by Keyspaces Streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_keyspace_become_documents_of_cells() {
    let (data, folder) = (Data::new(), tempfile::tempdir().expect("a folder"));
    let server = data.serve();
    let listen = server.listen;
    let store = anabranch_server::Remote::new(listen);
    let column = |name: &str, kind| Column { name: name.to_owned(), kind, shared: false };
    let options = TableOptions {
        keyspace: Some(KeyspaceShape {
            keyspace: "media".to_owned(),
            columns: vec![column("content_id", ColumnKind::Uuid), column("plays", ColumnKind::Bigint)],
            partition: vec!["content_id".to_owned()],
            clustering: Vec::new(),
        }),
        ..TableOptions::new(KeySchema::hash("content_id", KeyKind::Text)).with_changes(ChangeView::Both)
    };
    let table = TableName::new("media_content").expect("a name");
    store.create_table(&table, options).await.expect("a table");
    store.create_bucket(&BucketName::new("keyspaces-data").expect("a name")).await.expect("a bucket");
    for number in 0..5 {
        let item = Item::new().with("content_id", format!("550e8400-{number}")).with("plays", number);
        store.write(&table, Write::put(item)).await.expect("a row");
    }
    let file = folder.path().join("media.toml");
    let text = |prefix: &str| {
        format!(
            "[[bot]]\nname = \"media\"\nsource = {{ keyspace = \"media\", table = \"media_content\" }}\n\
             sink = {{ blobs = \"keyspaces-data\", key = \"{prefix}{{keyspace}}/{{table}}/{{date}}/{{sequence}}.json\" }}\n\
             leases = {{ table = \"{prefix}leases\" }}\n"
        )
    };
    let looked = tokio::task::spawn_blocking(move || {
        let keys = |place: &str| {
            let listed = on(&data, "blob", &["ls", place, "--recursive", "--json"]).succeeded().json_lines();
            listed.iter().map(|line| line["key"].as_str().expect("a key").to_owned()).collect::<Vec<_>>()
        };
        let documents = |place: &str| {
            until("five blobs", || keys(place).len() == 5);
            let body =
                |key: &String| on(&data, "blob", &["get", &format!("keyspaces-data/{key}"), "-"]).succeeded();
            keys(place).iter().map(|key| body(key).json()).collect::<Vec<serde_json::Value>>()
        };
        std::fs::write(&file, text("")).expect("there is room");
        let bot = started(&data, &file);
        let ours = documents("keyspaces-data/media/media_content/");
        bot.stop();
        let mut verify = binary();
        verify.args(["cdc", "verify"]).arg(&file).arg("--data").arg(data.path());
        run(verify).succeeded();

        std::fs::write(&file, text("aws-")).expect("there is room");
        let mut command = binary();
        command.arg("run").arg(&file).args(["--engine", "aws", "--region", "eu-north-1", "--endpoint"]);
        command.arg(format!("http://{listen}"));
        command.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
        let bot = Bot::start(command);
        let theirs = documents("keyspaces-data/aws-media/media_content/");
        bot.stop();
        (data, ours, theirs)
    });
    let (data, ours, theirs) = looked.await.expect("no panic");
    for (documents, id, plays) in [(&ours, "uuidT", "bigintT"), (&theirs, "textT", "decimalT")] {
        let three = documents
            .iter()
            .find(|document| document["keyspaces"]["partitionKeys"]["content_id"][id] == "550e8400-3")
            .unwrap_or_else(|| panic!("{documents:?}"));
        assert_eq!((&three["eventSource"], &three["eventName"]), (&"aws:keyspaces".into(), &"INSERT".into()));
        assert_eq!(three["keyspaces"]["origin"], "USER");
        assert_eq!(three["keyspaces"]["newImage"]["valueCells"]["plays"]["value"][plays], "3", "{three}");
    }
    drop(store);
    server.stop().succeeded();
    drop(data);
}

#[test]
fn files_that_cannot_be_run_are_refused_with_their_place() {
    let (data, folder) = (Data::new(), tempfile::tempdir().expect("a folder"));
    prepare(&data);
    let original = std::fs::read_to_string(flow()).expect("the flow");
    let line = |word: &str| {
        let at = original.lines().position(|line| line.starts_with(word)).expect("a line");
        format!("flow.toml, line {}", at + 1)
    };
    let attempt = |from: &str, to: &str| {
        let file = folder.path().join("flow.toml");
        assert!(original.contains(from), "{from}");
        std::fs::write(&file, original.replace(from, to)).expect("there is room");
        let mut command = binary();
        command.arg("run").arg(&file).arg("--data").arg(data.path());
        run(command)
    };
    attempt("\nfailure = { attempts", "\nfailure = { tries")
        .failed(2, &[&line("failure"), "tries", "attempts"]);
    attempt("\nsource = { table = \"people\" }", "\nsource = { table = \"nobody\" }")
        .failed(2, &[&line("source"), "`nobody` does not exist", "table create"]);
    attempt("{date}/{sequence}.json\" }\n", "{date}.json\" }\n").failed(2, &[&line("sink"), "{sequence}"]);
    attempt("\nname = \"people-archive\"", "\nname = \"people archive\"").failed(2, &[&line("name")]);
    attempt("queue = \"people-archive-dead\"", "queue = \"limbo\"").failed(2, &[&line("failure"), "limbo"]);
    let mut command = binary();
    command.arg("run").arg(folder.path().join("none.toml")).arg("--data").arg(data.path());
    run(command).failed(1, &["none.toml"]);
    let mut twice = binary();
    twice.arg("run").arg(flow()).arg(flow()).arg("--data").arg(data.path());
    run(twice).failed(2, &["people-archive", "another name"]);
}
