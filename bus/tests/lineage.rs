//! The changes of a table on the real engine, when the table is deleted and made again and when changes are turned off and on:
//! the bot finishes one stream and goes on with the next, from its beginning and with leases of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../consumer/tests/logs/mod.rs"]
mod logs;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anabranch_bus::flow::{Flow, Ports};
use anabranch_bus::{Event, Handle, Origin, Refusal, Step};
use anabranch_consumer::{Application, Checkpoint, Lease};
use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::blob::{GetOptions, ListOptions};
use anabranch_model::table::{
    Alteration, Change, ChangeView, Item, KeyKind, KeySchema, TableOptions, TableStore, Value, Write,
};
use anabranch_model::{BlobStore, BucketName, StreamName, TableName};
use async_trait::async_trait;
use futures_util::StreamExt;
use logs::Logs;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// The longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
const GOES_ON: &str = "goes on with the next one";

const FLOW: &str = r#"
[[bot]]
name = "people-archive"
source = { table = "people" }
sink = { blobs = "archive" }
steps = ["note"]
leases = { seconds = 1 }
"#;

/// What came, in its order: the text of each document.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(StreamName, u64)>>>);

#[async_trait]
impl Step for Seen {
    fn name(&self) -> &str {
        "note"
    }

    async fn apply(&self, event: Event) -> Result<Vec<Event>, Refusal> {
        let change = Change::decode(&event.data).expect("a change");
        let Origin::Shard { stream, .. } = &event.origin else { panic!("of no shard") };
        let number = change.new.and_then(|item| item.get("n").cloned()).expect("a number");
        let Value::Number(number) = number else { panic!("{number:?}") };
        self.0.lock().push((stream.clone(), number.as_i128().expect("whole") as u64));
        Ok(vec![event])
    }
}

impl Seen {
    fn all(&self) -> Vec<u64> {
        self.0.lock().iter().map(|(_, number)| *number).collect()
    }

    /// The streams in the order in which they were read.
    fn streams(&self) -> Vec<StreamName> {
        let mut streams: Vec<_> = self.0.lock().iter().map(|(stream, _)| stream.clone()).collect();
        streams.dedup();
        streams
    }
}

struct Stage {
    engine: Engine,
    clock: Arc<SystemClock>,
    seen: Seen,
    _folder: TempDir,
}

struct Running {
    handle: Handle,
    task: JoinHandle<anabranch_model::Result<()>>,
}

impl Running {
    async fn stop(self) {
        self.handle.stop();
        self.task.await.unwrap().unwrap();
    }

    /// Stops it as a crash does.
    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err(), "it was running");
    }
}

