//! What queries and scans share: which attributes are wanted, pages, and their answer.

use std::collections::BTreeMap;

use anabranch_model::table::{
    Condition, IndexOptions, IndexProjection, IndexScope, ItemPage, KeyAttribute, KeySchema, Projection,
    Reading, TableOptions,
};
use anabranch_model::{Error, TableName};
use serde::Serialize;

use super::attribute::{Attribute, Attributes, INVALID, ItemBody};
use super::capacity::{Consumed, Cost, Detail, read_units};
use super::errors::fault;
use super::explain::NOT_THE_SCHEMA;
use super::expression::{Expressions, one_style};
use super::legacy::{self, Demand};
use super::names::index_name;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

const SELECTS: [&str; 4] = ["SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"];
pub(super) const START_INVALID: &str = "The provided starting key is invalid";

/// The parameters that queries and scans have in common.
#[derive(Debug)]
pub(super) struct Parameters {
    pub(super) table_name: Option<String>,
    pub(super) index_name: Option<String>,
    pub(super) select: Option<String>,
    pub(super) consistent_read: Option<bool>,
    pub(super) limit: Option<i64>,
    pub(super) exclusive_start_key: Option<Attributes>,
    pub(super) filter_expression: Option<String>,
    pub(super) projection_expression: Option<String>,
    pub(super) expression_attribute_names: Option<BTreeMap<String, String>>,
    pub(super) expression_attribute_values: Option<BTreeMap<String, Attribute>>,
    pub(super) attributes_to_get: Option<Vec<String>>,
    /// The filter from before expressions, with the name of its parameter.
    pub(super) filter: (&'static str, Option<BTreeMap<String, Demand>>),
    pub(super) conditional_operator: Option<String>,
    pub(super) return_consumed_capacity: Option<String>,
}

/// The answer to a query or scan.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<ItemBody>>,
    count: usize,
    scanned_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_evaluated_key: Option<ItemBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_capacity: Option<Consumed>,
}

/// A read that is ready to be made.
pub(super) struct Plan {
    pub(super) table: TableName,
    pub(super) options: TableOptions,
    pub(super) index: Option<IndexOptions>,
    pub(super) reading: Reading,
    capacity: Detail,
    /// Whether the filter was given as it was before expressions.
    pub(super) older_filter: bool,
}

impl Parameters {
    /// Checks what can be told without the table.
    pub(super) fn check(&self, validation: &mut Validation) -> Detail {
        validation
            .required("tableName", &self.table_name)
            .one_of("select", self.select.as_deref(), &SELECTS)
            .range("limit", self.limit, 1..=i64::from(i32::MAX));
        Detail::read(validation, self.return_consumed_capacity.as_deref())
    }

