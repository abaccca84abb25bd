//! UpdateTable.

use std::collections::BTreeSet;

use anabranch_model::TableName;
use anabranch_model::table::{ChangeView, IndexScope, TableSummary};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::attribute::{INVALID, type_name};
use super::create_table::{TABLE_CLASSES, check_index};
use super::description::{Description, describe};
use super::elsewhere::refuse;
use super::encryption;
use super::errors::table_fault;
use super::names::{check_name, check_own_table, index_name, table_name};
use super::schema::{
    Definition, IndexBody, Kinds, StreamSpecification, Throughput, ThroughputBody, check_definitions, kinds,
};
use super::settings::Settings;
use super::state::{changing, check_made};
use super::throughput::{OnDemand, Warm};
use super::whole::{self, Plan, Step};
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
    billing_mode: Option<String>,
    provisioned_throughput: Option<ThroughputBody>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    global_secondary_index_updates: Option<Vec<IndexUpdate>>,
    stream_specification: Option<StreamSpecification>,
    deletion_protection_enabled: Option<bool>,
    table_class: Option<String>,
    #[serde(rename = "SSESpecification")]
    encryption: Option<encryption::Specification>,
    on_demand_throughput: Option<OnDemand>,
    warm_throughput: Option<Warm>,
    replica_updates: Option<IgnoredAny>,
    multi_region_consistency: Option<IgnoredAny>,
    global_table_witness_updates: Option<IgnoredAny>,
    global_table_settings_replication_mode: Option<IgnoredAny>,
}

/// A change to one index.
#[derive(Debug, Deserialize)]
#[serde(rename = "GlobalSecondaryIndexUpdate", rename_all = "PascalCase")]
struct IndexUpdate {
    create: Option<IndexBody>,
    update: Option<ThroughputUpdate>,
    delete: Option<NamedIndex>,
}

/// Other capacity for an index.
#[derive(Debug, Deserialize)]
#[serde(rename = "UpdateGlobalSecondaryIndexAction", rename_all = "PascalCase")]
struct ThroughputUpdate {
    index_name: Option<String>,
    provisioned_throughput: Option<ThroughputBody>,
    on_demand_throughput: Option<OnDemand>,
    warm_throughput: Option<Warm>,
}

/// An index that goes.
#[derive(Debug, Deserialize)]
#[serde(rename = "DeleteGlobalSecondaryIndexAction", rename_all = "PascalCase")]
struct NamedIndex {
    index_name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    table_description: Description,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    request.check()?;
    let table = table_name(request.table_name.as_deref())?;
    let context = context.clone();
    to_its_end(async move { change(&context, table, request).await }).await
}

async fn change(context: &Context, table: TableName, request: Request) -> Result<Response, Fault> {
    let _changing = changing(context).await?;
    let before = context.ports.tables.table(&table).await.map_err(table_fault)?;
    check_made(context, &before)?;
    let old = Settings::load(context, &table).await?;
    let mut settings = old.clone();
    let steps = request.steps(&before)?;
    request.set(&mut settings, &before)?;
    // What cannot be done is refused before the first step.
    let mut options = before.options.clone();
    for step in &steps {
        options = options.altered(&table, &step.alteration()?).map_err(table_fault)?;
    }
    let is_one_step = steps.len() + usize::from(settings != old) <= 1;
    let plan = Plan { steps, settings, tags: Vec::new() };
    if !is_one_step {
        plan.begin(context, &table).await?;
    }
    let done = plan.carry_out(context, &table).await;
    if !is_one_step {
        let now = context.ports.tables.table(&table).await;
        match done.is_ok() || now.is_ok_and(|now| now.options == before.options) {
            true => whole::forget(context, &table).await,
            false => context.dynamodb.unsettle(),
        }
    }
    Ok(Response { table_description: describe(context, &done?, &plan.settings) })
}

impl Request {
    fn check(&self) -> Result<(), Fault> {
        let mut validation = Validation::default();
        check_own_table(&mut validation, self.table_name.as_deref())?;
        validation
            .one_of("billingMode", self.billing_mode.as_deref(), &["PROVISIONED", "PAY_PER_REQUEST"])
            .one_of("tableClass", self.table_class.as_deref(), TABLE_CLASSES);
        if let Some(encryption) = &self.encryption {
            encryption.check(&mut validation);
        }
        check_definitions(&mut validation, self.attribute_definitions.as_deref().unwrap_or_default());
        if let Some(throughput) = &self.provisioned_throughput {
            throughput.check(&mut validation, "provisionedThroughput");
        }
        for (at, update) in self.global_secondary_index_updates.iter().flatten().enumerate() {
            update.check(&mut validation, &format!("globalSecondaryIndexUpdates.{}.member", at + 1));
        }
        validation.done()?;
        refuse(&[
            ("ReplicaUpdates", &self.replica_updates),
            ("MultiRegionConsistency", &self.multi_region_consistency),
            ("GlobalTableWitnessUpdates", &self.global_table_witness_updates),
            ("GlobalTableSettingsReplicationMode", &self.global_table_settings_replication_mode),
        ])?;
        if self.provisioned_throughput.is_none() && self.is_about_throughput_only() {
            return Err(Fault::validation(
                "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates \
                 or SSESpecification or ReplicaUpdates is required",
            ));
        }
        if let Some(throughput) = &self.provisioned_throughput {
            throughput.ordered().check_bounds()?;
        }
        self.check_updates()
    }

