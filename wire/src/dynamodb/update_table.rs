//! UpdateTable.

use anabranch_model::TableName;
use anabranch_model::table::{Alteration, ChangeView, IndexScope, TableSummary};
use serde::{Deserialize, Serialize};

use super::attribute::{INVALID, type_name};
use super::create_table::{TABLE_CLASSES, check_throughput};
use super::description::{Description, describe};
use super::errors::table_fault;
use super::names::{index_name, table_name};
use super::schema::{Definition, IndexBody, Kinds, StreamSpecification, Throughput, kinds};
use super::settings::Settings;
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
    billing_mode: Option<String>,
    provisioned_throughput: Option<Throughput>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    global_secondary_index_updates: Option<Vec<IndexUpdate>>,
    stream_specification: Option<StreamSpecification>,
    deletion_protection_enabled: Option<bool>,
    table_class: Option<String>,
}

/// A change to one index.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct IndexUpdate {
    create: Option<IndexBody>,
    update: Option<NamedIndex>,
    delete: Option<NamedIndex>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NamedIndex {
    index_name: Option<String>,
    provisioned_throughput: Option<Throughput>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    table_description: Description,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    request.check()?;
    let table = table_name(request.table_name.as_deref())?;
    let _changing = context.dynamodb.changing().await;
    let before = context.ports.tables.table(&table).await.map_err(table_fault)?;
    let mut settings = Settings::load(context, &table).await?;
    let alterations = request.alterations(&before)?;
    request.set(&mut settings, &before)?;
    if matches!(alterations.as_slice(), [.., Alteration::Changes(None)]) {
        // What was written down can be read for another day, and then somebody has to know what it was.
        dynamodb_streams::remember(context, &before).await?;
    }
    for alteration in alterations {
        context.ports.tables.alter(&table, alteration).await.map_err(table_fault)?;
    }
    settings.save(context, &table).await?;
    let summary = context.ports.tables.table(&table).await.map_err(table_fault)?;
    dynamodb_streams::remember(context, &summary).await?;
    Ok(Response { table_description: describe(context, &summary, &settings) })
}

impl Request {
    fn check(&self) -> Result<(), Fault> {
        let mut validation = Validation::default();
        validation
            .required("tableName", &self.table_name)
            .one_of("billingMode", self.billing_mode.as_deref(), &["PROVISIONED", "PAY_PER_REQUEST"])
            .one_of("tableClass", self.table_class.as_deref(), TABLE_CLASSES);
        check_throughput(&mut validation, "provisionedThroughput", self.provisioned_throughput);
        for (at, update) in self.global_secondary_index_updates.iter().flatten().enumerate() {
            let field = format!("globalSecondaryIndexUpdates.{}.member", at + 1);
            if let Some(create) = &update.create {
                create.check(&mut validation, &format!("{field}.create"));
            }
            for (name, named) in [("update", &update.update), ("delete", &update.delete)] {
                if let Some(named) = named {
                    let field = format!("{field}.{name}");
                    validation.required(&format!("{field}.indexName"), &named.index_name);
                    let field = format!("{field}.provisionedThroughput");
                    check_throughput(&mut validation, &field, named.provisioned_throughput);
                }
            }
        }
        validation.done()?;
        let nothing = self.billing_mode.is_none()
            && self.provisioned_throughput.is_none()
            && self.global_secondary_index_updates.as_ref().is_none_or(Vec::is_empty)
            && self.stream_specification.is_none()
            && self.deletion_protection_enabled.is_none()
            && self.table_class.is_none();
        if nothing {
            return Err(Fault::validation(
                "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates \
                 or SSESpecification or ReplicaUpdates is required",
            ));
        }
        Ok(())
    }

