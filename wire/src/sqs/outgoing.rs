//! A message on its way into a queue: checked, converted, and answered with the sums of what was understood.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_model::limits::{GROUP_CHARS_MAX, MESSAGE_DELAY_MAX};
use anabranch_model::queue::{Attribute, AttributeValue, QueueSummary, Sent};
use anabranch_model::{Error, NewMessage, QueueName};
use serde::{Deserialize, Serialize};

use super::digest;
use super::errors::{fault, invalid, invalid_value, missing};
use super::message_attributes::{TRACE_HEADER, Value, of_sender, of_system};
use super::text;
use crate::context::Context;
use crate::fault::Fault;

/// A message as senders spell it: alone with its queue, or as an entry of several with an identifier.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Outgoing {
    pub(super) queue_url: Option<String>,
    pub(super) id: Option<String>,
    message_body: Option<String>,
    delay_seconds: Option<i64>,
    #[serde(alias = "MessageAttribute")]
    message_attributes: Option<BTreeMap<String, Value>>,
    #[serde(alias = "MessageSystemAttribute")]
    message_system_attributes: Option<BTreeMap<String, Value>>,
    message_deduplication_id: Option<String>,
    message_group_id: Option<String>,
}

/// What a sender learns.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Accepted {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "MD5OfMessageBody")]
    md5_of_message_body: String,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    md5_of_message_attributes: Option<String>,
    #[serde(rename = "MD5OfMessageSystemAttributes", skip_serializing_if = "Option::is_none")]
    md5_of_message_system_attributes: Option<String>,
    message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence_number: Option<String>,
}

/// The sums of what belongs to a message beside its body.
#[derive(Debug)]
pub(super) struct Sums {
    attributes: Option<String>,
    system_attributes: Option<String>,
}

impl Sums {
    /// The answer for a message that was taken.
    pub(super) fn accepted(self, id: Option<String>, md5_of_message_body: String, sent: Sent) -> Accepted {
        Accepted {
            id,
            md5_of_message_body,
            md5_of_message_attributes: self.attributes,
            md5_of_message_system_attributes: self.system_attributes,
            message_id: sent.id.to_string(),
            sequence_number: sent.sequence.map(|sequence| sequence.to_string()),
        }
    }
}

impl Outgoing {
    /// Whether it says which group it belongs to.
    pub(super) fn has_group(&self) -> bool {
        self.message_group_id.is_some()
    }

    /// Whether it says by what a duplicate of it is recognised.
    pub(super) fn is_named(&self) -> bool {
        self.message_deduplication_id.is_some()
    }

    /// The message for the store, and its sums. It belongs to the trace of the call unless it names another.
    pub(super) fn convert(
        self,
        queue: &QueueName,
        call_trace: Option<&str>,
    ) -> Result<(NewMessage, Sums), Fault> {
        let body = self.message_body.filter(|body| !body.is_empty()).ok_or_else(|| missing("MessageBody"))?;
        text::check(&body)?;
        if queue.is_fifo() && self.message_group_id.is_none() {
            return Err(missing("MessageGroupId"));
        }
        check_id("MessageGroupId", self.message_group_id.as_deref())?;
        check_id("MessageDeduplicationId", self.message_deduplication_id.as_deref())?;
        if let Some(id) = self.message_deduplication_id.as_ref().filter(|_| !queue.is_fifo()) {
            return Err(invalid_value("MessageDeduplicationId", id, NOT_HERE));
        }
        let delay = delay(queue, self.delay_seconds)?;
        let attributes = of_sender(self.message_attributes.unwrap_or_default())?;
        let trace = of_system(self.message_system_attributes.unwrap_or_default())?;
        let header = trace
            .clone()
            .map(|text| Attribute { kind: "String".to_owned(), value: AttributeValue::Text(text) });
        let sums = Sums {
            attributes: digest::of_attributes(attributes.iter().map(|(name, value)| (name.as_str(), value))),
            system_attributes: digest::of_attributes(header.iter().map(|header| (TRACE_HEADER, header))),
        };
        let message = NewMessage {
            body: body.into(),
            attributes,
            delay,
            group: self.message_group_id,
            deduplication: self.message_deduplication_id,
            trace: trace.or_else(|| call_trace.map(str::to_owned)),
        };
        Ok((message, sums))
    }
}

/// The identifier of a group, or one by which duplicates are recognised.
fn check_id(parameter: &str, id: Option<&str>) -> Result<(), Fault> {
    match id {
        Some(id)
            if !(1..=GROUP_CHARS_MAX).contains(&id.len()) || !id.bytes().all(|b| b.is_ascii_graphic()) =>
        {
            let reason = format!(
                "{parameter} can only include alphanumeric and punctuation characters. 1 to {GROUP_CHARS_MAX} in length."
            );
            Err(invalid_value(parameter, id, &reason))
        }
        _ => Ok(()),
    }
}

/// What a queue may refuse a message for, beside what is wrong with it for every queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    bytes: usize,
    is_named: bool,
}