fn people() -> TableName {
    TableName::new("people").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the engine runs in real time")]
async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            pause(LOOK).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{what}: not in time");
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = SystemDisk::open(folder.path()).unwrap();
        let clock = Arc::new(SystemClock::new());
        let engine = Engine::open(Arc::new(disk), clock.clone(), Options::default()).unwrap();
        engine.create_bucket(&BucketName::new("archive").unwrap()).await.unwrap();
        let stage = Stage { engine, clock, seen: Seen::default(), _folder: folder };
        stage.create().await;
        stage
    }

    async fn create(&self) {
        let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text)).with_changes(ChangeView::Both);
        self.engine.create_table(&people(), options).await.unwrap();
    }

    async fn create_again(&self) {
        self.engine.delete_table(&people()).await.unwrap();
        self.create().await;
    }

    async fn turn(&self, view: Option<ChangeView>) {
        self.engine.alter(&people(), Alteration::Changes(view)).await.unwrap();
    }

    async fn put(&self, numbers: Range<u64>) {
        for number in numbers {
            // The items of the next table are called as those of the one before.
            let item = Item::new().with("id", format!("{}", number % 10)).with("n", number);
            self.engine.write(&people(), Write::put(item)).await.unwrap();
        }
    }

    async fn stream(&self) -> StreamName {
        self.engine.table(&people()).await.unwrap().changes.unwrap()
    }

    async fn run(&self, text: &str) -> Running {
        let seen: Arc<dyn Step> = Arc::new(self.seen.clone());
        let ports = Ports {
            streams: Arc::new(self.engine.clone()),
            queues: Arc::new(self.engine.clone()),
            tables: Arc::new(self.engine.clone()),
            blobs: Arc::new(self.engine.clone()),
            keyspaces: None,
            clock: self.clock.clone(),
            region: "us-east-1".to_owned(),
            steps: BTreeMap::from([("note".to_owned(), seen)]),
        };
        let flow = Flow::parse("test.toml", text).unwrap();
        let bot = flow.assemble(&flow.bots[0], &ports).await.unwrap();
        Running { handle: bot.handle(), task: tokio::spawn(bot.run()) }
    }

    async fn until_seen(&self, count: u64) {
        until(&format!("{count} changes"), async || {
            let seen = self.seen.all();
            (0..count).all(|number| seen.contains(&number))
        })
        .await;
    }

    /// The leases of a stream.
    async fn leases(&self, stream: &StreamName) -> Vec<Lease> {
        let table = TableName::new("keyspaces-streamer-tables-people").unwrap();
        let Ok(application) = Application::open(Arc::new(self.engine.clone()), &table).await else {
            return Vec::new();
        };
        let mut leases = application.leases().await.unwrap();
        leases.retain(|lease| lease.stream.as_deref() == Some(stream.as_str()));
        leases
    }

    /// How many documents of each view lie in the archive.
    async fn views(&self) -> BTreeMap<String, usize> {
        let bucket = BucketName::new("archive").unwrap();
        let page = self.engine.list(&bucket, ListOptions::default()).await.unwrap();
        let mut views = BTreeMap::new();
        for summary in page.entries {
            let blob = BlobStore::get(&self.engine, &bucket, &summary.key, GetOptions::default()).await;
            let body: Vec<_> = blob.unwrap().body.map(Result::unwrap).collect().await;
            let document: serde_json::Value = serde_json::from_slice(&body.concat()).unwrap();
            let view = document["dynamodb"]["StreamViewType"].as_str().unwrap();
            *views.entry(view.to_owned()).or_default() += 1;
        }
        views
    }

    /// The older stream is at its end, and its leases say nothing about the younger one.
    async fn check_leases(&self, old: &StreamName, new: &StreamName) {
        assert_ne!(old, new);
        for lease in self.leases(old).await {
            assert_eq!(lease.checkpoint, Checkpoint::ShardEnd, "{lease:?}");
        }
        let leases = self.leases(new).await;
        assert_eq!(leases.len(), 4, "a lease for each shard: {leases:?}");
        for lease in leases {
            assert_ne!(lease.checkpoint, Checkpoint::ShardEnd, "{lease:?}");
        }
    }
}

#[tokio::test]
async fn a_table_that_is_made_again_under_a_running_bot_is_followed_from_its_beginning() {
    let logs = Logs::default();
    let _guard = logs.collect();
    let stage = Stage::new().await;
    let old = stage.stream().await;
    // Where reading began the first time says nothing about the next stream.
    let bot = stage.run(&FLOW.replace("table = \"people\"", "table = \"people\", from = \"latest\"")).await;
    until("leases that know where the end was", async || {
        let leases = stage.leases(&old).await;
        leases.len() == 4 && leases.iter().all(|lease| lease.checkpoint != Checkpoint::Latest)
    })
    .await;
    stage.put(0..30).await;
    stage.create_again().await;
    stage.put(30..60).await;
    let new = stage.stream().await;
    stage.until_seen(60).await;
    stage.put(60..65).await;
    stage.until_seen(65).await;
    bot.stop().await;
    let mut seen = stage.seen.all();
    seen.sort_unstable();
    assert_eq!(seen, (0..65).collect::<Vec<_>>(), "each once");
    assert_eq!(stage.seen.streams(), [old.clone(), new.clone()], "one after the other");
    stage.check_leases(&old, &new).await;
    let said = logs.with(GOES_ON);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains(&format!("ended={old}")) && said[0].contains(&format!("next={new}")),
        "{said:?}"
    );
    stage.engine.close().await.unwrap();
}

