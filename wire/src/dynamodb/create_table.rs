//! CreateTable.

use std::collections::BTreeSet;

use anabranch_model::limits::{GLOBAL_INDEXES_MAX, LOCAL_INDEXES_MAX};
use anabranch_model::table::{
    IndexOptions, IndexScope, IndexSummary, KeySchema, TableOptions, TableState, TableSummary,
};
use anabranch_model::{Error, TableName};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::attribute::INVALID;
use super::description::{Description, describe};
use super::elsewhere::refuse;
use super::encryption;
use super::errors::{NOT_FOUND, table_fault};
use super::key_schema::{Element, PARTS_MAX, check_elements, table_key};
use super::names::{check_own_table, table_name};
use super::schema::{
    Definition, IndexBody, Kinds, StreamSpecification, ThroughputBody, check_definitions, invalid, kinds,
};
use super::settings::Settings;
use super::state::changing;
use super::tags::{self, Tag};
use super::throughput::{OnDemand, Warm};
use super::whole::{self, Plan};
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, some_bounded};
use crate::making::to_its_end;
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
    provisioned_throughput: Option<ThroughputBody>,
    stream_specification: Option<StreamSpecification>,
    deletion_protection_enabled: Option<bool>,
    table_class: Option<String>,
    #[serde(rename = "SSESpecification")]
    encryption: Option<encryption::Specification>,
    on_demand_throughput: Option<OnDemand>,
    warm_throughput: Option<Warm>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    tags: Option<Vec<Tag>>,
    resource_policy: Option<IgnoredAny>,
    global_table_source_arn: Option<IgnoredAny>,
    global_table_settings_replication_mode: Option<IgnoredAny>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    table_description: Description,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    request.check()?;
    let table = table_name(request.table_name.as_deref())?;
    let settings = request.settings()?;
    let options = request.options()?;
    let tags = request.tags.unwrap_or_default();
    tags::check(&tags)?;
    options.check().map_err(table_fault)?;
    let plan = Plan { steps: Vec::new(), settings, tags };
    let context = context.clone();
    to_its_end(async move { make(&context, table, options, plan).await }).await
}

async fn make(
    context: &Context,
    table: TableName,
    options: TableOptions,
    plan: Plan,
) -> Result<Response, Fault> {
    let _changing = changing(context).await?;
    // A note about a table that is there already would change it.
    match context.ports.tables.table(&table).await {
        Err(Error::TableNotFound(_)) => {}
        Err(error) => return Err(table_fault(error)),
        Ok(_) => return Err(table_fault(Error::TableExists(table))),
    }
    let is_plain = plan.settings == Settings::default() && plan.tags.is_empty() && options.changes.is_none();
    if !is_plain {
        plan.begin(context, &table).await?;
    }
    let made = context.ports.tables.create_table(&table, options.clone()).await;
    let dressed = match made {
        Ok(()) => plan.carry_out(context, &table).await,
        Err(error) => {
            if !is_plain {
                whole::forget(context, &table).await;
            }
            return Err(table_fault(error));
        }
    };
    let summary = match dressed {
        Ok(summary) => summary,
        // Who deleted it did so after it had been made.
        Err(fault) if fault.code == NOT_FOUND => just_made(context, table.clone(), options),
        Err(fault) => {
            context.dynamodb.unsettle();
            return Err(fault);
        }
    };
    if !is_plain {
        whole::forget(context, &table).await;
    }
    Ok(Response { table_description: describe(context, &summary, &plan.settings) })
}

