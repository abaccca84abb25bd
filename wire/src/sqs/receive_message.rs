//! ReceiveMessage.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_model::QueueName;
use anabranch_model::limits::{MESSAGE_BATCH_MAX, RECEIVE_WAIT_MAX, VISIBILITY_MAX};
use anabranch_model::queue::{AttributeValue, Message, ReceiveOptions};
use serde::{Deserialize, Serialize};

use super::attributes;
use super::errors::{fault, invalid_value};
use super::message_attributes::{TRACE, TRACE_HEADER, Value, Wanted};
use super::queue::{arn, resolve};
use super::{digest, text};
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;

/// How long a receive goes on after the server was told to stop.
const STOP_GRACE: Duration = Duration::from_millis(250);

/// What the service says about a message.
const SYSTEM_ATTRIBUTES: [&str; 9] = [
    TRACE_HEADER,
    "ApproximateFirstReceiveTimestamp",
    "ApproximateReceiveCount",
    "DeadLetterQueueSourceArn",
    "MessageDeduplicationId",
    "MessageGroupId",
    "SenderId",
    "SentTimestamp",
    "SequenceNumber",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    #[serde(alias = "AttributeName")]
    attribute_names: Option<Vec<String>>,
    #[serde(alias = "MessageSystemAttributeName")]
    message_system_attribute_names: Option<Vec<String>>,
    #[serde(alias = "MessageAttributeName")]
    message_attribute_names: Option<Vec<String>>,
    max_number_of_messages: Option<i64>,
    visibility_timeout: Option<i64>,
    wait_time_seconds: Option<i64>,
    receive_request_attempt_id: Option<String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Incoming>,
}

/// A message as a receiver gets it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Incoming {
    message_id: String,
    receipt_handle: String,
    #[serde(rename = "MD5OfBody")]
    md5_of_body: String,
    body: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: BTreeMap<&'static str, String>,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    md5_of_message_attributes: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    message_attributes: BTreeMap<String, Value>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let mut system = request.attribute_names.unwrap_or_default();
    system.extend(request.message_system_attribute_names.unwrap_or_default());
    check_names(&system)?;
    let wanted = Wanted::new(request.message_attribute_names);
    let options = ReceiveOptions {
        messages_max: messages_max(request.max_number_of_messages)?,
        wait: seconds("WaitTimeSeconds", request.wait_time_seconds, RECEIVE_WAIT_MAX)?,
        visibility: seconds("VisibilityTimeout", request.visibility_timeout, VISIBILITY_MAX)?,
        attempt: request.receive_request_attempt_id,
    };
    let messages = receive(context, &queue, options).await?;
    let bodies: Vec<String> = messages.iter().map(|message| text::of_body(&message.body)).collect();
    let sums: Vec<String> = digest::of_bodies(bodies.iter().map(String::as_bytes)).collect();
    let give = |((message, body), md5_of_body): ((Message, String), String)| Incoming {
        attributes: system_attributes(context, &message, &system),
        ..incoming(message, body, md5_of_body, &wanted)
    };
    Ok(Response { messages: messages.into_iter().zip(bodies).zip(sums).map(give).collect() })
}

/// Waits for messages, but not beyond the end of the server: what comes later is there when it starts again.
async fn receive(
    context: &Context,
    queue: &QueueName,
    options: ReceiveOptions,
) -> Result<Vec<Message>, Fault> {
    let mut stop = context.stop.clone();
    let mut receiving = context.ports.queues.receive(queue, options);
    let received = tokio::select! {
        biased;
        received = &mut receiving => Some(received),
        _ = stop.wait_for(|stopped| *stopped) => None,
    };
    let received = match received {
        Some(received) => received,
        // Messages that were taken already are given: they only wait for the disk.
        None => tokio::time::timeout(STOP_GRACE, receiving).await.unwrap_or_else(|_| Ok(Vec::new())),
    };
    received.map_err(fault)
}

