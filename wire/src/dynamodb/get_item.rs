//! GetItem.

use std::collections::BTreeMap;

use anabranch_model::table::{Get, Item, Projection};
use serde::{Deserialize, Serialize};

use super::attribute::{Attributes, ItemBody};
use super::capacity::{Consumed, Cost, Detail, read_units};
use super::errors::fault;
use super::explain::{check_scalars, keys_fault};
use super::expression::{Copied, Expressions, one_style};
use super::legacy;
use super::names::{check_table, table_name};
use super::state::check_ready;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
    key: Option<Attributes>,
    consistent_read: Option<bool>,
    projection_expression: Option<String>,
    expression_attribute_names: Option<BTreeMap<String, String>>,
    attributes_to_get: Option<Vec<String>>,
    return_consumed_capacity: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<ItemBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_capacity: Option<Consumed>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    check_table(&mut validation, request.table_name.as_deref());
    validation.required("key", &request.key);
    legacy::check_attributes_to_get(&mut validation, &request.attributes_to_get);
    let capacity = Detail::read(&mut validation, request.return_consumed_capacity.as_deref());
    validation.done()?;
    let table = table_name(request.table_name.as_deref())?;
    let (expression, names) = (request.projection_expression.as_deref(), request.expression_attribute_names);
    check_projection(expression, &names, &request.attributes_to_get)?;
    let key = request.key.map_or_else(|| Ok(Item::new()), Attributes::item)?;
    let projection = projection(expression, names, request.attributes_to_get, &mut Copied::default())?;
    let consistent = request.consistent_read.unwrap_or(false);
    check_ready(context, &table).await?;
    if let Some(Projection(paths)) = &projection
        && paths.iter().any(|path| !path.steps.is_empty())
        && let Ok(summary) = context.ports.tables.table(&table).await
    {
        check_scalars(&summary.options, paths.iter())?;
    }
    // What is read counts, not what is shown of it.
    let late = projection.as_ref().filter(|_| capacity.is_asked()).cloned();
    let get = Get { key: key.clone(), consistent, projection: projection.filter(|_| late.is_none()) };
    let item = match context.ports.tables.get(&table, get).await {
        Ok(item) => item,
        Err(error) => return Err(keys_fault(context, &[(&table, &key)], error).await),
    };
    let cost = Cost::of_table(read_units(item.as_ref().map_or(0, Item::size), consistent));
    let item = item.map(|item| shown(item, late.as_ref())).transpose()?;
    Ok(Response { item: item.map(ItemBody), consumed_capacity: capacity.consumed(&table, &cost) })
}

/// The wanted parts of an item that was read as a whole.
pub(super) fn shown(item: Item, projection: Option<&Projection>) -> Result<Item, Fault> {
    projection.map_or_else(|| Ok(item.clone()), |projection| projection.apply(&item).map_err(fault))
}

/// Checks that the wanted parts are named in one way, before anything is said about the key.
fn check_projection(
    expression: Option<&str>,
    names: &Option<BTreeMap<String, String>>,
    attributes: &Option<Vec<String>>,
) -> Result<(), Fault> {
    one_style(
        &[("ProjectionExpression", expression.is_some())],
        &[("AttributesToGet", attributes.is_some())],
    )?;
    Expressions::check_given(names, &None, &[], &[("ProjectionExpression", expression)])
}

/// The wanted parts, where a call has nothing else that could hold an expression. `copied` is what the placeholders of all
/// parts of the call stand for.
pub(super) fn projection(
    expression: Option<&str>,
    names: Option<BTreeMap<String, String>>,
    attributes: Option<Vec<String>>,
    copied: &mut Copied,
) -> Result<Option<Projection>, Fault> {
    check_projection(expression, &names, &attributes)?;
    let mut expressions =
        Expressions::new(names, None, &[], &[("ProjectionExpression", expression)])?.behind(*copied);
    let projection = match (expression, attributes) {
        (Some(text), _) => Some(expressions.projection(text)?),
        (None, Some(names)) => Some(legacy::attributes_to_get(names)?),
        (None, None) => None,
    };
    *copied = expressions.copied();
    expressions.finish()?;
    Ok(projection)
}
