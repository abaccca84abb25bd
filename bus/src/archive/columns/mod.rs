//! Changes as a Parquet file: what all documents have is a column of its own, keys and images are columns of JSON.
//!
//! Files have one group of rows, in the order of the shard. Keys, numbers and images hardly ever repeat, so they have no dictionary, and
//! nobody looks for an image by its bounds, so there are none. Pages are compressed by gzip, which has a checksum for each.
//!
//! What must hold: the same events give the same file, always.

mod read;
mod write;

use std::borrow::Cow;

use bytes::Bytes;

use super::read::Told;
use crate::event::Event;

pub(super) use read::{MAGIC, changes};
pub(super) use write::write;

/// One event on its way into the columns.
struct Row<'a> {
    told: Told<'a>,
    event: &'a Event,
    /// What all rows of a file share.
    shared: &'a Shared,
}

/// What the documents of a batch do not say, because their place does.
struct Shared {
    keyspace: Bytes,
    table: Bytes,
    shard: Bytes,
}

/// How a column gets its values.
enum Values {
    Text(fn(&Row<'_>) -> Option<Bytes>),
    Number(fn(&Row<'_>) -> Option<i64>),
}
use Values::{Number, Text};

/// The columns, in order, each as the format declares it.
const COLUMNS: [(&str, Values); 18] = [
    ("required binary event_id (STRING)", Text(|row| Some(row.text(&row.told.id)))),
    ("required binary event_name (STRING)", Text(|row| Some(row.text(&row.told.name)))),
    ("required binary event_version (STRING)", Text(|row| Some(row.text(&row.told.version)))),
    ("required binary event_source (STRING)", Text(|row| Some(row.text(&row.told.source)))),
    ("required binary aws_region (STRING)", Text(|row| Some(row.text(&row.told.region)))),
    (
        "required int64 event_time (TIMESTAMP(MILLIS,true))",
        Number(|row| Some(row.event.at.as_millis().try_into().unwrap_or(i64::MAX))),
    ),
    ("required binary keyspace_name (STRING)", Text(|row| Some(row.shared.keyspace.clone()))),
    ("required binary table_name (STRING)", Text(|row| Some(row.shared.table.clone()))),
    ("required binary shard_id (STRING)", Text(|row| Some(row.shared.shard.clone()))),
    ("required binary sequence_number (STRING)", Text(|row| Some(row.text(&row.told.body.sequence)))),
    ("required binary keys (JSON)", Text(|row| Some(row.json(row.told.body.keys.get())))),
    (
        "optional binary clustering_keys (JSON)",
        Text(|row| row.told.body.clustering.map(|json| row.json(json.get()))),
    ),
    ("optional binary new_image (JSON)", Text(|row| row.told.body.new.map(|json| row.json(json.get())))),
    ("optional binary old_image (JSON)", Text(|row| row.told.body.old.map(|json| row.json(json.get())))),
    ("optional int64 size_bytes", Number(|row| row.told.body.size)),
    (
        "optional binary stream_view_type (STRING)",
        Text(|row| row.told.body.view.as_ref().map(|view| row.text(view))),
    ),
    (
        "optional binary origin (STRING)",
        Text(|row| row.told.body.origin.as_ref().map(|origin| row.text(origin))),
    ),
    ("optional binary user_identity (JSON)", Text(|row| row.told.identity.map(|json| row.json(json.get())))),
];

/// Columns whose values hardly ever repeat.
const UNIQUE: [&str; 7] =
    ["event_id", "event_time", "sequence_number", "keys", "clustering_keys", "new_image", "old_image"];
/// Columns in which nobody looks for a value by its order.
const UNORDERED: [&str; 5] = ["keys", "clustering_keys", "new_image", "old_image", "user_identity"];

impl Row<'_> {
    /// A text of the document, which is not copied.
    #[expect(clippy::ptr_arg, reason = "only what is borrowed is a part of the document")]
    fn text(&self, text: &Cow<'_, str>) -> Bytes {
        match text {
            Cow::Borrowed(text) => self.json(text),
            Cow::Owned(text) => Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    /// A part of the document, which is not copied either.
    fn json(&self, part: &str) -> Bytes {
        self.event.data.slice_ref(part.as_bytes())
    }
}

#[cfg(test)]
mod tests;
