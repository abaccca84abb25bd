//! TransactGetItems.

use std::collections::BTreeMap;

use anabranch_model::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use anabranch_model::table::{Get, Item};
use anabranch_model::{Cancelled, Error};
use serde::{Deserialize, Serialize};

use super::attribute::{Attributes, ItemBody};
use super::batch_get_item::twice;
use super::capacity::{Consumed, Cost, Detail, of_transaction, read_units};
use super::errors::{cancelled, fault};
use super::explain::of_key;
use super::expression::Copied;
use super::get_item::{projection, shown};
use super::names::table_name;
use super::state::check_all_ready;
use super::transact_write_items::SEVERAL_OPERATIONS;
use crate::context::Context;
use crate::fault::Fault;
use crate::list::some_at_most;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(default, deserialize_with = "some_at_most::<_, _, { TRANSACTION_ITEMS_MAX }>")]
    transact_items: Option<Vec<TransactItem>>,
    return_consumed_capacity: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TransactItem {
    get: Option<GetBody>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetBody {
    table_name: Option<String>,
    key: Option<Attributes>,
    projection_expression: Option<String>,
    expression_attribute_names: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    responses: Vec<ItemResponse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_capacity: Option<Vec<Consumed>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ItemResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<ItemBody>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    let capacity = Detail::read(&mut validation, request.return_consumed_capacity.as_deref());
    validation.required("transactItems", &request.transact_items).done()?;
    let parts = request.transact_items.unwrap_or_default();
    let listed = if parts.is_empty() { "[]" } else { "[...]" };
    validation.size("transactItems", listed, parts.len(), 1..=TRANSACTION_ITEMS_MAX).done()?;
    for (at, part) in parts.iter().enumerate() {
        let field = format!("transactItems.{}.member.get", at + 1);
        validation.required(&field, &part.get);
        if let Some(get) = &part.get {
            validation.required(&format!("{field}.tableName"), &get.table_name);
            validation.required(&format!("{field}.key"), &get.key);
        }
    }
    validation.done()?;
    let (mut gets, mut copied) = (Vec::new(), Copied::default());
    for get in parts.into_iter().filter_map(|part| part.get) {
        let table = table_name(get.table_name.as_deref())?;
        let expression = get.projection_expression.as_deref();
        let projection = projection(expression, get.expression_attribute_names, None, &mut copied)?;
        let key = get.key.map_or_else(|| Ok(Item::new()), Attributes::item)?;
        gets.push((table, Get { key, consistent: true, projection }));
    }
    if twice(gets.iter().map(|(table, get)| (table, &get.key))) {
        return Err(Fault::validation(SEVERAL_OPERATIONS));
    }
    check_all_ready(context, gets.iter().map(|(table, _)| table)).await?;
    // What is read counts, not what is shown of it.
    let mut late = vec![None; gets.len()];
    if capacity.is_asked() {
        late = gets.iter_mut().map(|(_, get)| get.projection.take()).collect();
    }
    let items = match context.ports.tables.transact_get(gets.clone()).await {
        Ok(items) => items,
        Err(error) => return Err(refused(context, gets, error).await),
    };
    let mut costs: BTreeMap<_, Cost> = BTreeMap::new();
    let mut responses = Vec::with_capacity(items.len());
    for (((table, _), item), projection) in gets.iter().zip(items).zip(late) {
        let cost = Cost::of_table(read_units(item.as_ref().map_or(0, Item::size), true)).twice();
        costs.entry(table.clone()).or_default().add(cost);
        let item = item.map(|item| shown(item, projection.as_ref())).transpose()?;
        responses.push(ItemResponse { item: item.map(ItemBody) });
    }
    Ok(Response { responses, consumed_capacity: of_transaction(capacity.consumed_by(&costs), false) })
}

/// Keys that do not fit are told as reasons of the parts that have them.
async fn refused(context: &Context, gets: Vec<(anabranch_model::TableName, Get)>, error: Error) -> Fault {
    if !matches!(error, Error::Invalid(_)) {
        return fault(error);
    }
    let mut reasons = Vec::new();
    for (table, get) in &gets {
        let words = match context.ports.tables.table(table).await {
            Ok(summary) => of_key(&get.key, &summary.options.key).map(|wrong| wrong.words),
            Err(_) => None,
        };
        // The service looks no further than the first part that cannot be.
        let first = reasons.iter().all(Option::is_none);
        reasons.push(words.filter(|_| first).map(Cancelled::Invalid));
    }
    if reasons.iter().any(Option::is_some) {
        return cancelled(reasons);
    }
    Fault::validation(format!(
        "The aggregate size of the items of a transaction cannot exceed {TRANSACTION_BYTES_MAX} bytes"
    ))
}
