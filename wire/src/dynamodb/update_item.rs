//! UpdateItem.

use std::collections::BTreeMap;

use anabranch_model::table::{Action, Update};
use serde::Deserialize;

use super::attribute::{Attribute, Attributes};
use super::explain::WRONG_TYPE;
use super::expression::{Expressions, one_style};
use super::legacy::{self, AttributeUpdate, Expected};
use super::names::{check_table, table_name};
use super::write::{self, Wanted, Written};
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
    key: Option<Attributes>,
    update_expression: Option<String>,
    condition_expression: Option<String>,
    expression_attribute_names: Option<BTreeMap<String, String>>,
    expression_attribute_values: Option<BTreeMap<String, Attribute>>,
    attribute_updates: Option<BTreeMap<String, AttributeUpdate>>,
    expected: Option<BTreeMap<String, Expected>>,
    conditional_operator: Option<String>,
    return_values: Option<String>,
    return_values_on_condition_check_failure: Option<String>,
    return_consumed_capacity: Option<String>,
    return_item_collection_metrics: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Written, Fault> {
    let mut validation = Validation::default();
    check_table(&mut validation, request.table_name.as_deref());
    validation.required("key", &request.key);
    let wanted = Wanted::read(
        &mut validation,
        [
            request.return_consumed_capacity.as_deref(),
            request.return_item_collection_metrics.as_deref(),
            request.return_values.as_deref(),
            request.return_values_on_condition_check_failure.as_deref(),
        ],
    );
    validation.done()?;
    let table = table_name(request.table_name.as_deref())?;
    let (update, condition) = (request.update_expression.as_deref(), request.condition_expression.as_deref());
    let any = update.is_some() || condition.is_some();
    one_style(
        &[("UpdateExpression", update.is_some()), ("ConditionExpression", condition.is_some())],
        &[
            ("AttributeUpdates", request.attribute_updates.is_some()),
            ("Expected", request.expected.is_some()),
            ("ConditionalOperator", request.conditional_operator.is_some() && any),
        ],
    )?;
    let given = [("UpdateExpression", update), ("ConditionExpression", condition)];
    let (names, values) = (request.expression_attribute_names, request.expression_attribute_values);
    Expressions::check_given(&names, &values, &given, &[])?;
    let key = request.key.map_or_else(|| Ok(Default::default()), Attributes::item)?;
    let mut expressions = Expressions::new(names, values, &given, &[])?;
    let older = request.attribute_updates.is_some();
    let update = match (update, request.attribute_updates) {
        (Some(text), _) => expressions.update(text)?,
        (None, Some(updates)) => legacy::attribute_updates(updates)?,
        (None, None) => Update::new(),
    };
    let operator = request.conditional_operator.as_deref();
    let condition = write::condition(&mut expressions, condition, request.expected, operator)?;
    expressions.finish()?;
    let written = write::write(context, table, Action::Update(key, update), condition, wanted).await;
    written.map_err(|fault| match older && fault.message == WRONG_TYPE {
        true => Fault::validation("Type mismatch for attribute to update"),
        false => fault,
    })
}
