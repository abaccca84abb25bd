//! Records and shards of Keyspaces's streams as the model's.

use std::collections::HashMap;

use anabranch_model::table::{Change, ChangeView, Event, Item, KeyValue, Value};
use anabranch_model::{Error, Record, Result, SequenceNumber, Shard, ShardId};
use aws_sdk_keyspacesstreams::types::{self, KeyspacesCellValue, KeyspacesRow, OriginType, StreamViewType};

use super::cell;
use crate::action::Service;
use crate::{failure, source};

/// Stands between the texts of the columns that choose the partition.
const SEPARATOR: &str = ":";

/// What an answer of the service cannot be.
pub(super) fn strange(what: &str) -> Error {
    failure::strange(Service::Keyspaces, what)
}

pub(super) fn shard(shard: types::Shard) -> Result<Shard> {
    let id = |text: &str| ShardId::new(text).map_err(|_| strange("a shard without a proper name"));
    let number = |text: &str| source::sequence(text).ok_or_else(|| strange("a sequence number that is none"));
    let range = shard.sequence_number_range.ok_or_else(|| strange("a shard without numbers"))?;
    let ends_at = range.ending_sequence_number.as_deref().map(number).transpose()?;
    let parents = shard.parent_shard_ids.unwrap_or_default();
    Ok(Shard {
        id: id(shard.shard_id.as_deref().unwrap_or_default())?,
        parents: parents.iter().map(|parent| id(parent)).collect::<Result<_>>()?,
        range: None,
        starts_at: number(range.starting_sequence_number.as_deref().unwrap_or_default())?,
        ends_before: ends_at.map(SequenceNumber::next),
        closed_at: None,
    })
}

pub(super) fn view(view: &StreamViewType) -> Result<ChangeView> {
    Ok(match view {
        StreamViewType::KeysOnly => ChangeView::Keys,
        StreamViewType::NewImage => ChangeView::New,
        StreamViewType::OldImage => ChangeView::Old,
        StreamViewType::NewAndOldImages => ChangeView::Both,
        _ => return Err(strange("changes in a view of no known kind")),
    })
}

/// A record with the change that it tells of, of a stream with this view.
pub(super) fn record(record: types::Record, view: ChangeView) -> Result<Record> {
    let partition = columns(record.partition_keys.unwrap_or_default())?;
    let partition_key = partition.iter().map(|(_, value)| text(value)).collect::<Vec<_>>().join(SEPARATOR);
    let clustering = columns(record.clustering_keys.unwrap_or_default())?;
    let keys: Item = partition.into_iter().chain(clustering).collect();
    let new = record.new_image.map(|row| image(row, &keys)).transpose()?;
    let old = record.old_image.map(|row| image(row, &keys)).transpose()?;
    // Who sees one image only cannot tell a new row from a changed one, or a changed row from one that is gone.
    let event = match (view, &old, &new) {
        (ChangeView::Both, None, Some(_)) | (ChangeView::Old, None, _) => Event::Insert,
        (ChangeView::Both, Some(_), None) | (ChangeView::New, _, None) => Event::Remove,
        _ => Event::Modify,
    };
    let at = record.created_at.as_ref().map(source::timestamp).unwrap_or_default();
    let sequence = record.sequence_number.as_deref().and_then(source::sequence);
    let sequence = sequence.ok_or_else(|| strange("a record without a number"))?;
    let expired = record.origin == Some(OriginType::Ttl);
    let data = source::encoded(Change { event, keys, new, old, at, size: 0, expired });
    Ok(Record { sequence, arrival: at, partition_key: partition_key.into(), data })
}

fn columns(columns: HashMap<String, KeyspacesCellValue>) -> Result<Item> {
    columns.into_iter().map(|(name, value)| Ok((name, cell::value(value)?))).collect()
}

/// The whole row, as an item of a table holds its key.
fn image(row: KeyspacesRow, keys: &Item) -> Result<Item> {
    let cells = [row.static_cells, row.value_cells].into_iter().flatten();
    let cells = cells.map(cell::row).collect::<Result<Vec<_>>>()?;
    Ok(keys.clone().into_iter().chain(cells.into_iter().flatten()).collect())
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Binary(bytes) => KeyValue::Binary(bytes.clone()).text(),
        other => format!("{other:?}"),
    }
}
