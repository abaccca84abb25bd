//! What is known about a table.

use std::collections::HashMap;

use anabranch_model::table::{
    ChangeView, IndexOptions, IndexProjection, IndexScope, IndexSummary, KeyAttribute, KeyKind, KeySchema,
    TableOptions, TableState, TableSummary,
};
use anabranch_model::{Error, IndexName, Result, TableName};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, IndexStatus, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, StreamViewType, TableDescription, TableStatus, TimeToLiveStatus,
};

use super::{Tables, action, strange};
use crate::call::Deadline;
use crate::failure::Kind;
use crate::source::{StreamLabel, timestamp};

impl Tables {
    /// The table as DynamoDB describes it, in whatever state it is.
    pub(super) async fn describe(&self, table: &TableName, deadline: Deadline) -> Result<TableDescription> {
        let request = || self.client.describe_table().table_name(table.as_str()).send();
        let answer = self.caller.call(&action::DESCRIBE_TABLE, deadline, request).await;
        let answer = answer.map_err(|failure| {
            failure.explained(|kind| match kind {
                Kind::NotFound => Some(Error::TableNotFound(table.clone())),
                _ => None,
            })
        })?;
        answer.table.ok_or_else(|| strange("a description without a table"))
    }

    /// The attribute by which items expire, if they do.
    pub(super) async fn time_to_live(&self, table: &TableName, deadline: Deadline) -> Result<Option<String>> {
        let request = || self.client.describe_time_to_live().table_name(table.as_str()).send();
        let answer = self.caller.call(&action::DESCRIBE_TIME_TO_LIVE, deadline, request).await;
        let answer = answer.map_err(|failure| {
            failure.explained(|kind| match kind {
                Kind::NotFound => Some(Error::TableNotFound(table.clone())),
                _ => None,
            })
        })?;
        let described = answer.time_to_live_description;
        Ok(described.and_then(|described| match described.time_to_live_status {
            Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) => described.attribute_name,
            _ => None,
        }))
    }

    /// How a table is made, except for how its items expire.
    pub(super) async fn options(&self, table: &TableName, deadline: Deadline) -> Result<TableOptions> {
        let described = self.describe(table, deadline).await?;
        summary(table, described, TableState::Active, None).map(|summary| summary.options)
    }

    pub(super) async fn summary(&self, table: &TableName, deadline: Deadline) -> Result<TableSummary> {
        let described = self.describe(table, deadline).await?;
        let state = state(described.table_status.as_ref());
        // A table that is not there yet, or not any more, is not asked how its items expire.
        let ready = matches!(state, TableState::Active | TableState::Updating);
        let time_to_live = if ready { self.time_to_live(table, deadline).await? } else { None };
        summary(table, described, state, time_to_live)
    }
}

fn summary(
    table: &TableName,
    described: TableDescription,
    state: TableState,
    time_to_live: Option<String>,
) -> Result<TableSummary> {
    let kinds = kinds(described.attribute_definitions.unwrap_or_default())?;
    let mut indexes = Vec::new();
    for index in described.global_secondary_indexes.unwrap_or_default() {
        let name = index_name(index.index_name)?;
        let state = index_state(index.index_status.as_ref());
        let key = match key_schema(&index.key_schema.unwrap_or_default(), &kinds) {
            // The attributes of an index that is being removed may be forgotten before it is gone.
            Err(_) if state == TableState::Deleting => continue,
            key => key?,
        };
        let projection = projection(index.projection)?;
        let options = IndexOptions { name: name.clone(), scope: IndexScope::Global, key, projection };
        let (items, bytes) = (count(index.item_count), count(index.index_size_bytes));
        indexes.push((options, IndexSummary { name, state, items, bytes }));
    }
    for index in described.local_secondary_indexes.unwrap_or_default() {
        let name = index_name(index.index_name)?;
        let key = key_schema(&index.key_schema.unwrap_or_default(), &kinds)?;
        let projection = projection(index.projection)?;
        let options = IndexOptions { name: name.clone(), scope: IndexScope::Local, key, projection };
        let (items, bytes) = (count(index.item_count), count(index.index_size_bytes));
        indexes.push((options, IndexSummary { name, state, items, bytes }));
    }
    // DynamoDB does not keep the order in which indexes were given.
    indexes.sort_by_key(|(options, _)| (options.scope == IndexScope::Local, options.name.clone()));
    let (index_options, indexes) = indexes.into_iter().unzip();
    let view = described.stream_specification.filter(|stream| stream.stream_enabled);
    let view = view.map(|stream| change_view(stream.stream_view_type)).transpose()?;
    let label = described.latest_stream_label.filter(|_| view.is_some());
    let changes = label.map(|label| StreamLabel::name(table.as_str(), &label)).transpose()?;
    Ok(TableSummary {
        name: table.clone(),
        state,
        created_at: described.creation_date_time.as_ref().map(timestamp).unwrap_or_default(),
        options: TableOptions {
            key: key_schema(&described.key_schema.unwrap_or_default(), &kinds)?,
            indexes: index_options,
            time_to_live,
            changes: view,
            keyspace: None,
        },
        items: count(described.item_count),
        bytes: count(described.table_size_bytes),
        indexes,
        changes,
        changes_since: None,
    })
}

