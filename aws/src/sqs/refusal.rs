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
            // What servers answer that know only a part of SQS.
            "InvalidAction" => Failure { kind: Kind::Unsupported, ..failure }.into(),
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

/// What SQS says about one entry that it did not do.
pub(super) struct Refusal {
    code: String,
    words: String,
    sender_fault: bool,
}

impl Refusal {
    pub(super) fn of_entry(failed: &BatchResultErrorEntry) -> Self {
        Refusal {
            code: bare(&failed.code).to_string(),
            words: failed.message.clone().unwrap_or_default(),
            sender_fault: failed.sender_fault,
        }
    }

    /// The refusal of a call that had one entry only.
    pub(super) fn of_call(failure: &Failure) -> Self {
        Refusal {
            code: failure.code.as_deref().map(bare).unwrap_or_default().to_string(),
            words: failure.message.clone(),
            sender_fault: true,
        }
    }

    /// The error of a message, and whether it may be sent again.
    pub(super) fn of_message(&self) -> (Error, bool) {
        let Refusal { code, words, .. } = self;
        if let Some(error) = of_key(code, words) {
            let passes = matches!(error, Error::SlowDown { .. });
            return (error, passes);
        }
        match code.as_str() {
            "RequestThrottled" | "ThrottlingException" | "Throttling" => {
                let what = format!("SQS throttles the message ({code}: {words})");
                (Error::SlowDown { what, retry_after: RETRY_AFTER }, true)
            }
            _ if self.sender_fault => {
                (Error::Invalid(format!("SQS refuses the message ({code}: {words})")), false)
            }
            _ => (Error::Unavailable(format!("SQS did not take the message ({code}: {words})")), true),
        }
    }

    /// The error of what was asked with a receipt, and whether it may be asked again. One code stands for several things,
    /// so the words decide.
    pub(super) fn of_receipt(
        &self,
        queue: &QueueName,
        receipt: &Receipt,
        message: &MessageId,
    ) -> (Error, bool) {
        let invalid = || Error::ReceiptInvalid(queue.clone(), receipt.clone());
        let error = match self.code.as_str() {
            "ReceiptHandleIsInvalid" => invalid(),
            "MessageNotInflight" => Error::NotInFlight(message.clone()),
            _ if self.words.contains("has expired") => Error::ReceiptExpired(message.clone()),
            _ if self.words.contains("not available for visibility") => Error::NotInFlight(message.clone()),
            _ if self.words.contains("ReceiptHandle") => invalid(),
            _ => return self.of_message(),
        };
        (error, false)
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
            let (error, passes) = Refusal::of_entry(&entry(code, sender_fault)).of_message();
            assert_eq!((error.next_move(), passes), (next, again), "{code}: {error:?}");
        }
    }

    #[test]
    fn receipts_are_wrong_for_several_reasons() {
        let (queue, receipt) = (QueueName::new("q").unwrap(), Receipt::new("r").unwrap());
        let id = MessageId::new("m").unwrap();
        let sorted = |code: &str, words: &str| {
            let refusal = Refusal { code: bare(code).into(), words: words.into(), sender_fault: true };
            refusal.of_receipt(&queue, &receipt, &id)
        };
        let value = "InvalidParameterValue";
        let expired =
            "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.";
        let gone = "Value x for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not \
                    available for visibility timeout change.";
        let long = "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the \
                    message is beyond the limit [43200 seconds].";
        assert_eq!(sorted(value, expired), (Error::ReceiptExpired(id.clone()), false));
        assert_eq!(sorted(value, gone), (Error::NotInFlight(id.clone()), false));
        assert!(
            matches!(sorted(value, long), (Error::Invalid(words), false) if words.contains("beyond the limit"))
        );
        let invalid = (Error::ReceiptInvalid(queue.clone(), receipt.clone()), false);
        assert_eq!(sorted("ReceiptHandleIsInvalid", ""), invalid);
        assert_eq!(sorted(value, "Value x for parameter ReceiptHandle is invalid."), invalid);
        let not_in_flight = sorted("AWS.SimpleQueueService.MessageNotInflight", "");
        assert_eq!(not_in_flight, (Error::NotInFlight(id.clone()), false));
    }
}