    /// Refuses expressions beside what was there before them. `own` is the expression of a query.
    pub(super) fn one_style(&self, own: Option<(&'static str, bool)>) -> Result<(), Fault> {
        let mut expressions = vec![
            ("ProjectionExpression", self.projection_expression.is_some()),
            ("FilterExpression", self.filter_expression.is_some()),
        ];
        expressions.extend(own);
        let others = [
            ("AttributesToGet", self.attributes_to_get.is_some()),
            (self.filter.0, self.filter.1.is_some()),
            ("ConditionalOperator", self.conditional_operator.is_some()),
        ];
        one_style(&expressions, &others)
    }

    /// Looks at the table and decides what is read of it.
    pub(super) async fn plan(
        self,
        context: &Context,
        expressions: &mut Expressions,
        capacity: Detail,
        table: TableName,
    ) -> Result<Plan, Fault> {
        let older_filter = self.filter.1.is_some();
        let filter = self.filter(expressions)?;
        let projection = match (&self.projection_expression, self.attributes_to_get) {
            (Some(text), _) => Some(expressions.projection(text)?),
            (None, Some(names)) => Some(legacy::attributes_to_get(names)?),
            (None, None) => None,
        };
        let start = self.exclusive_start_key.map(Attributes::item).transpose()?;
        let index = self.index_name.as_deref().map(index_name).transpose()?;
        let options = context.ports.tables.table(&table).await.map_err(fault)?.options;
        let index = index.map(|name| options.index(&table, &name).cloned()).transpose().map_err(fault)?;
        let consistent = self.consistent_read.unwrap_or(false);
        if consistent && index.as_ref().is_some_and(|index| index.scope == IndexScope::Global) {
            return Err(Fault::validation("Consistent reads are not supported on global secondary indexes"));
        }
        check_select(self.select.as_deref(), self.projection_expression.is_some(), &projection, &index)?;
        let count_only = self.select.as_deref() == Some("COUNT");
        let everything = self.select.as_deref() == Some("ALL_ATTRIBUTES");
        let reading = Reading {
            index: index.as_ref().map(|index| index.name.clone()),
            consistent,
            filter,
            projection,
            limit: self.limit.map(|limit| limit as usize),
            start,
            count_only,
            whole: everything && index.as_ref().is_some_and(|index| index.scope == IndexScope::Local),
        };
        if let Some(index) = &index {
            check_shown(&options, index, &reading)?;
        }
        Ok(Plan { table, options, index, reading, capacity, older_filter })
    }

    fn filter(&self, expressions: &mut Expressions) -> Result<Option<Condition>, Fault> {
        match &self.filter_expression {
            Some(text) => expressions.filter(text).map(Some),
            None => legacy::filter(self.filter.1.clone(), self.conditional_operator.as_deref()),
        }
    }
}

/// Which attributes can be selected how.
fn check_select(
    select: Option<&str>,
    by_expression: bool,
    projection: &Option<Projection>,
    index: &Option<IndexOptions>,
) -> Result<(), Fault> {
    let parameter = if by_expression { "ProjectionExpression" } else { "AttributesToGet" };
    let why = match (select, projection, index) {
        (Some("COUNT"), Some(_), _) => {
            format!("Cannot specify the {parameter} when choosing to get only the Count")
        }
        (Some(select @ ("ALL_ATTRIBUTES" | "ALL_PROJECTED_ATTRIBUTES")), Some(_), _) => {
            format!("Cannot specify the {parameter} when choosing to get {select}")
        }
        (Some("SPECIFIC_ATTRIBUTES"), None, _) => {
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
                .to_string()
        }
        (Some("ALL_PROJECTED_ATTRIBUTES"), _, None) => {
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName".to_string()
        }
        (Some("ALL_ATTRIBUTES"), _, Some(index))
            if index.scope == IndexScope::Global && index.projection != IndexProjection::All =>
        {
            format!(
                "{INVALID} Select type ALL_ATTRIBUTES is not supported for global secondary index {} because its \
                 projection type is not ALL",
                index.name
            )
        }
        _ => return Ok(()),
    };
    Err(Fault::validation(why))
}

/// Of a global index only what it shows can be had.
fn check_shown(options: &TableOptions, index: &IndexOptions, reading: &Reading) -> Result<(), Fault> {
    if index.scope != IndexScope::Global {
        return Ok(());
    }
    let paths = reading.projection.iter().flat_map(|projection| &projection.0);
    let hidden: Vec<_> =
        paths.map(|path| path.attribute.as_str()).filter(|name| !options.shows(index, name)).collect();
    match hidden.is_empty() {
        true => Ok(()),
        false => Err(Fault::validation(format!(
            "{INVALID} Global secondary index {} does not project [{}]",
            index.name,
            hidden.join(", ")
        ))),
    }
}

impl Plan {
    /// Whether the start of the page lies in the table or index.
    pub(super) fn check_start(&self) -> Result<(), Fault> {
        let Some(start) = &self.reading.start else { return Ok(()) };
        let attributes = self.options.place_attributes(self.index.as_ref(), start);
        let keys = std::iter::once(&self.options.key).chain(self.index.as_ref().map(|index| &index.key));
        let parts: Vec<_> = keys.flat_map(KeySchema::attributes).collect();
        let present = parts.iter().all(|part| start.get(&part.name).is_some());
        if !present || attributes.len() != start.len() {
            return Err(Fault::validation(START_INVALID));
        }
        let fits = |part: &&KeyAttribute| {
            start.get(&part.name).is_some_and(|value| value.kind() == part.kind.kind())
        };
        if !parts.iter().all(fits) {
            return Err(Fault::validation(NOT_THE_SCHEMA));
        }
        match self.options.place(self.index.as_ref(), start) {
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::validation(START_INVALID)),
        }
    }

    /// The page as an answer.
    pub(super) fn answer(self, page: Result<ItemPage, Error>) -> Result<Response, Fault> {
        let page = self.read(page)?;
        let units = read_units(page.bytes, self.reading.consistent);
        let cost = match &self.index {
            Some(index) => Cost::of_index(index.name.as_str(), index.scope, units),
            None => Cost::of_table(units),
        };
        Ok(self.respond(page, cost))
    }

    /// The page of a scan as an answer.
    pub(super) fn answer_scan(self, page: Result<ItemPage, Error>) -> Result<Response, Fault> {
        if self.index.is_some() {
            return self.answer(page);
        }
        let page = self.read(page)?;
        let cost = Cost::of_scan(page.bytes, self.reading.consistent);
        Ok(self.respond(page, cost))
    }

    fn read(&self, page: Result<ItemPage, Error>) -> Result<ItemPage, Fault> {
        page.map_err(|error| match error {
            Error::TableBusy(_) if self.index.is_some() => Fault::validation(format!(
                "Cannot read from backfilling global secondary index: {}",
                self.reading.index.as_ref().map_or("", |name| name.as_str())
            )),
            other => fault(other),
        })
    }

    fn respond(self, page: ItemPage, cost: Cost) -> Response {
        let items = page.items.into_iter().map(ItemBody);
        Response {
            items: (!self.reading.count_only).then(|| items.collect()),
            count: page.returned,
            scanned_count: page.evaluated,
            last_evaluated_key: page.last.map(ItemBody),
            consumed_capacity: self.capacity.consumed(&self.table, &cost),
        }
    }
}
