//! Every command on streams, on a directory that nobody holds and through a server: the same output both ways.

mod harness;

use harness::{Data, Ran, Server, binary, run, run_with_input};
use serde_json::json;

/// Runs a test in a directory of its own, once without a server and once with one.
fn both_ways(test: impl Fn(&Data)) {
    test(&Data::new());
    let data = Data::new();
    let server = data.serve();
    test(&data);
    // A command that did not go to the server would have failed at the lock; one that left the server unwell shows.
    server.stop().succeeded();
}

#[track_caller]
fn says(ran: Ran, text: &str) {
    assert_eq!(ran.succeeded().stdout, format!("{text}\n"));
}

#[test]
fn create_ls_and_rm() {
    both_ways(|data| {
        says(data.stream(&["create", "clicks"]), "created stream clicks: 1 shard, records are kept for 1d");
        let created = data.stream(&["create", "orders", "--shards", "4", "--retention", "7d", "--json"]);
        assert_eq!(created.json(), json!({"name": "orders", "shards": 4, "retention_seconds": 604_800}));

        let listed = data.stream(&["ls"]).succeeded();
        let lines = listed.lines();
        assert_eq!(lines.len(), 3, "{listed:#?}");
        assert!(lines[0].starts_with("STREAM") && lines[0].ends_with("CREATED"), "{listed:#?}");
        let words: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(words[..4], ["orders", "4", "0", "7d"]);

        let listed = data.stream(&["ls", "--json"]).json();
        assert_eq!(listed["streams"][0]["name"], "clicks");
        assert_eq!(listed["streams"][1]["open_shards"], 4);
        assert!(listed["streams"][1]["created_at"].as_str().unwrap().ends_with('Z'));

        says(data.stream(&["rm", "clicks", "--yes"]), "removed stream clicks with all its records");
        assert_eq!(data.stream(&["rm", "orders", "--yes", "--json"]).json(), json!({"removed": "orders"}));
        let listed = data.stream(&["ls"]).succeeded();
        assert!(listed.stdout.contains("no streams yet"), "{listed:#?}");
        assert_eq!(data.stream(&["ls", "--json"]).json(), json!({"streams": []}));
    });
}

#[test]
fn put_and_tail() {
    both_ways(|data| {
        data.stream(&["create", "clicks"]).succeeded();
        let ran = data.stream(&["put", "clicks", "hello", "--key", "k"]).succeeded();
        let start = "stored 1 record (5 B) in stream clicks: shard shardId-000000000000, sequence ";
        assert!(ran.stdout.starts_with(start), "{ran:#?}");
        let ran = data.put_lines("clicks", "one\ntwo\n\nthree").succeeded();
        assert!(ran.stdout.starts_with("stored 4 records (11 B) in stream clicks: 1 shard, "), "{ran:#?}");

        let ran = data.stream(&["tail", "clicks", "--no-follow"]).succeeded();
        assert_eq!(ran.stdout, "hello\none\ntwo\n\nthree\n");
        let records = data.stream(&["tail", "clicks", "--no-follow", "--json"]).json_lines();
        assert_eq!(records.len(), 5);
        assert_eq!(records[0]["data"], "hello");
        assert_eq!(records[0]["key"], "k");
        assert_eq!(records[0]["shard"], "shardId-000000000000");
        let keys: std::collections::HashSet<&str> =
            records.iter().map(|record| record["key"].as_str().unwrap()).collect();
        assert_eq!(keys.len(), 5, "keys that nobody chose are all different");

        let report = run_with_input(data.command(["put", "clicks", "--json"]), b"by default lines\n").json();
        assert_eq!((&report["records"], &report["bytes"]), (&json!(1), &json!(16)));
        assert_eq!(report["last"]["shard"], "shardId-000000000000");
    });
}

