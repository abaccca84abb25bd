//! What servers did, written down by whoever stands between them and a bot. A submission may be deleted only when all of its
//! events are stored, or, if it is broken, when it was put aside with the reason.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use anabranch_bus::telemetry::{Exploder, SUBMISSION_SCHEMA};
use anabranch_model::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use crate::peer::wire::{Answer, Request};

/// The books of one test.
pub struct Ledger {
    exploder: Exploder,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// Submissions by every receipt that was given for them.
    received: HashMap<String, String>,
    /// The ids of events that the stream has.
    stored: HashSet<String>,
    /// Broken submissions that were put aside.
    aside: HashSet<String>,
    /// Submissions that somebody asked to be deleted.
    deleted: HashSet<String>,
    /// What was not as it should be.
    wrong: Vec<String>,
}

impl Ledger {
    pub fn new() -> Self {
        let exploder = Exploder::new(SUBMISSION_SCHEMA, "built in").expect("a schema");
        Ledger { exploder, entries: Mutex::default() }
    }

    /// A request on its way to a server.
    pub fn asked(&self, request: &Request) {
        if request.operation != "DeleteMessageBatch" {
            return;
        }
        let mut entries = self.entries.lock().expect("the entries");
        for deletion in list(&json(request.body().as_bytes())["Entries"]) {
            let receipt = deletion["ReceiptHandle"].as_str().expect("a receipt");
            let Some(body) = entries.received.get(receipt).cloned() else {
                entries.wrong.push(format!("nobody got the receipt {receipt}"));
                continue;
            };
            let missing = self.missing(&body, &entries);
            entries.wrong.extend(missing);
            entries.deleted.insert(body);
        }
    }

    /// What is not durable yet of what must be before a submission is deleted.
    fn missing(&self, body: &str, entries: &Entries) -> Option<String> {
        match self.exploder.explode(body.as_bytes(), Timestamp::EPOCH) {
            Ok(submission) => {
                let mut ids = submission.events.iter().map(|event| id(&json(event)));
                let missing = ids.find(|id| !entries.stored.contains(id))?;
                Some(format!("{} was deleted before its event {missing} was stored", submission.id))
            }
            Err(_) if entries.aside.contains(body) => None,
            Err(broken) => Some(format!("it was deleted before it was put aside: {broken}")),
        }
    }

    /// What a server did.
    pub fn answered(&self, request: &Request, answer: &Answer) {
        let (asked, told) = (|| json(request.body().as_bytes()), || json(&answer.body()));
        let mut entries = self.entries.lock().expect("the entries");
        match request.operation.as_str() {
            "ReceiveMessage" => {
                for message in list(&told()["Messages"]) {
                    let text = |name: &str| message[name].as_str().expect("a text").to_owned();
                    entries.received.insert(text("ReceiptHandle"), text("Body"));
                }
            }
            "SendMessageBatch" => {
                let (asked, told) = (asked(), told());
                let done: HashSet<_> =
                    list(&told["Successful"]).iter().map(|sent| sent["Id"].as_str()).collect();
                for sent in list(&asked["Entries"]).iter().filter(|sent| done.contains(&sent["Id"].as_str()))
                {
                    let letter = json(sent["MessageBody"].as_str().expect("a text").as_bytes());
                    let body = STANDARD.decode(letter["data"].as_str().expect("a text")).expect("base64");
                    entries.aside.insert(String::from_utf8(body).expect("a text"));
                }
            }
            "PutRecords" => {
                let (asked, told) = (asked(), told());
                for (record, outcome) in list(&asked["Records"]).iter().zip(list(&told["Records"])) {
                    if outcome["SequenceNumber"].is_string() {
                        let data = record["Data"].as_str().expect("a text");
                        entries.stored.insert(id(&json(&STANDARD.decode(data).expect("base64"))));
                    }
                }
            }
            _ => {}
        }
    }

    /// How many submissions are done with.
    pub fn done(&self) -> usize {
        self.entries.lock().expect("the entries").deleted.len()
    }

    /// How many broken submissions were put aside.
    pub fn aside(&self) -> usize {
        self.entries.lock().expect("the entries").aside.len()
    }

    /// Everything was as it should be.
    #[track_caller]
    pub fn is_clean(&self) {
        let entries = self.entries.lock().expect("the entries");
        assert!(entries.wrong.is_empty(), "{:#?}", entries.wrong);
    }
}

fn json(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn id(event: &Json) -> String {
    event["event_id"].as_str().expect("an id").to_owned()
}
