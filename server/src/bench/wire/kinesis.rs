//! What clients do with streams: put records in batches and one by one, and read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use memchr::memmem;
use serde_json::{Value, json};

use super::connection::{Connection, Operation, Service};
use super::peer::Peer;
use crate::bench::tasks::{self, Task};
use crate::bench::writers::{RECORD_BYTES, incompressible};
use crate::failure::Failure;

/// Records of a batch: as many as the service takes.
pub(super) const BATCH: usize = 500;
const SHARDS: usize = 4;
/// Batches that differ; each connection sends them in turn.
const BATCHES: usize = 8;
/// Connections that put batches, that put single records, and that read a shard each.
const BATCH_CONNECTIONS: usize = 4;
const SINGLE_CONNECTIONS: usize = 64;
/// Records that are read, and of how many a page is.
const READ_RECORDS: usize = 20_000;
const PAGE: usize = 1_000;
/// How often a stream that is being made is looked at, and how many times.
const WAIT: Duration = Duration::from_millis(50);
const WAITS_MAX: usize = 200;

/// The bodies of all calls that put records.
pub(super) struct Bodies {
    batches: Vec<Bytes>,
    singles: Vec<Bytes>,
}

impl Bodies {
    pub(super) fn make() -> Bodies {
        let record = |number: usize| {
            let data = BASE64_STANDARD.encode(incompressible(number as u64, RECORD_BYTES));
            json!({ "Data": data, "PartitionKey": format!("key {number}") })
        };
        let batch = |number: usize| {
            let records: Vec<Value> = (0..BATCH).map(|place| record(number * BATCH + place)).collect();
            Bytes::from(json!({ "StreamName": "bench-put", "Records": records }).to_string())
        };
        let single = |number: usize| {
            let mut request = record(number);
            request["StreamName"] = "bench-put".into();
            Bytes::from(request.to_string())
        };
        Bodies {
            batches: (0..BATCHES).map(batch).collect(),
            singles: (0..SINGLE_CONNECTIONS).map(single).collect(),
        }
    }
}

fn operation(name: &'static str) -> Operation {
    Operation::of(Service::Kinesis, name)
}

/// Makes the stream that is written to.
pub(super) async fn prepare(peer: &Peer) -> Result<(), Failure> {
    make_stream(&mut Connection::to(&peer.address).await?, "bench-put").await.map(drop)
}

/// Makes the stream that is read, and fills it.
pub(super) async fn prepare_reads(peer: &Peer, bodies: &Bodies) -> Result<(), Failure> {
    let mut connection = Connection::to(&peer.address).await?;
    make_stream(&mut connection, "bench-get").await?;
    for number in 0..READ_RECORDS / BATCH {
        let body = &bodies.batches[number % BATCHES];
        let text = String::from_utf8_lossy(body).replace("bench-put", "bench-get");
        connection.call(&operation("PutRecords"), text.into()).await?;
    }
    Ok(())
}

/// Makes a stream and waits until it is there; returns its shards.
async fn make_stream(connection: &mut Connection, name: &str) -> Result<Vec<String>, Failure> {
    connection.ask(&operation("CreateStream"), &json!({ "StreamName": name, "ShardCount": SHARDS })).await?;
    for _ in 0..WAITS_MAX {
        let shards = shards(connection, name).await?;
        if !shards.is_empty() {
            return Ok(shards);
        }
        crate::runtime::pause(WAIT).await;
    }
    Err(Failure::new(
        "bench",
        format!("the stream {name} did not become active"),
        "look at the log of the server",
    ))
}

/// The shards of a stream, or none if it is not active yet.
async fn shards(connection: &mut Connection, name: &str) -> Result<Vec<String>, Failure> {
    let answer = connection.ask(&operation("DescribeStream"), &json!({ "StreamName": name })).await?;
    let description = &answer["StreamDescription"];
    if description["StreamStatus"] != "ACTIVE" {
        return Ok(Vec::new());
    }
    let shards = description["Shards"].as_array().into_iter().flatten();
    Ok(shards.filter_map(|shard| Some(shard["ShardId"].as_str()?.to_owned())).collect())
}

/// Calls whose bodies are sent in turn.
struct Repeat {
    connection: Connection,
    operation: Operation,
    bodies: Vec<Bytes>,
}

impl Task for Repeat {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        let body = self.bodies[number % self.bodies.len()].clone();
        self.connection.call(&self.operation, body).await.map(drop)
    }
}

