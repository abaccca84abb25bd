//! What queries and scans share: which attributes are wanted, pages, and their answer.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_model::table::{
    Condition, IndexOptions, IndexProjection, IndexScope, Item, ItemPage, KeyAttribute, KeySchema,
    Projection, Reading, TableOptions,
};
use anabranch_model::{Error, TableName};
use serde::Serialize;

use super::attribute::{Attribute, Attributes, INVALID, ItemBody};
use super::capacity::{Consumed, Cost, Detail, read_units};
use super::errors::fault;
use super::explain::{NOT_THE_SCHEMA, check_scalars, of_key};
use super::expression::{Expressions, one_style};
use super::legacy::{self, Demand};
use super::names::{check_name, check_table, index_name};
use super::state::check_ready;
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
    pub(super) limit: Option<i32>,
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

/// What was there before expressions, and where to start.
pub(super) struct Older {
    /// Whether there is a filter, be it an empty one.
    is_filtered: bool,
    filter: Option<Condition>,
    projection: Option<Projection>,
    start: Option<Item>,
}

/// A read that is ready to be made.
pub(super) struct Plan {
    pub(super) table: TableName,
    pub(super) options: TableOptions,
    pub(super) index: Option<IndexOptions>,
    pub(super) reading: Reading,
    capacity: Detail,
    /// Whether all attributes are asked for.
    everything: bool,
    /// Whether the filter was given as it was before expressions.
    pub(super) older_filter: bool,
}

impl Parameters {
    /// Checks what can be told without the table, but for the attributes that are wanted: of more than can be told they are
    /// the last.
    pub(super) fn check(&self, validation: &mut Validation) -> Detail {
        check_table(validation, self.table_name.as_deref());
        check_name(validation, "indexName", self.index_name.as_deref());
        let (parameter, filter) = &self.filter;
        legacy::check_demands(validation, &camel(parameter), filter);
        validation
            .one_of("conditionalOperator", self.conditional_operator.as_deref(), &["OR", "AND"])
            .one_of("select", self.select.as_deref(), &SELECTS);
        let (limit, allowed) = (self.limit.map(i64::from), 1..=i64::from(i32::MAX));
        // A query looks at its limit by itself, and calls it otherwise than a scan does.
        match *parameter {
            "QueryFilter" => validation.range_of_unshown("Limit", limit, allowed),
            _ => validation.range("limit", limit, allowed),
        };
        Detail::read(validation, self.return_consumed_capacity.as_deref())
    }

    /// Refuses expressions beside what was there before them. `keys` is whether a query has an expression for its key, and
    /// whether it has what was there before. That alone may stand beside other expressions.
    pub(super) fn one_style(&self, keys: Option<(bool, bool)>) -> Result<(), Fault> {
        let (key_expression, key_conditions) = keys.unwrap_or_default();
        let expressions = [
            ("ProjectionExpression", self.projection_expression.is_some()),
            ("FilterExpression", self.filter_expression.is_some()),
            ("KeyConditionExpression", key_expression),
        ];
        let others = [
            ("AttributesToGet", self.attributes_to_get.is_some()),
            (self.filter.0, self.filter.1.is_some()),
            ("ConditionalOperator", self.conditional_operator.is_some()),
            ("KeyConditions", key_conditions && key_expression),
        ];
        one_style(&expressions, &others)
    }

    /// Reads what was there before expressions, and where to start: it is looked at before expressions are.
    pub(super) fn older(&mut self) -> Result<Older, Fault> {
        let (parameter, filter) = (self.filter.0, self.filter.1.take());
        let is_filtered = filter.is_some();
        let filter = legacy::filter(filter, self.conditional_operator.as_deref());
        let projection = self.attributes_to_get.take().map(legacy::attributes_to_get).transpose();
        // Of two that are wrong a query tells of the filter, and a scan of the attributes.
        let (filter, projection) = match parameter {
            "QueryFilter" => filter.and_then(|filter| Ok((filter, projection?)))?,
            _ => projection.and_then(|projection| Ok((filter?, projection)))?,
        };
        let start = self.exclusive_start_key.take();
        let start = start.map(|start| start.item_for(START_INVALID)).transpose()?;
        Ok(Older { is_filtered, filter, projection, start })
    }

