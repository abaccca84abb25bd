//! Files with bots: what is wrong is refused at the start, with the line and what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use anabranch_bus::flow::Flow;
use anabranch_model::table::{KeyKind, KeySchema, TableOptions};
use anabranch_model::{QueueName, QueueOptions, QueueStore, TableName, TableStore};
use world::{SINGLE, World};

/// A file whose second bot is `bot`, which begins in line 6.
fn file(bot: &str) -> String {
    let first =
        "[[bot]]\nname = \"first\"\nsource = { table = \"people\" }\nsink = { blobs = \"archive\" }\n";
    format!("{first}[[bot]]\n{bot}")
}

#[track_caller]
fn refused(bot: &str, line: usize, words: &[&str]) {
    let text = file(bot);
    let error = Flow::parse("flows/test.toml", &text).unwrap_err();
    assert_eq!(error.line, line, "{error}");
    let shown = format!("{error} / {}", error.hint);
    assert!(shown.starts_with("flows/test.toml, line "), "{shown}");
    for word in words {
        assert!(shown.contains(word), "`{word}` is missing: {shown}");
    }
}

#[test]
fn files_that_cannot_be_right_are_refused_with_the_line() {
    let rest = "source = { table = \"people\" }\nsink = { blobs = \"archive\" }\n";
    refused(&format!("name = \"a\"\nsteppes = []\n{rest}"), 7, &["steppes", "name, source, sink"]);
    refused(&format!("name = \"first\"\n{rest}"), 6, &["two bots", "another name"]);
    refused(&format!("name = \"a b\"\n{rest}"), 6, &["a b"]);
    refused("name = \"a\"\nsource = { table = \"people\" }\n", 5, &["sink"]);
    refused("name = \"a\"\nsource = { table = 7 }\nsink = { blobs = \"archive\" }\n", 7, &["integer"]);
    let with = |source: &str| format!("name = \"a\"\nsource = {source}\nsink = {{ blobs = \"archive\" }}\n");
    refused(&with("{}"), 7, &["one source"]);
    refused(&with("{ table = \"people\", queue = \"work\" }"), 7, &["one source"]);
    refused(&with("{ stream = \"s\", keyspace = \"k\" }"), 7, &["keyspace", "a table"]);
    refused(&with("{ table = \"people\", in_flight = 3 }"), 7, &["in_flight", "a queue"]);
    refused(&with("{ table = \"people\", from = \"noon\" }"), 7, &["noon", "trim-horizon"]);
    refused(&with("{ queue = \"work\", messages = 11 }"), 7, &["11", "1 to 10"]);
    refused(&with("{ queue = \"work\", in_flight = 0 }"), 7, &["in_flight"]);
    refused(&with("{ queue = \"work\", visibility_seconds = 0 }"), 7, &["hidden"]);
    refused(&format!("{}batch = {{}}\n", with("{ queue = \"work\" }")), 9, &["order"]);
    let sink = |sink: &str| format!("name = \"a\"\nsource = {{ table = \"people\" }}\nsink = {sink}\n");
    refused(&sink("{}"), 8, &["bucket"]);
    refused(&sink("{ blobs = \"archive\", key = \"{table}/{date}.json\" }"), 8, &["{sequence}"]);
    refused(&sink("{ blobs = \"archive\", key = \"{table}/{sequenz}\" }"), 8, &["{sequenz}", "{keyspace}"]);
    refused(&sink("{ blobs = \"archive\", key = \"../{sequence}\" }"), 8, &["`..`"]);
    refused(&sink("{ blobs = \"archive\", key = \"{stream}/{sequence}\" }"), 8, &["no stream"]);
    let more = |more: &str| format!("name = \"a\"\n{rest}{more}\n");
    refused(&more("batch = { records = 0 }"), 9, &["0 events"]);
    refused(&more("batch = { megabytes = 65 }"), 9, &["64 megabytes"]);
    refused(&more("batch = { format = \"avro\" }"), 9, &["avro", "`lines`", "`parquet`"]);
    let columns = "batch = { format = \"parquet\" }\n";
    refused(&format!("{}{columns}", with("{ stream = \"clicks\" }")), 9, &["columns", "leave `format` out"]);
    refused(&format!("{}{columns}", with("{ queue = \"work\" }")), 9, &["order"]);
    let named = |end: &str| sink(&format!("{{ blobs = \"archive\", key = \"{{sequence}}{end}\" }}"));
    refused(&format!("{}{columns}", named(".json")), 8, &["ends in .parquet", "{sequence}.parquet"]);
    refused(&named(".parquet"), 8, &["no Parquet file", "format = \"parquet\""]);
    refused(&format!("{}batch = {{}}\n", named(".parquet")), 8, &["no Parquet file"]);
    refused(&more("failure = { attempts = 0 }"), 9, &["attempts"]);
    refused(&more("failure = { dead_letters = {} }"), 9, &["one place"]);
    refused(&more("failure = { dead_letters = { queue = \"a\", blobs = \"b\" } }"), 9, &["one place"]);
    refused(&more("leases = { table = \"x-{stream}\" }"), 9, &["{stream}"]);
    refused(&more("leases = { table = \"x\" }"), 9, &["too short"]);
    let error = Flow::parse("empty.toml", "# nothing\n").unwrap_err();
    assert!(error.message.contains("no bot"), "{error}");
}