fn incoming(message: Message, body: String, md5_of_body: String, wanted: &Wanted) -> Incoming {
    let chosen = wanted.of(&message.attributes);
    Incoming {
        message_id: message.id.to_string(),
        receipt_handle: message.receipt.to_string(),
        md5_of_body,
        body,
        attributes: BTreeMap::new(),
        md5_of_message_attributes: digest::of_attributes(chosen.iter().copied()),
        message_attributes: chosen.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
    }
}

fn system_attributes(
    context: &Context,
    message: &Message,
    wanted: &[String],
) -> BTreeMap<&'static str, String> {
    let all = wanted.iter().any(|name| name == "All");
    let names = SYSTEM_ATTRIBUTES.into_iter().filter(|name| all || wanted.iter().any(|w| w == name));
    names.filter_map(|name| Some((name, system_attribute(context, message, name)?))).collect()
}

fn system_attribute(context: &Context, message: &Message, name: &str) -> Option<String> {
    match name {
        "ApproximateFirstReceiveTimestamp" => Some(message.first_received_at.as_millis().to_string()),
        "ApproximateReceiveCount" => Some(message.receive_count.to_string()),
        "DeadLetterQueueSourceArn" => message.dead_letter_source.as_ref().map(|queue| arn(context, queue)),
        "MessageDeduplicationId" => message.deduplication.clone(),
        "MessageGroupId" => message.group.clone(),
        "SenderId" => Some(ACCOUNT.to_owned()),
        "SentTimestamp" => Some(message.sent_at.as_millis().to_string()),
        "SequenceNumber" => message.sequence.map(|sequence| sequence.to_string()),
        _ => message.trace.clone().or_else(|| match &message.attributes.get(TRACE)?.value {
            AttributeValue::Text(text) => Some(text.clone()),
            AttributeValue::Binary(_) => None,
        }),
    }
}

/// Old clients name attributes of queues here, which messages do not have.
fn check_names(names: &[String]) -> Result<(), Fault> {
    let known = |name: &&String| {
        *name == "All" || SYSTEM_ATTRIBUTES.contains(&name.as_str()) || attributes::exists(name)
    };
    match names.iter().find(|name| !known(name)) {
        Some(name) => Err(attributes::unknown(name)),
        None => Ok(()),
    }
}

fn messages_max(number: Option<i64>) -> Result<usize, Fault> {
    let number = number.unwrap_or(1);
    match usize::try_from(number) {
        Ok(most @ 1..=MESSAGE_BATCH_MAX) => Ok(most),
        _ => Err(invalid_value("MaxNumberOfMessages", number, "Must be between 1 and 10, if provided.")),
    }
}

/// A time in seconds within bounds.
pub(super) fn seconds(
    parameter: &str,
    seconds: Option<i64>,
    most: Duration,
) -> Result<Option<Duration>, Fault> {
    let Some(seconds) = seconds else { return Ok(None) };
    let allowed = u64::try_from(seconds).ok().filter(|seconds| *seconds <= most.as_secs());
    allowed.map(|seconds| Some(Duration::from_secs(seconds))).ok_or_else(|| {
        let reason = format!("Must be >= 0 and <= {}, if provided.", most.as_secs());
        invalid_value(parameter, seconds, &reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(messages_max(None).unwrap(), 1);
        assert_eq!(messages_max(Some(10)).unwrap(), 10);
        for number in [0, 11, -1, i64::MIN] {
            assert!(messages_max(Some(number)).is_err(), "{number}");
        }
        assert_eq!(seconds("WaitTimeSeconds", Some(20), RECEIVE_WAIT_MAX).unwrap(), Some(RECEIVE_WAIT_MAX));
        assert_eq!(seconds("WaitTimeSeconds", None, RECEIVE_WAIT_MAX).unwrap(), None);
        for number in [21, -1] {
            assert!(seconds("WaitTimeSeconds", Some(number), RECEIVE_WAIT_MAX).is_err(), "{number}");
        }
    }

    #[test]
    fn names_of_attributes_are_known() {
        let check = |name: &str| check_names(&[name.to_owned()]);
        for name in ["All", "SenderId", "AWSTraceHeader", "Policy"] {
            assert_eq!(check(name), Ok(()));
        }
        assert_eq!(check("Sender").unwrap_err().code, "InvalidAttributeName");
    }
}
