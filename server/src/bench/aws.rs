//! `bench aws`: what the stores on AWS cost beside the bare calls of the SDK, with a server that answers at once.
//!
//! The cost is the time of the processor, not of the clock: both sides run on one thread that does nothing else, and
//! whatever waits for the server costs nothing.

use std::sync::Arc;
use std::time::Duration;

use anabranch_aws::bare::Bare;
use anabranch_aws::{AccessKey, Aws, AwsOptions, Queues, Streams, Tables};
use anabranch_engine::SystemClock;
use anabranch_model::queue::ReceiveOptions;
use anabranch_model::table::{Get, Item, Write};
use anabranch_model::{
    NewMessage, NewRecord, Position, QueueName, QueueStore, ReadLimit, ShardId, ShardSource, StreamName,
    StreamStore, TableName, TableStore,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::Setting;
use super::machine::Machine;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::stub::{self, Answers};
use super::writers::{RECORD_BYTES, incompressible};
use crate::failure::Failure;

/// Records of a batch: as many as Kinesis takes.
const BATCH: usize = 500;
/// Messages of a batch: as many as SQS takes.
const MESSAGES: usize = 10;
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("system", error.to_string(), "try again"))?;
    runtime.block_on(async {
        let both = Both::connect().await?;
        if wants("append") {
            let (ours, bare) = (Side::new(BATCH_CALLS, BATCH), Side::new(BATCH_CALLS, BATCH));
            let figure = compare(rounds, ours, async || both.append().await, bare, async || both.put_records().await);
            report.figures.push(told("append", "500 records of 1 KiB, beside PutRecords", figure.await?));
        }
        if wants("read") {
            let (ours, bare) = (Side::new(BATCH_CALLS, BATCH), Side::new(BATCH_CALLS, BATCH));
            let figure = compare(rounds, ours, async || both.read().await, bare, async || both.get_records().await);
            report.figures.push(told("read", "500 records of 1 KiB, beside GetRecords", figure.await?));
        }
        if wants("send") {
            let (ours, bare) = (Side::new(CALLS, MESSAGES), Side::new(CALLS, MESSAGES));
            let figure = compare(rounds, ours, async || both.send().await, bare, async || both.send_messages().await);
            report.figures.push(told("send", "10 messages of 1 KiB, beside SendMessageBatch", figure.await?));
        }
        if wants("receive") {
            let (ours, bare) = (Side::new(CALLS, MESSAGES), Side::new(CALLS, MESSAGES));
            let figure =
                compare(rounds, ours, async || both.receive().await, bare, async || both.receive_messages().await);
            report.figures.push(told("receive", "10 messages of 1 KiB, beside ReceiveMessage", figure.await?));
        }
        if wants("put_item") {
            let (ours, bare) = (Side::new(CALLS, 1), Side::new(CALLS, 1));
            let figure = compare(rounds, ours, async || both.put().await, bare, async || both.put_item().await);
            report.figures.push(told("put_item", "one item of 1 KiB, beside PutItem", figure.await?));
        }
        if wants("get_item") {
            let (ours, bare) = (Side::new(CALLS, 1), Side::new(CALLS, 1));
            let figure = compare(rounds, ours, async || both.get().await, bare, async || both.get_item().await);
            report.figures.push(told("get_item", "one item of 1 KiB, beside GetItem", figure.await?));
        }
        report.notes.push(
            "processor time of the client's thread for one record, message or item; the server is a stub on other \
             threads that answers at once. Blobs are not here: no client of the SDK for S3 is part of the program"
                .to_owned(),
        );
        Ok(report)
    })
}

fn told(name: &'static str, what: &str, (ours, bare): (Vec<f64>, Vec<f64>)) -> Figure {
    let what = format!("{what} of the bare SDK");
    Figure::beside(name, what, Unit::Microseconds, Spread::of(ours), Spread::of(bare))
        .aim(Goal::RatioAtMost(COST_GOAL))
}

/// How much one side does in a round.
#[derive(Clone, Copy)]
struct Side {
    calls: usize,
    parts: usize,
}

impl Side {
    fn new(calls: usize, parts: usize) -> Self {
        Side { calls, parts }
    }

