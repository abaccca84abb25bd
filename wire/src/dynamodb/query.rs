//! Query.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_model::table::expression::Comparison;
use anabranch_model::table::{
    Condition, KeyAttribute, KeyCondition, KeySchema, Query, RangeCondition, Value,
};
use serde::Deserialize;

use super::attribute::{Attribute, Attributes, INVALID};
use super::expression::{Expressions, KeyPart, one_style, shown};
use super::legacy::{self, Demand};
use super::names::table_name;
use super::reading::{Parameters, Plan, Response, START_INVALID};
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

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
    limit: Option<i64>,
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
    validation.done()?;
    let table = table_name(parameters.table_name.as_deref())?;
    let key_expression = request.key_condition_expression.as_deref();
    let expressed = ("KeyConditionExpression", key_expression.is_some());
    parameters.one_style(Some(expressed))?;
    // The older condition on the key may stand beside other expressions.
    one_style(&[expressed], &[("KeyConditions", request.key_conditions.is_some())])?;
    let mut expressions = Expressions::new(
        parameters.expression_attribute_names.take(),
        parameters.expression_attribute_values.take(),
        &[
            ("FilterExpression", parameters.filter_expression.as_deref()),
            ("KeyConditionExpression", key_expression),
        ],
        &[("ProjectionExpression", parameters.projection_expression.as_deref())],
    )?;
    let key = match (key_expression, request.key_conditions) {
        (Some(text), _) => expressions.key_condition(text)?,
        (None, Some(demands)) => legacy::key_conditions(demands)?,
        (None, None) => {
            return Err(Fault::validation(
                "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
            ));
        }
    };
    let plan = parameters.plan(context, &mut expressions, capacity, table).await?;
    expressions.finish()?;
    let schema = plan.index.as_ref().map_or(&plan.options.key, |index| &index.key);
    let key = key_condition(key, schema)?;
    check_filter(&plan, schema)?;
    check_filter_is_shown(&plan)?;
    plan.check_start()?;
    check_behind(&plan)?;
    if let Some(start) = &plan.reading.start
        && !key.holds(start)
    {
        let inside = start.get(&key.attribute) == Some(&key.value);
        return Err(Fault::validation(match inside {
            true => "The provided starting key is outside query boundaries based on provided conditions",
            false => START_INVALID,
        }));
    }
    let backward = request.scan_index_forward == Some(false);
    let query = Query { key, backward, reading: plan.reading.clone() };
    let page = context.ports.tables.query(&plan.table, query).await;
    plan.answer(page)
}

/// The condition on the key of the table or index, from what is asked of attributes.
fn key_condition(mut parts: KeyPart, schema: &KeySchema) -> Result<KeyCondition, Fault> {
    if parts.len() > 2 {
        return Err(Fault::validation("Conditions can be of length 1 or 2 only"));
    }
    let missed = |name: &str| Fault::validation(format!("Query condition missed key schema element: {name}"));
    let hash = parts.remove(&schema.hash.name).ok_or_else(|| missed(&schema.hash.name))?;
    let RangeCondition::Compare(Comparison::Equal, value) = hash else {
        return Err(Fault::validation("Query key condition not supported"));
    };
    check_kind(&value, &schema.hash)?;
    let condition = KeyCondition::of(&schema.hash.name, value);
    let Some((name, asked)) = parts.pop_first() else { return Ok(condition) };
    let range = match &schema.range {
        Some(range) if range.name == name => range,
        Some(range) => return Err(missed(&range.name)),
        None => return Err(Fault::validation("Query key condition not supported")),
    };
    match &asked {
        RangeCondition::Compare(_, value) | RangeCondition::BeginsWith(value) => check_kind(value, range)?,
        RangeCondition::Between(lower, upper) => {
            check_kind(lower, range)?;
            check_kind(upper, range)?;
        }
    }
    Ok(condition.and(name, asked))
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
