//! `queue receive`: takes messages, prints them, and deletes them if it is told to.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_model::limits::{MESSAGE_BATCH_MAX, RECEIVE_WAIT_MAX};
use anabranch_model::queue::{AttributeValue, Message, QueueName, Receipt, ReceiveOptions};
use clap::Args;
use serde::Serialize;

use super::Session;
use crate::api::text::Base64;
use crate::failure::Failure;
use crate::output::{Lines, note};
use crate::patience::Patience;
use crate::quantity::{Span, rfc3339};

/// Arguments of `queue receive`.
#[derive(Debug, Args)]
pub(super) struct ReceiveArgs {
    /// The queue
    name: String,
    /// Most messages
    #[arg(long, short = 'n', default_value_t = 1, value_name = "COUNT")]
    count: u64,
    /// How long to wait for a message if there is none, each time
    #[arg(long, default_value_t = Span(Duration::ZERO), value_name = "DURATION")]
    wait: Span,
    /// How long the messages are hidden from others; what the queue says if it is not given
    #[arg(long, value_name = "DURATION")]
    visibility: Option<Span>,
    /// Delete each message after it was printed
    #[arg(long)]
    delete: bool,
}

pub(super) async fn receive(session: &Session<'_>, args: &ReceiveArgs) -> Result<(), Failure> {
    let name = QueueName::new(&args.name)?;
    let mut lines = Lines::new(session.output.json);
    let mut left = args.count;
    while left > 0 {
        let messages = next_messages(session, &name, args, left).await?;
        if messages.is_empty() {
            break;
        }
        left = left.saturating_sub(messages.len() as u64);
        // Printed first: what could not be printed is not deleted.
        print(&mut lines, &messages)?;
        if args.delete {
            delete(session, &name, messages.into_iter().map(|message| message.receipt).collect()).await?;
        }
    }
    if left == args.count && left > 0 && !session.output.json {
        note(format_args!("no message came: queue {name} has none that is visible"));
    }
    Ok(())
}

/// Messages, or none when the wait is over. A wait longer than one call may have is made of several.
async fn next_messages(
    session: &Session<'_>,
    name: &QueueName,
    args: &ReceiveArgs,
    left: u64,
) -> Result<Vec<Message>, Failure> {
    let until = session.clock.elapsed() + args.wait.0;
    let mut patience = Patience::new(session.clock);
    loop {
        let rest = until.saturating_sub(session.clock.elapsed());
        let options = ReceiveOptions {
            messages_max: usize::try_from(left).unwrap_or(usize::MAX).min(MESSAGE_BATCH_MAX),
            wait: Some(rest.min(RECEIVE_WAIT_MAX)),
            visibility: args.visibility.map(|visibility| visibility.0),
            attempt: None,
        };
        match session.store.receive(name, options).await {
            Ok(messages) if messages.is_empty() && rest > RECEIVE_WAIT_MAX => patience.restore(),
            Ok(messages) => return Ok(messages),
            Err(error) => patience.wait(error).await?,
        }
    }
}

async fn delete(session: &Session<'_>, name: &QueueName, receipts: Vec<Receipt>) -> Result<(), Failure> {
    let mut patience = Patience::new(session.clock);
    loop {
        match session.store.delete(name, receipts.clone()).await {
            Ok(results) => {
                for result in results {
                    result?;
                }
                return Ok(());
            }
            // A message that is gone already counts as deleted, so the same call may be made again.
            Err(error) => patience.wait(error).await?,
        }
    }
}

/// Prints messages.
fn print(lines: &mut Lines, messages: &[Message]) -> Result<(), Failure> {
    tokio::task::block_in_place(|| {
        for message in messages {
            lines.push(&message.body, || MessageReport::from(message))?;
        }
        lines.flush()
    })
}

/// A message as `--json` shows it.
#[derive(Serialize)]
struct MessageReport<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    /// In place of `body` if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<Base64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'a str, AttributeReport<'a>>,
    receipt: &'a str,
    receive_count: u32,
    sent_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_source: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum AttributeReport<'a> {
    Text(&'a str),
    Base64(Base64),
}

impl<'a> From<&'a Message> for MessageReport<'a> {
    fn from(message: &'a Message) -> Self {
        let body = std::str::from_utf8(&message.body).ok();
        let attribute = |value: &'a AttributeValue| match value {
            AttributeValue::Text(text) => AttributeReport::Text(text),
            AttributeValue::Binary(bytes) => AttributeReport::Base64(Base64(bytes.clone())),
        };
        let attributes = message.attributes.iter();
        MessageReport {
            id: message.id.as_str(),
            body,
            body_base64: body.is_none().then(|| Base64(message.body.clone())),
            attributes: attributes.map(|(name, value)| (name.as_str(), attribute(&value.value))).collect(),
            receipt: message.receipt.as_str(),
            receive_count: message.receive_count,
            sent_at: rfc3339(message.sent_at),
            sequence: message.sequence.map(|number| number.to_string()),
            group: message.group.as_deref(),
            dead_letter_source: message.dead_letter_source.as_ref().map(QueueName::as_str),
        }
    }
}
