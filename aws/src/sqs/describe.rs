//! What is known about queues.

use std::collections::BTreeSet;

use anabranch_model::queue::{QueueCounts, QueueSummary};
use anabranch_model::{Error, Page, QueueName, Result, Timestamp, limits};
use aws_sdk_sqs::types::QueueAttributeName as Name;
use futures_util::{StreamExt, TryStreamExt};

use super::options::{self, Attributes};
use super::{Queues, action, strange};
use crate::call::Deadline;

/// Queues that are described at the same time for one page of a listing.
const DESCRIPTIONS_MAX: usize = 8;
/// Names that one answer lists at most.
const NAMES_MAX: i32 = 1_000;

impl Queues {
    /// The queue as SQS describes it.
    pub(super) async fn describe(&self, queue: &QueueName, deadline: Deadline) -> Result<Attributes> {
        let address = self.address(queue, deadline).await?;
        let request =
            || self.client.get_queue_attributes().queue_url(address.url()).attribute_names(Name::All).send();
        let answer = self.caller.call(&action::GET_QUEUE_ATTRIBUTES, deadline, request).await;
        let answer = answer.map_err(|failure| self.refused(queue, Some(&address), failure))?;
        answer.attributes.ok_or_else(|| strange("a queue without attributes"))
    }

    pub(super) async fn summary(&self, queue: &QueueName) -> Result<QueueSummary> {
        let attributes = self.describe(queue, self.soon()).await?;
        let count = |name| attributes.get(&name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(QueueSummary {
            name: queue.clone(),
            options: options::read(queue, &attributes)?,
            counts: QueueCounts {
                visible: count(Name::ApproximateNumberOfMessages),
                in_flight: count(Name::ApproximateNumberOfMessagesNotVisible),
                delayed: count(Name::ApproximateNumberOfMessagesDelayed),
            },
            // SQS tells it to CloudWatch only.
            oldest_age: None,
            created_at: moment(&attributes, Name::CreatedTimestamp),
            changed_at: moment(&attributes, Name::LastModifiedTimestamp),
        })
    }

    /// A page of queues. All names fit into a few answers, so that they can be put in order here.
    pub(super) async fn page(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>> {
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let names = self.names(prefix).await?;
        let names: Vec<_> = names.into_iter().filter(|name| after.is_none_or(|after| name > after)).collect();
        let mut names = names.into_iter();
        let mut entries = Vec::new();
        // A queue that is deleted between the two calls is not counted.
        while entries.len() < limit && names.len() > 0 {
            let some: Vec<_> = names.by_ref().take(limit - entries.len()).collect();
            let summaries = futures_util::stream::iter(some)
                .map(|name| async move {
                    match self.summary(&name).await {
                        Ok(summary) => Ok(Some(summary)),
                        Err(Error::QueueNotFound(_)) => Ok(None),
                        Err(error) => Err(error),
                    }
                })
                .buffered(DESCRIPTIONS_MAX);
            let summaries: Vec<_> = summaries.try_collect().await?;
            entries.extend(summaries.into_iter().flatten());
        }
        Ok(Page { entries, more: names.len() > 0 })
    }

    async fn names(&self, prefix: &str) -> Result<BTreeSet<QueueName>> {
        let mut names = BTreeSet::new();
        if !may_begin_a_name(prefix) {
            return Ok(names);
        }
        let deadline = self.soon();
        let prefix = Some(prefix.to_string()).filter(|prefix| !prefix.is_empty());
        let mut next = None;
        loop {
            let request = || {
                self.client
                    .list_queues()
                    .set_queue_name_prefix(prefix.clone())
                    .set_next_token(next.clone())
                    .max_results(NAMES_MAX)
                    .send()
            };
            let answer = self.caller.call(&action::LIST_QUEUES, deadline, request).await?;
            for url in answer.queue_urls.unwrap_or_default() {
                let name = QueueName::new(url.rsplit('/').next().unwrap_or_default());
                let name = name.map_err(|_| strange("a queue without a proper name"))?;
                self.addresses.remember(&name, url);
                names.insert(name);
            }
            let before = std::mem::replace(&mut next, answer.next_token);
            if next.is_none() || next == before {
                return Ok(names);
            }
        }
    }
}

/// Whether there can be names that begin like this. SQS refuses to look for others.
fn may_begin_a_name(prefix: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    prefix.len() <= limits::QUEUE_NAME_CHARS_MAX && prefix.bytes().all(allowed)
}

/// A moment that SQS tells in seconds; some servers add a fraction.
fn moment(attributes: &Attributes, name: Name) -> Timestamp {
    let text = attributes.get(&name).map(String::as_str).unwrap_or_default();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().unwrap_or(0);
    let millis: u64 = format!("{fraction:0<3.3}").parse().unwrap_or(0);
    Timestamp::from_millis(whole.saturating_mul(1_000).saturating_add(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_seconds_or_more() {
        for (text, millis) in [
            ("1700000000", 1_700_000_000_000),
            ("1700000000.5", 1_700_000_000_500),
            ("7.12345", 7_123),
            ("x", 0),
        ] {
            let attributes = Attributes::from([(Name::CreatedTimestamp, text.to_string())]);
            assert_eq!(moment(&attributes, Name::CreatedTimestamp).as_millis(), millis, "{text}");
        }
    }

    #[test]
    fn only_prefixes_that_names_can_have_are_asked_for() {
        assert!(may_begin_a_name("") && may_begin_a_name("a-B_9.fifo"));
        assert!(!may_begin_a_name("a b") && !may_begin_a_name("ä") && !may_begin_a_name(&"x".repeat(81)));
    }
}
