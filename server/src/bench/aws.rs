//! `bench aws`: what the stores on AWS cost beside the bare calls of the SDK, with a server that answers at once.
//!
//! The cost is the time of the processor, not of the clock: both sides run on one thread that does nothing else, and
//! whatever waits for the server costs nothing.

use std::sync::Arc;
use std::time::Duration;

use anabranch_aws::bare::Bare;
use anabranch_aws::{AccessKey, Aws, AwsOptions, Blobs, Queues, Streams, Tables};
use anabranch_engine::SystemClock;
use anabranch_model::blob::{GetOptions, PutOptions};
use anabranch_model::queue::ReceiveOptions;
use anabranch_model::table::{Get, Item, KeyCondition, Query, Write};
use anabranch_model::{
    BlobKey, BlobStore, BucketName, NewMessage, NewRecord, Position, QueueName, QueueStore, ReadLimit,
    Receipt, ShardId, ShardSource, StreamName, StreamStore, TableName, TableStore,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use rustix::time::{ClockId, clock_gettime};

use super::Setting;
use super::answers::{HANDLE, MESSAGE, answers};
use super::machine::Machine;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::stub;
use super::writers::{RECORD_BYTES, incompressible};
use crate::failure::Failure;

/// Records of a batch: as many as Kinesis takes.
pub(super) const BATCH: usize = 500;
/// Messages of a batch: as many as SQS takes.
pub(super) const MESSAGES: usize = 10;
/// Items of a page.
pub(super) const ITEMS: usize = 50;
/// Calls of one side in a round that move a batch of records, and those that move less.
const BATCH_CALLS: usize = 20;
const CALLS: usize = 200;

const COST_GOAL: f64 = 2.0;

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let report = Report::new("aws", Machine::with(setting.place.root()), setting.bounds);
    let rounds = setting.bounds.rounds;
    let only = setting.bounds.clone();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("bench".to_owned())
        .spawn(move || {
            let wants = |case: &str| only.wants(case);
            let _ = sender.send(measure_here(report, rounds, &wants));
        })
        .map_err(|error| Failure::new("system", format!("no thread: {error}"), "try again"))?;
    receiver.await.unwrap_or_else(|_| Err(Failure::new("bench", "the bench broke off", "report this")))
}

/// Everything on this thread, whose processor time is what counts.
fn measure_here(mut report: Report, rounds: usize, wants: &dyn Fn(&str) -> bool) -> Result<Report, Failure> {
    stay_on_one_processor();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("system", error.to_string(), "try again"))?;
    runtime.block_on(async {
        let both = Both::connect().await?;
        macro_rules! case {
            ($name:ident, $side:expr, $what:literal, $ours:ident, $bare:ident) => {
                if wants(stringify!($name)) {
                    let costs =
                        compare(rounds, $side, async || both.$ours().await, async || both.$bare().await).await?;
                    report.figures.push(told(stringify!($name), $what, costs));
                }
            };
        }
        let (records, messages, one, items) =
            (Side(BATCH_CALLS, BATCH), Side(CALLS, MESSAGES), Side(CALLS, 1), Side(CALLS, ITEMS));
        case!(append, records, "500 records of 1 KiB, beside PutRecords", append, put_records);
        case!(read, records, "500 records of 1 KiB, beside GetRecords", read, get_records);
        case!(send, messages, "10 messages of 1 KiB, beside SendMessageBatch", send, send_messages);
        case!(receive, messages, "10 messages of 1 KiB, beside ReceiveMessage", receive, receive_messages);
        case!(delete, messages, "10 messages, beside DeleteMessageBatch", delete, delete_messages);
        case!(put_item, one, "one item of 1 KiB, beside PutItem", put, put_item);
        case!(get_item, one, "one item of 1 KiB, beside GetItem", get, get_item);
        case!(query, items, "50 items of 1 KiB, beside Query", query, query_items);
        case!(put_blob, one, "one blob of 1 KiB, beside a signed request", put_blob, put_object);
        case!(get_blob, one, "one blob of 1 KiB, beside a signed request", get_blob, get_object);
        report.notes.push(
            "processor time of the client's thread for one record, message, item or blob; the server is a stub on \
             other threads that answers at once. No client of the SDK for S3 is part of the program: a blob stands \
             beside a request that is signed and sent, and nothing else"
                .to_owned(),
        );
        Ok(report)
    })
}

