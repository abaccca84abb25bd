//! Query.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_model::table::expression::Comparison;
use anabranch_model::table::{
    Condition, KeyAttribute, KeyCondition, KeySchema, Query, RangeCondition, Value,
};
use serde::Deserialize;

use super::attribute::{Attribute, Attributes, INVALID};
use super::composite;
use super::expression::{Expressions, key_parts, shown};
use super::legacy::{self, Demand};
use super::names::table_name;
use super::reading::{Parameters, Plan, Response};
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

const WRONG_COUNT: &str = "Conditions can be of length 1 or 2 only";
pub(super) const NOT_INDEXABLE: &str = "Attempted conditional constraint is not an indexable operation";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
    index_name: Option<String>,
    key_condition_expression: Option<String>,
    key_conditions: Option<BTreeMap<String, Demand>>,
    scan_index_forward: Option<bool>,
    select: Option<String>,
    consistent_read: Option<bool>,
    limit: Option<i32>,
    exclusive_start_key: Option<Attributes>,
    filter_expression: Option<String>,
    projection_expression: Option<String>,
    expression_attribute_names: Option<BTreeMap<String, String>>,
    expression_attribute_values: Option<BTreeMap<String, Attribute>>,
    attributes_to_get: Option<Vec<String>>,
    query_filter: Option<BTreeMap<String, Demand>>,
    conditional_operator: Option<String>,
    return_consumed_capacity: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut parameters = Parameters {
        table_name: request.table_name,
        index_name: request.index_name,
        select: request.select,
        consistent_read: request.consistent_read,
        limit: request.limit,
        exclusive_start_key: request.exclusive_start_key,
        filter_expression: request.filter_expression,
        projection_expression: request.projection_expression,
        expression_attribute_names: request.expression_attribute_names,
        expression_attribute_values: request.expression_attribute_values,
        attributes_to_get: request.attributes_to_get,
        filter: ("QueryFilter", request.query_filter),
        conditional_operator: request.conditional_operator,
        return_consumed_capacity: request.return_consumed_capacity,
    };
    let mut validation = Validation::default();
    let capacity = parameters.check(&mut validation);
    legacy::check_demands(&mut validation, "keyConditions", &request.key_conditions);
    legacy::check_attributes_to_get(&mut validation, &parameters.attributes_to_get);
    validation.done()?;
    let table = table_name(parameters.table_name.as_deref())?;
    let key_expression = request.key_condition_expression.as_deref();
    parameters.one_style(Some((key_expression.is_some(), request.key_conditions.is_some())))?;
    let filter = parameters.filter_expression.clone();
    let projection = parameters.projection_expression.clone();
    let with_values = [("FilterExpression", filter.as_deref()), ("KeyConditionExpression", key_expression)];
    let others = [("ProjectionExpression", projection.as_deref())];
    let names = parameters.expression_attribute_names.take();
    let values = parameters.expression_attribute_values.take();
    Expressions::check_given(&names, &values, &with_values, &others)?;
    let older = parameters.older()?;
    if key_expression.is_none() && request.key_conditions.is_none() {
        return Err(Fault::validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
        ));
    }
    let mut expressions = Expressions::new(names, values, &with_values, &others)?;
    let key = key_expression.map(|text| expressions.key_condition(text)).transpose()?;
    let older = parameters.expressed(older, &mut expressions)?;
    let key: Asked = match key {
        Some(key) => key_parts(key)?.into_iter().map(|(name, asked)| (name, Some(asked))).collect(),
        None => legacy::key_conditions(request.key_conditions.unwrap_or_default())?,
    };
    if key.is_empty() || parameters.index_name.is_none() && key.len() > 2 {
        return Err(Fault::validation(WRONG_COUNT));
    }
    expressions.finish()?;
    let plan = parameters.plan(context, older, capacity, table).await?;
    let schema = plan.index.as_ref().map_or(&plan.options.key, |index| &index.key);
    if !schema.has_several() && key.len() > 2 {
        return Err(Fault::validation(WRONG_COUNT));
    }
    plan.check_start()?;
    for part in schema.attributes() {
        plan.check_start_part(part)?;
        if !schema.has_several() {
            check_asked(&key, part, schema)?;
        }
    }
    let key = match schema.has_several() {
        true => composite::key_condition(key, schema)?,
        false => key_condition(key, schema)?,
    };
    plan.check_start_item()?;
    check_bounds(&plan, &key)?;
    check_filter(&plan, schema)?;
    plan.check_everything()?;
    plan.check_scalars()?;
    check_filter_is_shown(&plan)?;
    check_behind(&plan)?;
    let backward = request.scan_index_forward == Some(false);
    let query = Query { key, backward, reading: plan.reading.clone() };
    let page = context.ports.tables.query(&plan.table, query).await;
    plan.answer(page)
}

/// What is asked of attributes; none where no index can find it.
pub(super) type Asked = BTreeMap<String, Option<RangeCondition>>;

