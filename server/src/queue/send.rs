//! `queue send`: messages from the command line, a file or standard input.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anabranch_model::queue::{Attribute, AttributeValue, MessageId, NewMessage, QueueName, Sent};
use anabranch_model::{Error, NextMove};
use clap::Args;
use serde::Serialize;
use tokio::sync::mpsc;

use super::Session;
use super::input::{Batch, Batches};
use crate::failure::Failure;
use crate::patience::Patience;
use crate::progress::Progress;
use crate::quantity::{Size, Span, counted};

/// Batches that are read ahead while one is being sent.
const BATCHES_AHEAD: usize = 2;
/// What the value of an attribute is called that was written on a command line.
const TEXT_KIND: &str = "String";

/// Arguments of `queue send`.
#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// The queue
    name: String,
    /// The body of one message; without it standard input is read, one message a line
    #[arg(conflicts_with = "file")]
    text: Option<String>,
    /// Read from a file, `-` for standard input: one message a line
    #[arg(long)]
    file: Option<PathBuf>,
    /// The group of all messages, which keeps their order; only for queues whose names end in `.fifo`
    #[arg(long)]
    group: Option<String>,
    /// By which a duplicate of the message is recognised; only for queues whose names end in `.fifo`
    #[arg(long, requires = "text", value_name = "ID")]
    deduplication_id: Option<String>,
    /// How long nobody receives the messages: up to 15m
    #[arg(long, value_name = "DURATION")]
    delay: Option<Span>,
    /// Something to say about all messages; may be given several times
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = parse_attribute)]
    attributes: Vec<(String, String)>,
}

fn parse_attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("an attribute is a name and a value, for instance colour=blue".to_owned()),
    }
}

impl SendArgs {
    /// What every message of the command has, without a body.
    fn message(&self) -> NewMessage {
        let attribute = |(name, value): &(String, String)| {
            let value = AttributeValue::Text(value.clone());
            (name.clone(), Attribute { kind: TEXT_KIND.to_owned(), value })
        };
        NewMessage {
            attributes: self.attributes.iter().map(attribute).collect::<BTreeMap<_, _>>(),
            delay: self.delay.map(|delay| delay.0),
            group: self.group.clone(),
            deduplication: self.deduplication_id.clone(),
            ..NewMessage::default()
        }
    }
}

pub(super) async fn send(session: &Session<'_>, args: &SendArgs) -> Result<(), Failure> {
    let name = QueueName::new(&args.name)?;
    let batches = Batches::choose(args.text.as_deref(), args.file.as_deref())?;
    // Asked first, so that nobody types messages for a queue that is not there.
    session.store.queue(&name).await?;

    let template = args.message();
    let mut progress = Progress::new(session.clock, batches.length_bytes());
    let mut report = SendReport { queue: name.to_string(), messages: 0, bytes: 0, last: None };
    let mut batches = read_ahead(batches, template.size());
    while let Some(batch) = batches.recv().await {
        let sent = match batch {
            Ok(batch) => send_batch(session, &name, &template, batch, &mut report).await,
            Err(failure) => Err(failure),
        };
        progress.show(report.bytes, || format!("{} sent", counted(report.messages, "message")));
        sent.map_err(|failure| failure.after_storing(report.messages, "message"))?;
    }
    progress.finish();
    session.output.print(&report)
}

/// Reads on a thread of its own: a read of standard input cannot be stopped, and ends with the process.
fn read_ahead(mut batches: Batches, overhead: usize) -> mpsc::Receiver<Result<Batch, Failure>> {
    let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
    std::thread::spawn(move || {
        while let Some(batch) = batches.next_batch(overhead) {
            // Nobody listens any more once the command has failed.
            if sender.blocking_send(batch).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Sends a batch. Messages that the store refuses for now are sent again, the others are not.
async fn send_batch(
    session: &Session<'_>,
    name: &QueueName,
    template: &NewMessage,
    batch: Batch,
    report: &mut SendReport,
) -> Result<(), Failure> {
    let failure = |place: usize, error: Error| match batch.first_line {
        Some(line) => Failure::from(error).at(format_args!("line {}", line + place as u64)),
        None => Failure::from(error),
    };
    let messages = batch.bodies.iter().map(|body| NewMessage { body: body.clone(), ..template.clone() });
    let mut pending: Vec<(usize, NewMessage)> = messages.enumerate().collect();
    let mut patience = Patience::new(session.clock);
    while let Some((first, _)) = pending.first() {
        let first = *first;
        let messages = pending.iter().map(|(_, message)| message.clone()).collect();
        let mut again = None;
        match session.store.send(name, messages).await {
            Ok(results) => {
                let mut kept = Vec::new();
                for ((place, message), result) in pending.drain(..).zip(results) {
                    match result {
                        Ok(sent) => report.count(&message, sent),
                        Err(error) if error.next_move() == NextMove::Retry => {
                            kept.push((place, message));
                            again = Some(error);
                        }
                        Err(error) => return Err(failure(place, error)),
                    }
                }
                pending = kept;
            }
            Err(error) if error.next_move() == NextMove::Retry => again = Some(error),
            Err(error) => return Err(failure(first, error)),
        }
        if let Some(error) = again {
            patience.wait(error).await.map_err(|error| failure(first, error))?;
        }
    }
    Ok(())
}

/// What `queue send` says at the end.
#[derive(Debug, Serialize)]
struct SendReport {
    queue: String,
    messages: u64,
    bytes: u64,
    last: Option<LastSent>,
}

#[derive(Debug, Serialize)]
struct LastSent {
    id: String,
    sequence: Option<String>,
}

impl SendReport {
    fn count(&mut self, message: &NewMessage, sent: Sent) {
        self.messages += 1;
        self.bytes += message.body.len() as u64;
        let id: MessageId = sent.id;
        self.last =
            Some(LastSent { id: id.to_string(), sequence: sent.sequence.map(|number| number.to_string()) });
    }
}

impl fmt::Display for SendReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = counted(self.messages, "message");
        write!(f, "sent {messages} ({}) to queue {}", Size(self.bytes), self.queue)?;
        match &self.last {
            Some(last) if self.messages == 1 => write!(f, ": {}", last.id),
            _ => Ok(()),
        }
    }
}