#[test]
fn keys_and_payloads_come_from_where_they_should() {
    both_ways(|data| {
        data.stream(&["create", "clicks"]).succeeded();
        let lines = b"{\"user\":\"ann\",\"n\":1}\n{\"user\":7}\n";
        run_with_input(data.command(["put", "clicks", "--key-field", "user"]), lines).succeeded();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("payload");
        std::fs::write(&file, b"\xff\x00two\nlines").unwrap();
        let file = file.to_str().unwrap();
        data.stream(&["put", "clicks", "--file", file, "--key", "file"]).succeeded();
        std::fs::write(file, b"first\nsecond\n").unwrap();
        data.stream(&["put", "clicks", "--file", file, "--lines", "--key", "line"]).succeeded();
        run_with_input(data.command(["put", "clicks", "--file", "-", "--key", "stdin"]), b"a\nb").succeeded();

        let records = data.stream(&["tail", "clicks", "--no-follow", "--json"]).json_lines();
        let keys: Vec<&str> = records.iter().map(|record| record["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["ann", "7", "file", "line", "line", "stdin"]);
        assert_eq!(records[2]["data_base64"], "/wB0d28KbGluZXM=");
        assert_eq!(records[4]["data"], "second");
        assert_eq!(records[5]["data"], "a\nb");
        let text = data.stream(&["tail", "clicks", "--no-follow"]).succeeded().stdout;
        assert!(text.contains("\\xff\0two\nlines\n"), "{text:?}");
    });
}

#[test]
fn describe_split_and_merge() {
    both_ways(|data| {
        data.stream(&["create", "clicks", "--shards", "2"]).succeeded();
        says(
            data.stream(&["split", "clicks", "shardId-000000000000"]),
            "split shardId-000000000000 of stream clicks into shardId-000000000002 and shardId-000000000003",
        );
        says(
            data.stream(&["merge", "clicks", "shardId-000000000001", "shardId-000000000003"]),
            "merged shardId-000000000001 and shardId-000000000003 of stream clicks into shardId-000000000004",
        );
        let split = data.stream(&["split", "clicks", "shardId-000000000002", "--at", "1", "--json"]).json();
        assert_eq!(split["opened"], json!(["shardId-000000000005", "shardId-000000000006"]));
        assert_eq!((&split["closed"], &split["at"]), (&json!(["shardId-000000000002"]), &json!("1")));
        let arguments = ["merge", "clicks", "shardId-000000000006", "shardId-000000000005", "--json"];
        assert_eq!(data.stream(&arguments).json()["opened"], json!(["shardId-000000000007"]));

        let text = data.stream(&["describe", "clicks"]).succeeded();
        assert!(text.stdout.contains("shards     2 open, 6 closed"), "{text:#?}");
        let words = |line: &&str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let tree: Vec<String> =
            text.lines()[6..].iter().map(|line| words(line).replace("Id-000000000", "")).collect();
        let begins = |line: &str, begin: &str| assert!(line.starts_with(begin), "{begin}: {text:#?}");
        begins(&tree[0], "shard000 closed 0.00 % 50.00 % - …002 …003");
        begins(&tree[1], "├─ shard002 closed 0.00 % 25.00 % …000 …005 …006");
        begins(&tree[2], "│ ├─ shard005 closed 0.00 % <0.01 % …002 …007");
        begins(&tree[3], "│ │ └─ shard007 open 0.00 % 25.00 % …005 …006 -");
        assert!(tree.iter().any(|line| line.contains("shard004") && line.contains("…003 …001")), "{text:#?}");

        let json = data.stream(&["describe", "clicks", "--json"]).json();
        assert_eq!((&json["open_shards"], &json["closed_shards"]), (&json!(2), &json!(6)));
        let shards = json["shards"].as_array().unwrap();
        let find = |id: &str| shards.iter().find(|shard| shard["id"] == id).unwrap();
        let merged = find("shardId-000000000004");
        assert_eq!(merged["parents"], json!(["shardId-000000000003", "shardId-000000000001"]));
        assert_eq!((&merged["state"], &merged["ends_before"]), (&json!("open"), &json!(null)));
        assert_eq!(merged["range"]["share"], 0.75);
        let closed = find("shardId-000000000001");
        assert_eq!(closed["children"], json!(["shardId-000000000004"]));
        assert!(closed["ends_before"].is_string() && closed["closed_at"].is_string());
    });
}

#[test]
fn retention_can_be_changed() {
    both_ways(|data| {
        data.stream(&["create", "clicks"]).succeeded();
        says(data.stream(&["retention", "clicks", "14d"]), "records of stream clicks are kept for 14d");
        let json = data.stream(&["retention", "clicks", "36h", "--json"]).json();
        assert_eq!(json, json!({"name": "clicks", "retention_seconds": 129_600}));
        assert_eq!(data.stream(&["ls", "--json"]).json()["streams"][0]["retention_seconds"], 129_600);
    });
}

#[test]
fn many_records_are_stored_in_order() {
    both_ways(|data| {
        data.stream(&["create", "clicks"]).succeeded();
        let lines: String = (0..2_500).map(|number| format!("{number}\n")).collect();
        let command = data.command(["put", "clicks", "--lines", "--key", "k"]);
        let ran = run_with_input(command, lines.as_bytes()).succeeded();
        assert!(ran.stdout.starts_with("stored 2,500 records"), "{ran:#?}");
        assert_eq!(data.stream(&["tail", "clicks", "--no-follow"]).succeeded().stdout, lines);
    });
}

#[test]
fn a_small_record_does_not_overtake_a_large_one_of_its_key_that_is_refused_for_now() {
    let data = Data::new();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("limits.toml");
    std::fs::write(&config, "shard_limits = true\n").unwrap();
    let server = Server::start(&data.path(), &["--config", config.to_str().unwrap()]);
    data.stream(&["create", "clicks"]).succeeded();
    // A shard takes 1 MiB a second: it has room for the small one behind a large one for which it has none.
    let line = |number: usize| {
        format!("{number}{}\n", "x".repeat(if number.is_multiple_of(2) { 400_000 } else { 1 }))
    };
    let lines: String = (0..8).map(line).collect();
    let command = data.command(["put", "clicks", "--lines", "--key", "k", "--json"]);
    let report = run_with_input(command, lines.as_bytes()).json();
    assert!(report["retries"].as_u64().unwrap() > 0, "the limit was met: {report}");
    // Whole shards are compared without printing megabytes.
    let stored = data.stream(&["tail", "clicks", "--no-follow"]).succeeded().stdout;
    let firsts = |text: &str| text.lines().map(|line| line[..1].to_owned()).collect::<Vec<_>>();
    assert_eq!(firsts(&stored), firsts(&lines));
    assert!(stored == lines, "the payloads are whole");
    server.stop().succeeded();
}

#[test]
fn help_version_and_completions() {
    let ask = |arguments: &[&str]| {
        let mut command = binary();
        command.args(arguments);
        run(command).succeeded().stdout
    };
    assert_eq!(ask(&["--version"]), format!("anabranch {}\n", env!("CARGO_PKG_VERSION")));
    let help = ask(&["stream", "--help"]);
    for command in ["ls", "create", "describe", "put", "tail", "split", "merge", "retention", "rm"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is missing: {help}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ask(&["completions", shell]);
        assert!(script.contains("anabranch") && script.contains("describe"), "{shell}");
    }
}
