//! What SQS says when it does not do what it was asked, for a whole call or for one entry of a batch.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Error, MessageId, QueueName, Receipt, limits};
use aws_sdk_sqs::types::BatchResultErrorEntry;

use super::address::Address;
use super::{PURGE_DURATION, Queues};
use crate::failure::{Failure, Kind};

/// What older codes of SQS begin with.
const PREFIX: &str = "AWS.SimpleQueueService.";
/// When a throttled entry is likely to fit: limits are counted by the second.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The code without what is the same in all of them.
fn bare(code: &str) -> &str {
    code.strip_prefix(PREFIX).unwrap_or(code)
}

/// Whether SQS gave its error this name, in older or newer spelling.
pub(super) fn is<D>(failure: &Failure<D>, code: &str) -> bool {
    failure.code.as_deref().is_some_and(|given| bare(given) == code)
}

impl Queues {
    /// The error of a call to a queue. That the queue is gone is noted.
    pub(super) fn refused<D>(
        &self,
        queue: &QueueName,
        address: Option<&Arc<Address>>,
        failure: Failure<D>,
    ) -> Error {
        if failure.kind == Kind::NotFound {
            if let Some(address) = address {
                self.addresses.forget(queue, address);
            }
            return Error::QueueNotFound(queue.clone());
        }
        let code = failure.code.as_deref().map(bare).unwrap_or_default();
        match code {
            "OverLimit" => Error::InFlightLimit { queue: queue.clone(), limit: limits::IN_FLIGHT_MAX },
            "PurgeQueueInProgress" => Error::SlowDown {
                what: format!("queue `{queue}` was purged a moment ago: SQS does so once a minute"),
                retry_after: PURGE_DURATION,
            },
            "QueueDeletedRecently" => Error::SlowDown {
                what: format!(
                    "queue `{queue}` was deleted a moment ago: SQS gives its name again a minute later"
                ),
                retry_after: PURGE_DURATION,
            },
            "QueueNameExists" | "QueueAlreadyExists" => Error::QueueExists(queue.clone()),
            code => of_key(code, &failure.message).unwrap_or_else(|| failure.into()),
        }
    }
}

/// What SQS says when it cannot use the key that a queue is encrypted with.
fn of_key(code: &str, message: &str) -> Option<Error> {
    match code {
        "KmsThrottled" | "KMS.ThrottlingException" => Some(Error::SlowDown {
            what: format!("KMS throttles the key of the queue ({message})"),
            retry_after: RETRY_AFTER,
        }),
        "KmsAccessDenied" | "KMS.AccessDeniedException" => Some(Error::Denied {
            action: "kms:GenerateDataKey and kms:Decrypt".to_string(),
            message: message.to_string(),
        }),
        code if code.starts_with("Kms") || code.starts_with("KMS.") => Some(Error::Misconfigured(format!(
            "SQS cannot use the key that the queue is encrypted with ({code}: {message}): enable the key, or set another one"
        ))),
        _ => None,
    }
}

/// The error of one entry, and whether the entry may be sent again.
pub(super) fn of_entry(failed: &BatchResultErrorEntry) -> (Error, bool) {
    let (code, message) = (bare(&failed.code), failed.message.as_deref().unwrap_or_default());
    if let Some(error) = of_key(code, message) {
        let passes = matches!(error, Error::SlowDown { .. });
        return (error, passes);
    }
    match code {
        "RequestThrottled" | "ThrottlingException" | "Throttling" => {
            let what = format!("SQS throttles the message ({code}: {message})");
            (Error::SlowDown { what, retry_after: RETRY_AFTER }, true)
        }
        _ if failed.sender_fault => {
            (Error::Invalid(format!("SQS refuses the message ({code}: {message})")), false)
        }
        _ => (Error::Unavailable(format!("SQS did not take the message ({code}: {message})")), true),
    }
}

/// What is wrong with a receipt, by the code and the words of SQS; none if it is something else. One code stands for
/// several things, so the words decide.
pub(super) fn of_receipt(
    code: &str,
    words: &str,
    queue: &QueueName,
    receipt: &Receipt,
    message: &MessageId,
) -> Option<Error> {
    let invalid = || Error::ReceiptInvalid(queue.clone(), receipt.clone());
    match bare(code) {
        "ReceiptHandleIsInvalid" => Some(invalid()),
        "MessageNotInflight" => Some(Error::NotInFlight(message.clone())),
        _ if words.contains("has expired") => Some(Error::ReceiptExpired(message.clone())),
        _ if words.contains("not available for visibility") => Some(Error::NotInFlight(message.clone())),
        _ if words.contains("ReceiptHandle") => Some(invalid()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::NextMove;

    use super::*;

    fn entry(code: &str, sender_fault: bool) -> BatchResultErrorEntry {
        BatchResultErrorEntry::builder().id("0").code(code).sender_fault(sender_fault).build().unwrap()
    }

    #[test]
    fn entries_are_sent_again_only_if_that_may_help() {
        for (code, sender_fault, next, again) in [
            ("InternalError", false, NextMove::Retry, true),
            ("RequestThrottled", true, NextMove::Retry, true),
            ("KMS.ThrottlingException", true, NextMove::Retry, true),
            ("KmsAccessDenied", true, NextMove::FixSetup, false),
            ("KMS.DisabledException", true, NextMove::FixSetup, false),
            ("InvalidMessageContents", true, NextMove::FixCall, false),
            ("AWS.SimpleQueueService.SomethingNew", true, NextMove::FixCall, false),
        ] {
            let (error, passes) = of_entry(&entry(code, sender_fault));
            assert_eq!((error.next_move(), passes), (next, again), "{code}: {error:?}");
        }
    }

    #[test]
    fn receipts_are_wrong_for_several_reasons() {
        let (queue, receipt) = (QueueName::new("q").unwrap(), Receipt::new("r").unwrap());
        let id = MessageId::new("m").unwrap();
        let sorted = |code: &str, words: &str| of_receipt(code, words, &queue, &receipt, &id);
        let value = "InvalidParameterValue";
        let expired =
            "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.";
        let gone = "Value x for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not \
                    available for visibility timeout change.";
        let long = "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the \
                    message is beyond the limit [43200 seconds].";
        assert_eq!(sorted(value, expired), Some(Error::ReceiptExpired(id.clone())));
        assert_eq!(sorted(value, gone), Some(Error::NotInFlight(id.clone())));
        assert_eq!(sorted(value, long), None);
        let invalid = Some(Error::ReceiptInvalid(queue.clone(), receipt.clone()));
        assert_eq!(sorted("ReceiptHandleIsInvalid", ""), invalid);
        assert_eq!(sorted(value, "Value x for parameter ReceiptHandle is invalid."), invalid);
        let not_in_flight = sorted("AWS.SimpleQueueService.MessageNotInflight", "");
        assert_eq!(not_in_flight, Some(Error::NotInFlight(id.clone())));
        assert_eq!(sorted("InternalError", ""), None);
    }
}
