//! Making, listing and removing tables.

use std::collections::BTreeMap;

use anabranch_model::table::{
    ChangeView, IndexOptions, IndexProjection, IndexScope, KeyKind, KeySchema, TableOptions,
};
use anabranch_model::{Error, Page, Result, TableName, limits};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, LocalSecondaryIndex,
    Projection, ProjectionType, ProvisionedThroughput, ScalarAttributeType, StreamSpecification,
    StreamViewType, TableDescription, TableStatus,
};

use super::{CHANGE_PATIENCE, Capacity, Tables, action, built, strange};
use crate::call::Deadline;
use crate::change::Change;
use crate::failure::Kind;

impl Tables {
    pub(super) async fn make(&self, table: &TableName, options: &TableOptions) -> Result<()> {
        options.check()?;
        if options.keyspace.is_some() {
            return Err(Error::Invalid(
                "DynamoDB has no tables of keyspaces: make the table in Keyspaces".to_string(),
            ));
        }
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        self.begin(table, options, deadline).await?;
        self.until_made(table, deadline).await?;
        match &options.time_to_live {
            Some(attribute) => self.expire_by(table, attribute, true, deadline).await,
            None => Ok(()),
        }
    }

    /// A table that was not there before is ours if it is there behind a lost answer: that is why it is looked for first.
    async fn begin(&self, table: &TableName, options: &TableOptions, deadline: Deadline) -> Result<()> {
        let definitions = definitions(options)?;
        let key = key_schema(&options.key)?;
        let of_scope = |scope| options.indexes.iter().filter(move |index| index.scope == scope);
        let reserved = self.capacity.map(provisioned).transpose()?;
        let billing = if reserved.is_some() { BillingMode::Provisioned } else { BillingMode::PayPerRequest };
        let global = of_scope(IndexScope::Global).map(|index| global_index(index, reserved.as_ref()));
        let global = global.collect::<Result<Vec<_>>>()?;
        let local = of_scope(IndexScope::Local).map(local_index).collect::<Result<Vec<_>>>()?;
        let changes = options.changes.map(|view| stream_specification(Some(view))).transpose()?;
        if self.look_for(table, deadline).await?.is_some() {
            return Err(Error::TableExists(table.clone()));
        }
        let request = || {
            self.client
                .create_table()
                .table_name(table.as_str())
                .billing_mode(billing.clone())
                .set_provisioned_throughput(reserved.clone())
                .set_attribute_definitions(Some(definitions.clone()))
                .set_key_schema(Some(key.clone()))
                .set_global_secondary_indexes((!global.is_empty()).then(|| global.clone()))
                .set_local_secondary_indexes((!local.is_empty()).then(|| local.clone()))
                .set_stream_specification(changes.clone())
                .send()
        };
        let ask = async || self.caller.call(&action::CREATE_TABLE, deadline, request).await.map(drop);
        let look = async || Ok(self.look_for(table, deadline).await?.is_some());
        let made = self.caller.until_certain(Change::Making, deadline, ask, look).await;
        made.map_err(|failure| {
            failure.explained(|kind| (kind == Kind::InUse).then(|| Error::TableExists(table.clone())))
        })
    }

