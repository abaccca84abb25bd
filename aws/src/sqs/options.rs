//! How a queue behaves, as the attributes that SQS keeps of it, and back.

use std::collections::HashMap;
use std::time::Duration;

use anabranch_model::queue::{DeduplicationScope, RedriveAllow, RedrivePolicy, ThroughputLimit};
use anabranch_model::{QueueName, QueueOptions, Result};
use aws_sdk_sqs::types::QueueAttributeName as Name;
use serde_json::{Value, json};

use super::{seconds, strange};

/// What SQS keeps of a queue.
pub(super) type Attributes = HashMap<Name, String>;

/// What SQS calls a queue when it speaks of it to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arn(String);

impl Arn {
    pub(super) fn of(attributes: &Attributes) -> Result<Arn> {
        let arn = attributes.get(&Name::QueueArn).filter(|arn| arn.contains(':'));
        arn.map(|arn| Arn(arn.clone())).ok_or_else(|| strange("a queue without an ARN"))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What a queue of the same account and region is called.
    fn sibling(&self, queue: &QueueName) -> String {
        let place = self.0.rsplit_once(':').map_or("", |(place, _)| place);
        format!("{place}:{queue}")
    }
}

/// The queue that an ARN names.
pub(super) fn named(arn: &str) -> Result<QueueName> {
    let name = arn.rsplit(':').next().unwrap_or_default();
    QueueName::new(name).map_err(|_| strange("an ARN that names no queue"))
}

/// The attributes of a queue that is to be made, except for a list of sources: that needs an ARN, which is known later.
pub(super) fn of_new(options: &QueueOptions, dead_letters: Option<&Arn>) -> Attributes {
    let mut attributes = common(options);
    if options.fifo {
        attributes.insert(Name::FifoQueue, "true".to_string());
    }
    if let (Some(policy), Some(arn)) = (&options.redrive, dead_letters) {
        attributes.insert(Name::RedrivePolicy, redrive(policy, arn));
    }
    match &options.redrive_allow {
        RedriveAllow::All => {}
        // Nobody comes in before the list is known.
        RedriveAllow::None | RedriveAllow::Queues(_) => {
            attributes.insert(Name::RedriveAllowPolicy, allow(&RedriveAllow::None, None));
        }
    }
    attributes
}

/// The attributes of a queue that exists, is called `own`, and behaves as in `before`. What an option does not say is
/// removed.
pub(super) fn of_existing(
    options: &QueueOptions,
    before: &QueueOptions,
    dead_letters: Option<&Arn>,
    own: &Arn,
) -> Attributes {
    let mut attributes = common(options);
    let policy = options.redrive.as_ref().zip(dead_letters);
    let policy = policy.map(|(policy, arn)| redrive(policy, arn));
    if policy.is_some() || before.redrive.is_some() {
        attributes.insert(Name::RedrivePolicy, policy.unwrap_or_default());
    }
    if options.redrive_allow != before.redrive_allow {
        attributes.insert(Name::RedriveAllowPolicy, allow(&options.redrive_allow, Some(own)));
    }
    attributes
}

fn common(options: &QueueOptions) -> Attributes {
    let time = |duration| seconds(duration).to_string();
    let mut attributes = HashMap::from([
        (Name::DelaySeconds, time(options.delay)),
        (Name::VisibilityTimeout, time(options.visibility)),
        (Name::MessageRetentionPeriod, time(options.retention)),
        (Name::ReceiveMessageWaitTimeSeconds, time(options.receive_wait)),
        (Name::MaximumMessageSize, options.message_bytes_max.to_string()),
    ]);
    if options.fifo {
        let scope = match options.deduplication_scope {
            DeduplicationScope::Queue => "queue",
            DeduplicationScope::Group => "messageGroup",
        };
        let limit = match options.throughput_limit {
            ThroughputLimit::Queue => "perQueue",
            ThroughputLimit::Group => "perMessageGroupId",
        };
        attributes.extend([
            (Name::ContentBasedDeduplication, options.deduplicates_content.to_string()),
            (Name::DeduplicationScope, scope.to_string()),
            (Name::FifoThroughputLimit, limit.to_string()),
        ]);
    }
    attributes
}

fn redrive(policy: &RedrivePolicy, arn: &Arn) -> String {
    json!({ "deadLetterTargetArn": arn.as_str(), "maxReceiveCount": policy.receives_max }).to_string()
}

fn allow(allow: &RedriveAllow, own: Option<&Arn>) -> String {
    match (allow, own) {
        (RedriveAllow::All, _) => json!({ "redrivePermission": "allowAll" }),
        (RedriveAllow::Queues(queues), Some(own)) => {
            let arns: Vec<_> = queues.iter().map(|queue| own.sibling(queue)).collect();
            json!({ "redrivePermission": "byQueue", "sourceQueueArns": arns })
        }
        (RedriveAllow::None | RedriveAllow::Queues(_), _) => json!({ "redrivePermission": "denyAll" }),
    }
    .to_string()
}

/// How a queue with these attributes behaves. What SQS does not say is as it is by default.
pub(super) fn read(queue: &QueueName, attributes: &Attributes) -> Result<QueueOptions> {
    let plain = QueueOptions::default();
    let text = |name: Name| attributes.get(&name).map(String::as_str);
    let number = |name: Name| match text(name) {
        Some(text) => text.parse().map(Some).map_err(|_| strange("an attribute that is no number")),
        None => Ok(None),
    };
    let time = |name: Name, default: Duration| number(name).map(|n| n.map_or(default, Duration::from_secs));
    let bytes = number(Name::MaximumMessageSize)?.and_then(|bytes| usize::try_from(bytes).ok());
    Ok(QueueOptions {
        fifo: queue.is_fifo(),
        delay: time(Name::DelaySeconds, plain.delay)?,
        visibility: time(Name::VisibilityTimeout, plain.visibility)?,
        retention: time(Name::MessageRetentionPeriod, plain.retention)?,
        message_bytes_max: bytes.unwrap_or(plain.message_bytes_max),
        receive_wait: time(Name::ReceiveMessageWaitTimeSeconds, plain.receive_wait)?,
        redrive: text(Name::RedrivePolicy).map_or(Ok(None), read_redrive)?,
        redrive_allow: text(Name::RedriveAllowPolicy).map_or(Ok(RedriveAllow::All), read_allow)?,
        deduplicates_content: text(Name::ContentBasedDeduplication) == Some("true"),
        deduplication_scope: match text(Name::DeduplicationScope) {
            Some("messageGroup") => DeduplicationScope::Group,
            _ => DeduplicationScope::Queue,
        },
        throughput_limit: match text(Name::FifoThroughputLimit) {
            Some("perMessageGroupId") => ThroughputLimit::Group,
            _ => ThroughputLimit::Queue,
        },
    })
}

fn read_redrive(text: &str) -> Result<Option<RedrivePolicy>> {
    if text.is_empty() {
        return Ok(None);
    }
    let policy = policy(text)?;
    let arn = policy["deadLetterTargetArn"].as_str().unwrap_or_default();
    // Whoever made the queue may have written the number as a text.
    let count = &policy["maxReceiveCount"];
    let count = count.as_u64().or_else(|| count.as_str()?.parse().ok());
    let receives_max = count.and_then(|count| u32::try_from(count).ok());
    let receives_max = receives_max.ok_or_else(|| strange("a redrive policy without a count"))?;
    Ok(Some(RedrivePolicy { dead_letters: named(arn)?, receives_max }))
}

fn read_allow(text: &str) -> Result<RedriveAllow> {
    if text.is_empty() {
        return Ok(RedriveAllow::All);
    }
    let policy = policy(text)?;
    match policy["redrivePermission"].as_str() {
        Some("denyAll") => Ok(RedriveAllow::None),
        Some("byQueue") => {
            let arns = policy["sourceQueueArns"].as_array().map(Vec::as_slice).unwrap_or_default();
            let queues = arns.iter().map(|arn| named(arn.as_str().unwrap_or_default()));
            Ok(RedriveAllow::Queues(queues.collect::<Result<_>>()?))
        }
        _ => Ok(RedriveAllow::All),
    }
}

fn policy(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|_| strange("a policy that is not JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    fn arn(queue: &str) -> Arn {
        Arn(format!("arn:aws-cn:sqs:cn-north-1:123456789012:{queue}"))
    }

    fn unusual() -> QueueOptions {
        QueueOptions {
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
        }
    }

    #[test]
    fn options_come_back() {
        let own = arn("q.fifo");
        for [before, after] in [[QueueOptions::fifo(), unusual()], [unusual(), QueueOptions::fifo()]] {
            let attributes = of_existing(&after, &before, Some(&arn("dead.fifo")), &own);
            assert_eq!(read(&name("q.fifo"), &attributes).unwrap(), after);
        }
        // What is to be removed is said, and what was never set is not.
        let removed = of_existing(&QueueOptions::fifo(), &unusual(), None, &own);
        assert_eq!(removed[&Name::RedrivePolicy], "");
        assert!(removed[&Name::RedriveAllowPolicy].contains("allowAll"));
        let same = of_existing(&QueueOptions::fifo(), &QueueOptions::fifo(), None, &own);
        assert!(!same.contains_key(&Name::RedrivePolicy) && !same.contains_key(&Name::RedriveAllowPolicy));
        let denying = QueueOptions { redrive_allow: RedriveAllow::None, ..QueueOptions::default() };
        assert_eq!(read(&name("q"), &of_new(&denying, None)).unwrap(), denying);
        assert_eq!(read(&name("q"), &Attributes::new()).unwrap(), QueueOptions::default());
    }

    #[test]
    fn a_list_of_sources_lets_nobody_in_until_it_is_known() {
        let options = read(&name("q.fifo"), &of_new(&unusual(), Some(&arn("dead.fifo")))).unwrap();
        assert_eq!(options, QueueOptions { redrive_allow: RedriveAllow::None, ..unusual() });
        let attributes =
            of_existing(&unusual(), &QueueOptions::fifo(), Some(&arn("dead.fifo")), &arn("q.fifo"));
        assert!(
            attributes[&Name::RedriveAllowPolicy].contains("arn:aws-cn:sqs:cn-north-1:123456789012:b.fifo")
        );
    }

    #[test]
    fn standard_queues_have_no_word_of_order() {
        for attributes in [
            of_new(&QueueOptions::default(), None),
            of_existing(&QueueOptions::default(), &QueueOptions::default(), None, &arn("q")),
        ] {
            assert!(!attributes.contains_key(&Name::FifoQueue));
            assert!(!attributes.contains_key(&Name::ContentBasedDeduplication));
            assert!(!attributes.contains_key(&Name::DeduplicationScope));
        }
        // What exists already stays as it was made, and SQS refuses to be told so.
        assert!(!of_existing(&unusual(), &unusual(), None, &arn("q.fifo")).contains_key(&Name::FifoQueue));
    }

    #[test]
    fn what_others_wrote_is_read() {
        let text = r#"{"maxReceiveCount":"5","deadLetterTargetArn":"arn:aws:sqs:us-east-1:1:d"}"#;
        let policy = read_redrive(text).unwrap().unwrap();
        assert_eq!((policy.dead_letters, policy.receives_max), (name("d"), 5));
        assert_eq!(read_redrive("").unwrap(), None);
        for bad in ["no JSON", "{}", r#"{"maxReceiveCount":3,"deadLetterTargetArn":"a/b"}"#] {
            assert!(read_redrive(bad).is_err(), "{bad}");
        }
    }
}
