//! Errors of the ports in the words of DynamoDB.

use anabranch_model::{Cancelled, Error};
use serde_json::{Value as Json, json};

use super::attribute::{INVALID, ItemBody};
use crate::fault::Fault;

/// The code of what does not exist.
pub(super) const NOT_FOUND: &str = "ResourceNotFoundException";
const CONDITION_FAILED: &str = "The conditional request failed";

/// What DynamoDB says about an error.
pub(crate) fn fault(error: Error) -> Fault {
    if let Some(fault) = Fault::of_server(&error) {
        return fault;
    }
    match error {
        Error::TableNotFound(_) | Error::StreamNotFound(_) | Error::ShardNotFound(..) => {
            not_found("Requested resource not found")
        }
        Error::TableExists(table) => in_use(format!("Table already exists: {table}")),
        Error::TableBusy(table) => in_use(format!(
            "Attempt to change a resource which is still in use: Table is being updated: {table}"
        )),
        Error::IndexNotFound(_, index) => {
            Fault::validation(format!("The table does not have the specified index: {index}"))
        }
        Error::ConditionFailed { item } => {
            let mut fault = Fault::client("ConditionalCheckFailedException", CONDITION_FAILED);
            if let Some(item) = item {
                fault.members.insert("Item".to_owned(), shown(item));
            }
            fault
        }
        Error::TransactionCancelled { reasons } => cancelled(reasons),
        Error::TransactionConflict => {
            Fault::client("TransactionConflictException", "Transaction is ongoing for the item")
        }
        Error::TokenReused => Fault::client(
            "IdempotentParameterMismatchException",
            "The request uses the same client token as a previous, but non-identical request. Do not reuse a client \
             token with different parameters.",
        ),
        Error::LimitExceeded(message) => Fault::client("LimitExceededException", message),
        Error::Throttled { .. } => Fault::client("ProvisionedThroughputExceededException", error.to_string()),
        other => Fault::validation(format!("{INVALID} {other}")),
    }
}

/// A transaction that was refused, with a reason for each of its parts.
pub(super) fn cancelled(reasons: Vec<Option<Cancelled>>) -> Fault {
    let reasons: Vec<_> = reasons.into_iter().map(reason).collect();
    let codes: Vec<_> = reasons.iter().map(|(code, _)| *code).collect();
    let message = format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    );
    let mut fault = Fault::client("TransactionCanceledException", message);
    let bodies = reasons.into_iter().map(|(_, body)| body).collect();
    fault.members.insert("CancellationReasons".to_owned(), Json::Array(bodies));
    fault
}

fn reason(reason: Option<Cancelled>) -> (&'static str, Json) {
    let (code, message) = match reason {
        None => return ("None", json!({"Code": "None"})),
        Some(Cancelled::ConditionFailed { item }) => {
            let mut body = json!({"Code": "ConditionalCheckFailed", "Message": CONDITION_FAILED});
            if let Some(item) = item {
                body["Item"] = shown(item);
            }
            return ("ConditionalCheckFailed", body);
        }
        Some(Cancelled::Invalid(why)) => {
            ("ValidationError", super::explain::of_item(&why).map_or(why.clone(), str::to_owned))
        }
        Some(Cancelled::Conflict) => {
            ("TransactionConflict", "Transaction is ongoing for the item".to_owned())
        }
        Some(Cancelled::Throttled) => (
            "ProvisionedThroughputExceeded",
            "The level of configured provisioned throughput for the table was exceeded.".to_owned(),
        ),
    };
    (code, json!({"Code": code, "Message": message}))
}

/// Items consist of what JSON can spell.
fn shown(item: anabranch_model::table::Item) -> Json {
    serde_json::to_value(ItemBody(item)).unwrap_or_default()
}

/// Something does not exist.
pub(crate) fn not_found(message: impl Into<String>) -> Fault {
    Fault::client(NOT_FOUND, message)
}

/// Something is in the way.
pub(super) fn in_use(message: impl Into<String>) -> Fault {
    Fault::client("ResourceInUseException", message)
}

/// The same for a call about a table as a whole, which names it.
pub(super) fn table_fault(error: Error) -> Fault {
    match error {
        Error::TableNotFound(table) => {
            not_found(format!("Requested resource not found: Table: {table} not found"))
        }
        other => fault(other),
    }
}
