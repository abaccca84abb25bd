//! What a failure means for a table.

use std::collections::{BTreeSet, HashMap};

use anabranch_model::table::Item;
use anabranch_model::{Cancelled, Error, IndexName, Result, TableName};
use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, TableStatus};

use super::Tables;
use crate::attribute::tables::item;
use crate::call::Deadline;
use crate::failure::{Failure, Kind};

/// How DynamoDB begins to say that a table has no such index.
const NO_INDEX: &str = "does not have the specified index";

impl Tables {
    /// The error for a failed call about the items of tables.
    pub(super) async fn explained<'a, D>(
        &self,
        failure: Failure<D>,
        tables: impl IntoIterator<Item = &'a TableName>,
        deadline: Deadline,
    ) -> Error {
        if failure.is("TransactionConflictException") {
            return Error::TransactionConflict;
        }
        if failure.kind != Kind::NotFound {
            return failure.into();
        }
        // Which of them it is, and whether it is only not ready yet, DynamoDB does not say.
        for table in tables.into_iter().collect::<BTreeSet<_>>() {
            self.memory.forget(table);
            match self.describe(table, deadline).await {
                Ok(described) if described.table_status != Some(TableStatus::Active) => {
                    return Error::TableBusy(table.clone());
                }
                Ok(_) => {}
                Err(error) => return error,
            }
        }
        failure.into()
    }

    /// The error for a failed query or scan.
    pub(super) async fn explained_reading<D>(
        &self,
        failure: Failure<D>,
        table: &TableName,
        index: Option<&IndexName>,
        deadline: Deadline,
    ) -> Error {
        match index {
            Some(index) if failure.kind == Kind::Invalid && failure.message.contains(NO_INDEX) => {
                Error::IndexNotFound(table.clone(), index.clone())
            }
            _ => self.explained(failure, [table], deadline).await,
        }
    }
}

/// A condition that does not hold, with the item that was found.
pub(super) fn condition_failed(found: Option<HashMap<String, AttributeValue>>) -> Error {
    match shown(found) {
        Ok(item) => Error::ConditionFailed { item },
        Err(error) => error,
    }
}

/// Why a transaction was cancelled; none if the service does not say.
pub(super) fn cancelled(reasons: Vec<CancellationReason>, parts: usize) -> Option<Error> {
    if reasons.len() != parts {
        return None;
    }
    let reasons = reasons.into_iter().map(reason).collect::<Result<Vec<_>>>();
    Some(reasons.map_or_else(|error| error, |reasons| Error::TransactionCancelled { reasons }))
}

fn reason(reason: CancellationReason) -> Result<Option<Cancelled>> {
    let code = reason.code.unwrap_or_default();
    Ok(match code.as_str() {
        "None" | "" => None,
        "ConditionalCheckFailed" => Some(Cancelled::ConditionFailed { item: shown(reason.item)? }),
        "TransactionConflict" => Some(Cancelled::Conflict),
        "ProvisionedThroughputExceeded" | "ThrottlingError" | "RequestLimitExceeded" => {
            Some(Cancelled::Throttled)
        }
        _ => Some(Cancelled::Invalid(reason.message.unwrap_or(code))),
    })
}

/// The item that a condition found, if it was asked for and there is one.
fn shown(found: Option<HashMap<String, AttributeValue>>) -> Result<Option<Item>> {
    found.filter(|item| !item.is_empty()).map(item).transpose()
}
