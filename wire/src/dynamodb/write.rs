//! What the operations that write one item share: conditions, what is returned, and what a collection of items is.

use std::collections::BTreeMap;

use anabranch_model::TableName;
use anabranch_model::table::expression::Condition;
use anabranch_model::table::{Action, Get, Item, Returning, Write};
use serde::Serialize;

use super::attribute::ItemBody;
use super::capacity::{Consumed, Cost, Detail};
use super::explain::write_fault;
use super::expression::Expressions;
use super::legacy::{self, Expected};
use super::state::check_ready;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

const RETURNS: [&str; 5] = ["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"];

/// What a write answers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<ItemBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_capacity: Option<Consumed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_collection_metrics: Option<CollectionMetrics>,
}

/// How large the items of one hash value are together: always small enough here.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CollectionMetrics {
    item_collection_key: ItemBody,
    #[serde(rename = "SizeEstimateRangeGB")]
    size_estimate_range_gb: [f64; 2],
}

/// What a caller wants back, checked.
pub(super) struct Wanted {
    pub(super) capacity: Detail,
    pub(super) metrics: bool,
    pub(super) returning: Returning,
    pub(super) item_on_failure: bool,
}

impl Wanted {
    /// Reads what the parameters of these names say.
    pub(super) fn read(
        validation: &mut Validation,
        [capacity, metrics, returning, on_failure]: [Option<&str>; 4],
    ) -> Wanted {
        let capacity = Detail::read(validation, capacity);
        let metrics = read_metrics(validation, metrics);
        validation.one_of("returnValues", returning, &RETURNS);
        let item_on_failure = read_on_failure(validation, on_failure);
        let returning = match returning {
            Some("ALL_OLD") => Returning::Old,
            Some("ALL_NEW") => Returning::New,
            Some("UPDATED_OLD") => Returning::UpdatedOld,
            Some("UPDATED_NEW") => Returning::UpdatedNew,
            _ => Returning::Nothing,
        };
        Wanted { capacity, metrics, returning, item_on_failure }
    }

    /// Puts and deletes can return only what was there before.
    pub(super) fn only_old(&self) -> Result<(), Fault> {
        match self.returning {
            Returning::Nothing | Returning::Old => Ok(()),
            _ => Err(Fault::validation("Return values set to invalid value")),
        }
    }
}

/// Whether the size of a collection is wanted.
pub(super) fn read_metrics(validation: &mut Validation, asked: Option<&str>) -> bool {
    validation.one_of("returnItemCollectionMetrics", asked, &["SIZE", "NONE"]);
    asked == Some("SIZE")
}

/// Whether a condition that fails shows the item.
pub(super) fn read_on_failure(validation: &mut Validation, asked: Option<&str>) -> bool {
    validation.one_of("returnValuesOnConditionCheckFailure", asked, &["ALL_OLD", "NONE"]);
    asked == Some("ALL_OLD")
}

/// The condition of a write, from an expression or from what was there before expressions.
pub(super) fn condition(
    expressions: &mut Expressions,
    expression: Option<&str>,
    expected: Option<BTreeMap<String, Expected>>,
    operator: Option<&str>,
) -> Result<Option<Condition>, Fault> {
    match expression {
        Some(text) => expressions.condition(text).map(Some),
        None => legacy::expected(expected, operator),
    }
}

/// The item or the key of a write.
pub(super) fn item_of(action: &Action) -> &Item {
    match action {
        Action::Put(item) | Action::Update(item, _) | Action::Delete(item) | Action::Check(item) => item,
    }
}

/// Writes an item and answers.
pub(super) async fn write(
    context: &Context,
    table: TableName,
    action: Action,
    condition: Option<Condition>,
    wanted: Wanted,
) -> Result<Written, Fault> {
    check_ready(context, &table).await?;
    let Wanted { capacity, metrics, returning, item_on_failure } = wanted;
    let metrics = if metrics { collection(context, &table, item_of(&action)).await } else { None };
    let write = Write { action: action.clone(), condition, returning, item_on_failure };
    let written = match capacity.is_asked() {
        true => write_counted(context, &table, write).await,
        false => context.ports.tables.write(&table, write).await.map(|returned| (returned, Cost::default())),
    };
    let (returned, cost) = match written {
        Ok(written) => written,
        Err(error) => return Err(write_fault(context, &table, &action, error).await),
    };
    Ok(Written {
        attributes: returned.map(ItemBody),
        consumed_capacity: capacity.consumed(&table, &cost),
        item_collection_metrics: metrics,
    })
}

/// Writes an item and tells what that costs. The store returns the old item, from which everything else follows.
async fn write_counted(
    context: &Context,
    table: &TableName,
    write: Write,
) -> anabranch_model::Result<(Option<Item>, Cost)> {
    let options = context.ports.tables.table(table).await?.options;
    let old = context.ports.tables.write(table, write.clone().returning(Returning::Old)).await?;
    let done = Write { condition: None, ..write }.apply(&options, old.as_ref())?;
    Ok((done.returned, Cost::of_write(&options, old.as_ref(), done.new.as_ref())))
}

/// What a write is going to cost, by the item as it is now.
pub(super) async fn cost_of(context: &Context, table: &TableName, write: Write) -> Cost {
    let Ok(summary) = context.ports.tables.table(table).await else { return Cost::default() };
    let key = summary.options.place_attributes(None, write.subject());
    let old = context.ports.tables.get(table, Get::new(key).consistent()).await.unwrap_or_default();
    let done = Write { condition: None, ..write }.apply(&summary.options, old.as_ref());
    let new = done.map(|done| done.new).unwrap_or_default();
    Cost::of_write(&summary.options, old.as_ref(), new.as_ref())
}

/// The collection that an item belongs to; there are collections only where there are local indexes.
pub(super) async fn collection(
    context: &Context,
    table: &TableName,
    item: &Item,
) -> Option<CollectionMetrics> {
    let options = context.ports.tables.table(table).await.ok()?.options;
    options.indexes.iter().find(|index| index.scope == anabranch_model::table::IndexScope::Local)?;
    let hash = &options.key.hash.name;
    let key = Item::new().with(hash, item.get(hash)?.clone());
    Some(CollectionMetrics { item_collection_key: ItemBody(key), size_estimate_range_gb: [0.0, 1.0] })
}