    /// The table as it is, if there is one.
    async fn look_for(&self, table: &TableName, deadline: Deadline) -> Result<Option<TableDescription>> {
        match self.describe(table, deadline).await {
            Ok(described) => Ok(Some(described)),
            Err(Error::TableNotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// That a table is gone behind a lost answer says something only if it was there before.
    pub(super) async fn remove(&self, table: &TableName) -> Result<()> {
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        self.describe(table, deadline).await?;
        let request = || self.client.delete_table().table_name(table.as_str()).send();
        let ask = async || self.caller.call(&action::DELETE_TABLE, deadline, request).await.map(drop);
        let look = async || {
            let seen = self.look_for(table, deadline).await?;
            Ok(seen.is_none_or(|seen| seen.table_status == Some(TableStatus::Deleting)))
        };
        match self.caller.until_certain(Change::Removing, deadline, ask, look).await {
            Ok(()) => self.until_gone(table, deadline).await,
            Err(failure) if failure.kind == Kind::NotFound => Err(Error::TableNotFound(table.clone())),
            Err(failure) => Err(busy(table, failure)),
        }
    }

    /// A page of tables. All names fit into a few answers, so that they can be put in order here.
    pub(super) async fn page(&self, after: Option<&TableName>, limit: usize) -> Result<Page<TableName>> {
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let mut names = self.names().await?;
        names.sort();
        let first = names.partition_point(|name| after.is_some_and(|after| name <= after));
        let mut entries = names.split_off(first);
        let more = entries.len() > limit;
        entries.truncate(limit);
        Ok(Page { entries, more })
    }

    async fn names(&self) -> Result<Vec<TableName>> {
        let deadline = self.soon();
        let mut names = Vec::new();
        let mut last = None;
        loop {
            let request = || self.client.list_tables().set_exclusive_start_table_name(last.clone()).send();
            let answer = self.caller.call(&action::LIST_TABLES, deadline, request).await?;
            for name in answer.table_names.unwrap_or_default() {
                names.push(TableName::new(&name).map_err(|_| strange("a table without a proper name"))?);
            }
            last = answer.last_evaluated_table_name;
            if last.is_none() {
                return Ok(names);
            }
        }
    }
}

/// What to say when the patience with a table has ended.
pub(super) fn busy<D>(table: &TableName, failure: crate::failure::Failure<D>) -> Error {
    failure.explained(|kind| (kind == Kind::InUse).then(|| Error::TableBusy(table.clone())))
}

/// The attributes of all keys.
pub(super) fn definitions(options: &TableOptions) -> Result<Vec<AttributeDefinition>> {
    let keys = std::iter::once(&options.key).chain(options.indexes.iter().map(|index| &index.key));
    let parts = keys.flat_map(KeySchema::attributes);
    let kinds: BTreeMap<&str, KeyKind> = parts.map(|part| (part.name.as_str(), part.kind)).collect();
    let definition = |(name, kind): (&str, KeyKind)| {
        let kind = match kind {
            KeyKind::Text => ScalarAttributeType::S,
            KeyKind::Number => ScalarAttributeType::N,
            KeyKind::Binary => ScalarAttributeType::B,
        };
        built(AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build())
    };
    kinds.into_iter().map(definition).collect()
}

pub(super) fn key_schema(key: &KeySchema) -> Result<Vec<KeySchemaElement>> {
    let element = |(part, kind): (&anabranch_model::table::KeyAttribute, KeyType)| {
        built(KeySchemaElement::builder().attribute_name(&part.name).key_type(kind).build())
    };
    let hash = key.hash_attributes().map(|part| (part, KeyType::Hash));
    hash.chain(key.range_attributes().map(|part| (part, KeyType::Range))).map(element).collect()
}

pub(super) fn projection(projection: &IndexProjection) -> Projection {
    let builder = Projection::builder();
    match projection {
        IndexProjection::All => builder.projection_type(ProjectionType::All),
        IndexProjection::Keys => builder.projection_type(ProjectionType::KeysOnly),
        IndexProjection::Include(names) => builder
            .projection_type(ProjectionType::Include)
            .set_non_key_attributes(Some(names.iter().cloned().collect())),
    }
    .build()
}

/// What is reserved, as it is asked for.
pub(super) fn provisioned(capacity: Capacity) -> Result<ProvisionedThroughput> {
    let builder = ProvisionedThroughput::builder().read_capacity_units(capacity.reads);
    built(builder.write_capacity_units(capacity.writes).build())
}

fn global_index(
    index: &IndexOptions,
    reserved: Option<&ProvisionedThroughput>,
) -> Result<GlobalSecondaryIndex> {
    let builder = GlobalSecondaryIndex::builder().index_name(index.name.as_str());
    let builder = builder.set_provisioned_throughput(reserved.cloned());
    let builder = builder.set_key_schema(Some(key_schema(&index.key)?));
    built(builder.projection(projection(&index.projection)).build())
}

fn local_index(index: &IndexOptions) -> Result<LocalSecondaryIndex> {
    let builder = LocalSecondaryIndex::builder().index_name(index.name.as_str());
    let builder = builder.set_key_schema(Some(key_schema(&index.key)?));
    built(builder.projection(projection(&index.projection)).build())
}

pub(super) fn stream_specification(view: Option<ChangeView>) -> Result<StreamSpecification> {
    let kind = view.map(|view| match view {
        ChangeView::Keys => StreamViewType::KeysOnly,
        ChangeView::New => StreamViewType::NewImage,
        ChangeView::Old => StreamViewType::OldImage,
        ChangeView::Both => StreamViewType::NewAndOldImages,
    });
    built(StreamSpecification::builder().stream_enabled(view.is_some()).set_stream_view_type(kind).build())
}