    /// Reads the expressions that queries and scans have in common.
    pub(super) fn expressed(&self, older: Older, expressions: &mut Expressions) -> Result<Older, Fault> {
        let filter = self.filter_expression.as_deref().map(|text| expressions.filter(text)).transpose()?;
        let projection =
            self.projection_expression.as_deref().map(|text| expressions.projection(text)).transpose()?;
        Ok(Older { filter: filter.or(older.filter), projection: projection.or(older.projection), ..older })
    }

    /// Looks at the table and decides what is read of it.
    pub(super) async fn plan(
        self,
        context: &Context,
        older: Older,
        capacity: Detail,
        table: TableName,
    ) -> Result<Plan, Fault> {
        let Older { filter, projection, start, is_filtered } = older;
        let index = self.index_name.as_deref().map(index_name).transpose()?;
        check_ready(context, &table).await?;
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
        Ok(Plan { table, options, index, reading, capacity, everything, older_filter: is_filtered })
    }
}

/// The name of a parameter as findings spell it.
fn camel(parameter: &str) -> String {
    let (first, rest) = parameter.split_at(1);
    first.to_ascii_lowercase() + rest
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
    /// Whether the start of the page has as many attributes as it must.
    pub(super) fn check_start(&self) -> Result<(), Fault> {
        let Some(start) = &self.reading.start else { return Ok(()) };
        let keys = std::iter::once(&self.options.key).chain(self.index.as_ref().map(|index| &index.key));
        let names: BTreeSet<_> = keys.flat_map(KeySchema::attributes).map(|part| &part.name).collect();
        match names.len() == start.len() {
            true => Ok(()),
            false => Err(Fault::validation(START_INVALID)),
        }
    }

    /// Whether the start of the page has this part of the key.
    pub(super) fn check_start_part(&self, part: &KeyAttribute) -> Result<(), Fault> {
        match self.reading.start.as_ref().map(|start| start.get(&part.name)) {
            Some(None) => Err(Fault::validation(START_INVALID)),
            Some(Some(value)) if value.kind() != part.kind.kind() => Err(Fault::validation(NOT_THE_SCHEMA)),
            _ => Ok(()),
        }
    }

    /// Whether nobody looks into the parts of keys, which have none.
    pub(super) fn check_scalars(&self) -> Result<(), Fault> {
        let paths = self.reading.projection.iter().flat_map(|projection| &projection.0);
        let mut checked = check_scalars(&self.options, paths);
        if let Some(filter) = &self.reading.filter {
            filter.each_path(&mut |path| {
                if checked.is_ok() {
                    checked = check_scalars(&self.options, std::iter::once(path));
                }
            });
        }
        checked
    }

    /// Whether everything can be had, if it is asked for.
    pub(super) fn check_everything(&self) -> Result<(), Fault> {
        match &self.index {
            Some(index)
                if self.everything
                    && index.scope == IndexScope::Global
                    && index.projection != IndexProjection::All =>
            {
                Err(Fault::validation(format!(
                    "{INVALID} Select type ALL_ATTRIBUTES is not supported for global secondary index {} because its \
                     projection type is not ALL",
                    index.name
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether the start of the page is the key of an item, beside what it is in an index.
    pub(super) fn check_start_item(&self) -> Result<(), Fault> {
        let Some(start) = &self.reading.start else { return Ok(()) };
        let key = match &self.index {
            Some(_) => self.options.place_attributes(None, start),
            None => start.clone(),
        };
        if let Some(wrong) = of_key(&key, &self.options.key) {
            return Err(Fault::validation(format!("{START_INVALID}: {}", wrong.words)));
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
        let mut cost = match &self.index {
            Some(index) => Cost::of_index(index.name.as_str(), index.scope, units),
            None => Cost::of_table(units),
        };
        // What an index does not show is read from the table, item by item.
        for bytes in &page.fetched {
            cost.add(Cost::of_table(read_units(*bytes, self.reading.consistent)));
        }
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
