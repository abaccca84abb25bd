//! Refusals in the words of Keyspaces: where DynamoDB has an exception of its own, there is a code in the answer.

use anabranch_model::Error;
use serde_json::Value;

use crate::dynamodb;
use crate::fault::Fault;

/// A refusal of DynamoDB Streams as Keyspaces tells it.
pub(super) fn retold(fault: Fault) -> Fault {
    match fault.code.as_ref() {
        "ExpiredIteratorException" => with_code(fault, "ExpiredIterator"),
        "TrimmedDataAccessException" => with_code(fault, "TrimmedDataAccess"),
        "ValidationException" => with_code(fault, "InvalidFormat"),
        _ => fault,
    }
}

/// What Keyspaces says about an error.
pub(super) fn fault(error: Error) -> Fault {
    retold(dynamodb::fault(error))
}

/// A value is not allowed.
pub(super) fn invalid(message: impl Into<String>) -> Fault {
    retold(Fault::validation(message))
}

fn with_code(fault: Fault, code: &str) -> Fault {
    let mut fault = Fault { code: "ValidationException".into(), ..fault };
    fault.members.insert("errorCode".to_owned(), Value::String(code.to_owned()));
    fault
}
