//! How a queue behaves, as the attributes that SQS has for it, and back.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use anabranch_model::queue::{DeduplicationScope, QueueSummary, ThroughputLimit};
use anabranch_model::{QueueName, QueueOptions, limits};

use super::errors::refusal;
use super::redrive;
use crate::fault::Fault;

/// Attributes by name.
pub(super) type Attributes = BTreeMap<String, String>;

/// What can be asked for and not be set.
const READ_ONLY: [&str; 6] = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
];

/// What can be set.
const SETTABLE: [&str; 15] = [
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "Policy",
    "ReceiveMessageWaitTimeSeconds",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "SqsManagedSseEnabled",
    "VisibilityTimeout",
];

/// Whether SQS has an attribute of this name.
pub(super) fn exists(name: &str) -> bool {
    READ_ONLY.contains(&name) || SETTABLE.contains(&name)
}

/// There is no such attribute, or it cannot be set.
pub(super) fn unknown(name: &str) -> Fault {
    let shown: String = name.chars().take(256).collect();
    refusal("InvalidAttributeName", "InvalidAttributeName", format!("Unknown Attribute {shown}."))
}

/// Refuses what only queues have that keep an order, whatever its value is. A queue without an order that is asked to keep
/// one is for the caller to refuse.
pub(super) fn check_kind(queue: &QueueName, attributes: &Attributes) -> Result<(), Fault> {
    if queue.is_fifo() || attributes.get("FifoQueue").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    {
        return Ok(());
    }
    for name in attributes.keys() {
        match name.as_str() {
            "FifoQueue" | "ContentBasedDeduplication" => return Err(unknown(name)),
            "DeduplicationScope" | "FifoThroughputLimit" => {
                let message = format!("You can specify the {name} only when FifoQueue is set to true.");
                return Err(refusal("InvalidAttributeName", "InvalidAttributeName", message));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses two ways to encrypt a queue at once.
pub(super) fn check_encryption(attributes: &Attributes) -> Result<(), Fault> {
    let has_key = attributes.get("KmsMasterKeyId").is_some_and(|key| !key.is_empty());
    let managed = attributes.get("SqsManagedSseEnabled").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    if !(has_key && managed) {
        return Ok(());
    }
    let message = "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS \
                   SSE.";
    Err(refusal("InvalidAttributeName", "InvalidAttributeName", message))
}

/// A queue keeps its kind.
pub(super) fn kind_stays() -> Fault {
    let message = "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.";
    refusal("InvalidAttributeValue", "InvalidAttributeValue", message)
}

fn invalid(name: &str) -> Fault {
    let message = format!("Invalid value for the parameter {name}.");
    refusal("InvalidAttributeValue", "InvalidAttributeValue", message)
}

/// How a queue behaves, and what is only kept for those who ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Behaviour {
    /// What the store acts upon.
    pub(super) options: QueueOptions,
    /// Policies and keys, as they were given.
    pub(super) kept: Attributes,
}

impl Behaviour {
    /// Sets one attribute.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        let options = &mut self.options;
        let seconds = |allowed| seconds(name, value, allowed);
        match name {
            "DelaySeconds" => options.delay = seconds(0..=limits::MESSAGE_DELAY_MAX.as_secs())?,
            "VisibilityTimeout" => options.visibility = seconds(0..=limits::VISIBILITY_MAX.as_secs())?,
            "MessageRetentionPeriod" => {
                let most = limits::MESSAGE_RETENTION_MAX.as_secs();
                options.retention = seconds(limits::MESSAGE_RETENTION_MIN.as_secs()..=most)?;
            }
            "ReceiveMessageWaitTimeSeconds" => {
                options.receive_wait = seconds(0..=limits::RECEIVE_WAIT_MAX.as_secs())?;
            }
            "MaximumMessageSize" => {
                let allowed = limits::MESSAGE_BYTES_MAX_MIN as u64..=limits::MESSAGE_BYTES_MAX as u64;
                options.message_bytes_max = number(name, value, allowed)? as usize;
            }
            "RedrivePolicy" => options.redrive = redrive::parse(value)?,
            "RedriveAllowPolicy" => options.redrive_allow = redrive::parse_allow(value)?,
            "FifoQueue" => options.fifo = truth(name, value)?,
            "ContentBasedDeduplication" => options.deduplicates_content = truth(name, value)?,
            "DeduplicationScope" => {
                options.deduplication_scope = match value {
                    "queue" => DeduplicationScope::Queue,
                    "messageGroup" => DeduplicationScope::Group,
                    _ => return Err(invalid(name)),
                };
            }
            "FifoThroughputLimit" => {
                options.throughput_limit = match value {
                    "perQueue" => ThroughputLimit::Queue,
                    "perMessageGroupId" => ThroughputLimit::Group,
                    _ => return Err(invalid(name)),
                };
            }
            _ => return self.keep(name, value),
        }
        Ok(())
    }

    /// What the store does not act upon is kept as it is, once it makes sense.
    fn keep(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        let empty = value.is_empty();
        match name {
            "Policy" if !empty => drop(json_object(name, value)?),
            "KmsDataKeyReusePeriodSeconds" if !empty => drop(seconds(name, value, 60..=86_400)?),
            "SqsManagedSseEnabled" if !empty => drop(truth(name, value)?),
            "KmsMasterKeyId" if value.chars().count() > 2_048 => return Err(invalid(name)),
            "Policy" | "KmsMasterKeyId" | "KmsDataKeyReusePeriodSeconds" | "SqsManagedSseEnabled" => {}
            _ => return Err(unknown(name)),
        }
        // The way that is chosen last is the one that holds.
        match name {
            "KmsMasterKeyId" if !empty => drop(self.kept.remove("SqsManagedSseEnabled")),
            "SqsManagedSseEnabled" if value.eq_ignore_ascii_case("true") => {
                drop(self.kept.remove("KmsMasterKeyId"));
            }
            _ => {}
        }
        match empty {
            true => self.kept.remove(name),
            false => self.kept.insert(name.to_owned(), value.to_owned()),
        };
        Ok(())
    }
}

fn seconds(name: &str, value: &str, allowed: RangeInclusive<u64>) -> Result<Duration, Fault> {
    number(name, value, allowed).map(Duration::from_secs)
}

fn number(name: &str, value: &str, allowed: RangeInclusive<u64>) -> Result<u64, Fault> {
    value.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(|| invalid(name))
}

fn truth(name: &str, value: &str) -> Result<bool, Fault> {
    match value {
        value if value.eq_ignore_ascii_case("true") => Ok(true),
        value if value.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(invalid(name)),
    }
}

/// The object that a policy is.
pub(super) fn json_object(
    name: &str,
    value: &str,
) -> Result<serde_json::Map<String, serde_json::Value>, Fault> {
    serde_json::from_str(value).map_err(|_| invalid(name))
}

/// All attributes of a queue. `arn` gives the ARN of a queue of this server.
pub(super) fn describe(
    queue: &QueueSummary,
    kept: &Attributes,
    arn: impl Fn(&QueueName) -> String,
) -> Attributes {
    let options = &queue.options;
    let mut all = kept.clone();
    let mut add = |name: &str, value: &dyn Display| {
        all.entry(name.to_owned()).or_insert_with(|| value.to_string());
    };
    add("ApproximateNumberOfMessages", &queue.counts.visible);
    add("ApproximateNumberOfMessagesDelayed", &queue.counts.delayed);
    add("ApproximateNumberOfMessagesNotVisible", &queue.counts.in_flight);
    add("CreatedTimestamp", &(queue.created_at.as_millis() / 1_000));
    add("LastModifiedTimestamp", &(queue.changed_at.as_millis() / 1_000));
    add("QueueArn", &arn(&queue.name));
    add("DelaySeconds", &options.delay.as_secs());
    add("VisibilityTimeout", &options.visibility.as_secs());
    add("MessageRetentionPeriod", &options.retention.as_secs());
    add("ReceiveMessageWaitTimeSeconds", &options.receive_wait.as_secs());
    add("MaximumMessageSize", &options.message_bytes_max);
    // Without a key there is nothing that could be used again.
    if !all.contains_key("KmsMasterKeyId") {
        all.remove("KmsDataKeyReusePeriodSeconds");
    }
    // As the service says of a queue that has no key of its own. Messages lie on the disk as they are: to encrypt it is
    // the matter of whoever runs the server.
    let has_key = all.contains_key("KmsMasterKeyId");
    all.entry("SqsManagedSseEnabled".to_owned()).or_insert_with(|| (!has_key).to_string());
    let mut add = |name: &str, value: &dyn Display| {
        all.entry(name.to_owned()).or_insert_with(|| value.to_string());
    };
    if let Some(policy) = &options.redrive {
        add("RedrivePolicy", &redrive::spell(policy, &arn));
    }
    if let Some(policy) = redrive::spell_allow(&options.redrive_allow, &arn) {
        add("RedriveAllowPolicy", &policy);
    }
    if options.fifo {
        add("FifoQueue", &true);
        add("ContentBasedDeduplication", &options.deduplicates_content);
        let scope = match options.deduplication_scope {
            DeduplicationScope::Queue => "queue",
            DeduplicationScope::Group => "messageGroup",
        };
        add("DeduplicationScope", &scope);
        let limit = match options.throughput_limit {
            ThroughputLimit::Queue => "perQueue",
            ThroughputLimit::Group => "perMessageGroupId",
        };
        add("FifoThroughputLimit", &limit);
    }
    all
}

#[cfg(test)]
mod tests {
    use anabranch_model::Timestamp;
    use anabranch_model::queue::{QueueCounts, RedriveAllow, RedrivePolicy};

    use super::*;

    fn arn(queue: &QueueName) -> String {
        format!("arn:aws:sqs:us-east-1:000000000000:{queue}")
    }

    fn plain(options: QueueOptions) -> Behaviour {
        Behaviour { options, kept: Attributes::new() }
    }

    #[test]
    fn what_is_described_can_be_set() {
        let name = |name| QueueName::new(name).unwrap();
        let options = QueueOptions {
            delay: Duration::from_secs(7),
            visibility: Duration::from_secs(43_200),
            retention: Duration::from_secs(60),
            message_bytes_max: 1_024,
            receive_wait: Duration::from_secs(20),
            redrive: Some(RedrivePolicy { dead_letters: name("dead.fifo"), receives_max: 1_000 }),
            redrive_allow: RedriveAllow::Queues(vec![name("a.fifo"), name("b.fifo")]),
            deduplicates_content: true,
            deduplication_scope: DeduplicationScope::Group,
            throughput_limit: ThroughputLimit::Group,
            ..QueueOptions::fifo()
        };
        for options in [options, QueueOptions::fifo()] {
            let summary = QueueSummary {
                name: name("q.fifo"),
                options: options.clone(),
                counts: QueueCounts::default(),
                oldest_age: None,
                created_at: Timestamp::from_millis(1_999),
                changed_at: Timestamp::from_millis(2_000),
            };
            let kept = Attributes::from([("KmsMasterKeyId".to_owned(), "alias/k".to_owned())]);
            let described = describe(&summary, &kept, arn);
            assert_eq!(described["CreatedTimestamp"], "1");
            assert_eq!(described["QueueArn"], "arn:aws:sqs:us-east-1:000000000000:q.fifo");
            let mut behaviour = plain(QueueOptions::default());
            for (name, value) in &described {
                assert!(exists(name), "{name}");
                if !READ_ONLY.contains(&name.as_str()) {
                    behaviour.set(name, value).unwrap();
                }
            }
            assert_eq!(behaviour.options, options);
            assert_eq!(behaviour.kept["KmsMasterKeyId"], "alias/k");
        }
    }

    #[test]
    fn bad_values_are_refused() {
        for (name, value) in [
            ("DelaySeconds", "901"),
            ("DelaySeconds", "-1"),
            ("DelaySeconds", ""),
            ("DelaySeconds", "1.5"),
            ("VisibilityTimeout", "43201"),
            ("MessageRetentionPeriod", "59"),
            ("MessageRetentionPeriod", "1209601"),
            ("ReceiveMessageWaitTimeSeconds", "21"),
            ("MaximumMessageSize", "1023"),
            ("MaximumMessageSize", "1048577"),
            ("FifoQueue", "yes"),
            ("DeduplicationScope", "group"),
            ("FifoThroughputLimit", "x"),
            ("Policy", "no JSON"),
            ("Policy", "[]"),
            ("KmsDataKeyReusePeriodSeconds", "59"),
            ("SqsManagedSseEnabled", "x"),
        ] {
            let mut behaviour = plain(QueueOptions::default());
            let fault = behaviour.set(name, value).unwrap_err();
            assert_eq!(fault.code, "InvalidAttributeValue", "{name}={value}");
            assert_eq!(behaviour, plain(QueueOptions::default()));
        }
        for name in READ_ONLY.into_iter().chain(["All", "", "delayseconds"]) {
            let fault = plain(QueueOptions::default()).set(name, "1").unwrap_err();
            assert_eq!(fault.code, "InvalidAttributeName", "{name}");
        }
    }

    #[test]
    fn queues_without_an_order_have_no_attributes_of_those_with_one() {
        let check = |queue: &str, pairs: &[(&str, &str)]| {
            let attributes = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            check_kind(&QueueName::new(queue).unwrap(), &attributes.collect())
        };
        for (name, value, begins) in [
            ("FifoQueue", "false", "Unknown Attribute FifoQueue."),
            ("ContentBasedDeduplication", "false", "Unknown Attribute ContentBasedDeduplication."),
            ("DeduplicationScope", "queue", "You can specify the DeduplicationScope only"),
            ("FifoThroughputLimit", "perQueue", "You can specify the FifoThroughputLimit only"),
        ] {
            let fault = check("q", &[("DelaySeconds", "1"), (name, value)]).unwrap_err();
            assert_eq!(fault.query_code, Some("InvalidAttributeName"));
            assert!(fault.message.starts_with(begins), "{}", fault.message);
            assert_eq!(check("q.fifo", &[(name, value)]), Ok(()));
        }
        assert_eq!(check("q", &[("DelaySeconds", "1"), ("Policy", "{}")]), Ok(()));
        // The name is what is wrong then.
        assert_eq!(check("q", &[("ContentBasedDeduplication", "true"), ("FifoQueue", "true")]), Ok(()));
    }

    #[test]
    fn what_is_kept_can_be_removed() {
        let mut behaviour = plain(QueueOptions::default());
        for name in ["Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"] {
            let value = match name {
                "Policy" => "{}",
                "SqsManagedSseEnabled" => "true",
                _ => "300",
            };
            behaviour.set(name, value).unwrap();
            assert_eq!(behaviour.kept[name], value);
            behaviour.set(name, "").unwrap();
        }
        assert!(behaviour.kept.is_empty());
    }

    #[test]
    fn a_queue_is_encrypted_in_one_way() {
        let mut behaviour = plain(QueueOptions::default());
        behaviour.set("KmsMasterKeyId", "alias/k").unwrap();
        behaviour.set("SqsManagedSseEnabled", "true").unwrap();
        assert_eq!(behaviour.kept.keys().collect::<Vec<_>>(), ["SqsManagedSseEnabled"]);
        behaviour.set("KmsMasterKeyId", "alias/k").unwrap();
        assert_eq!(behaviour.kept.keys().collect::<Vec<_>>(), ["KmsMasterKeyId"]);
        let both = |managed: &str| {
            let pairs = [("KmsMasterKeyId", "alias/k"), ("SqsManagedSseEnabled", managed)];
            check_encryption(&pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
        };
        assert_eq!(both("false"), Ok(()));
        assert_eq!(both("true").unwrap_err().code, "InvalidAttributeName");
    }
}