/// The threads of the stub begin here and stay here as well. To wake one up on another processor costs as much as a call, and
/// chance would say for which side that has to be done.
#[cfg(target_os = "linux")]
fn stay_on_one_processor() {
    use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    if let Err(error) = sched_setaffinity(None, &here) {
        tracing::warn!(%error, "the bench cannot stay on one processor; ratios may vary by two");
    }
}

#[cfg(not(target_os = "linux"))]
fn stay_on_one_processor() {}

fn told(name: &'static str, what: &str, (ours, bare): (Vec<f64>, Vec<f64>)) -> Figure {
    Figure::beside(name, what.to_owned(), Unit::Microseconds, Spread::of(ours), Spread::of(bare))
        .aim(Goal::RatioAtMost(COST_GOAL))
}

/// How much a side does in a round: calls, and what each of them moves.
#[derive(Clone, Copy)]
struct Side(usize, usize);

impl Side {
    /// Microseconds of the processor for one part.
    async fn cost(self, call: &impl AsyncFn() -> Result<usize, Failure>) -> Result<f64, Failure> {
        let Side(calls, expected) = self;
        let started = processor_time();
        for _ in 0..calls {
            let parts = call().await?;
            if parts != expected {
                let why = format!("{parts} of {expected} came back");
                return Err(Failure::new("bench", why, "report this"));
            }
        }
        let spent = processor_time().saturating_sub(started);
        Ok(spent.as_secs_f64() * 1e6 / (calls * expected) as f64)
    }
}

/// Our calls and the bare ones in turn, after a round that does not count.
async fn compare(
    rounds: usize,
    side: Side,
    ours: impl AsyncFn() -> Result<usize, Failure>,
    bare: impl AsyncFn() -> Result<usize, Failure>,
) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    side.cost(&ours).await?;
    side.cost(&bare).await?;
    let (mut our_costs, mut bare_costs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        our_costs.push(side.cost(&ours).await?);
        bare_costs.push(side.cost(&bare).await?);
    }
    Ok((our_costs, bare_costs))
}

/// What this thread has used of the processor so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The stores, the bare calls, and what they move.
struct Both {
    streams: Streams,
    queues: Queues,
    tables: Tables,
    blobs: Blobs,
    bare: Bare,
    url: String,
    stream: StreamName,
    shard: ShardId,
    queue: QueueName,
    table: TableName,
    bucket: BucketName,
    key: BlobKey,
    records: Vec<(String, Bytes)>,
    bodies: Vec<String>,
    handles: Vec<String>,
    receipts: Vec<Receipt>,
    text: String,
}

impl Both {
    async fn connect() -> Result<Both, Failure> {
        let data = incompressible(1, RECORD_BYTES * 3 / 4);
        let text = BASE64_STANDARD.encode(&data);
        let address = stub::start(answers(&text))
            .map_err(|error| Failure::new("system", format!("no stub: {error}"), "try again"))?;
        let endpoint = format!("http://{address}");
        let options = AwsOptions {
            endpoint: Some(endpoint.clone()),
            region: Some("us-east-1".to_owned()),
            key: Some(AccessKey { id: "AKIDEXAMPLE".to_owned(), secret: "secret".to_owned() }),
            ..AwsOptions::default()
        };
        let aws = Aws::connect(options, Arc::new(SystemClock::new()), 1).await?;
        Ok(Both {
            streams: Streams::new(&aws),
            queues: Queues::new(&aws),
            tables: Tables::new(&aws),
            blobs: Blobs::new(&aws)?,
            bare: Bare::new(&aws)?,
            url: format!("{endpoint}/000000000000/bench"),
            stream: StreamName::new("bench")?,
            shard: ShardId::new("shardId-000000000000")?,
            queue: QueueName::new("bench")?,
            table: TableName::new("bench")?,
            bucket: BucketName::new("bench")?,
            key: BlobKey::new("folder/blob")?,
            records: (0..BATCH)
                .map(|number| (format!("key {number}"), incompressible(number as u64, RECORD_BYTES).into()))
                .collect(),
            bodies: vec![text.clone(); MESSAGES],
            handles: (0..MESSAGES).map(|number| format!("{HANDLE}{number}")).collect(),
            receipts: (0..MESSAGES)
                .map(|number| Receipt::new(&format!("{MESSAGE}/{HANDLE}{number}")))
                .collect::<Result<_, _>>()?,
            text,
        })
    }