/// A table as it was made a moment ago.
fn just_made(context: &Context, name: TableName, options: TableOptions) -> TableSummary {
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
        check_own_table(&mut validation, self.table_name.as_deref())?;
        validation
            .required("attributeDefinitions", &self.attribute_definitions)
            .one_of("billingMode", self.billing_mode.as_deref(), &["PROVISIONED", "PAY_PER_REQUEST"])
            .one_of("tableClass", self.table_class.as_deref(), TABLE_CLASSES);
        if let Some(encryption) = &self.encryption {
            encryption.check(&mut validation);
        }
        check_definitions(&mut validation, self.attribute_definitions.as_deref().unwrap_or_default());
        if let Some(throughput) = &self.provisioned_throughput {
            throughput.check(&mut validation, "provisionedThroughput");
        }
        check_elements(&mut validation, "keySchema", &self.key_schema, PARTS_MAX);
        let lists = [
            ("localSecondaryIndexes", IndexScope::Local, &self.local_secondary_indexes),
            ("globalSecondaryIndexes", IndexScope::Global, &self.global_secondary_indexes),
        ];
        for (field, scope, indexes) in lists {
            for (at, index) in indexes.iter().flatten().enumerate() {
                index.check(&mut validation, &format!("{field}.{}.member", at + 1), scope);
            }
        }
        validation.done()?;
        refuse(&[
            ("ResourcePolicy", &self.resource_policy),
            ("GlobalTableSourceArn", &self.global_table_source_arn),
            ("GlobalTableSettingsReplicationMode", &self.global_table_settings_replication_mode),
        ])
    }

    fn options(&self) -> Result<TableOptions, Fault> {
        let kinds = kinds(self.attribute_definitions.as_deref().unwrap_or_default())?;
        let key = table_key(self.key_schema.as_deref().unwrap_or_default(), &kinds)?;
        let mut options = TableOptions::new(key);
        self.add_local_indexes(&mut options, &kinds)?;
        self.add_global_indexes(&mut options, &kinds)?;
        check_used(&kinds, &options)?;
        options.changes = self.stream_specification.as_ref().map_or(Ok(None), StreamSpecification::view)?;
        Ok(options)
    }

    fn add_local_indexes(&self, options: &mut TableOptions, kinds: &Kinds) -> Result<(), Fault> {
        let Some(indexes) = &self.local_secondary_indexes else { return Ok(()) };
        if indexes.is_empty() {
            return Err(invalid("List of LocalSecondaryIndexes is empty"));
        }
        if options.key.range.is_none() {
            return Err(invalid(
                "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
            ));
        }
        for body in indexes {
            let index = body.options(kinds, Some(&options.key))?;
            add(options, index)?;
        }
        if indexes.len() > LOCAL_INDEXES_MAX {
            return Err(invalid(format_args!(
                "Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES_MAX}"
            )));
        }
        Ok(())
    }

    fn add_global_indexes(&self, options: &mut TableOptions, kinds: &Kinds) -> Result<(), Fault> {
        let Some(indexes) = &self.global_secondary_indexes else { return Ok(()) };
        if indexes.is_empty() {
            return Err(invalid("List of GlobalSecondaryIndexes is empty"));
        }
        for body in indexes {
            let index = body.options(kinds, None)?;
            if self.on_demand() && body.throughput().is_some() {
                return Err(invalid(format_args!(
                    "ProvisionedThroughput should not be specified for index: {} when BillingMode is PAY_PER_REQUEST",
                    body.name()
                )));
            }
            check_index(body, self.on_demand())?;
            add(options, index)?;
        }
        if indexes.len() > GLOBAL_INDEXES_MAX {
            return Err(invalid(format_args!(
                "GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES_MAX}"
            )));
        }
        Ok(())
    }

    fn on_demand(&self) -> bool {
        self.billing_mode.as_deref() == Some("PAY_PER_REQUEST")
    }

    fn settings(&self) -> Result<Settings, Fault> {
        match (self.on_demand(), &self.provisioned_throughput) {
            (true, Some(_)) => {
                return Err(invalid(
                    "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is \
                     PAY_PER_REQUEST",
                ));
            }
            (false, None) => {
                return Err(invalid(
                    "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
                ));
            }
            (_, throughput) => {
                throughput.as_ref().map_or(Ok(()), |throughput| throughput.ordered().check_bounds())?
            }
        }
        self.on_demand_throughput.as_ref().map_or(Ok(()), |asked| asked.check_for(self.on_demand()))?;
        self.warm_throughput.as_ref().map_or(Ok(()), Warm::check)?;
        let mut settings = Settings {
            throughput: self.provisioned_throughput.as_ref().map(ThroughputBody::ordered),
            on_demand: self.on_demand_throughput.and_then(|asked| asked.over(None)),
            warm: self.warm_throughput,
            key: self.encryption.as_ref().map_or(Ok(None), encryption::Specification::key)?,
            deletion_protection: self.deletion_protection_enabled.unwrap_or(false),
            table_class: self.table_class.clone(),
            ..Settings::default()
        };
        self.global_secondary_indexes.iter().flatten().for_each(|index| settings.add_index(index));
        Ok(settings)
    }
}

fn add(options: &mut TableOptions, index: IndexOptions) -> Result<(), Fault> {
    if options.indexes.iter().any(|other| other.name == index.name) {
        return Err(invalid(format_args!("Duplicate index name: {}", index.name)));
    }
    options.indexes.push(index);
    Ok(())
}

/// Checks what an index of a table is told about throughput beside what is ordered.
pub(super) fn check_index(index: &IndexBody, on_demand: bool) -> Result<(), Fault> {
    index.on_demand().map_or(Ok(()), |asked| asked.check_for(on_demand))?;
    index.warm().map_or(Ok(()), |asked| asked.check())
}

/// The classes of storage.
pub(super) const TABLE_CLASSES: &[&str] = &["STANDARD", "STANDARD_INFREQUENT_ACCESS"];

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
