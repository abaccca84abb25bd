//! What tables keep in rows.
//!
//! | key | value | lives |
//! |---|---|---|
//! | `20` name | number, creation, options, indexes, stream of changes | while the table exists |
//! | `21` number `01` key | the item | while the item exists |
//! | `21` number `02` | how many items and bytes the table and its indexes have | while the table exists |
//! | `21` index number `03` index key, key | what the index shows of the item | while the item is in the index |
//! | `22` log number shard, position, index | arrival, partition key, change | for 24 hours |
//! | `22` log number `fe`/`ff`, position, 0 | when the stream of changes began and ended | while the stream exists |
//! | `22` log number `fc`, 0, 0 | the name of the table | from the end of the stream on, while it exists |
//! | `23` stream name | log number | for 24 hours longer than changes are written to it |
//! | `24` token | fingerprint of the transaction, when it is forgotten | ten minutes |
//!
//! Numbers in keys are big-endian, those in values little-endian.

use anabranch_model::table::{
    ChangeView, Clustering, Column, ColumnKind, IndexOptions, IndexProjection, IndexScope, KeyAttribute,
    KeyKind, KeySchema, KeyspaceShape, TableOptions, Token,
};
use anabranch_model::{IndexName, StreamName, TableName};
use bytes::Bytes;

use crate::encoding::{Malformed, Put, Take};
use crate::rows::Space;

const ITEM: u8 = 1;
const TALLY: u8 = 2;
const ENTRY: u8 = 3;
/// What an index is: within one hash value, across all items, and the same with keys of more than two attributes.
const LOCAL: u8 = 0;
const GLOBAL: u8 = 1;
const GLOBAL_OF_SEVERAL: u8 = 2;
/// Where the markers of a stream of changes stand, in place of a shard.
pub const BEGUN: u8 = 0xfe;
/// The same for its end.
pub const ENDED: u8 = 0xff;
/// The same for what was removed last from each of its shards.
pub const TRIMMED: u8 = 0xfd;
/// The same for the table that an ended stream is of: the row of the table does not tell any more.
pub const TABLE: u8 = 0xfc;

/// A table as its row has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The owner of its items.
    pub number: u64,
    /// When it was made, in milliseconds.
    pub created_at: u64,
    /// How it is made.
    pub options: TableOptions,
    /// In the order of the options.
    pub indexes: Vec<IndexRow>,
    /// The stream of its changes.
    pub changes: Option<StreamName>,
}

/// An index as the row of its table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRow {
    /// The owner of its entries.
    pub number: u64,
    /// While it is being filled: it holds the items up to this place in the table.
    pub filled_to: Option<Bytes>,
}

/// The key of a table's row.
pub fn table_key(name: &TableName) -> Bytes {
    named(Space::Tables, name.as_str())
}

/// The key of the row of a stream of changes.
pub fn log_key(name: &StreamName) -> Bytes {
    named(Space::ChangeLogs, name.as_str())
}

/// The key of a token's row.
pub fn token_key(token: &Token) -> Bytes {
    named(Space::Tokens, token.as_str())
}

fn named(space: Space, name: &str) -> Bytes {
    let mut key = Vec::with_capacity(1 + name.len());
    key.push(space as u8);
    key.extend_from_slice(name.as_bytes());
    key.into()
}

fn owned(space: Space, number: u64, kind: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.push(space as u8);
    key.extend_from_slice(&number.to_be_bytes());
    key.push(kind);
    key
}

/// What all rows of a table or an index begin with.
pub fn owner_prefix(number: u64) -> Vec<u8> {
    [&[Space::Table as u8][..], &number.to_be_bytes()].concat()
}

/// What all rows of a stream of changes begin with.
pub fn log_prefix(number: u64) -> Vec<u8> {
    [&[Space::Changes as u8][..], &number.to_be_bytes()].concat()
}

/// What the items of a table begin with.
pub fn items(number: u64) -> Vec<u8> {
    owned(Space::Table, number, ITEM)
}

/// What the entries of an index begin with.
pub fn entries(number: u64) -> Vec<u8> {
    owned(Space::Table, number, ENTRY)
}