impl Claim {
    /// That of a message.
    pub(super) fn of(message: &NewMessage) -> Self {
        Claim { bytes: message.size(), is_named: message.deduplication.is_some() }
    }

    /// Why the queue refused the message, in the words of the service; `how` its parameters are, it says differently of
    /// one message and of several.
    pub(super) async fn refused(
        self,
        context: &Context,
        queue: &QueueName,
        error: Error,
        how: &str,
    ) -> Fault {
        if !matches!(error, Error::Invalid(_)) {
            return fault(error);
        }
        match context.ports.queues.queue(queue).await {
            Ok(QueueSummary { options, .. }) if self.bytes > options.message_bytes_max => invalid(format!(
                "One or more parameters {how}. Reason: Message must be shorter than {} bytes.",
                options.message_bytes_max
            )),
            Ok(QueueSummary { options, .. })
                if options.fifo && !options.deduplicates_content && !self.is_named =>
            {
                invalid(UNNAMED)
            }
            _ => fault(error),
        }
    }
}

/// Nothing tells whether the message is a duplicate.
pub(super) const UNNAMED: &str = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly";

const NOT_HERE: &str = "The request include parameter that is not valid for this queue type.";

fn delay(queue: &QueueName, seconds: Option<i64>) -> Result<Option<Duration>, Fault> {
    let Some(seconds) = seconds else { return Ok(None) };
    let most = MESSAGE_DELAY_MAX.as_secs();
    let allowed = u64::try_from(seconds).ok().filter(|seconds| *seconds <= most);
    let Some(allowed) = allowed else {
        let reason = format!("DelaySeconds must be >= 0 and <= {most}.");
        return Err(invalid_value("DelaySeconds", seconds, &reason));
    };
    match (queue.is_fifo(), allowed) {
        // Queues that keep an order have one delay for all; to say that there is none besides is allowed.
        (true, 0) => Ok(None),
        (true, _) => Err(invalid_value("DelaySeconds", seconds, NOT_HERE)),
        (false, seconds) => Ok(Some(Duration::from_secs(seconds))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn converted(queue: &str, message: serde_json::Value) -> Result<(NewMessage, Sums), String> {
        let outgoing: Outgoing = serde_json::from_value(message).unwrap();
        let queue = QueueName::new(queue).unwrap();
        outgoing.convert(&queue, None).map_err(|fault| fault.query_code.unwrap_or_default().to_owned())
    }

    #[test]
    fn the_trace_is_kept_beside_the_attributes_and_summed_alone() {
        let attribute = json!({"DataType": "String", "StringValue": "x"});
        let message = json!({
            "MessageBody": "b", "MessageAttributes": {"a": attribute},
            "MessageSystemAttributes": {"AWSTraceHeader": attribute},
        });
        let (message, sums) = converted("q", message).unwrap();
        assert_eq!(message.attributes.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!((message.trace.as_deref(), message.size()), (Some("x"), "b".len() + "aStringx".len()));
        assert!(sums.attributes.is_some() && sums.system_attributes.is_some());
        assert!(sums.attributes != sums.system_attributes);
    }

    #[test]
    fn delays_belong_to_standard_queues() {
        let delayed = |queue, delay: i64| {
            converted(queue, json!({"MessageBody": "b", "DelaySeconds": delay, "MessageGroupId": "g"}))
                .map(|(message, _)| message.delay)
        };
        assert_eq!(delayed("q", 900), Ok(Some(Duration::from_secs(900))));
        assert_eq!(delayed("q", 0), Ok(Some(Duration::ZERO)));
        assert_eq!(delayed("q.fifo", 0), Ok(None));
        for (queue, delay) in [("q", -1), ("q", 901), ("q.fifo", 1)] {
            assert_eq!(delayed(queue, delay), Err("InvalidParameterValue".into()), "{queue} {delay}");
        }
    }

    #[test]
    fn identifiers_are_visible_ascii() {
        let sent = |id: &str| {
            let message = json!({"MessageBody": "b", "MessageGroupId": id, "MessageDeduplicationId": id});
            converted("q.fifo", message).map(drop)
        };
        assert_eq!(sent(&"!".repeat(128)), Ok(()));
        for id in ["", "group 123", "ä", &"a".repeat(129)] {
            assert_eq!(sent(id), Err("InvalidParameterValue".into()), "{id}");
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        for (queue, message) in [
            ("q", json!({})),
            ("q", json!({"MessageBody": ""})),
            ("q.fifo", json!({"MessageBody": "b", "MessageDeduplicationId": "d"})),
        ] {
            assert_eq!(converted(queue, message).unwrap_err(), "MissingParameter");
        }
        let deduplicated = json!({"MessageBody": "b", "MessageDeduplicationId": "d"});
        assert_eq!(converted("q", deduplicated).unwrap_err(), "InvalidParameterValue");
        assert_eq!(converted("q", json!({"MessageBody": "\u{1}"})).unwrap_err(), "InvalidMessageContents");
    }
}
