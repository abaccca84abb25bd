//! Where dead letters go and whose are taken, as the JSON that SQS has for it.

use anabranch_model::QueueName;
use anabranch_model::queue::{RedriveAllow, RedrivePolicy};
use serde::Deserialize;
use serde_json::{Value, json};

use super::errors::invalid_value;
use super::queue::of_arn;
use crate::fault::Fault;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    dead_letter_target_arn: Option<String>,
    /// Some clients write the number as a text.
    max_receive_count: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AllowPolicy {
    redrive_permission: Option<String>,
    source_queue_arns: Option<Vec<String>>,
}

/// The policy of a queue; none if the text is empty.
pub(super) fn parse(text: &str) -> Result<Option<RedrivePolicy>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    let refuse = |reason: &str| invalid_value("RedrivePolicy", text, reason);
    let policy: Policy =
        serde_json::from_str(text).map_err(|_| refuse("Redrive policy is not a valid JSON map."))?;
    let arn = policy.dead_letter_target_arn.filter(|arn| !arn.is_empty());
    let arn = arn
        .ok_or_else(|| refuse("Redrive policy does not contain mandatory attribute: deadLetterTargetArn."))?;
    let dead_letters = of_arn(&arn).ok_or_else(|| refuse("Invalid value for deadLetterTargetArn."))?;
    let count = policy
        .max_receive_count
        .ok_or_else(|| refuse("Redrive policy does not contain mandatory attribute: maxReceiveCount."))?;
    let number = count.as_u64().or_else(|| count.as_str()?.parse().ok());
    let receives_max = number.and_then(|number| u32::try_from(number).ok());
    let receives_max =
        receives_max.filter(|count| (1..=anabranch_model::limits::RECEIVES_MAX).contains(count));
    let receives_max = receives_max
        .ok_or_else(|| refuse("Invalid value for maxReceiveCount: Must be an integer between 1 and 1000."))?;
    Ok(Some(RedrivePolicy { dead_letters, receives_max }))
}

/// Whose dead letters a queue takes; everybody's if the text is empty.
pub(super) fn parse_allow(text: &str) -> Result<RedriveAllow, Fault> {
    if text.is_empty() {
        return Ok(RedriveAllow::All);
    }
    let refuse = |reason: &str| invalid_value("RedriveAllowPolicy", text, reason);
    let policy: AllowPolicy =
        serde_json::from_str(text).map_err(|_| refuse("Redrive allow policy is not a valid JSON map."))?;
    match (policy.redrive_permission.as_deref(), policy.source_queue_arns) {
        (Some("allowAll"), None) => Ok(RedriveAllow::All),
        (Some("denyAll"), None) => Ok(RedriveAllow::None),
        (Some("byQueue"), Some(arns)) => {
            let queues = arns.iter().map(|arn| of_arn(arn)).collect::<Option<Vec<_>>>();
            queues.map(RedriveAllow::Queues).ok_or_else(|| refuse("Invalid value for sourceQueueArns."))
        }
        (Some("allowAll" | "denyAll"), Some(_)) => {
            Err(refuse("sourceQueueArns can only be given if redrivePermission is byQueue."))
        }
        (Some("byQueue"), None) => Err(refuse("sourceQueueArns is missing.")),
        _ => Err(refuse("redrivePermission must be allowAll, denyAll or byQueue.")),
    }
}

/// A policy as text.
pub(super) fn spell(policy: &RedrivePolicy, arn: impl Fn(&QueueName) -> String) -> String {
    json!({ "deadLetterTargetArn": arn(&policy.dead_letters), "maxReceiveCount": policy.receives_max })
        .to_string()
}

/// Whose dead letters a queue takes, as text; none if they are everybody's.
pub(super) fn spell_allow(allow: &RedriveAllow, arn: impl Fn(&QueueName) -> String) -> Option<String> {
    match allow {
        RedriveAllow::All => None,
        RedriveAllow::None => Some(json!({ "redrivePermission": "denyAll" }).to_string()),
        RedriveAllow::Queues(queues) => {
            let arns: Vec<_> = queues.iter().map(arn).collect();
            Some(json!({ "redrivePermission": "byQueue", "sourceQueueArns": arns }).to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_be_texts() {
        for count in ["5", "\"5\""] {
            let text =
                format!(r#"{{"maxReceiveCount":{count},"deadLetterTargetArn":"arn:aws:sqs:us-east-1:1:d"}}"#);
            let policy = parse(&text).unwrap().unwrap();
            assert_eq!((policy.dead_letters.as_str(), policy.receives_max), ("d", 5));
        }
        assert_eq!(parse("").unwrap(), None);
        assert_eq!(parse_allow("").unwrap(), RedriveAllow::All);
        assert_eq!(parse_allow(r#"{"redrivePermission":"allowAll"}"#).unwrap(), RedriveAllow::All);
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for text in [
            "x",
            "[]",
            "{}",
            r#"{"maxReceiveCount":5}"#,
            r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:1:d"}"#,
            r#"{"maxReceiveCount":0,"deadLetterTargetArn":"arn:aws:sqs:us-east-1:1:d"}"#,
            r#"{"maxReceiveCount":1001,"deadLetterTargetArn":"arn:aws:sqs:us-east-1:1:d"}"#,
            r#"{"maxReceiveCount":"many","deadLetterTargetArn":"arn:aws:sqs:us-east-1:1:d"}"#,
            r#"{"maxReceiveCount":5,"deadLetterTargetArn":"d"}"#,
        ] {
            let fault = parse(text).unwrap_err();
            assert_eq!(fault.query_code, Some("InvalidParameterValue"), "{text}");
        }
        for text in [
            "x",
            "{}",
            r#"{"redrivePermission":"some"}"#,
            r#"{"redrivePermission":"byQueue"}"#,
            r#"{"redrivePermission":"byQueue","sourceQueueArns":["q"]}"#,
            r#"{"redrivePermission":"denyAll","sourceQueueArns":[]}"#,
        ] {
            assert!(parse_allow(text).is_err(), "{text}");
        }
    }
}
