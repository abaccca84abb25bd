//! TransactWriteItems.

use std::collections::BTreeMap;

use anabranch_model::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use anabranch_model::table::{Action, Item, Returning, Token, Update, Write, check_transaction_bytes};
use anabranch_model::{Cancelled, Error, TableName};
use serde::{Deserialize, Serialize};

use super::attribute::{Attribute, Attributes};
use super::batch_get_item::twice;
use super::capacity::{Consumed, Cost, Detail, of_transaction};
use super::errors::{cancelled, fault};
use super::explain::of_action;
use super::expression::{Copied, Expressions};
use super::names::table_name;
use super::state::check_all_ready;
use super::write::{CollectionMetrics, collection, cost_of, item_of, read_metrics, read_on_failure};
use crate::context::Context;
use crate::fault::Fault;
use crate::list::some_at_most;
use crate::validation::Validation;

pub(super) const SEVERAL_OPERATIONS: &str =
    "Transaction request cannot include multiple operations on one item";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(default, deserialize_with = "some_at_most::<_, _, { TRANSACTION_ITEMS_MAX }>")]
    transact_items: Option<Vec<TransactItem>>,
    client_request_token: Option<String>,
    return_consumed_capacity: Option<String>,
    return_item_collection_metrics: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TransactItem {
    condition_check: Option<Part>,
    put: Option<Part>,
    delete: Option<Part>,
    update: Option<Part>,
}

/// A part of any kind: which of the members it has depends on the kind.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Part {
    table_name: Option<String>,
    key: Option<Attributes>,
    item: Option<Attributes>,
    update_expression: Option<String>,
    condition_expression: Option<String>,
    expression_attribute_names: Option<BTreeMap<String, String>>,
    expression_attribute_values: Option<BTreeMap<String, Attribute>>,
    return_values_on_condition_check_failure: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Check,
    Put,
    Delete,
    Update,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_capacity: Option<Vec<Consumed>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_collection_metrics: Option<BTreeMap<String, Vec<CollectionMetrics>>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    let capacity = Detail::read(&mut validation, request.return_consumed_capacity.as_deref());
    let metrics = read_metrics(&mut validation, request.return_item_collection_metrics.as_deref());
    validation.length("clientRequestToken", request.client_request_token.as_deref(), 1..=36);
    validation.required("transactItems", &request.transact_items).done()?;
    let items = request.transact_items.unwrap_or_default();
    let listed = if items.is_empty() { "[]" } else { "[...]" };
    validation.size("transactItems", listed, items.len(), 1..=TRANSACTION_ITEMS_MAX).done()?;
    let (mut writes, mut copied) = (Vec::new(), Copied::default());
    for (at, item) in items.into_iter().enumerate() {
        let (kind, part) = item.part()?;
        writes.push(part.write(kind, at + 1, &mut copied)?);
    }
    if check_transaction_bytes(writes.iter().map(|(_, write)| write)).is_err() {
        return Err(Fault::validation(format!(
            "Transaction request size cannot exceed {TRANSACTION_BYTES_MAX} bytes"
        )));
    }
    let token = request.client_request_token.map(Token::new).transpose().map_err(fault)?;
    check_all_ready(context, writes.iter().map(|(table, _)| table)).await?;
    let mut costs: BTreeMap<TableName, Cost> = BTreeMap::new();
    if capacity.is_asked() {
        for (table, write) in &writes {
            let cost = cost_of(context, table, write.clone()).await;
            costs.entry(table.clone()).or_default().add(cost.twice());
        }
    }
    let mut collections: BTreeMap<String, Vec<CollectionMetrics>> = BTreeMap::new();
    if metrics {
        for (table, write) in &writes {
            if let Some(found) = collection(context, table, item_of(&write.action)).await {
                collections.entry(table.to_string()).or_default().push(found);
            }
        }
    }
    if let Err(error) = context.ports.tables.transact_write(writes.clone(), token).await {
        return Err(refused(context, &writes, error).await);
    }
    Ok(Response {
        consumed_capacity: of_transaction(capacity.consumed_by(&costs), true),
        item_collection_metrics: Some(collections).filter(|collections| !collections.is_empty()),
    })
}

impl TransactItem {
    fn part(self) -> Result<(Kind, Part), Fault> {
        let kinds = [
            (Kind::Check, self.condition_check),
            (Kind::Put, self.put),
            (Kind::Delete, self.delete),
            (Kind::Update, self.update),
        ];
        let mut given = kinds.into_iter().filter_map(|(kind, part)| Some((kind, part?)));
        match (given.next(), given.next()) {
            (Some(part), None) => Ok(part),
            (None, _) => Err(Fault::validation(
                "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
            )),
            (Some(_), Some(_)) => {
                Err(Fault::validation("TransactItems can only contain one of Check, Put, Update or Delete"))
            }
        }
    }
}

