//! BatchGetItem.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_model::TableName;
use anabranch_model::limits::BATCH_GET_ITEMS_MAX;
use anabranch_model::table::{Get, Got, Item, Projection, Step};
use serde::{Deserialize, Serialize};

use super::attribute::{Attributes, ItemBody};
use super::capacity::{Consumed, Cost, Detail, read_units};
use super::explain::keys_fault;
use super::expression::Copied;
use super::get_item::{projection, shown};
use super::names::{check_tables, table_name};
use super::state::check_ready;
use crate::context::Context;
use crate::fault::Fault;
use crate::list::some_at_most;
use crate::validation::Validation;

/// Bytes of the names of a projection that every key may have a copy of.
const PROJECTION_BYTES_MAX: usize = 16 << 10;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    request_items: Option<BTreeMap<String, Keys>>,
    return_consumed_capacity: Option<String>,
}

/// The items that are wanted of one table.
#[derive(Debug, Deserialize)]
#[serde(rename = "KeysAndAttributes", rename_all = "PascalCase")]
struct Keys {
    #[serde(default, deserialize_with = "some_at_most::<_, _, { BATCH_GET_ITEMS_MAX }>")]
    keys: Option<Vec<Attributes>>,
    consistent_read: Option<bool>,
    projection_expression: Option<String>,
    expression_attribute_names: Option<BTreeMap<String, String>>,
    attributes_to_get: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    responses: BTreeMap<String, Vec<ItemBody>>,
    unprocessed_keys: BTreeMap<String, Unprocessed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_capacity: Option<Vec<Consumed>>,
}

/// What is to be asked for again, as it was asked for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Unprocessed {
    keys: Vec<ItemBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consistent_read: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    projection_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expression_attribute_names: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes_to_get: Option<Vec<String>>,
}

/// One item that is wanted, and under which name its table was given.
struct Wanted {
    given: String,
    table: TableName,
    key: Item,
    /// What is shown of the item, where it is read as a whole.
    projection: Option<Arc<Projection>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    let capacity = Detail::read(&mut validation, request.return_consumed_capacity.as_deref());
    check_requests(&mut validation, &request.request_items);
    validation.done()?;
    let tables = request.request_items.unwrap_or_default();
    if tables.is_empty() {
        return Err(nothing_asked("BatchGetItem"));
    }
    let mut response =
        Response { responses: BTreeMap::new(), unprocessed_keys: BTreeMap::new(), consumed_capacity: None };
    // They are counted before each gets a projection of its own.
    let asked = tables.values().map(|keys| keys.keys.as_ref().map_or(0, Vec::len)).sum::<usize>();
    let (mut wanted, mut gets, mut copied) = (Vec::new(), Vec::new(), Copied::default());
    for (given, keys) in tables {
        let table = table_name(Some(&given))?;
        response.responses.insert(given.clone(), Vec::new());
        response.unprocessed_keys.insert(given.clone(), unprocessed(&keys));
        let projection = projection(
            keys.projection_expression.as_deref(),
            keys.expression_attribute_names,
            keys.attributes_to_get,
            &mut copied,
        )?;
        if asked > BATCH_GET_ITEMS_MAX {
            return Err(Fault::validation("Too many items requested for the BatchGetItem call"));
        }
        check_ready(context, &table).await?;
        let consistent = keys.consistent_read.unwrap_or(false);
        // What is read counts, not what is shown of it. A large projection is not copied for each key either.
        let is_late = capacity.is_asked() || projection.as_ref().is_some_and(is_large);
        let (late, early) = if is_late { (projection.map(Arc::new), None) } else { (None, projection) };
        for key in keys.keys.unwrap_or_default() {
            let key = key.item()?;
            gets.push((table.clone(), Get { key: key.clone(), consistent, projection: early.clone() }));
            wanted.push(Wanted { given: given.clone(), table: table.clone(), key, projection: late.clone() });
        }
    }
    let consistent: BTreeSet<_> =
        gets.iter().filter(|(_, get)| get.consistent).map(|(table, _)| table.clone()).collect();
    let got = match context.ports.tables.batch_get(gets).await {
        Ok(got) => got,
        Err(error) => {
            let keys: Vec<_> = wanted.iter().map(|wanted| (&wanted.table, &wanted.key)).collect();
            if twice(keys.iter().copied()) {
                return Err(Fault::validation(DUPLICATES));
            }
            return Err(keys_fault(context, &keys, error).await);
        }
    };
    let mut costs: BTreeMap<TableName, Cost> = BTreeMap::new();
    for (Wanted { given, table, key, projection }, got) in wanted.into_iter().zip(got) {
        let size = match &got {
            Got::Item(item) => Some(item.size()),
            Got::Missing => Some(0),
            Got::NotRead => None,
        };
        if let Some(size) = size {
            let units = read_units(size, consistent.contains(&table));
            costs.entry(table).or_default().add(Cost::of_table(units));
        }
        match got {
            Got::Item(item) => {
                let item = shown(item, projection.as_deref())?;
                response.responses.entry(given).or_default().push(ItemBody(item));
            }
            Got::Missing => {}
            Got::NotRead => {
                if let Some(unprocessed) = response.unprocessed_keys.get_mut(&given) {
                    unprocessed.keys.push(ItemBody(key));
                }
            }
        }
    }
    response.unprocessed_keys.retain(|_, unprocessed| !unprocessed.keys.is_empty());
    response.consumed_capacity = capacity.consumed_by(&costs);
    Ok(response)
}