    /// Each entry says something, and about another index.
    fn check_updates(&self) -> Result<(), Fault> {
        let mut named = BTreeSet::new();
        for update in self.global_secondary_index_updates.iter().flatten() {
            let Some(name) = update.index() else {
                return Err(Fault::validation(format!(
                    "{INVALID} One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, \
                     GlobalSecondaryIndexUpdate.Delete must not be null"
                )));
            };
            if !named.insert(name) {
                return Err(Fault::validation(format!(
                    "{INVALID} Only one global secondary index update per index is allowed simultaneously. Index: {name}"
                )));
            }
        }
        Ok(())
    }

    /// The changes that the store makes, those to the stream of changes last.
    fn steps(&self, table: &TableSummary) -> Result<Vec<Step>, Fault> {
        let kinds = kinds(self.attribute_definitions.as_deref().unwrap_or_default())?;
        let made_or_gone = |update: &&IndexUpdate| update.create.is_some() != update.delete.is_some();
        if self.global_secondary_index_updates.iter().flatten().filter(made_or_gone).count() > 1 {
            return Err(Fault::client(
                "LimitExceededException",
                "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
            ));
        }
        let mut steps = Vec::new();
        for update in self.global_secondary_index_updates.iter().flatten() {
            match (&update.create, &update.update, &update.delete) {
                (Some(create), None, None) => {
                    let index = create.options(&kinds, None)?;
                    check_known(&kinds, table)?;
                    if table.options.indexes.iter().any(|other| other.name == index.name) {
                        return Err(Fault::validation(format!(
                            "Attempting to create an index which already exists: {}",
                            index.name
                        )));
                    }
                    let definitions = self.attribute_definitions.clone().unwrap_or_default();
                    steps.push(Step::AddIndex(Box::new(create.clone()), definitions));
                }
                (None, None, Some(delete)) => {
                    let given = delete.index_name.as_deref().unwrap_or_default();
                    let name = index_name(given)?;
                    if table.options.index(&table.name, &name).is_err() {
                        return Err(super::errors::not_found(format!(
                            "Requested resource not found: Index: {name} not found"
                        )));
                    }
                    steps.push(Step::DropIndex(given.to_owned()));
                }
                // That there is something has been checked.
                (None, Some(_), None) | (None, None, None) => {}
                (Some(_), ..) | (_, Some(_), _) => {
                    return Err(Fault::validation(format!(
                        "{INVALID} Only one of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, \
                         GlobalSecondaryIndexUpdate.Delete can be given in one entry"
                    )));
                }
            }
        }
        if let Some(specification) = &self.stream_specification {
            check_changes(specification.view()?, table)?;
            steps.push(Step::Changes(specification.clone()));
        }
        Ok(steps)
    }

    fn is_about_throughput_only(&self) -> bool {
        self.billing_mode.is_none() && self.changes_nothing_else()
    }

    /// Whether nothing is asked for beside throughput and the mode of billing.
    fn changes_nothing_else(&self) -> bool {
        self.global_secondary_index_updates.as_ref().is_none_or(Vec::is_empty)
            && self.stream_specification.is_none()
            && self.deletion_protection_enabled.is_none()
            && self.table_class.is_none()
            && self.encryption.is_none()
            && self.on_demand_throughput.is_none()
            && self.warm_throughput.is_none()
    }