#[tokio::test]
async fn changes_that_are_turned_off_and_on_under_a_running_bot_are_followed() {
    let logs = Logs::default();
    let _guard = logs.collect();
    let stage = Stage::new().await;
    let mut streams = vec![stage.stream().await];
    let bot = stage.run(FLOW).await;
    stage.put(0..10).await;
    for round in 1..3 {
        stage.turn(None).await;
        until("the end of a stream", async || logs.with("there is no other one yet").len() == round).await;
        stage.turn(Some(ChangeView::New)).await;
        streams.push(stage.stream().await);
        stage.put(round as u64 * 10..round as u64 * 10 + 10).await;
        stage.until_seen(round as u64 * 10 + 10).await;
    }
    bot.stop().await;
    assert_eq!(stage.seen.all().len(), 30, "each once");
    assert_eq!(stage.seen.streams(), streams);
    stage.check_leases(&streams[1], &streams[2]).await;
    assert_eq!(logs.with(GOES_ON).len(), 2);
    // Documents say what the stream says that they come from.
    let views = stage.views().await;
    assert_eq!(views, BTreeMap::from([("NEW_AND_OLD_IMAGES".into(), 10), ("NEW_IMAGE".into(), 20)]));
    stage.engine.close().await.unwrap();
}

async fn stopped_in_between(crash: bool, from: &str) {
    let stage = Stage::new().await;
    let old = stage.stream().await;
    let text = FLOW.replace("table = \"people\"", &format!("table = \"people\", from = \"{from}\""));
    let bot = stage.run(&text).await;
    until("leases that know where the end was", async || {
        let leases = stage.leases(&old).await;
        leases.len() == 4 && leases.iter().all(|lease| lease.checkpoint != Checkpoint::Latest)
    })
    .await;
    stage.put(0..10).await;
    stage.until_seen(10).await;
    match crash {
        true => bot.kill().await,
        false => bot.stop().await,
    }
    stage.put(10..20).await;
    stage.create_again().await;
    stage.put(20..30).await;
    let new = stage.stream().await;
    let again = stage.run(&text).await;
    stage.until_seen(30).await;
    again.stop().await;
    let seen = stage.seen.all();
    let first_new = seen.iter().position(|number| *number >= 20).unwrap();
    assert!(seen[first_new..].iter().all(|number| *number >= 20), "the older one first: {seen:?}");
    assert_eq!(stage.seen.streams(), [old.clone(), new.clone()]);
    if !crash {
        assert_eq!(seen.len(), 30, "each once: {seen:?}");
    }
    stage.check_leases(&old, &new).await;
    // The older stream is still there, and nothing of it is read once more.
    let third = stage.run(&text).await;
    stage.put(30..31).await;
    stage.until_seen(31).await;
    third.stop().await;
    assert_eq!(stage.seen.all().len(), seen.len() + 1);
    stage.engine.close().await.unwrap();
}

#[tokio::test]
async fn what_an_older_stream_still_holds_is_read_by_a_bot_that_was_stopped_meanwhile() {
    stopped_in_between(false, "trim-horizon").await;
}

#[tokio::test]
async fn what_an_older_stream_still_holds_is_read_after_a_crash_and_the_younger_one_from_its_beginning() {
    stopped_in_between(true, "latest").await;
}

/// Of four streams two begin and end while nobody reads them.
async fn away_for_whole_streams(crash: bool) {
    let stage = Stage::new().await;
    let mut streams = vec![stage.stream().await];
    let bot = stage.run(FLOW).await;
    stage.put(0..10).await;
    stage.until_seen(10).await;
    match crash {
        true => bot.kill().await,
        false => bot.stop().await,
    }
    stage.put(10..20).await;
    stage.create_again().await;
    streams.push(stage.stream().await);
    stage.put(20..30).await;
    stage.turn(None).await;
    stage.turn(Some(ChangeView::New)).await;
    streams.push(stage.stream().await);
    stage.put(30..40).await;
    stage.create_again().await;
    streams.push(stage.stream().await);
    stage.put(40..50).await;
    let again = stage.run(FLOW).await;
    stage.until_seen(50).await;
    again.stop().await;
    assert_eq!(stage.seen.streams(), streams, "one after the other");
    let seen = stage.seen.all();
    if !crash {
        assert_eq!(seen.len(), 50, "each once: {seen:?}");
    }
    stage.check_leases(&streams[2], &streams[3]).await;
    // Nothing of them is read once more.
    let third = stage.run(FLOW).await;
    stage.put(50..51).await;
    stage.until_seen(51).await;
    third.stop().await;
    assert_eq!(stage.seen.all().len(), seen.len() + 1);
    stage.engine.close().await.unwrap();
}

#[tokio::test]
async fn streams_that_began_and_ended_while_a_bot_was_stopped_are_read_in_their_order() {
    away_for_whole_streams(false).await;
}

#[tokio::test]
async fn streams_that_began_and_ended_after_a_bot_crashed_are_read_in_their_order() {
    away_for_whole_streams(true).await;
}
