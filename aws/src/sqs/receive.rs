//! Receiving.
//!
//! SQS itself waits for messages. Dropping a receive drops its request and its permit; what SQS had given to it by then
//! comes back when its visibility is over.

use std::pin::pin;
use std::time::Duration;

use anabranch_model::queue::ReceiveOptions;
use anabranch_model::{Error, Message, QueueName, QueueOptions, Result, Timestamp, limits};
use aws_sdk_sqs::types::{self, MessageSystemAttributeName as Name};
use futures_util::future::{Either, select};

use super::address::Address;
use super::{PATIENCE, Queues, action, attributes, body, options, receipts, seconds, send, strange};
use crate::call::Deadline;

/// A wait that ends earlier than this before its time has another reason than its end.
const EARLY: Duration = Duration::from_secs(1);

impl Queues {
    pub(super) async fn take(&self, queue: &QueueName, options: ReceiveOptions) -> Result<Vec<Message>> {
        options.check(&QueueOptions { fifo: queue.is_fifo(), ..QueueOptions::default() })?;
        let wait = options.wait.unwrap_or(limits::RECEIVE_WAIT_MAX);
        let deadline = self.caller.deadline(wait + PATIENCE);
        let address = self.address(queue, deadline).await?;
        // An attempt after a failed one waits for what is left only.
        let wait_ends = options.wait.map(|wait| self.caller.deadline(wait));
        let request = || {
            self.client
                .receive_message()
                .queue_url(address.url())
                .max_number_of_messages(i32::try_from(options.messages_max).unwrap_or(i32::MAX))
                .set_wait_time_seconds(wait_ends.map(|ends| seconds(self.caller.left(ends))))
                .set_visibility_timeout(options.visibility.map(seconds))
                .set_receive_request_attempt_id(options.attempt.clone())
                .message_system_attribute_names(Name::All)
                .message_attribute_names("All")
                .send()
        };
        let call = pin!(self.caller.call(&action::RECEIVE_MESSAGE, deadline, request));
        let answer = match select(call, pin!(address.gone())).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => return Err(Error::QueueNotFound(queue.clone())),
        };
        let answer = answer.map_err(|failure| self.refused(queue, Some(&address), failure))?;
        let messages = answer.messages.unwrap_or_default();
        let early = wait_ends.is_some_and(|ends| self.caller.left(ends) > EARLY);
        if messages.is_empty() && early {
            self.is_there(queue, &address, deadline).await?;
        }
        messages.into_iter().map(message).collect()
    }

    /// Whether there still is the queue that this was the address of. Whoever waits in a queue that is deleted may be sent
    /// away empty-handed before the time.
    async fn is_there(&self, queue: &QueueName, address: &Address, deadline: Deadline) -> Result<()> {
        self.look_up(queue, deadline).await?;
        match address.is_gone() {
            // Another one has its name.
            true => Err(Error::QueueNotFound(queue.clone())),
            false => Ok(()),
        }
    }
}

fn message(message: types::Message) -> Result<Message> {
    let (Some(id), Some(handle), Some(text)) = (message.message_id, message.receipt_handle, message.body)
    else {
        return Err(strange("a message without body, identifier or receipt"));
    };
    let id = send::message_id(&id)?;
    let mut said = message.attributes.unwrap_or_default();
    let moment = |text: Option<&String>| {
        Timestamp::from_millis(text.and_then(|millis| millis.parse().ok()).unwrap_or_default())
    };
    let count = said.get(&Name::ApproximateReceiveCount).and_then(|count| count.parse().ok());
    let source = said.get(&Name::DeadLetterQueueSourceArn).map(|arn| options::named(arn)).transpose()?;
    Ok(Message {
        receipt: receipts::write(&id, &handle)?,
        attributes: attributes::from_sqs(message.message_attributes)?,
        receive_count: count.unwrap_or(1),
        sent_at: moment(said.get(&Name::SentTimestamp)),
        first_received_at: moment(said.get(&Name::ApproximateFirstReceiveTimestamp)),
        sequence: said.get(&Name::SequenceNumber).map(|text| send::sequence(text)).transpose()?,
        group: said.remove(&Name::MessageGroupId),
        trace: said.remove(&Name::AwsTraceHeader),
        deduplication: said.remove(&Name::MessageDeduplicationId).map(|id| body::deduplication_id(&text, id)),
        dead_letter_source: source,
        body: body::from_text(text),
        id,
    })
}
