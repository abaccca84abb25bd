//! What clients do with queues: send in batches, receive and delete.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::{Connection, Operation, Service};
use super::peer::Peer;
use crate::bench::tasks::{self, Done, Task};
use crate::bench::writers::incompressible;
use crate::failure::Failure;

/// Messages of a batch: as many as the service takes.
const BATCH: usize = 10;
const CONNECTIONS: usize = 64;
/// Messages that are sent, and then received and deleted, to see what those that wait cost.
const BURST: usize = 6_400;

fn operation(name: &'static str) -> Operation {
    Operation::of(Service::Sqs, name)
}

/// Makes a queue and returns its address.
pub(super) async fn prepare(peer: &Peer, name: &str) -> Result<String, Failure> {
    let mut connection = Connection::to(&peer.address).await?;
    let request = json!({ "QueueName": name, "Attributes": { "VisibilityTimeout": "600" } });
    let answer = connection.ask(&operation("CreateQueue"), &request).await?;
    answer["QueueUrl"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new("bench", "CreateQueue gave no address", "look at the log of the server"))
}

/// Removes a queue.
pub(super) async fn remove(peer: &Peer, url: &str) -> Result<(), Failure> {
    let mut connection = Connection::to(&peer.address).await?;
    connection.ask(&operation("DeleteQueue"), &json!({ "QueueUrl": url })).await.map(drop)
}

/// Ten messages of 1 KiB.
fn batch(url: &str) -> Bytes {
    let entry = |place: usize| {
        let body = BASE64_STANDARD.encode(incompressible(place as u64, 768));
        json!({ "Id": place.to_string(), "MessageBody": body })
    };
    let entries: Vec<Value> = (0..BATCH).map(entry).collect();
    json!({ "QueueUrl": url, "Entries": entries }).to_string().into()
}

struct Sender {
    connection: Connection,
    send: Operation,
    body: Bytes,
}

impl Task for Sender {
    async fn step(&mut self, _: usize) -> Result<(), Failure> {
        self.connection.call(&self.send, self.body.clone()).await.map(drop)
    }
}

async fn senders(peer: &Peer, url: &str) -> Result<Vec<Sender>, Failure> {
    let sender = |connection| Sender { connection, send: operation("SendMessageBatch"), body: batch(url) };
    Ok(Connection::many(&peer.address, CONNECTIONS).await?.into_iter().map(sender).collect())
}

/// Messages a second that are sent.
pub(super) async fn send(peer: &Peer, url: &str, at_most: Duration) -> Result<f64, Failure> {
    let done = tasks::race(senders(peer, url).await?, usize::MAX, at_most).await?;
    Ok(done.per_second() * BATCH as f64)
}

/// Sends at least so many messages.
pub(super) async fn fill(peer: &Peer, url: &str, messages: usize) -> Result<(), Failure> {
    let steps = messages.div_ceil(BATCH * CONNECTIONS);
    tasks::finish(senders(peer, url).await?, steps).await.map(drop)
}

/// Sends about so many messages, or fewer if they take longer than this.
pub(super) async fn fill_within(
    peer: &Peer,
    url: &str,
    messages: usize,
    at_most: Duration,
) -> Result<(), Failure> {
    let steps = messages.div_ceil(BATCH * CONNECTIONS);
    tasks::race(senders(peer, url).await?, steps, at_most).await.map(drop)
}

/// What a receive answers, as far as a delete needs it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Received {
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message {
    receipt_handle: String,
}

/// Receives up to ten messages and deletes them.
struct Receiver {
    connection: Connection,
    receive: Operation,
    delete: Operation,
    body: Bytes,
    url: String,
    deleted: Arc<AtomicU64>,
}

impl Task for Receiver {
    async fn step(&mut self, _: usize) -> Result<(), Failure> {
        let answer = self.connection.call(&self.receive, self.body.clone()).await?;
        let unclear = |error: serde_json::Error| Failure::new("bench", error.to_string(), "report this");
        let received: Received = serde_json::from_slice(&answer).map_err(unclear)?;
        if received.messages.is_empty() {
            return Ok(());
        }
        let entry = |(place, message): (usize, &Message)| json!({ "Id": place.to_string(), "ReceiptHandle": message.receipt_handle });
        let entries: Vec<Value> = received.messages.iter().enumerate().map(entry).collect();
        let request = json!({ "QueueUrl": self.url, "Entries": entries });
        self.connection.call(&self.delete, request.to_string().into()).await?;
        self.deleted.fetch_add(received.messages.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Messages a second that are received and deleted while others wait: those that were sent just before it are as many as
/// those that go, so that as many wait in every round.
pub(super) async fn burst(peer: &Peer, url: &str, at_most: Duration) -> Result<f64, Failure> {
    fill_within(peer, url, BURST, at_most).await?;
    let deleted = Arc::new(AtomicU64::new(0));
    let receiver = |connection| Receiver {
        connection,
        receive: operation("ReceiveMessage"),
        delete: operation("DeleteMessageBatch"),
        body: json!({ "QueueUrl": url, "MaxNumberOfMessages": BATCH }).to_string().into(),
        url: url.to_owned(),
        deleted: deleted.clone(),
    };
    let receivers: Vec<Receiver> =
        Connection::many(&peer.address, CONNECTIONS).await?.into_iter().map(receiver).collect();
    let done: Done = tasks::race(receivers, BURST / (BATCH * CONNECTIONS), at_most).await?;
    Ok(deleted.load(Ordering::Relaxed) as f64 / done.elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_messages_is_an_empty_one() {
        assert!(serde_json::from_str::<Received>("{}").unwrap().messages.is_empty());
        let one = r#"{"Messages":[{"MessageId":"a","ReceiptHandle":"h","Body":"b"}]}"#;
        assert_eq!(serde_json::from_str::<Received>(one).unwrap().messages[0].receipt_handle, "h");
    }

    #[test]
    fn a_batch_has_ten_messages_of_a_kibibyte() {
        let batch: Value = serde_json::from_slice(&batch("http://q")).unwrap();
        let entries = batch["Entries"].as_array().unwrap();
        assert_eq!(entries.len(), 10);
        assert_eq!(entries[9]["MessageBody"].as_str().unwrap().len(), 1024);
    }
}