    async fn append(&self) -> Result<usize, Failure> {
        let record = |(key, data): &(String, Bytes)| NewRecord::new(key.clone(), data.clone());
        let stored = self.streams.append(&self.stream, self.records.iter().map(record).collect()).await?;
        Ok(stored.iter().filter(|stored| stored.is_ok()).count())
    }

    async fn put_records(&self) -> Result<usize, Failure> {
        Ok(self.bare.put_records(self.stream.as_str(), &self.records).await?)
    }

    async fn read(&self) -> Result<usize, Failure> {
        let limit = ReadLimit { records: BATCH, ..ReadLimit::default() };
        let from = Position::TrimHorizon;
        Ok(self.streams.read(&self.stream, &self.shard, from, limit).await?.records.len())
    }

    async fn get_records(&self) -> Result<usize, Failure> {
        Ok(self.bare.get_records("iterator", BATCH as i32).await?)
    }

    async fn send(&self) -> Result<usize, Failure> {
        let message = |body: &String| NewMessage::new(body.clone());
        let sent = self.queues.send(&self.queue, self.bodies.iter().map(message).collect()).await?;
        Ok(sent.iter().filter(|sent| sent.is_ok()).count())
    }

    async fn send_messages(&self) -> Result<usize, Failure> {
        Ok(self.bare.send_messages(&self.url, &self.bodies).await?)
    }

    async fn receive(&self) -> Result<usize, Failure> {
        let options = ReceiveOptions { messages_max: MESSAGES, ..ReceiveOptions::default() };
        Ok(self.queues.receive(&self.queue, options).await?.len())
    }

    async fn receive_messages(&self) -> Result<usize, Failure> {
        Ok(self.bare.receive_messages(&self.url, MESSAGES as i32).await?)
    }

    async fn delete(&self) -> Result<usize, Failure> {
        let deleted = self.queues.delete(&self.queue, self.receipts.clone()).await?;
        Ok(deleted.iter().filter(|deleted| deleted.is_ok()).count())
    }

    async fn delete_messages(&self) -> Result<usize, Failure> {
        Ok(self.bare.delete_messages(&self.url, &self.handles).await?)
    }

    async fn put(&self) -> Result<usize, Failure> {
        let item = Item::new().with("id", "a").with("text", self.text.as_str());
        self.tables.write(&self.table, Write::put(item)).await?;
        Ok(1)
    }

    async fn put_item(&self) -> Result<usize, Failure> {
        self.bare.put_item(self.table.as_str(), &[("id", "a"), ("text", &self.text)]).await?;
        Ok(1)
    }

    async fn get(&self) -> Result<usize, Failure> {
        Ok(self.tables.get(&self.table, Get::new(Item::new().with("id", "a"))).await?.iter().len())
    }

    async fn get_item(&self) -> Result<usize, Failure> {
        Ok(usize::from(self.bare.get_item(self.table.as_str(), &[("id", "a")]).await? > 0))
    }

    async fn query(&self) -> Result<usize, Failure> {
        let query = Query::new(KeyCondition::of("id", "a"));
        Ok(self.tables.query(&self.table, query).await?.items.len())
    }

    async fn query_items(&self) -> Result<usize, Failure> {
        Ok(self.bare.query(self.table.as_str(), ("id", "a")).await?)
    }

    async fn put_blob(&self) -> Result<usize, Failure> {
        let body = stream::iter([Ok(self.records[0].1.clone())]);
        self.blobs.put(&self.bucket, &self.key, Box::pin(body), PutOptions::default()).await?;
        Ok(1)
    }

    async fn put_object(&self) -> Result<usize, Failure> {
        self.bare.put_object(&self.bucket, &self.key, &self.records[0].1).await?;
        Ok(1)
    }

    async fn get_blob(&self) -> Result<usize, Failure> {
        let mut body = self.blobs.get(&self.bucket, &self.key, GetOptions::default()).await?.body;
        let mut bytes = 0;
        while let Some(piece) = body.next().await {
            bytes += piece?.len();
        }
        Ok(usize::from(bytes == self.text.len()))
    }

    async fn get_object(&self) -> Result<usize, Failure> {
        Ok(usize::from(self.bare.get_object(&self.bucket, &self.key).await? == self.text.len()))
    }
}
