//! Receipts, and what is done with them: deleting messages, and hiding them for longer.
//!
//! A receipt is the message's identifier, a slash, and what SQS calls a receipt handle. With the identifier errors can
//! say which message they are about; SQS itself does not.

use std::time::Duration;

use anabranch_model::queue::{check_batch, check_visibility};
use anabranch_model::{Error, MessageId, QueueName, Receipt, Result};
use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry};

use super::batch::{Entry, Results, Target, Verdicts};
use super::refusal::Refusal;
use super::{Queues, action, seconds, strange};
use crate::failure::Failure;

/// The receipt of a message that SQS gave with this handle.
pub(super) fn write(message: &MessageId, handle: &str) -> Result<Receipt> {
    Receipt::new(&format!("{message}/{handle}")).map_err(|_| strange("a receipt handle that is none"))
}

/// The message and the handle of a receipt of ours.
fn read(receipt: &Receipt) -> Option<(MessageId, &str)> {
    let (message, handle) = receipt.as_str().split_once('/')?;
    Some((MessageId::new(message).ok()?, handle)).filter(|(_, handle)| !handle.is_empty())
}

impl Queues {
    pub(super) async fn delete_all(
        &self,
        queue: &QueueName,
        receipts: Vec<Receipt>,
    ) -> Result<Vec<Result<()>>> {
        check_batch(receipts.len())?;
        let deadline = self.soon();
        let address = self.address(queue, deadline).await?;
        let (entries, results) = sorted(queue, &receipts, |place, handle| {
            let entry =
                DeleteMessageBatchRequestEntry::builder().id(place.to_string()).receipt_handle(handle);
            entry.build().map_err(|error| Error::Invalid(error.to_string()))
        });
        let ask = |entries: Vec<DeleteMessageBatchRequestEntry>| {
            let address = &address;
            async move {
                let request = || {
                    let entries = Some(entries.clone());
                    self.client.delete_message_batch().queue_url(address.url()).set_entries(entries).send()
                };
                let answer = self.caller.call(&action::DELETE_MESSAGE_BATCH, deadline, request).await;
                let answer = answer.map_err(Failure::without_detail)?;
                let done = answer.successful.into_iter().map(|done| (done.id, ()));
                Ok(Verdicts { done: done.collect(), failed: answer.failed })
            }
        };
        let refusal = |place: usize, refusal: &Refusal| refused(queue, &receipts[place], refusal);
        self.in_batches(Target { queue, address: &address, deadline }, entries, results, ask, refusal).await
    }

    pub(super) async fn hide_all(
        &self,
        queue: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>> {
        check_batch(changes.len())?;
        let deadline = self.soon();
        let address = self.address(queue, deadline).await?;
        let (receipts, times): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        let (entries, results) = sorted(queue, &receipts, |place, handle| {
            check_visibility(times[place])?;
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(place.to_string())
                .receipt_handle(handle)
                .visibility_timeout(seconds(times[place]));
            entry.build().map_err(|error| Error::Invalid(error.to_string()))
        });
        let ask = |entries: Vec<ChangeMessageVisibilityBatchRequestEntry>| {
            let address = &address;
            async move {
                let request = || {
                    let (entries, url) = (Some(entries.clone()), address.url());
                    self.client.change_message_visibility_batch().queue_url(url).set_entries(entries).send()
                };
                let action = &action::CHANGE_MESSAGE_VISIBILITY_BATCH;
                let answer = self.caller.call(action, deadline, request).await;
                let answer = answer.map_err(Failure::without_detail)?;
                let done = answer.successful.into_iter().map(|done| (done.id, ()));
                Ok(Verdicts { done: done.collect(), failed: answer.failed })
            }
        };
        let refusal = |place: usize, refusal: &Refusal| refused(queue, &receipts[place], refusal);
        self.in_batches(Target { queue, address: &address, deadline }, entries, results, ask, refusal).await
    }
}

/// The entries for receipts that can be asked about, and the results of those that cannot.
fn sorted<R>(
    queue: &QueueName,
    receipts: &[Receipt],
    request: impl Fn(usize, &str) -> Result<R>,
) -> (Vec<Entry<R>>, Results<()>) {
    let mut entries = Vec::new();
    let mut results = Vec::new();
    for (place, receipt) in receipts.iter().enumerate() {
        let handle = read(receipt).map(|(_, handle)| handle);
        let handle = handle.ok_or_else(|| Error::ReceiptInvalid(queue.clone(), receipt.clone()));
        match handle.and_then(|handle| request(place, handle)) {
            Ok(request) => {
                entries.push(Entry { place, bytes: 0, group: None, request });
                results.push(None);
            }
            Err(error) => results.push(Some(Err(error))),
        }
    }
    (entries, results)
}

/// The error of a receipt that SQS did not take, and whether it may be tried again.
fn refused(queue: &QueueName, receipt: &Receipt, refusal: &Refusal) -> (Error, bool) {
    match read(receipt) {
        Some((message, _)) => refusal.of_receipt(queue, receipt, &message),
        None => refusal.of_message(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_says_which_message_it_is_of() {
        let message = MessageId::new("0b1c-9").unwrap();
        let receipt = write(&message, "AQEB/x+y/z==").unwrap();
        assert_eq!(read(&receipt), Some((message, "AQEB/x+y/z==")));
        for nonsense in ["x", "/x", "x/", "1.2"] {
            assert_eq!(read(&Receipt::new(nonsense).unwrap()), None, "{nonsense}");
        }
    }
}