/// Checks the shape of what is asked for.
fn check_requests(validation: &mut Validation, tables: &Option<BTreeMap<String, Keys>>) {
    const FIELD: &str = "requestItems";
    validation.required(FIELD, tables);
    let Some(tables) = tables else { return };
    check_tables(validation, tables.keys());
    for (given, Keys { keys, .. }) in tables {
        let field = format!("{FIELD}.{given}.member.keys");
        validation.required(&field, keys);
        if let Some(keys) = keys {
            validation.size(&field, "[]", keys.len(), 1..=usize::MAX);
            let field = format!("RequestItems.{given}.member.Keys");
            validation.size_of_unshown(&field, keys.len(), BATCH_GET_ITEMS_MAX);
        }
    }
}

/// A batch about nothing.
pub(super) fn nothing_asked(operation: &str) -> Fault {
    Fault::validation(format!("The requestItems parameter is required for {operation}"))
}

pub(super) const DUPLICATES: &str = "Provided list of item keys contains duplicates";

/// Whether one item of a table is named twice.
pub(super) fn twice<'a>(keys: impl Iterator<Item = (&'a TableName, &'a Item)>) -> bool {
    let mut seen: BTreeMap<&TableName, Vec<&Item>> = BTreeMap::new();
    for (table, key) in keys {
        let of_table = seen.entry(table).or_default();
        if of_table.contains(&key) {
            return true;
        }
        of_table.push(key);
    }
    false
}

/// Whether copies of a projection would take much memory.
fn is_large(projection: &Projection) -> bool {
    let steps = projection.0.iter().flat_map(|path| &path.steps).map(|step| match step {
        Step::Name(name) => name.len(),
        Step::Index(_) => 0,
    });
    steps.chain(projection.0.iter().map(|path| path.attribute.len())).sum::<usize>() > PROJECTION_BYTES_MAX
}

fn unprocessed(keys: &Keys) -> Unprocessed {
    Unprocessed {
        keys: Vec::new(),
        consistent_read: keys.consistent_read,
        projection_expression: keys.projection_expression.clone(),
        expression_attribute_names: keys.expression_attribute_names.clone(),
        attributes_to_get: keys.attributes_to_get.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_projections_are_copied() {
        assert!(!is_large(&Projection::of(["a", "b"])));
        assert!(is_large(&Projection::of([&*"x".repeat(PROJECTION_BYTES_MAX + 1)])));
        let mut deep = anabranch_model::table::path("a");
        deep.steps = vec![Step::Name("x".repeat(PROJECTION_BYTES_MAX))];
        assert!(is_large(&Projection(vec![deep])));
    }
}
