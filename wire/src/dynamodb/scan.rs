//! Scan.

use std::collections::BTreeMap;

use anabranch_model::limits::SCAN_SEGMENTS_MAX;
use anabranch_model::table::{Scan, Segment};
use serde::Deserialize;

use super::attribute::{Attribute, Attributes};
use super::expression::Expressions;
use super::legacy::{self, Demand};
use super::names::table_name;
use super::reading::{Parameters, Plan, Response};
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
    index_name: Option<String>,
    segment: Option<i32>,
    total_segments: Option<i32>,
    select: Option<String>,
    consistent_read: Option<bool>,
    limit: Option<i32>,
    exclusive_start_key: Option<Attributes>,
    filter_expression: Option<String>,
    projection_expression: Option<String>,
    expression_attribute_names: Option<BTreeMap<String, String>>,
    expression_attribute_values: Option<BTreeMap<String, Attribute>>,
    attributes_to_get: Option<Vec<String>>,
    scan_filter: Option<BTreeMap<String, Demand>>,
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
        filter: ("ScanFilter", request.scan_filter),
        conditional_operator: request.conditional_operator,
        return_consumed_capacity: request.return_consumed_capacity,
    };
    let mut validation = Validation::default();
    let capacity = parameters.check(&mut validation);
    let segments_max = i64::from(SCAN_SEGMENTS_MAX);
    validation.range("totalSegments", request.total_segments.map(i64::from), 1..=segments_max);
    validation.range("segment", request.segment.map(i64::from), 0..=segments_max - 1);
    legacy::check_attributes_to_get(&mut validation, &parameters.attributes_to_get);
    validation.done()?;
    let table = table_name(parameters.table_name.as_deref())?;
    parameters.one_style(None)?;
    let filter = parameters.filter_expression.clone();
    let projection = parameters.projection_expression.clone();
    let with_values = [("FilterExpression", filter.as_deref())];
    let others = [("ProjectionExpression", projection.as_deref())];
    let names = parameters.expression_attribute_names.take();
    let values = parameters.expression_attribute_values.take();
    Expressions::check_given(&names, &values, &with_values, &others)?;
    let older = parameters.older()?;
    let segment = segment(request.segment, request.total_segments)?;
    let mut expressions = Expressions::new(names, values, &with_values, &others)?;
    let older = parameters.expressed(older, &mut expressions)?;
    expressions.finish()?;
    let plan = parameters.plan(context, older, capacity, table).await?;
    if let Some(index) = &plan.index {
        plan.check_start()?;
        index.key.attributes().try_for_each(|part| plan.check_start_part(part))?;
    }
    plan.check_everything()?;
    plan.check_start_item()?;
    check_segment(&plan, segment)?;
    plan.check_scalars()?;
    let scan = Scan { segment, reading: plan.reading.clone() };
    let page = context.ports.tables.scan(&plan.table, scan).await;
    plan.answer_scan(page)
}

fn segment(segment: Option<i32>, total: Option<i32>) -> Result<Option<Segment>, Fault> {
    match (segment, total) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(Fault::validation(
            "The TotalSegments parameter is required but was not present in the request when Segment parameter is \
             present",
        )),
        (None, Some(_)) => Err(Fault::validation(
            "The Segment parameter is required but was not present in the request when parameter TotalSegments is \
             present",
        )),
        (Some(segment), Some(total)) if segment >= total => Err(Fault::validation(format!(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: {segment} is \
             not less than TotalSegments: {total}"
        ))),
        // Both were found to be small enough.
        (Some(segment), Some(total)) => Ok(Some(Segment { number: segment as u32, of: total as u32 })),
    }
}

/// Whether the page starts in the segment.
fn check_segment(plan: &Plan, segment: Option<Segment>) -> Result<(), Fault> {
    let (Some(segment), Some(start)) = (segment, &plan.reading.start) else { return Ok(()) };
    let schema = plan.index.as_ref().map_or(&plan.options.key, |index| &index.key);
    match schema.key_of(start) {
        Ok(key) if !segment.contains(&key) => Err(Fault::validation(format!(
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct \
             Segment. TotalSegments: {} Segment: {}",
            segment.of, segment.number
        ))),
        _ => Ok(()),
    }
}
