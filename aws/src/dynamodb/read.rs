//! Finding items: by a stretch of a key, or all of them.

use anabranch_model::table::{IndexOptions, Item, ItemPage, Query, Reading, Scan, TableOptions};
use anabranch_model::{Error, Result, TableName};
use aws_sdk_dynamodb::types::Select;

use super::expression::{Expressions, Placeholders};
use super::known::Known;
use super::{Tables, action};
use crate::attribute::tables::{attributes, item};

/// What queries and scans share, as text.
struct Texts {
    filter: Option<String>,
    projection: Option<String>,
    limit: Option<i32>,
    select: Option<Select>,
    placeholders: Placeholders,
}

impl Texts {
    fn of(reading: &Reading, mut expressions: Expressions) -> Result<Texts> {
        if let Some(filter) = &reading.filter {
            filter.check()?;
        }
        if let Some(projection) = &reading.projection {
            projection.check()?;
        }
        if reading.limit == Some(0) {
            return Err(Error::Invalid("a page for which nothing is looked at leads nowhere".to_string()));
        }
        Ok(Texts {
            filter: reading.filter.as_ref().map(|filter| expressions.condition(filter)),
            projection: reading.projection.as_ref().map(|parts| expressions.projection(&parts.0)),
            limit: reading.limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)),
            select: match (reading.count_only, reading.whole && reading.projection.is_none()) {
                (true, _) => Some(Select::Count),
                (false, true) => Some(Select::AllAttributes),
                (false, false) => None,
            },
            placeholders: expressions.placeholders(),
        })
    }
}

impl Tables {
    pub(super) async fn read_query(&self, table: &TableName, query: &Query) -> Result<ItemPage> {
        let deadline = self.soon();
        let reading = &query.reading;
        let check = |known: &Known| {
            let check = |options: &TableOptions| query.check(options, index(table, reading, options)?);
            known.check(table, check).map(drop)
        };
        self.check([table], deadline, check).await?;
        let mut expressions = Expressions::default();
        let key = expressions.key_condition(&query.key);
        let texts = Texts::of(reading, expressions)?;
        let start = reading.start.as_ref().map(attributes);
        let request = || {
            self.client
                .query()
                .table_name(table.as_str())
                .set_index_name(reading.index.as_ref().map(ToString::to_string))
                .key_condition_expression(&key)
                .scan_index_forward(!query.backward)
                .consistent_read(reading.consistent)
                .set_filter_expression(texts.filter.clone())
                .set_projection_expression(texts.projection.clone())
                .set_limit(texts.limit)
                .set_select(texts.select.clone())
                .set_exclusive_start_key(start.clone())
                .set_expression_attribute_names(texts.placeholders.names.clone())
                .set_expression_attribute_values(texts.placeholders.values.clone())
                .send()
        };
        match self.caller.call(&action::QUERY, deadline, request).await {
            Ok(answer) => page(answer.items, answer.count, answer.scanned_count, answer.last_evaluated_key),
            Err(failure) => {
                Err(self.explained_reading(failure, table, reading.index.as_ref(), deadline).await)
            }
        }
    }

    pub(super) async fn read_scan(&self, table: &TableName, scan: &Scan) -> Result<ItemPage> {
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        if let Some(segment) = &scan.segment {
            segment.check()?;
        }
        let deadline = self.soon();
        let reading = &scan.reading;
        let check = |known: &Known| {
            // Where the segments of a table are cut, DynamoDB alone knows.
            let whole = Scan { segment: None, reading: reading.clone() };
            let check = |options: &TableOptions| whole.check(options, index(table, reading, options)?);
            known.check(table, check).map(drop)
        };
        self.check([table], deadline, check).await?;
        let texts = Texts::of(reading, Expressions::default())?;
        let start = reading.start.as_ref().map(attributes);
        let request = || {
            self.client
                .scan()
                .table_name(table.as_str())
                .set_index_name(reading.index.as_ref().map(ToString::to_string))
                .set_segment(scan.segment.map(|segment| number(segment.number)))
                .set_total_segments(scan.segment.map(|segment| number(segment.of)))
                .consistent_read(reading.consistent)
                .set_filter_expression(texts.filter.clone())
                .set_projection_expression(texts.projection.clone())
                .set_limit(texts.limit)
                .set_select(texts.select.clone())
                .set_exclusive_start_key(start.clone())
                .set_expression_attribute_names(texts.placeholders.names.clone())
                .set_expression_attribute_values(texts.placeholders.values.clone())
                .send()
        };
        match self.caller.call(&action::SCAN, deadline, request).await {
            Ok(answer) => page(answer.items, answer.count, answer.scanned_count, answer.last_evaluated_key),
            Err(failure) => {
                Err(self.explained_reading(failure, table, reading.index.as_ref(), deadline).await)
            }
        }
    }
}

type Attributes = std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>;

fn page(
    items: Option<Vec<Attributes>>,
    returned: i32,
    evaluated: i32,
    last: Option<Attributes>,
) -> Result<ItemPage> {
    let count = |number: i32| usize::try_from(number).unwrap_or_default();
    let items = items.unwrap_or_default().into_iter().map(item).collect::<Result<Vec<Item>>>()?;
    let last = last.filter(|last| !last.is_empty()).map(item).transpose()?;
    let bytes = items.iter().map(Item::size).sum();
    Ok(ItemPage {
        items,
        returned: count(returned),
        evaluated: count(evaluated),
        bytes,
        fetched: Vec::new(),
        last,
    })
}

/// The index that is read, if it is not the table.
fn index<'a>(
    table: &TableName,
    reading: &Reading,
    options: &'a TableOptions,
) -> Result<Option<&'a IndexOptions>> {
    reading.index.as_ref().map(|name| options.index(table, name)).transpose()
}