fn state(status: Option<&TableStatus>) -> TableState {
    match status {
        Some(TableStatus::Creating) => TableState::Creating,
        Some(TableStatus::Active) => TableState::Active,
        Some(TableStatus::Deleting) => TableState::Deleting,
        // It is there, and something about it is not as usual.
        _ => TableState::Updating,
    }
}

fn index_state(status: Option<&IndexStatus>) -> TableState {
    match status {
        Some(IndexStatus::Creating) => TableState::Creating,
        Some(IndexStatus::Active) => TableState::Active,
        Some(IndexStatus::Deleting) => TableState::Deleting,
        _ => TableState::Updating,
    }
}

fn kinds(definitions: Vec<AttributeDefinition>) -> Result<HashMap<String, KeyKind>> {
    let kind = |definition: AttributeDefinition| {
        let kind = match definition.attribute_type {
            ScalarAttributeType::S => KeyKind::Text,
            ScalarAttributeType::N => KeyKind::Number,
            ScalarAttributeType::B => KeyKind::Binary,
            _ => return Err(strange("a key of no known kind")),
        };
        Ok((definition.attribute_name, kind))
    };
    definitions.into_iter().map(kind).collect()
}

fn key_schema(elements: &[KeySchemaElement], kinds: &HashMap<String, KeyKind>) -> Result<KeySchema> {
    let parts = |wanted: KeyType| {
        let parts = elements.iter().filter(move |element| element.key_type == wanted);
        let part = |element: &KeySchemaElement| {
            let name = element.attribute_name.clone();
            Some(KeyAttribute { kind: *kinds.get(&name)?, name })
        };
        parts.filter_map(part).collect()
    };
    let key = KeySchema::several(parts(KeyType::Hash), parts(KeyType::Range));
    key.ok_or_else(|| strange("a key without a hash attribute"))
}

fn projection(projection: Option<Projection>) -> Result<IndexProjection> {
    let projection = projection.ok_or_else(|| strange("an index without a projection"))?;
    Ok(match projection.projection_type {
        Some(ProjectionType::All) => IndexProjection::All,
        Some(ProjectionType::KeysOnly) => IndexProjection::Keys,
        Some(ProjectionType::Include) => {
            IndexProjection::Include(projection.non_key_attributes.unwrap_or_default().into_iter().collect())
        }
        _ => return Err(strange("a projection of no known kind")),
    })
}

fn change_view(view: Option<StreamViewType>) -> Result<ChangeView> {
    Ok(match view {
        Some(StreamViewType::KeysOnly) => ChangeView::Keys,
        Some(StreamViewType::NewImage) => ChangeView::New,
        Some(StreamViewType::OldImage) => ChangeView::Old,
        Some(StreamViewType::NewAndOldImages) => ChangeView::Both,
        _ => return Err(strange("changes in a view of no known kind")),
    })
}

fn index_name(name: Option<String>) -> Result<IndexName> {
    IndexName::new(name.as_deref().unwrap_or_default()).map_err(|_| strange("an index without a proper name"))
}

fn count(number: Option<i64>) -> u64 {
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
}