/// Records a second in batches.
pub(super) async fn put_records(peer: &Peer, bodies: &Bodies, at_most: Duration) -> Result<f64, Failure> {
    let connections = Connection::many(&peer.address, BATCH_CONNECTIONS).await?;
    let task = |(number, connection)| {
        let mut bodies = bodies.batches.clone();
        bodies.rotate_left(number * BATCHES / BATCH_CONNECTIONS);
        Repeat { connection, operation: operation("PutRecords"), bodies }
    };
    let tasks: Vec<Repeat> = connections.into_iter().enumerate().map(task).collect();
    Ok(tasks::race(tasks, usize::MAX, at_most).await?.per_second() * BATCH as f64)
}

/// Records a second, each in a call of its own.
pub(super) async fn put_record(peer: &Peer, bodies: &Bodies, at_most: Duration) -> Result<f64, Failure> {
    let connections = Connection::many(&peer.address, SINGLE_CONNECTIONS).await?;
    let task = |(connection, body): (Connection, &Bytes)| Repeat {
        connection,
        operation: operation("PutRecord"),
        bodies: vec![body.clone()],
    };
    let tasks: Vec<Repeat> = connections.into_iter().zip(&bodies.singles).map(task).collect();
    Ok(tasks::race(tasks, usize::MAX, at_most).await?.per_second())
}

/// Reads one shard from its beginning, and again when it is through.
struct Reader {
    connection: Connection,
    get: Operation,
    start: Bytes,
    iterator: Option<String>,
    records: Arc<AtomicU64>,
}

impl Task for Reader {
    async fn step(&mut self, _: usize) -> Result<(), Failure> {
        let iterator = match self.iterator.take() {
            Some(iterator) => iterator,
            None => {
                let answer = self.connection.call(&operation("GetShardIterator"), self.start.clone()).await?;
                text_of(&answer, "\"ShardIterator\"").unwrap_or_default()
            }
        };
        let body = format!(r#"{{"ShardIterator":"{iterator}","Limit":{PAGE}}}"#);
        let page = self.connection.call(&self.get, body.into()).await?;
        let records = memmem::find_iter(&page, b"\"PartitionKey\"").count();
        self.records.fetch_add(records as u64, Ordering::Relaxed);
        self.iterator = text_of(&page, "\"NextShardIterator\"").filter(|_| records > 0);
        Ok(())
    }
}

/// The string that stands behind a key, wherever it is in the text.
fn text_of(json: &[u8], key: &str) -> Option<String> {
    let behind = &json[memmem::find(json, key.as_bytes())? + key.len()..];
    let start = memchr::memchr(b'"', behind)? + 1;
    let end = memchr::memchr(b'"', &behind[start..])?;
    String::from_utf8(behind[start..start + end].to_vec()).ok()
}

/// Records a second that come back, each shard over a connection of its own.
pub(super) async fn get_records(peer: &Peer, at_most: Duration) -> Result<f64, Failure> {
    let mut connection = Connection::to(&peer.address).await?;
    let records = Arc::new(AtomicU64::new(0));
    let mut readers = Vec::new();
    for shard in shards(&mut connection, "bench-get").await? {
        let start =
            json!({ "StreamName": "bench-get", "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
        readers.push(Reader {
            connection: Connection::to(&peer.address).await?,
            get: operation("GetRecords"),
            start: start.to_string().into(),
            iterator: None,
            records: records.clone(),
        });
    }
    let done = tasks::race(readers, usize::MAX, at_most).await?;
    let seen = records.load(Ordering::Relaxed);
    if seen == 0 {
        return Err(Failure::new("bench", "GetRecords gave nothing", "look at the log of the server"));
    }
    Ok(seen as f64 / done.elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_iterator_is_found_wherever_it_stands() {
        for page in [
            &br#"{"NextShardIterator":"AAA=","Records":[]}"#[..],
            br#"{"Records": [], "NextShardIterator": "AAA="}"#,
        ] {
            assert_eq!(text_of(page, "\"NextShardIterator\"").as_deref(), Some("AAA="));
        }
        assert_eq!(text_of(br#"{"Records":[]}"#, "\"NextShardIterator\""), None);
    }

    #[test]
    fn bodies_are_what_the_service_takes() {
        let bodies = Bodies::make();
        let batch: Value = serde_json::from_slice(&bodies.batches[7]).unwrap();
        assert_eq!(batch["Records"].as_array().unwrap().len(), BATCH);
        let single: Value = serde_json::from_slice(&bodies.singles[63]).unwrap();
        assert_eq!(BASE64_STANDARD.decode(single["Data"].as_str().unwrap()).unwrap().len(), RECORD_BYTES);
    }
}
