//! Stores in memory, with time that jumps to the next event.
#![allow(dead_code, reason = "each test uses a part")]

pub mod flaky;
pub mod slow;
pub mod table;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use anabranch_bus::archive::{Documents, Pair, Shape, Verification, verify};
use anabranch_bus::flow::{Flow, FlowError, Ports};
use anabranch_bus::{Bot, Handle};
use anabranch_model::blob::{GetOptions, ListOptions};
use anabranch_model::laws::reference::{ReferenceTables, SimpleQueues, SimpleStreams};
use anabranch_model::queue::ReceiveOptions;
use anabranch_model::table::{ChangeView, Item, KeyKind, KeySchema, TableOptions, Write};
use anabranch_model::{
    BlobKey, BlobStore, BucketName, Clock, QueueName, QueueOptions, QueueStore, TableName, TableStore,
    Timestamp,
};
use bytes::Bytes;
use flaky::FlakyBlobs;
use futures_util::StreamExt;
use tokio::task::JoinHandle;

/// The clock of the runtime, which jumps when everybody waits.
pub struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    #[expect(clippy::disallowed_methods, reason = "the runtime's clock is the one that the test moves")]
    pub fn new() -> Arc<Self> {
        Arc::new(RuntimeClock(tokio::time::Instant::now()))
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[expect(clippy::disallowed_methods, reason = "time is simulated")]
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

pub const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub struct World {
    pub tables: ReferenceTables,
    pub blobs: FlakyBlobs,
    pub queues: SimpleQueues,
    pub streams: SimpleStreams,
    pub clock: Arc<dyn Clock>,
    pub table: TableName,
    pub bucket: BucketName,
}

/// A bot that runs.
pub struct Running {
    pub handle: Handle,
    pub task: JoinHandle<anabranch_model::Result<()>>,
}

impl Running {
    /// Stops it properly.
    pub async fn stop(self) {
        self.handle.stop();
        self.task.await.expect("no panic").expect("it ran");
    }

    /// Stops it as a crash does.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err(), "it was running");
    }
}

pub fn start(bot: Bot) -> Running {
    Running { handle: bot.handle(), task: tokio::spawn(bot.run()) }
}