    /// The changes that the store makes, those to the stream of changes last.
    fn alterations(&self, table: &TableSummary) -> Result<Vec<Alteration>, Fault> {
        let kinds = kinds(self.attribute_definitions.as_deref().unwrap_or_default())?;
        let made_or_gone = |update: &&IndexUpdate| update.create.is_some() != update.delete.is_some();
        if self.global_secondary_index_updates.iter().flatten().filter(made_or_gone).count() > 1 {
            return Err(Fault::client(
                "LimitExceededException",
                "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
            ));
        }
        let mut alterations = Vec::new();
        for update in self.global_secondary_index_updates.iter().flatten() {
            match (&update.create, &update.update, &update.delete) {
                (Some(create), None, None) => {
                    let index = create.options(IndexScope::Global, &kinds)?;
                    check_known(&kinds, table)?;
                    if table.options.indexes.iter().any(|other| other.name == index.name) {
                        return Err(Fault::validation(format!(
                            "Attempting to create an index which already exists: {}",
                            index.name
                        )));
                    }
                    alterations.push(Alteration::AddIndex(index));
                }
                (None, None, Some(delete)) => {
                    let name = index_name(delete.index_name.as_deref().unwrap_or_default())?;
                    if table.options.index(&table.name, &name).is_err() {
                        return Err(super::errors::not_found(format!(
                            "Requested resource not found: Index: {name} not found"
                        )));
                    }
                    alterations.push(Alteration::DropIndex(name));
                }
                (None, Some(_), None) => {}
                (Some(_), ..) | (_, Some(_), _) => {
                    return Err(Fault::validation(format!(
                        "{INVALID} Only one of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, \
                         GlobalSecondaryIndexUpdate.Delete can be given in one entry"
                    )));
                }
                (None, None, None) => {
                    return Err(Fault::validation(format!(
                        "{INVALID} One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, \
                         GlobalSecondaryIndexUpdate.Delete must not be null"
                    )));
                }
            }
        }
        if let Some(specification) = &self.stream_specification {
            alterations.push(changes(specification.view()?, table)?);
        }
        Ok(alterations)
    }

    /// What changes in the settings.
    fn set(&self, settings: &mut Settings, table: &TableSummary) -> Result<(), Fault> {
        match (self.billing_mode.as_deref(), self.provisioned_throughput) {
            (Some("PAY_PER_REQUEST"), Some(_)) => {
                return Err(Fault::validation(format!(
                    "{INVALID} Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is \
                     PAY_PER_REQUEST"
                )));
            }
            (Some("PAY_PER_REQUEST"), None) => {
                settings.throughput = None;
                settings.index_throughput.clear();
            }
            (Some(_), None) if settings.throughput.is_none() => {
                return Err(Fault::validation(format!(
                    "{INVALID} ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is \
                     PROVISIONED"
                )));
            }
            (_, Some(ordered)) => settings.throughput = Some(ordered),
            (_, None) => {}
        }
        for update in self.global_secondary_index_updates.iter().flatten() {
            if let Some(create) = &update.create {
                settings.index_throughput.extend(create.throughput());
            }
            if let Some(NamedIndex { index_name: Some(name), provisioned_throughput }) = &update.update {
                let known = index_name(name)?;
                table.options.index(&table.name, &known).map_err(|_| {
                    super::errors::not_found(format!("Requested resource not found: Index: {name} not found"))
                })?;
                settings
                    .index_throughput
                    .extend(provisioned_throughput.map(|ordered| (name.clone(), ordered)));
            }
            if let Some(name) = update.delete.as_ref().and_then(|delete| delete.index_name.as_ref()) {
                settings.index_throughput.remove(name);
            }
        }
        settings.deletion_protection =
            self.deletion_protection_enabled.unwrap_or(settings.deletion_protection);
        settings.table_class = self.table_class.clone().or(settings.table_class.take());
        Ok(())
    }
}

/// An attribute of a key that is there already keeps its type.
fn check_known(kinds: &Kinds, table: &TableSummary) -> Result<(), Fault> {
    let options = &table.options;
    let keys = std::iter::once(&options.key).chain(options.indexes.iter().map(|index| &index.key));
    for part in keys.flat_map(|key| key.attributes()) {
        let Some(kind) = kinds.get(&part.name).filter(|kind| **kind != part.kind) else { continue };
        let (name, old, new) = (&part.name, type_name(part.kind.kind()), type_name(kind.kind()));
        return Err(Fault::validation(format!(
            "{INVALID} Attributes cannot be redefined. Please check that your attribute has the same type as \
             previously defined. Existing schema: {name}:{old} New schema: {name}:{new}"
        )));
    }
    Ok(())
}

fn changes(view: Option<ChangeView>, table: &TableSummary) -> Result<Alteration, Fault> {
    let name: &TableName = &table.name;
    match (view, table.options.changes) {
        (Some(_), Some(_)) => Err(Fault::validation(format!(
            "{INVALID} Table already has an enabled stream: TableName: {name}"
        ))),
        (None, None) => {
            Err(Fault::validation(format!("{INVALID} Table has no stream to disable: TableName: {name}")))
        }
        (view, _) => Ok(Alteration::Changes(view)),
    }
}