impl Part {
    /// The write; `number` counts the parts from one, for messages, and `copied` what their placeholders stand for.
    fn write(self, kind: Kind, number: usize, copied: &mut Copied) -> Result<(TableName, Write), Fault> {
        let name = match kind {
            Kind::Check => "conditionCheck",
            Kind::Put => "put",
            Kind::Delete => "delete",
            Kind::Update => "update",
        };
        let field = |member: &str| format!("transactItems.{number}.member.{name}.{member}");
        let mut validation = Validation::default();
        validation.required(&field("tableName"), &self.table_name);
        match kind {
            Kind::Put => validation.required(&field("item"), &self.item),
            _ => validation.required(&field("key"), &self.key),
        };
        if kind == Kind::Update {
            validation.required(&field("updateExpression"), &self.update_expression);
        }
        if kind == Kind::Check {
            validation.required(&field("conditionExpression"), &self.condition_expression);
        }
        let item_on_failure =
            read_on_failure(&mut validation, self.return_values_on_condition_check_failure.as_deref());
        validation.done()?;
        let table = table_name(self.table_name.as_deref())?;
        let update = self.update_expression.as_deref().filter(|_| kind == Kind::Update);
        let condition = self.condition_expression.as_deref();
        let mut expressions = Expressions::new(
            self.expression_attribute_names,
            self.expression_attribute_values,
            &[("UpdateExpression", update), ("ConditionExpression", condition)],
            &[],
        )?
        .behind(*copied);
        let attributes = if kind == Kind::Put { self.item } else { self.key };
        let item = attributes.map_or_else(|| Ok(Item::new()), Attributes::item)?;
        let update = update.map_or_else(|| Ok(Update::new()), |text| expressions.update(text))?;
        let condition = condition.map(|text| expressions.condition(text)).transpose()?;
        *copied = expressions.copied();
        expressions.finish()?;
        let action = match kind {
            Kind::Check => Action::Check(item),
            Kind::Put => Action::Put(item),
            Kind::Delete => Action::Delete(item),
            Kind::Update => Action::Update(item, update),
        };
        Ok((table, Write { action, condition, returning: Returning::Nothing, item_on_failure }))
    }
}

/// Why a transaction is refused, in the words of the service.
async fn refused(context: &Context, writes: &[(TableName, Write)], error: Error) -> Fault {
    match error {
        Error::TransactionCancelled { reasons } => reworded(context, writes, reasons).await,
        Error::Invalid(_) => invalid(context, writes, error).await,
        other => fault(other),
    }
}

/// What the store found wrong with single parts.
async fn reworded(
    context: &Context,
    writes: &[(TableName, Write)],
    mut reasons: Vec<Option<Cancelled>>,
) -> Fault {
    for (reason, (table, write)) in reasons.iter_mut().zip(writes) {
        let Some(Cancelled::Invalid(why)) = reason else { continue };
        let Ok(summary) = context.ports.tables.table(table).await else { continue };
        match of_action(&write.action, &summary.options) {
            Some(wrong) if wrong.empty.is_some() => return Fault::validation(wrong.words),
            Some(wrong) => *why = wrong.words,
            None => {}
        }
    }
    cancelled(reasons)
}

/// What is wrong with single parts is told as their reasons, also where the store did not look at them one by one.
async fn invalid(context: &Context, writes: &[(TableName, Write)], error: Error) -> Fault {
    let (mut reasons, mut keys) = (Vec::new(), Vec::new());
    for (table, write) in writes {
        let wrong = match context.ports.tables.table(table).await {
            Ok(summary) => {
                keys.push((table, summary.options.place_attributes(None, item_of(&write.action))));
                of_action(&write.action, &summary.options)
            }
            Err(_) => None,
        };
        // The service looks no further than the first part that cannot be.
        let first = reasons.iter().all(Option::is_none);
        match wrong.filter(|_| first) {
            Some(wrong) if wrong.empty.is_some() => return Fault::validation(wrong.words),
            wrong => reasons.push(wrong.map(|wrong| Cancelled::Invalid(wrong.words))),
        }
    }
    if reasons.iter().any(Option::is_some) {
        return cancelled(reasons);
    }
    if twice(keys.iter().map(|(table, key)| (*table, key))) {
        return Fault::validation(SEVERAL_OPERATIONS);
    }
    fault(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_anyway_is_not_decoded() {
        let json = format!(r#"{{"TransactItems":[{}{{}}]}}"#, "{},".repeat(100_000));
        let request: Request = serde_json::from_str(&json).unwrap();
        assert_eq!(request.transact_items.unwrap().len(), TRANSACTION_ITEMS_MAX + 1);
    }
}