/// What the records of one shard of a stream of changes begin with.
pub fn shard_prefix(log: u64, shard: u8) -> Vec<u8> {
    owned(Space::Changes, log, shard)
}

/// The key of the counts of a table.
pub fn tally_key(number: u64) -> Vec<u8> {
    owned(Space::Table, number, TALLY)
}

/// A key in a stretch of rows.
pub fn within(mut prefix: Vec<u8>, place: &[u8]) -> Bytes {
    prefix.extend_from_slice(place);
    prefix.into()
}

impl TableRow {
    /// The value of the row.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        bytes.put_u64(self.number);
        bytes.put_u64(self.created_at);
        put_options(&mut bytes, &self.options);
        for index in &self.indexes {
            bytes.put_u64(index.number);
            put_optional(&mut bytes, index.filled_to.as_deref(), put_bytes);
        }
        put_optional(&mut bytes, self.changes.as_ref().map(StreamName::as_str), |b, t| b.put_text(t));
        bytes
    }

    /// Reads the value of a row.
    pub fn decode(bytes: &[u8]) -> Result<TableRow, Malformed> {
        let take = &mut Take(bytes);
        let (number, created_at, options) = (take.u64()?, take.u64()?, take_options(take)?);
        let indexes = options.indexes.iter().map(|_| {
            let number = take.u64()?;
            let filled_to = take_optional(take, |t| take_bytes(t).map(Bytes::copy_from_slice))?;
            Ok(IndexRow { number, filled_to })
        });
        let indexes = indexes.collect::<Result<_, Malformed>>()?;
        let changes = take_optional(take, |t| StreamName::new(t.text()?).map_err(|_| Malformed))?;
        let row = TableRow { number, created_at, options, indexes, changes };
        if take.0.is_empty() { Ok(row) } else { Err(Malformed) }
    }
}

fn put_options(bytes: &mut Vec<u8>, options: &TableOptions) {
    put_schema(bytes, &options.key);
    bytes.put_u32(options.indexes.len() as u32);
    for index in &options.indexes {
        bytes.put_text(index.name.as_str());
        let scope = match index.scope {
            IndexScope::Local => LOCAL,
            IndexScope::Global if index.key.has_several() => GLOBAL_OF_SEVERAL,
            IndexScope::Global => GLOBAL,
        };
        bytes.put_u8(scope);
        put_schema(bytes, &index.key);
        if scope == GLOBAL_OF_SEVERAL {
            put_attributes(bytes, &index.key.hash_rest);
            put_attributes(bytes, &index.key.range_rest);
        }
        match &index.projection {
            IndexProjection::All => bytes.put_u8(0),
            IndexProjection::Keys => bytes.put_u8(1),
            IndexProjection::Include(names) => {
                bytes.put_u8(2);
                bytes.put_u32(names.len() as u32);
                names.iter().for_each(|name| bytes.put_text(name));
            }
        }
    }
    put_optional(bytes, options.time_to_live.as_deref(), |b, t| b.put_text(t));
    put_optional(bytes, options.changes, |b, view| b.put_u8(view_tag(view)));
    put_optional(bytes, options.keyspace.as_ref(), put_keyspace);
}

fn take_options(take: &mut Take<'_>) -> Result<TableOptions, Malformed> {
    let key = take_schema(take)?;
    let indexes = (0..take.u32()?).map(|_| take_index(take)).collect::<Result<_, Malformed>>()?;
    Ok(TableOptions {
        key,
        indexes,
        time_to_live: take_optional(take, |t| Ok(t.text()?.to_owned()))?,
        changes: take_optional(take, take_view)?,
        keyspace: take_optional(take, take_keyspace)?,
    })
}