/// What a file names has to be there when its bot begins.
#[tokio::test(start_paused = true)]
async fn what_is_missing_is_named_with_its_place() {
    let world = World::new().await;
    let plain = TableName::new("plain").unwrap();
    world.tables.create_table(&plain, TableOptions::new(KeySchema::hash("id", KeyKind::Text))).await.unwrap();
    let ordered = QueueName::new("dead.fifo").unwrap();
    world.queues.create_queue(&ordered, QueueOptions::fifo()).await.unwrap();
    for (from, to, words) in [
        (
            "table = \"people\"",
            "table = \"nobody\"",
            ["line 4", "`nobody` does not exist", "anabranch table create"],
        ),
        ("table = \"people\"", "table = \"plain\"", ["line 4", "not written down", "--changes both"]),
        (
            "table = \"people\"",
            "table = \"people\", keyspace = \"media\"",
            ["line 4", "in no keyspace", "keyspace"],
        ),
        ("table = \"people\"", "stream = \"clicks\"", ["line 4", "`clicks` does not exist", "stream create"]),
        ("table = \"people\"", "queue = \"clicks\"", ["line 4", "`clicks` does not exist", "queue create"]),
        ("blobs = \"archive\"", "blobs = \"nowhere\"", ["line 5", "`nowhere` does not exist", "blob create"]),
        ("blobs = \"archive\"", "blobs = \"No Bucket\"", ["line 5", "No Bucket", ""]),
        ("queue = \"dead\"", "queue = \"limbo\"", ["line 6", "`limbo` does not exist", "queue create"]),
        ("queue = \"dead\"", "queue = \"dead.fifo\"", ["line 6", "`dead.fifo` is FIFO", "change the file"]),
    ] {
        let text = SINGLE.replace(from, to);
        let text = match to.contains("clicks") {
            // Leases of a queue are refused before anything is looked for.
            true => text.replace("leases = { seconds = 2 }", ""),
            false => text,
        };
        let error = world.bot(&text).await.err().expect(to);
        let shown = format!("{error} / {}", error.hint);
        for word in words {
            assert!(shown.contains(word), "`{word}` is missing: {shown}");
        }
    }
    let error = world.bot(&SINGLE.replace("sink =", "steps = [\"jump\"]\nsink =")).await.err().unwrap();
    assert!(error.to_string().contains("line 5: there is no step `jump`"), "{error}");
}

/// A queue into blobs: named by its identifier, a message that comes again is written over itself.
#[tokio::test(start_paused = true)]
async fn messages_go_into_blobs_named_by_them() {
    let world = World::new().await;
    let work = QueueName::new("work").unwrap();
    world.queues.create_queue(&work, QueueOptions::default()).await.unwrap();
    let sent = world.queues.send(&work, vec![anabranch_model::NewMessage::new("hello")]).await.unwrap();
    let id = sent[0].as_ref().unwrap().id.clone();
    let text = SINGLE
        .replace("table = \"people\"", "queue = \"work\", in_flight = 1, messages = 1")
        .replace("leases = { seconds = 2 }", "");
    let bot = world.run(&text).await;
    world.until("the blob", async || world.stored("work/").await.len() == 1).await;
    bot.stop().await;
    let stored = world.stored("work/").await;
    let (key, body) = stored.first_key_value().unwrap();
    assert_eq!(*key, format!("work/2023-11-14/{id}"));
    assert_eq!(body, "hello");
}