    /// What changes in the settings.
    fn set(&self, settings: &mut Settings, table: &TableSummary) -> Result<(), Fault> {
        let ordered = self.provisioned_throughput.as_ref().map(ThroughputBody::ordered);
        match (self.billing_mode.as_deref(), ordered) {
            (Some("PAY_PER_REQUEST"), None) => {
                settings.throughput = None;
                settings.index_throughput.clear();
            }
            (Some("PROVISIONED"), None) if settings.throughput.is_none() => {
                return Err(Fault::validation(format!(
                    "{INVALID} ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
                )));
            }
            (mode, Some(ordered)) => {
                if mode == Some("PAY_PER_REQUEST") || mode.is_none() && settings.throughput.is_none() {
                    return Err(Fault::validation(format!(
                        "{INVALID} Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode \
                         is PAY_PER_REQUEST"
                    )));
                }
                // To ask for the mode that there is makes no difference either.
                if self.changes_nothing_else() && settings.throughput == Some(ordered) {
                    return Err(unchanged(ordered));
                }
                settings.throughput = Some(ordered);
            }
            (_, None) => {}
        }
        let on_demand = settings.throughput.is_none();
        if !on_demand {
            settings.on_demand = None;
            settings.index_on_demand.clear();
        }
        if let Some(asked) = self.on_demand_throughput {
            asked.check_for(on_demand)?;
            settings.on_demand = asked.over(settings.on_demand);
        }
        if let Some(asked) = self.warm_throughput {
            asked.check()?;
            settings.warm = Some(asked.over(settings.warm));
        }
        if let Some(encryption) = &self.encryption {
            settings.key = encryption.key()?;
        }
        for update in self.global_secondary_index_updates.iter().flatten() {
            if let Some(create) = &update.create {
                check_index(create, on_demand)?;
                settings.add_index(create);
            }
            if let Some(asked @ ThroughputUpdate { index_name: Some(name), .. }) = &update.update {
                let known = index_name(name)?;
                table.options.index(&table.name, &known).map_err(|_| {
                    super::errors::not_found(format!("Requested resource not found: Index: {name} not found"))
                })?;
                asked.set(name, settings)?;
            }
            if let Some(name) = update.delete.as_ref().and_then(|delete| delete.index_name.as_ref()) {
                settings.drop_index(name);
            }
        }
        settings.deletion_protection =
            self.deletion_protection_enabled.unwrap_or(settings.deletion_protection);
        settings.table_class = self.table_class.clone().or(settings.table_class.take());
        Ok(())
    }
}

impl ThroughputUpdate {
    /// What changes in the settings of an index that there is.
    fn set(&self, name: &str, settings: &mut Settings) -> Result<(), Fault> {
        let ordered = self.provisioned_throughput.map(|asked| (name.to_owned(), asked.ordered()));
        settings.index_throughput.extend(ordered);
        if let Some(asked) = self.on_demand_throughput {
            asked.check_for(settings.throughput.is_none())?;
            match asked.over(settings.index_on_demand.remove(name)) {
                Some(limits) => settings.index_on_demand.insert(name.to_owned(), limits),
                None => None,
            };
        }
        if let Some(asked) = self.warm_throughput {
            asked.check()?;
            let before = settings.index_warm.get(name).copied();
            settings.index_warm.insert(name.to_owned(), asked.over(before));
        }
        Ok(())
    }
}

impl IndexUpdate {
    fn check(&self, validation: &mut Validation, field: &str) {
        if let Some(create) = &self.create {
            create.check(validation, &format!("{field}.create"), IndexScope::Global);
        }
        if let Some(update) = &self.update {
            let field = format!("{field}.update");
            check_named(validation, &field, &update.index_name);
            let field = format!("{field}.provisionedThroughput");
            // One of the three is what the entry is about.
            if update.on_demand_throughput.is_none() && update.warm_throughput.is_none() {
                validation.required(&field, &update.provisioned_throughput);
            }
            if let Some(throughput) = &update.provisioned_throughput {
                throughput.check(validation, &field);
            }
        }
        if let Some(delete) = &self.delete {
            check_named(validation, &format!("{field}.delete"), &delete.index_name);
        }
    }

    /// The index that it is about. None if it is about nothing.
    fn index(&self) -> Option<&str> {
        let update = self.update.as_ref().and_then(|update| update.index_name.as_deref());
        let create = || self.create.as_ref().map(IndexBody::name);
        let delete = || self.delete.as_ref().and_then(|delete| delete.index_name.as_deref());
        update.or_else(create).or_else(delete)
    }
}

fn check_named(validation: &mut Validation, field: &str, name: &Option<String>) {
    let field = format!("{field}.indexName");
    validation.required(&field, name);
    check_name(validation, &field, name.as_deref());
}

/// What is asked for is what is there.
fn unchanged(Throughput { read_capacity_units: read, write_capacity_units: write }: Throughput) -> Fault {
    Fault::validation(format!(
        "The provisioned throughput for the table will not change. The requested value equals the current value. \
         Current ReadCapacityUnits provisioned for the table: {read}. Requested ReadCapacityUnits: {read}. \
         Current WriteCapacityUnits provisioned for the table: {write}. Requested WriteCapacityUnits: {write}. \
         Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
    ))
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

fn check_changes(view: Option<ChangeView>, table: &TableSummary) -> Result<(), Fault> {
    let name: &TableName = &table.name;
    match (view, table.options.changes) {
        (Some(_), Some(_)) => Err(Fault::validation(format!(
            "{INVALID} Table already has an enabled stream: TableName: {name}"
        ))),
        (None, None) => {
            Err(Fault::validation(format!("{INVALID} Table has no stream to disable: TableName: {name}")))
        }
        (Some(_), None) | (None, Some(_)) => Ok(()),
    }
}