    /// Microseconds of the processor for one part.
    async fn cost(self, call: &impl AsyncFn() -> Result<usize, Failure>) -> Result<f64, Failure> {
        let started = processor_time();
        for _ in 0..self.calls {
            let parts = call().await?;
            if parts != self.parts {
                let why = format!("{parts} of {} came back", self.parts);
                return Err(Failure::new("bench", why, "report this"));
            }
        }
        let spent = processor_time().saturating_sub(started);
        Ok(spent.as_secs_f64() * 1e6 / (self.calls * self.parts) as f64)
    }
}

/// Both sides in turn, after a round that does not count.
async fn compare(
    rounds: usize,
    ours: Side,
    our_call: impl AsyncFn() -> Result<usize, Failure>,
    bare: Side,
    bare_call: impl AsyncFn() -> Result<usize, Failure>,
) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    ours.cost(&our_call).await?;
    bare.cost(&bare_call).await?;
    let (mut our_costs, mut bare_costs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        our_costs.push(ours.cost(&our_call).await?);
        bare_costs.push(bare.cost(&bare_call).await?);
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
    bare: Bare,
    url: String,
    stream: StreamName,
    shard: ShardId,
    queue: QueueName,
    table: TableName,
    records: Vec<(String, Bytes)>,
    bodies: Vec<String>,
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
            bare: Bare::new(&aws),
            url: format!("{endpoint}/000000000000/bench"),
            stream: StreamName::new("bench")?,
            shard: ShardId::new("shardId-000000000000")?,
            queue: QueueName::new("bench")?,
            table: TableName::new("bench")?,
            records: (0..BATCH)
                .map(|number| (format!("key {number}"), incompressible(number as u64, RECORD_BYTES).into()))
                .collect(),
            bodies: vec![text.clone(); MESSAGES],
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
}

/// What the stub says. `text` is the base64 of a record, and the body of a message.
fn answers(text: &str) -> Answers {
    let number = "49590338271490256608559692538361571095921575989136588898";
    let shard = "shardId-000000000000";
    let stored = json!({ "SequenceNumber": number, "ShardId": shard });
    let record = json!({
        "SequenceNumber": number, "PartitionKey": "key",
        "ApproximateArrivalTimestamp": 1_700_000_000.123_f64, "Data": text,
    });
    let id = "5fea7756-0ea4-451a-a703-a558b933e274";
    let message = json!({
        "MessageId": id, "ReceiptHandle": "AQEBzJnKyrHigUMZj6rYigCgxlaS3SLy0a", "Body": text,
        "Attributes": {
            "ApproximateReceiveCount": "1", "SentTimestamp": "1700000000000",
            "ApproximateFirstReceiveTimestamp": "1700000000001",
        },
    });
    let sent = |place: usize| json!({ "Id": place.to_string(), "MessageId": id, "MD5OfMessageBody": "" });
    let attributes = json!({ "QueueArn": "arn:aws:sqs:us-east-1:000000000000:bench" });
    let table = json!({ "Table": {
        "TableName": "bench", "TableStatus": "ACTIVE", "TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/bench",
        "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
        "AttributeDefinitions": [{ "AttributeName": "id", "AttributeType": "S" }],
        "ItemCount": 1, "TableSizeBytes": 1024, "CreationDateTime": 1_700_000_000.0_f64,
    }});
    let all: [(&'static str, Value); 10] = [
        ("PutRecords", json!({ "FailedRecordCount": 0, "Records": vec![stored; BATCH] })),
        ("GetShardIterator", json!({ "ShardIterator": "iterator" })),
        (
            "GetRecords",
            json!({ "Records": vec![record; BATCH], "NextShardIterator": "iterator", "MillisBehindLatest": 1_000 }),
        ),
        ("GetQueueUrl", json!({ "QueueUrl": "http://127.0.0.1/000000000000/bench" })),
        ("GetQueueAttributes", json!({ "Attributes": attributes })),
        (
            "SendMessageBatch",
            json!({ "Successful": (0..MESSAGES).map(sent).collect::<Vec<_>>(), "Failed": [] }),
        ),
        ("ReceiveMessage", json!({ "Messages": vec![message; MESSAGES] })),
        ("DescribeTable", table),
        ("PutItem", json!({})),
        ("GetItem", json!({ "Item": { "id": { "S": "a" }, "text": { "S": text } } })),
    ];
    let mut answers: Answers = all.into_iter().map(|(name, body)| (name, body.to_string())).collect();
    answers.insert(
        "DescribeTimeToLive",
        json!({ "TimeToLiveDescription": { "TimeToLiveStatus": "DISABLED" } }).to_string(),
    );
    answers
}