impl World {
    /// With a table whose changes are written down, a bucket and a queue for dead letters.
    pub async fn new() -> Self {
        let world = World {
            tables: ReferenceTables::new(),
            blobs: FlakyBlobs::default(),
            queues: SimpleQueues::new(),
            streams: SimpleStreams::new(),
            clock: RuntimeClock::new(),
            table: TableName::new("people").unwrap(),
            bucket: BucketName::new("archive").unwrap(),
        };
        let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text)).with_changes(ChangeView::Both);
        world.tables.create_table(&world.table, options).await.unwrap();
        world.blobs.create_bucket(&world.bucket).await.unwrap();
        let dead = QueueName::new("dead").unwrap();
        world.queues.create_queue(&dead, QueueOptions::default()).await.unwrap();
        world
    }

    pub fn ports(&self) -> Ports {
        Ports {
            streams: Arc::new(self.streams.clone()),
            queues: Arc::new(self.queues.clone()),
            tables: Arc::new(self.tables.clone()),
            blobs: Arc::new(self.blobs.clone()),
            keyspaces: None,
            clock: self.clock.clone(),
            region: "eu-north-1".to_owned(),
            steps: BTreeMap::new(),
        }
    }

    /// The only bot of a file.
    pub async fn bot(&self, text: &str) -> Result<Bot, FlowError> {
        let flow = Flow::parse("test.toml", text)?;
        flow.assemble(flow.bot(None)?, &self.ports()).await
    }

    pub async fn run(&self, text: &str) -> Running {
        start(self.bot(text).await.unwrap())
    }

    pub async fn put(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let item = Item::new().with("id", format!("{number:04}")).with("n", number as u64);
            self.tables.write(&self.table, Write::put(item)).await.unwrap();
        }
    }

    pub async fn remove(&self, number: usize) {
        let key = Item::new().with("id", format!("{number:04}"));
        self.tables.write(&self.table, Write::delete(key)).await.unwrap();
    }

    /// The bodies of all blobs below a prefix, unpacked.
    pub async fn stored(&self, prefix: &str) -> BTreeMap<String, String> {
        let mut stored = BTreeMap::new();
        let mut after = None;
        loop {
            let options = ListOptions { prefix: prefix.to_owned(), after, ..ListOptions::default() };
            let page = self.blobs.list(&self.bucket, options).await.unwrap();
            for summary in page.entries {
                stored.insert(summary.key.as_str().to_owned(), self.body(&summary.key).await);
            }
            after = page.next;
            if after.is_none() {
                return stored;
            }
        }
    }

    /// The documents of the archive by the numbers of their changes.
    pub async fn documents(&self) -> Vec<serde_json::Value> {
        let stored = self.stored("tables/people/20").await;
        let lines = stored.values().flat_map(|body| body.lines());
        let mut documents: Vec<serde_json::Value> =
            lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let number = |document: &serde_json::Value| {
            document["dynamodb"]["SequenceNumber"].as_str().unwrap().parse::<u128>().unwrap()
        };
        documents.sort_by_key(number);
        documents
    }

    /// The bytes of a blob as they are.
    pub async fn bytes(&self, key: &BlobKey) -> Bytes {
        let mut blob = self.blobs.get(&self.bucket, key, GetOptions::default()).await.unwrap();
        let mut bytes = Vec::new();
        while let Some(piece) = blob.body.next().await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        bytes.into()
    }

    /// The bytes of all blobs.
    pub async fn raw(&self) -> BTreeMap<String, Bytes> {
        let mut raw = BTreeMap::new();
        for key in self.stored("").await.into_keys() {
            let bytes = self.bytes(&BlobKey::new(&key).unwrap()).await;
            raw.insert(key, bytes);
        }
        raw
    }

    async fn body(&self, key: &BlobKey) -> String {
        let bytes = self.bytes(key).await;
        if bytes.starts_with(b"PAR1") {
            return table::lines(&table::rows(bytes));
        }
        let mut text = String::new();
        match bytes.starts_with(&[0x1f, 0x8b]) {
            true => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap(),
            false => (&bytes[..]).read_to_string(&mut text).unwrap(),
        };
        text
    }

    /// What lies in a queue, without taking it away for good.
    pub async fn letters(&self) -> Vec<serde_json::Value> {
        let name = QueueName::new("dead").unwrap();
        let mut letters = Vec::new();
        loop {
            let messages = self.queues.receive(&name, ReceiveOptions::all()).await.unwrap();
            if messages.is_empty() {
                return letters;
            }
            letters.extend(messages.iter().map(|message| serde_json::from_slice(&message.body).unwrap()));
        }
    }

    /// Waits until something holds, and fails after a while.
    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let began = self.clock.elapsed();
        while !holds().await {
            assert!(self.clock.elapsed() - began <= seconds(600), "{what}: not in time");
            pause(Duration::from_millis(10)).await;
        }
    }

    /// Compares the table with its archive.
    pub async fn verify(&self) -> Verification {
        let flow = Flow::parse("test.toml", SINGLE).unwrap();
        let archive = flow.archive(flow.bot(None).unwrap(), &self.ports()).await.unwrap();
        assert_eq!(archive.documents.shape, Shape::Items);
        let pair = Pair {
            tables: &self.tables,
            table: &archive.table,
            blobs: &self.blobs,
            bucket: &archive.bucket,
            template: &archive.template,
            documents: &Documents { view: ChangeView::Both, ..archive.documents },
            partial: false,
        };
        verify(&pair, &mut |_, _| {}).await.unwrap()
    }
}

/// One blob for each change.
pub const SINGLE: &str = r#"
[[bot]]
name = "people-archive"
source = { table = "people" }
sink = { blobs = "archive" }
failure = { attempts = 3, dead_letters = { queue = "dead" } }
leases = { seconds = 2 }
"#;

/// Ten changes in a blob.
pub const TENS: &str = r#"
[[bot]]
name = "people-archive"
source = { table = "people" }
sink = { blobs = "archive" }
batch = { records = 10, seconds = 5 }
failure = { attempts = 3, dead_letters = { queue = "dead" } }
leases = { seconds = 2 }
"#;

/// Ten changes in a blob of columns.
pub const COLUMNS: &str = r#"
[[bot]]
name = "people-archive"
source = { table = "people" }
sink = { blobs = "archive" }
batch = { format = "parquet", records = 10, seconds = 5 }
failure = { attempts = 3, dead_letters = { queue = "dead" } }
leases = { seconds = 2 }
"#;