fn take_index(take: &mut Take<'_>) -> Result<IndexOptions, Malformed> {
    let name = IndexName::new(take.text()?).map_err(|_| Malformed)?;
    let (tag, mut key) = (take.u8()?, take_schema(take)?);
    if tag == GLOBAL_OF_SEVERAL {
        (key.hash_rest, key.range_rest) = (take_attributes(take)?, take_attributes(take)?);
    }
    Ok(IndexOptions {
        name,
        scope: match tag {
            LOCAL => IndexScope::Local,
            GLOBAL | GLOBAL_OF_SEVERAL => IndexScope::Global,
            _ => return Err(Malformed),
        },
        key,
        projection: match take.u8()? {
            0 => IndexProjection::All,
            1 => IndexProjection::Keys,
            2 => {
                let names = (0..take.u32()?).map(|_| Ok(take.text()?.to_owned()));
                IndexProjection::Include(names.collect::<Result<_, Malformed>>()?)
            }
            _ => return Err(Malformed),
        },
    })
}

fn put_schema(bytes: &mut Vec<u8>, schema: &KeySchema) {
    put_attribute(bytes, &schema.hash);
    put_optional(bytes, schema.range.as_ref(), put_attribute);
}

fn take_schema(take: &mut Take<'_>) -> Result<KeySchema, Malformed> {
    Ok(KeySchema::new(take_attribute(take)?, take_optional(take, take_attribute)?))
}

fn put_attributes(bytes: &mut Vec<u8>, attributes: &[KeyAttribute]) {
    bytes.put_u32(attributes.len() as u32);
    attributes.iter().for_each(|attribute| put_attribute(bytes, attribute));
}

fn take_attributes(take: &mut Take<'_>) -> Result<Vec<KeyAttribute>, Malformed> {
    (0..take.u32()?).map(|_| take_attribute(take)).collect()
}

fn put_attribute(bytes: &mut Vec<u8>, attribute: &KeyAttribute) {
    bytes.put_text(&attribute.name);
    bytes.put_u8(match attribute.kind {
        KeyKind::Text => 0,
        KeyKind::Number => 1,
        KeyKind::Binary => 2,
    });
}

fn take_attribute(take: &mut Take<'_>) -> Result<KeyAttribute, Malformed> {
    let name = take.text()?.to_owned();
    let kind = match take.u8()? {
        0 => KeyKind::Text,
        1 => KeyKind::Number,
        2 => KeyKind::Binary,
        _ => return Err(Malformed),
    };
    Ok(KeyAttribute { name, kind })
}

const VIEWS: [ChangeView; 4] = [ChangeView::Keys, ChangeView::New, ChangeView::Old, ChangeView::Both];

fn view_tag(view: ChangeView) -> u8 {
    VIEWS.iter().position(|known| *known == view).expect("all views are listed") as u8
}

fn take_view(take: &mut Take<'_>) -> Result<ChangeView, Malformed> {
    VIEWS.get(usize::from(take.u8()?)).copied().ok_or(Malformed)
}

fn put_keyspace(bytes: &mut Vec<u8>, shape: &KeyspaceShape) {
    bytes.put_text(&shape.keyspace);
    bytes.put_u32(shape.columns.len() as u32);
    for column in &shape.columns {
        bytes.put_text(&column.name);
        bytes.put_u8(u8::from(column.shared));
        put_kind(bytes, &column.kind);
    }
    bytes.put_u32(shape.partition.len() as u32);
    shape.partition.iter().for_each(|name| bytes.put_text(name));
    bytes.put_u32(shape.clustering.len() as u32);
    for clustering in &shape.clustering {
        bytes.put_text(&clustering.column);
        bytes.put_u8(u8::from(clustering.descending));
    }
}

fn take_keyspace(take: &mut Take<'_>) -> Result<KeyspaceShape, Malformed> {
    let keyspace = take.text()?.to_owned();
    let columns = (0..take.u32()?).map(|_| {
        let (name, shared) = (take.text()?.to_owned(), take.u8()? != 0);
        Ok(Column { name, shared, kind: take_kind(take, 0)? })
    });
    let columns = columns.collect::<Result<_, Malformed>>()?;
    let partition = (0..take.u32()?).map(|_| Ok(take.text()?.to_owned()));
    let partition = partition.collect::<Result<_, Malformed>>()?;
    let clustering = (0..take.u32()?)
        .map(|_| Ok(Clustering { column: take.text()?.to_owned(), descending: take.u8()? != 0 }));
    let clustering = clustering.collect::<Result<_, Malformed>>()?;
    Ok(KeyspaceShape { keyspace, columns, partition, clustering })
}

