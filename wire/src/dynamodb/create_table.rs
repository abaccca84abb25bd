//! CreateTable.

use std::collections::BTreeSet;

use anabranch_model::TableName;
use anabranch_model::table::{
    IndexOptions, IndexScope, IndexSummary, KeySchema, TableOptions, TableState, TableSummary,
};
use serde::{Deserialize, Serialize};

use super::attribute::INVALID;
use super::description::{Description, describe};
use super::errors::{NOT_FOUND, table_fault};
use super::names::table_name;
use super::schema::{
    Definition, Element, IndexBody, Kinds, StreamSpecification, Throughput, check_elements, key_schema, kinds,
};
use super::settings::Settings;
use super::tags::{self, Tag};
use crate::context::Context;
use crate::dynamodb_streams;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, some_bounded};
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    attribute_definitions: Option<Vec<Definition>>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    key_schema: Option<Vec<Element>>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    global_secondary_indexes: Option<Vec<IndexBody>>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    local_secondary_indexes: Option<Vec<IndexBody>>,
    billing_mode: Option<String>,
    provisioned_throughput: Option<Throughput>,
    stream_specification: Option<StreamSpecification>,
    deletion_protection_enabled: Option<bool>,
    table_class: Option<String>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    tags: Option<Vec<Tag>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    table_description: Description,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    request.check()?;
    let table = table_name(request.table_name.as_deref())?;
    let options = request.options()?;
    let settings = request.settings()?;
    let tags = request.tags.unwrap_or_default();
    tags::check(&tags)?;
    options.check().map_err(table_fault)?;
    let _changing = context.dynamodb.changing().await;
    context.ports.tables.create_table(&table, options.clone()).await.map_err(table_fault)?;
    let summary = match dress(context, &table, &settings, tags).await {
        // Who deleted it did so after it had been made.
        Err(fault) if fault.code == NOT_FOUND => made(context, table, options),
        dressed => dressed?,
    };
    Ok(Response { table_description: describe(context, &summary, &settings) })
}

/// Keeps what belongs to a table beside it.
async fn dress(
    context: &Context,
    table: &TableName,
    settings: &Settings,
    tags: Vec<Tag>,
) -> Result<TableSummary, Fault> {
    settings.save(context, table).await?;
    tags::put(context, table, tags).await?;
    let summary = context.ports.tables.table(table).await.map_err(table_fault)?;
    dynamodb_streams::remember(context, &summary).await?;
    Ok(summary)
}

/// A table as it was made a moment ago.
fn made(context: &Context, name: TableName, options: TableOptions) -> TableSummary {
    let indexes = options.indexes.iter().map(|index| IndexSummary {
        name: index.name.clone(),
        state: TableState::Creating,
        items: 0,
        bytes: 0,
    });
    TableSummary {
        name,
        state: TableState::Creating,
        created_at: context.clock.now(),
        items: 0,
        bytes: 0,
        indexes: indexes.collect(),
        changes: None,
        changes_since: None,
        options,
    }
}

impl Request {
    fn check(&self) -> Result<(), Fault> {
        let mut validation = Validation::default();
        validation
            .required("tableName", &self.table_name)
            .required("attributeDefinitions", &self.attribute_definitions)
            .one_of("billingMode", self.billing_mode.as_deref(), &["PROVISIONED", "PAY_PER_REQUEST"])
            .one_of("tableClass", self.table_class.as_deref(), TABLE_CLASSES);
        check_elements(&mut validation, "keySchema", &self.key_schema);
        check_throughput(&mut validation, "provisionedThroughput", self.provisioned_throughput);
        let lists = [
            ("globalSecondaryIndexes", &self.global_secondary_indexes),
            ("localSecondaryIndexes", &self.local_secondary_indexes),
        ];
        for (field, indexes) in lists {
            for (at, index) in indexes.iter().flatten().enumerate() {
                index.check(&mut validation, &format!("{field}.{}.member", at + 1));
            }
        }
        validation.done()
    }