/// Checks what is asked of one part of the key.
fn check_asked(asked: &Asked, part: &KeyAttribute, schema: &KeySchema) -> Result<(), Fault> {
    let is_hash = part.name == schema.hash.name;
    let unsupported = || Err(Fault::validation("Query key condition not supported"));
    if is_hash && schema.range.is_none() && asked.len() > 1 {
        return unsupported();
    }
    let condition = match asked.get(&part.name) {
        Some(Some(condition)) => condition,
        Some(None) => {
            return Err(Fault::validation(NOT_INDEXABLE));
        }
        None if is_hash || asked.len() > 1 => {
            return Err(Fault::validation(format!(
                "Query condition missed key schema element: {}",
                part.name
            )));
        }
        None => return Ok(()),
    };
    check_kinds(condition, part)?;
    match condition {
        RangeCondition::Compare(Comparison::Equal, _) => Ok(()),
        _ if is_hash => unsupported(),
        _ => Ok(()),
    }
}

/// The condition on the key of the table or index. Its parts have been checked.
fn key_condition(mut asked: Asked, schema: &KeySchema) -> Result<KeyCondition, Fault> {
    let hash = &schema.hash.name;
    let Some(Some(RangeCondition::Compare(Comparison::Equal, value))) = asked.remove(hash) else {
        return Err(Fault::validation("Query key condition not supported"));
    };
    let condition = KeyCondition::of(hash, value);
    Ok(match asked.pop_first() {
        Some((name, Some(range))) => condition.and(name, range),
        _ => condition,
    })
}

/// Whether the page starts with something that the query can find.
fn check_bounds(plan: &Plan, key: &KeyCondition) -> Result<(), Fault> {
    let Some(start) = &plan.reading.start else { return Ok(()) };
    let Some(hash) = start.get(&key.attribute) else { return Ok(()) };
    const OUTSIDE: &str =
        "The provided starting key is outside query boundaries based on provided conditions";
    if !key.others.is_empty() {
        return if key.holds(start) { Ok(()) } else { Err(Fault::validation(OUTSIDE)) };
    }
    let same_hash = *hash == key.value;
    // Whatever its hash value is, the range value may be one of those that are asked for.
    let in_range = KeyCondition { value: hash.clone(), ..key.clone() }.holds(start);
    let why = match (&key.range, in_range, same_hash) {
        (None, _, false) => OUTSIDE,
        (Some(_), false, _) => "The provided starting key does not match the range key predicate",
        (Some(_), true, false) => "The query can return at most one row and cannot be restarted",
        _ => return Ok(()),
    };
    Err(Fault::validation(why))
}

/// Whether the values that a part of the key is compared with are of its kind.
pub(super) fn check_kinds(condition: &RangeCondition, part: &KeyAttribute) -> Result<(), Fault> {
    match condition {
        RangeCondition::Compare(_, value) | RangeCondition::BeginsWith(value) => check_kind(value, part),
        RangeCondition::Between(lower, upper) => {
            check_kind(lower, part)?;
            check_kind(upper, part)
        }
    }
}

fn check_kind(value: &Value, attribute: &KeyAttribute) -> Result<(), Fault> {
    if value.kind() != attribute.kind.kind() {
        return Err(Fault::validation(format!(
            "{INVALID} Condition parameter type does not match schema type"
        )));
    }
    let empty = match value {
        Value::Text(text) if text.is_empty() => "string",
        Value::Binary(bytes) if bytes.is_empty() => "binary",
        _ => return Ok(()),
    };
    Err(Fault::validation(format!(
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty \
         {empty} value. Key: {}",
        attribute.name
    )))
}

/// Behind the only item that a hash value has there is nothing to start with.
fn check_behind(plan: &Plan) -> Result<(), Fault> {
    match &plan.reading.start {
        Some(start) if plan.index.is_none() && plan.options.key.range.is_none() => {
            let hash = &plan.options.key.hash.name;
            let value = start.get(hash).map(shown).unwrap_or_default();
            Err(Fault::validation(format!(
                "The provided exclusive start key is invalid: ExclusiveStartKey: {{{hash}=AttributeValue: {value}}}"
            )))
        }
        _ => Ok(()),
    }
}

/// A filter looks at what is not part of the key.
fn check_filter(plan: &Plan, schema: &KeySchema) -> Result<(), Fault> {
    let Some(filter) = &plan.reading.filter else { return Ok(()) };
    match key_part(filter, schema) {
        Some(name) => {
            let parameter = if plan.older_filter { "QueryFilter" } else { "Filter Expression" };
            Err(Fault::validation(format!(
                "{parameter} can only contain non-primary key attributes: Primary key attribute: {name}"
            )))
        }
        None => Ok(()),
    }
}

/// A query of an index, global or local, filters by what the index shows. A scan may look for what is not there.
fn check_filter_is_shown(plan: &Plan) -> Result<(), Fault> {
    let (Some(index), Some(filter)) = (&plan.index, &plan.reading.filter) else { return Ok(()) };
    let mut hidden = BTreeSet::new();
    filter.each_path(&mut |path| {
        if !plan.options.shows(index, &path.attribute) {
            hidden.insert(path.attribute.clone());
        }
    });
    if hidden.is_empty() {
        return Ok(());
    }
    let hidden: Vec<String> = hidden.into_iter().collect();
    Err(Fault::validation(format!(
        "{INVALID} Secondary index {} does not project one or more filter attributes: [{}]",
        index.name,
        hidden.join(", ")
    )))
}

fn key_part(filter: &Condition, schema: &KeySchema) -> Option<String> {
    let mut found = None;
    filter.each_path(&mut |path| {
        if found.is_none() && schema.names(&path.attribute) {
            found = Some(path.attribute.clone());
        }
    });
    found
}