/// Kinds without a part, by their tags.
const PLAIN: [ColumnKind; 20] = [
    ColumnKind::Ascii,
    ColumnKind::Bigint,
    ColumnKind::Blob,
    ColumnKind::Boolean,
    ColumnKind::Counter,
    ColumnKind::Date,
    ColumnKind::Decimal,
    ColumnKind::Double,
    ColumnKind::Float,
    ColumnKind::Inet,
    ColumnKind::Int,
    ColumnKind::Smallint,
    ColumnKind::Text,
    ColumnKind::Time,
    ColumnKind::Timestamp,
    ColumnKind::Timeuuid,
    ColumnKind::Tinyint,
    ColumnKind::Uuid,
    ColumnKind::Varchar,
    ColumnKind::Varint,
];
const LIST: u8 = 0x80;
const SET: u8 = 0x81;
const MAP: u8 = 0x82;
const TUPLE: u8 = 0x83;
const FROZEN: u8 = 0x84;
const DEFINED: u8 = 0x85;
/// Deeper kinds than this were never written.
const KIND_DEPTH_MAX: usize = 64;

fn put_kind(bytes: &mut Vec<u8>, kind: &ColumnKind) {
    match kind {
        ColumnKind::List(part) => put_nested(bytes, LIST, &[&**part]),
        ColumnKind::Set(part) => put_nested(bytes, SET, &[&**part]),
        ColumnKind::Map(key, value) => put_nested(bytes, MAP, &[&**key, &**value]),
        ColumnKind::Frozen(part) => put_nested(bytes, FROZEN, &[&**part]),
        ColumnKind::Tuple(parts) => {
            bytes.put_u8(TUPLE);
            bytes.put_u32(parts.len() as u32);
            parts.iter().for_each(|part| put_kind(bytes, part));
        }
        ColumnKind::Defined(name) => {
            bytes.put_u8(DEFINED);
            bytes.put_text(name);
        }
        plain => {
            let tag = PLAIN.iter().position(|known| known == plain).expect("all plain kinds are listed");
            bytes.put_u8(tag as u8);
        }
    }
}

fn put_nested(bytes: &mut Vec<u8>, tag: u8, parts: &[&ColumnKind]) {
    bytes.put_u8(tag);
    parts.iter().for_each(|part| put_kind(bytes, part));
}

fn take_kind(take: &mut Take<'_>, depth: usize) -> Result<ColumnKind, Malformed> {
    if depth > KIND_DEPTH_MAX {
        return Err(Malformed);
    }
    let part = |take: &mut Take<'_>| take_kind(take, depth + 1).map(Box::new);
    Ok(match take.u8()? {
        LIST => ColumnKind::List(part(take)?),
        SET => ColumnKind::Set(part(take)?),
        MAP => ColumnKind::Map(part(take)?, part(take)?),
        FROZEN => ColumnKind::Frozen(part(take)?),
        TUPLE => {
            let parts = (0..take.u32()?).map(|_| take_kind(take, depth + 1));
            ColumnKind::Tuple(parts.collect::<Result<_, _>>()?)
        }
        DEFINED => ColumnKind::Defined(take.text()?.to_owned()),
        tag => PLAIN.get(usize::from(tag)).cloned().ok_or(Malformed)?,
    })
}

fn put_optional<T>(bytes: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    bytes.put_u8(u8::from(value.is_some()));
    if let Some(value) = value {
        put(bytes, value);
    }
}

fn take_optional<'a, T>(
    take: &mut Take<'a>,
    value: impl FnOnce(&mut Take<'a>) -> Result<T, Malformed>,
) -> Result<Option<T>, Malformed> {
    match take.u8()? {
        0 => Ok(None),
        1 => value(take).map(Some),
        _ => Err(Malformed),
    }
}

/// Appends bytes with their length.
pub fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.put_u32(value.len() as u32);
    bytes.put(value);
}

/// Takes bytes with their length.
pub fn take_bytes<'a>(take: &mut Take<'a>) -> Result<&'a [u8], Malformed> {
    let length = take.u32()? as usize;
    take.bytes(length)
}