    fn options(&self) -> Result<TableOptions, Fault> {
        let invalid = |why: String| Err(Fault::validation(format!("{INVALID} {why}")));
        let kinds = kinds(self.attribute_definitions.as_deref().unwrap_or_default())?;
        let key = key_schema(self.key_schema.as_deref().unwrap_or_default(), &kinds, None)?;
        let mut options = TableOptions::new(key);
        let lists = [
            ("LocalSecondaryIndexes", IndexScope::Local, &self.local_secondary_indexes),
            ("GlobalSecondaryIndexes", IndexScope::Global, &self.global_secondary_indexes),
        ];
        for (parameter, scope, indexes) in lists {
            if indexes.as_ref().is_some_and(Vec::is_empty) {
                return invalid(format!("List of {parameter} is empty"));
            }
            for body in indexes.iter().flatten() {
                let index = body.options(scope, &kinds)?;
                if options.indexes.iter().any(|other| other.name == index.name) {
                    return invalid(format!("Duplicate index name: {}", index.name));
                }
                options.indexes.push(index);
            }
        }
        if options.key.range.is_none() && self.local_secondary_indexes.is_some() {
            return invalid(
                "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"
                    .to_string(),
            );
        }
        let other = |index: &&IndexOptions| {
            index.scope == IndexScope::Local && index.key.hash.name != options.key.hash.name
        };
        if let Some(index) = options.indexes.iter().find(other) {
            return invalid(format!(
                "Index KeySchema does not have the same leading hash key as table KeySchema for index: {}. index hash \
                 key: {}, table hash key: {}",
                index.name, index.key.hash.name, options.key.hash.name
            ));
        }
        check_used(&kinds, &options)?;
        options.changes = self.stream_specification.as_ref().map_or(Ok(None), StreamSpecification::view)?;
        Ok(options)
    }

    fn settings(&self) -> Result<Settings, Fault> {
        let invalid = |why: &str| Err(Fault::validation(format!("{INVALID} {why}")));
        let on_demand = self.billing_mode.as_deref() == Some("PAY_PER_REQUEST");
        match (on_demand, self.provisioned_throughput) {
            (true, Some(_)) => {
                return invalid(
                    "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is \
                     PAY_PER_REQUEST",
                );
            }
            (false, None) => {
                return invalid(
                    "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
                );
            }
            _ => {}
        }
        let indexes = self.global_secondary_indexes.iter().flatten();
        Ok(Settings {
            throughput: self.provisioned_throughput,
            index_throughput: indexes.filter_map(IndexBody::throughput).collect(),
            deletion_protection: self.deletion_protection_enabled.unwrap_or(false),
            table_class: self.table_class.clone(),
        })
    }
}

/// The classes of storage.
pub(super) const TABLE_CLASSES: &[&str] = &["STANDARD", "STANDARD_INFREQUENT_ACCESS"];

/// Capacity is ordered in whole units.
pub(super) fn check_throughput(validation: &mut Validation, field: &str, ordered: Option<Throughput>) {
    let Some(Throughput { read_capacity_units, write_capacity_units }) = ordered else { return };
    validation.range(&format!("{field}.readCapacityUnits"), Some(read_capacity_units), 1..=i64::MAX);
    validation.range(&format!("{field}.writeCapacityUnits"), Some(write_capacity_units), 1..=i64::MAX);
}

/// An attribute that is defined is part of a key.
fn check_used(kinds: &Kinds, options: &TableOptions) -> Result<(), Fault> {
    let keys = std::iter::once(&options.key).chain(options.indexes.iter().map(|index| &index.key));
    let used: BTreeSet<_> = keys.flat_map(KeySchema::attributes).map(|part| part.name.as_str()).collect();
    if used.len() == kinds.len() {
        return Ok(());
    }
    if options.indexes.is_empty() {
        return Err(Fault::validation(format!(
            "{INVALID} Number of attributes in KeySchema does not exactly match number of attributes defined in \
             AttributeDefinitions"
        )));
    }
    let list = |names: Vec<&str>| names.join(", ");
    Err(Fault::validation(format!(
        "{INVALID} Some AttributeDefinitions are not used. AttributeDefinitions: [{}], keys used: [{}]",
        list(kinds.keys().map(String::as_str).collect()),
        list(used.into_iter().collect())
    )))
}
