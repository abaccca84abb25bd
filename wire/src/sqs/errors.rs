//! Errors of the ports in the words of SQS. Its codes have two spellings: a newer one in JSON, and the one that the
//! Query protocol always had, which JSON repeats in a header.

use anabranch_model::{Error, Receipt};
use http::StatusCode;

use crate::fault::Fault;

/// A refusal with both codes.
pub(super) fn refusal(code: &'static str, query_code: &'static str, message: impl Into<String>) -> Fault {
    Fault { query_code: Some(query_code), ..Fault::client(code, message) }
}

/// A value is not allowed here.
pub(super) fn invalid(message: impl Into<String>) -> Fault {
    refusal("InvalidParameterValueException", "InvalidParameterValue", message)
}

/// The value of a parameter is not allowed.
pub(super) fn invalid_value(parameter: &str, value: impl std::fmt::Display, reason: &str) -> Fault {
    let value: String = value.to_string().chars().take(1_024).collect();
    invalid(format!("Value {value} for parameter {parameter} is invalid. Reason: {reason}"))
}

/// A parameter is missing.
pub(super) fn missing(parameter: &str) -> Fault {
    let message = format!("The request must contain the parameter {parameter}.");
    refusal("MissingRequiredParameterException", "MissingParameter", message)
}

/// The value of a parameter that must be there.
pub(super) fn required<T>(parameter: &str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| missing(parameter))
}

/// There is no such queue.
pub(super) fn no_queue() -> Fault {
    let code = "AWS.SimpleQueueService.NonExistentQueue";
    refusal("QueueDoesNotExist", code, "The specified queue does not exist.")
}

/// There is no such resource of a move of messages.
pub(super) fn no_resource(message: impl Into<String>) -> Fault {
    let fault = refusal("ResourceNotFoundException", "ResourceNotFoundException", message);
    fault.with_status(StatusCode::NOT_FOUND)
}

/// Something cannot be done here.
pub(super) fn unsupported(message: impl Into<String>) -> Fault {
    refusal("UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation", message)
}

/// The text is no receipt of the queue.
pub(super) fn bad_receipt(receipt: &str) -> Fault {
    let shown: String = receipt.chars().take(1_024).collect();
    let message = format!("The input receipt handle \"{shown}\" is not a valid receipt handle.");
    refusal("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", message)
}

/// What SQS says about an error with a receipt, which it repeats.
pub(super) fn receipt_fault(error: Error, receipt: &Receipt) -> Fault {
    let refuse = |reason| invalid_value("ReceiptHandle", receipt, reason);
    match error {
        Error::ReceiptExpired(_) => refuse("The receipt handle has expired."),
        Error::NotInFlight(_) => {
            refuse("Message does not exist or is not available for visibility timeout change.")
        }
        error => fault(error),
    }
}

/// What SQS says about an error.
pub(super) fn fault(error: Error) -> Fault {
    if let Some(fault) = Fault::of_server(&error) {
        return fault;
    }
    let over_limit = |message| refusal("OverLimit", "OverLimit", message).with_status(StatusCode::FORBIDDEN);
    match error {
        Error::QueueNotFound(_) => no_queue(),
        Error::QueueExists(queue) => {
            refusal("QueueNameExists", "QueueAlreadyExists", format!("Queue {queue} already exists."))
        }
        Error::ReceiptInvalid(_, receipt) => bad_receipt(receipt.as_str()),
        Error::ReceiptExpired(message) => invalid(format!(
            "Value of message {message} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
        )),
        Error::NotInFlight(message) => refusal(
            "MessageNotInflight",
            "AWS.SimpleQueueService.MessageNotInflight",
            format!("Message {message} does not exist or is not available for visibility timeout change."),
        ),
        Error::MoveNotRunning(_) => no_resource("Task does not exist."),
        Error::MoveRunning(_) => invalid(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
        ),
        Error::InFlightLimit { .. } => over_limit(error.to_string()),
        Error::LimitExceeded(message) => over_limit(message),
        other => invalid(format!("One or more parameters are invalid. Reason: {other}.")),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{MessageId, QueueName, Receipt};

    use super::*;

    #[test]
    fn errors_have_the_codes_that_clients_know() {
        let queue = QueueName::new("q").unwrap();
        let id = MessageId::new("m").unwrap();
        for (error, code, query) in [
            (
                Error::QueueNotFound(queue.clone()),
                "QueueDoesNotExist",
                "AWS.SimpleQueueService.NonExistentQueue",
            ),
            (Error::QueueExists(queue.clone()), "QueueNameExists", "QueueAlreadyExists"),
            (
                Error::ReceiptInvalid(queue.clone(), Receipt::new("r").unwrap()),
                "ReceiptHandleIsInvalid",
                "ReceiptHandleIsInvalid",
            ),
            (Error::ReceiptExpired(id.clone()), "InvalidParameterValueException", "InvalidParameterValue"),
            (Error::NotInFlight(id), "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight"),
            (Error::InFlightLimit { queue: queue.clone(), limit: 1 }, "OverLimit", "OverLimit"),
            (Error::MoveRunning(queue), "InvalidParameterValueException", "InvalidParameterValue"),
            (Error::Invalid("why".into()), "InvalidParameterValueException", "InvalidParameterValue"),
        ] {
            let fault = fault(error);
            assert_eq!((&*fault.code, fault.query_code), (code, Some(query)));
            assert!(fault.status.is_client_error());
        }
        assert!(fault(Error::DiskFull).status.is_server_error());
    }
}
