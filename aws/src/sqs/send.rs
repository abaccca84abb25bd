//! Sending.
//!
//! A send whose outcome nobody knows is repeated only where SQS recognises what it has: in queues that keep an order.
//! Elsewhere its sender learns of the doubt and decides.

use std::collections::HashMap;

use anabranch_model::queue::{Sent, check_send};
use anabranch_model::{
    Error, MessageId, NewMessage, QueueName, QueueOptions, Result, SequenceNumber, limits,
};
use aws_sdk_sqs::types::{
    MessageSystemAttributeNameForSends, MessageSystemAttributeValue, SendMessageBatchRequestEntry,
};

use super::batch::{Entry, Target, Verdicts};
use super::{Queues, action, attributes, body, seconds, strange};
use crate::failure::Failure;

impl Queues {
    pub(super) async fn send_all(
        &self,
        queue: &QueueName,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<Sent>>> {
        check_send(&messages)?;
        let deadline = self.soon();
        let address = self.address(queue, deadline).await?;
        let mut entries = Vec::new();
        let mut results = Vec::new();
        for (place, message) in messages.into_iter().enumerate() {
            match entry(place, message, queue) {
                Ok(entry) => {
                    entries.push(entry);
                    results.push(None);
                }
                Err(error) => results.push(Some(Err(error))),
            }
        }
        let action = match queue.is_fifo() {
            true => action::SEND_MESSAGE_BATCH.repeatable(),
            false => action::SEND_MESSAGE_BATCH,
        };
        let ask = |entries: Vec<SendMessageBatchRequestEntry>| {
            let (address, action) = (&address, &action);
            async move {
                let request = || {
                    let entries = Some(entries.clone());
                    self.client.send_message_batch().queue_url(address.url()).set_entries(entries).send()
                };
                let answer = self.caller.call(action, deadline, request).await;
                let answer = answer.map_err(Failure::without_detail)?;
                let done = answer
                    .successful
                    .into_iter()
                    .map(|done| (done.id, (done.message_id, done.sequence_number)));
                Ok(Verdicts { done: done.collect(), failed: answer.failed })
            }
        };
        let target = Target { queue, address: &address, deadline };
        let results =
            self.in_batches(target, entries, results, ask, |_, refusal| refusal.of_message()).await?;
        Ok(results
            .into_iter()
            .map(|result| result.and_then(|(id, number)| sent(&id, number.as_deref())))
            .collect())
    }
}

/// The message as SQS takes it. What only the queue knows, for instance how large its messages may be, SQS checks.
fn entry(
    place: usize,
    message: NewMessage,
    queue: &QueueName,
) -> Result<Entry<SendMessageBatchRequestEntry>> {
    let fifo = queue.is_fifo();
    let widest = QueueOptions { fifo, deduplicates_content: fifo, ..QueueOptions::default() };
    message.check(&widest)?;
    let text = body::to_text(&message.body);
    let attributes = attributes::to_sqs(&message.attributes)?;
    let bytes = text.len() + attributes.as_ref().map_or(0, attributes::size);
    if bytes > limits::MESSAGE_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "message has {bytes} bytes as text: SQS takes text only, and at most {} bytes of it; store the body as a blob \
             and send its key",
            limits::MESSAGE_BYTES_MAX
        )));
    }
    let request = SendMessageBatchRequestEntry::builder()
        .id(place.to_string())
        .message_body(text)
        .set_message_attributes(attributes)
        .set_delay_seconds(message.delay.map(seconds))
        .set_message_group_id(message.group.clone())
        .set_message_deduplication_id(message.deduplication)
        .set_message_system_attributes(message.trace.map(traced).transpose()?)
        .build()
        .map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(Entry { place, bytes, group: message.group.filter(|_| fifo), request })
}

/// What SQS is told about the work that a message is part of.
fn traced(trace: String) -> Result<HashMap<MessageSystemAttributeNameForSends, MessageSystemAttributeValue>> {
    let value = MessageSystemAttributeValue::builder().data_type("String").string_value(trace);
    let value = value.build().map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(HashMap::from([(MessageSystemAttributeNameForSends::AwsTraceHeader, value)]))
}

fn sent(id: &str, number: Option<&str>) -> Result<Sent> {
    Ok(Sent { id: message_id(id)?, sequence: number.map(sequence).transpose()? })
}

pub(super) fn message_id(id: &str) -> Result<MessageId> {
    MessageId::new(id).map_err(|_| strange("a message without a proper identifier"))
}

pub(super) fn sequence(text: &str) -> Result<SequenceNumber> {
    // Some servers pad their numbers; the value is the same.
    let digits = text.trim_start_matches('0');
    let digits = if digits.is_empty() && !text.is_empty() { "0" } else { digits };
    digits.parse().map_err(|_| strange("a sequence number that is none"))
}
