//! A change as a document: as DynamoDB Streams tells of it, or for a table of a keyspace as Keyspaces Streams does, in the
//! same envelope.

use std::fmt::Display;
use std::io;

use anabranch_model::table::{Change, ChangeView, Event as Happened, Item, KeySchema, KeyspaceShape, Value};
use anabranch_model::{Error, Result, SequenceNumber};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value as Json;
use serde_json::ser::Formatter;

use super::cell;
use crate::event::{Event, Origin};
use crate::step::{Refusal, Step};

/// About what a document has beyond its images.
const ENVELOPE_BYTES: usize = 512;
/// Characters of Base64 that are made at a time.
const BASE64_BYTES: usize = 2048;

/// How the rows of a table are told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As items, each value under the letters of its kind.
    Items,
    /// As rows of a keyspace, each cell under the name of its type; the types are told where the columns are known.
    Cells(Option<KeyspaceShape>),
}

/// Makes documents of encoded changes.
#[derive(Clone, Debug)]
pub struct Documents {
    /// The region that documents name.
    pub region: String,
    /// What is written down about a change.
    pub view: ChangeView,
    /// How rows look.
    pub shape: Shape,
}

/// What all documents share.
#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(rename = "eventID")]
    id: &'a str,
    #[serde(rename = "eventName")]
    name: &'static str,
    #[serde(rename = "eventVersion")]
    version: &'static str,
    #[serde(rename = "eventSource")]
    source: &'static str,
    #[serde(rename = "awsRegion")]
    region: &'a str,
    #[serde(rename = "userIdentity", skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dynamodb: Option<ItemChange<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyspaces: Option<RowChange<'a>>,
}

/// Who removes items whose time has come.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    principal_id: &'static str,
    r#type: &'static str,
}

#[derive(Serialize)]
struct ItemChange<'a> {
    #[serde(rename = "ApproximateCreationDateTime")]
    seconds: f64,
    #[serde(rename = "Keys")]
    keys: Tagged<'a>,
    #[serde(rename = "NewImage", skip_serializing_if = "Option::is_none")]
    new: Option<Tagged<'a>>,
    #[serde(rename = "OldImage", skip_serializing_if = "Option::is_none")]
    old: Option<Tagged<'a>>,
    #[serde(rename = "SequenceNumber")]
    sequence: &'a str,
    #[serde(rename = "SizeBytes")]
    size: u64,
    #[serde(rename = "StreamViewType")]
    view: &'static str,
}

#[derive(Serialize)]
struct RowChange<'a> {
    #[serde(rename = "createdAt")]
    seconds: f64,
    origin: &'static str,
    #[serde(rename = "partitionKeys")]
    partition: Json,
    #[serde(rename = "clusteringKeys")]
    clustering: Json,
    #[serde(rename = "newImage", skip_serializing_if = "Option::is_none")]
    new: Option<Json>,
    #[serde(rename = "oldImage", skip_serializing_if = "Option::is_none")]
    old: Option<Json>,
    #[serde(rename = "sequenceNumber")]
    sequence: &'a str,
}

/// What is compared of a row and of the images of its changes: the texts of their JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) image: String,
}

impl Documents {
    /// The document of a change.
    pub fn document(&self, change: &Change, sequence: SequenceNumber) -> Result<Vec<u8>> {
        let number = sequence.to_string();
        let seconds = change.at.as_millis() as f64 / 1_000.0;
        let (version, source) = match &self.shape {
            Shape::Items => ("1.1", "aws:dynamodb"),
            Shape::Cells(_) => ("1.0", "aws:keyspaces"),
        };
        let mut envelope = Envelope {
            id: &number,
            name: name(change.event),
            version,
            source,
            region: &self.region,
            identity: None,
            dynamodb: None,
            keyspaces: None,
        };
        match &self.shape {
            Shape::Items => {
                let expiry = Identity { principal_id: "dynamodb.amazonaws.com", r#type: "Service" };
                envelope.identity = change.expired.then_some(expiry);
                envelope.dynamodb = Some(ItemChange {
                    seconds,
                    keys: Tagged(&change.keys),
                    new: change.new.as_ref().map(Tagged),
                    old: change.old.as_ref().map(Tagged),
                    sequence: &number,
                    size: change.size,
                    view: view(self.view),
                });
            }
            Shape::Cells(shape) => {
                let image = change.new.as_ref().or(change.old.as_ref());
                let [partition, clustering] = cell::keys(&change.keys, image, shape.as_ref());
                let row = |image: &Item| cell::row(image, &change.keys, shape.as_ref());
                envelope.keyspaces = Some(RowChange {
                    seconds,
                    origin: if change.expired { "TTL" } else { "USER" },
                    partition,
                    clustering,
                    new: change.new.as_ref().map(row),
                    old: change.old.as_ref().map(row),
                    sequence: &number,
                });
            }
        }
        // About what it takes: bytes are told of in four characters for three.
        let mut document = Vec::with_capacity(ENVELOPE_BYTES + change.size as usize * 4 / 3);
        write(&envelope, &mut document)?;
        Ok(document)
    }

    /// What the document of the last change of this item says about it.
    pub(super) fn row(&self, item: &Item, key: &KeySchema) -> Result<Row> {
        let keys = key.item(&key.key_of(item)?);
        Ok(match &self.shape {
            Shape::Items => Row { key: tagged(&keys)?.to_string(), image: tagged(item)?.to_string() },
            Shape::Cells(shape) => Row {
                key: key_text(cell::keys(&keys, Some(item), shape.as_ref())),
                image: cell::row(item, &keys, shape.as_ref()).to_string(),
            },
        })
    }
}

/// The key of a row of a keyspace as one text.
pub(super) fn key_text(parts: [Json; 2]) -> String {
    Json::Array(parts.into()).to_string()
}

fn name(event: Happened) -> &'static str {
    match event {
        Happened::Insert => "INSERT",
        Happened::Modify => "MODIFY",
        Happened::Remove => "REMOVE",
    }
}

fn view(view: ChangeView) -> &'static str {
    match view {
        ChangeView::Keys => "KEYS_ONLY",
        ChangeView::New => "NEW_IMAGE",
        ChangeView::Old => "OLD_IMAGE",
        ChangeView::Both => "NEW_AND_OLD_IMAGES",
    }
}

fn tagged(item: &Item) -> Result<Json> {
    let mut text = Vec::new();
    write(&Tagged(item), &mut text)?;
    serde_json::from_slice(&text).map_err(|error| Error::Corrupt(error.to_string()))
}

/// Appends the JSON of something of this file.
fn write(what: &impl Serialize, into: &mut Vec<u8>) -> Result<()> {
    let written = what.serialize(&mut serde_json::Serializer::with_formatter(into, Base64));
    written.map_err(|error| Error::Corrupt(error.to_string()))
}

/// JSON in which bytes are texts. Such texts have nothing that must be escaped, and are not looked through for it.
struct Base64;

impl Formatter for Base64 {
    fn write_byte_array<W: ?Sized + io::Write>(&mut self, writer: &mut W, bytes: &[u8]) -> io::Result<()> {
        let mut text = [0; BASE64_BYTES];
        writer.write_all(b"\"")?;
        for bytes in bytes.chunks(BASE64_BYTES / 4 * 3) {
            let length = STANDARD.encode_slice(bytes, &mut text).map_err(io::Error::other)?;
            writer.write_all(&text[..length])?;
        }
        writer.write_all(b"\"")
    }
}

/// An item with each value under the letters of its kind. Numbers are texts, so that no reader rounds them.
struct Tagged<'a>(&'a Item);
struct TaggedValue<'a>(&'a Value);
struct Binary<'a>(&'a [u8]);
struct Text<T>(T);

impl Serialize for Tagged<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, TaggedValue(value))))
    }
}

impl Serialize for TaggedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.0 {
            Value::Text(text) => map.serialize_entry("S", text)?,
            Value::Number(number) => map.serialize_entry("N", &Text(number))?,
            Value::Binary(bytes) => map.serialize_entry("B", &Binary(bytes))?,
            Value::Bool(value) => map.serialize_entry("BOOL", value)?,
            Value::Null => map.serialize_entry("NULL", &true)?,
            Value::List(list) => {
                map.serialize_entry("L", &list.iter().map(TaggedValue).collect::<Vec<_>>())?
            }
            Value::Map(item) => map.serialize_entry("M", &Tagged(item))?,
            Value::TextSet(set) => map.serialize_entry("SS", set)?,
            Value::NumberSet(set) => {
                map.serialize_entry("NS", &set.iter().map(Text).collect::<Vec<_>>())?;
            }
            Value::BinarySet(set) => {
                map.serialize_entry("BS", &set.iter().map(|bytes| Binary(bytes)).collect::<Vec<_>>())?;
            }
        }
        map.end()
    }
}

impl Serialize for Binary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[async_trait]
impl Step for Documents {
    fn name(&self) -> &str {
        "document"
    }

    async fn apply(&self, event: Event) -> std::result::Result<Vec<Event>, Refusal> {
        let Origin::Shard { sequence, .. } = &event.origin else {
            return Err(Refusal::Never("a message of a queue is no change of a table".to_owned()));
        };
        let change = Change::decode(&event.data).map_err(|error| Refusal::Never(error.to_string()))?;
        let document =
            self.document(&change, *sequence).map_err(|error| Refusal::Never(error.to_string()))?;
        Ok(vec![Event { at: change.at, data: document.into(), ..event }])
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::Timestamp;
    use anabranch_model::table::{Clustering, Column, ColumnKind, KeyKind};
    use serde_json::json;

    use super::*;

    fn parsed(documents: &Documents, change: &Change) -> Json {
        let document = documents.document(change, SequenceNumber::from_u128(12_345)).unwrap();
        serde_json::from_slice(&document).unwrap()
    }

    fn change(keys: Item, new: Option<&Item>, old: Option<&Item>, expired: bool) -> Change {
        let at = Timestamp::from_millis(1_722_421_800_123);
        Change::between(keys, old, new, ChangeView::Both, at, expired).unwrap()
    }

    #[test]
    fn items_are_told_of_as_dynamodb_streams_does() {
        let keys = Item::new().with("content_id", "550e8400");
        let new = keys
            .clone()
            .with("n", Value::number("12345678901234567890123456789012345678").unwrap())
            .with("b", &[0u8, 255][..])
            .with("l", vec![Value::Null, true.into()])
            .with("m", Item::new().with("x", 1))
            .with("ss", Value::text_set(["b", "a"]).unwrap())
            .with("ns", Value::number_set([2, 1]).unwrap())
            .with("bs", Value::binary_set([&[1u8][..]]).unwrap());
        let documents =
            Documents { region: "us-east-1".to_owned(), view: ChangeView::Both, shape: Shape::Items };
        let inserted = change(keys.clone(), Some(&new), None, false);
        assert_eq!(
            parsed(&documents, &inserted),
            json!({
                "eventID": "12345",
                "eventName": "INSERT",
                "eventVersion": "1.1",
                "eventSource": "aws:dynamodb",
                "awsRegion": "us-east-1",
                "dynamodb": {
                    "ApproximateCreationDateTime": 1_722_421_800.123,
                    "Keys": {"content_id": {"S": "550e8400"}},
                    "NewImage": {
                        "content_id": {"S": "550e8400"},
                        "n": {"N": "12345678901234567890123456789012345678"},
                        "b": {"B": "AP8="},
                        "l": {"L": [{"NULL": true}, {"BOOL": true}]},
                        "m": {"M": {"x": {"N": "1"}}},
                        "ss": {"SS": ["a", "b"]},
                        "ns": {"NS": ["1", "2"]},
                        "bs": {"BS": ["AQ=="]},
                    },
                    "SequenceNumber": "12345",
                    "SizeBytes": inserted.size,
                    "StreamViewType": "NEW_AND_OLD_IMAGES",
                },
            })
        );
        let removed = parsed(&documents, &change(keys.clone(), None, Some(&new), true));
        assert_eq!(removed["eventName"], "REMOVE");
        let identity = json!({"principalId": "dynamodb.amazonaws.com", "type": "Service"});
        assert_eq!(removed["userIdentity"], identity);
        assert_eq!(removed["dynamodb"].get("NewImage"), None);
    }

    /// Long ones are encoded in pieces, between which nothing may be padded.
    #[test]
    fn bytes_of_any_length_are_told_as_one_text() {
        for length in [0, 1, 2, 3, 1_535, 1_536, 1_537, 1_538, 3 * 1_536, 10_000] {
            let bytes: Vec<u8> = (0..length).map(|number: usize| number as u8).collect();
            let item = Item::new().with("b", &bytes[..]);
            assert_eq!(tagged(&item).unwrap(), json!({"b": {"B": STANDARD.encode(&bytes)}}));
        }
    }

    fn shape() -> KeyspaceShape {
        let column = |name: &str, kind, shared| Column { name: name.to_owned(), kind, shared };
        let boxed = Box::new;
        KeyspaceShape {
            keyspace: "media".to_owned(),
            columns: vec![
                column("content_id", ColumnKind::Uuid, false),
                column("at", ColumnKind::Timestamp, false),
                column("title", ColumnKind::Text, false),
                column("plays", ColumnKind::Bigint, false),
                column("owner", ColumnKind::Varchar, true),
                column("tags", ColumnKind::Set(boxed(ColumnKind::Ascii)), false),
                column("parts", ColumnKind::Frozen(boxed(ColumnKind::List(boxed(ColumnKind::Int)))), false),
                column("by", ColumnKind::Map(boxed(ColumnKind::Int), boxed(ColumnKind::Text)), false),
                column("size", ColumnKind::Tuple(vec![ColumnKind::Int, ColumnKind::Double]), false),
                column("place", ColumnKind::Defined("place".to_owned()), false),
            ],
            partition: vec!["content_id".to_owned()],
            clustering: vec![Clustering { column: "at".to_owned(), descending: false }],
        }
    }

    #[test]
    fn rows_are_told_of_as_keyspaces_streams_does() {
        let keys = Item::new().with("content_id", "550e8400").with("at", "1722421800000");
        let new = keys
            .clone()
            .with("title", "Summer")
            .with("plays", 7)
            .with("owner", "ada")
            .with("tags", Value::text_set(["x"]).unwrap())
            .with("parts", vec![Value::from(1), Value::Null])
            .with("by", vec![Value::List(vec![1.into(), "one".into()])])
            .with("size", vec![Value::from(3), Value::from(4)])
            .with("place", Item::new().with("city", "Rome"));
        let documents = Documents {
            region: "us-east-1".to_owned(),
            view: ChangeView::Both,
            shape: Shape::Cells(Some(shape())),
        };
        assert_eq!(
            parsed(&documents, &change(keys.clone(), Some(&new), None, false)),
            json!({
                "eventID": "12345",
                "eventName": "INSERT",
                "eventVersion": "1.0",
                "eventSource": "aws:keyspaces",
                "awsRegion": "us-east-1",
                "keyspaces": {
                    "createdAt": 1_722_421_800.123,
                    "origin": "USER",
                    "partitionKeys": {"content_id": {"uuidT": "550e8400"}},
                    "clusteringKeys": {"at": {"timestampT": "1722421800000"}},
                    "newImage": {
                        "staticCells": {"owner": {"value": {"varcharT": "ada"}}},
                        "valueCells": {
                            "title": {"value": {"textT": "Summer"}},
                            "plays": {"value": {"bigintT": "7"}},
                            "tags": {"value": {"setT": [{"value": {"asciiT": "x"}}]}},
                            "parts": {"value": {"listT": [{"value": {"intT": "1"}}, {}]}},
                            "by": {"value": {"mapT": [{"key": {"intT": "1"}, "value": {"textT": "one"}}]}},
                            "size": {"value": {"tupleT": [{"value": {"intT": "3"}}, {"value": {"doubleT": "4"}}]}},
                            "place": {"value": {"udtT": {"city": {"value": {"textT": "Rome"}}}}},
                        },
                    },
                    "sequenceNumber": "12345",
                },
            })
        );
        // Without the columns, as from Keyspaces itself, values are told as what they are.
        let bare = Documents { shape: Shape::Cells(None), ..documents };
        let removed = parsed(&bare, &change(keys, None, Some(&new), true));
        assert_eq!(removed["keyspaces"]["origin"], "TTL");
        assert_eq!(removed["keyspaces"]["partitionKeys"]["content_id"], json!({"textT": "550e8400"}));
        assert_eq!(
            removed["keyspaces"]["oldImage"]["valueCells"]["plays"],
            json!({"value": {"decimalT": "7"}})
        );
    }

    /// A row and the document of its last change are compared by their texts.
    #[test]
    fn a_row_reads_as_its_document_says() {
        let schema = KeySchema::hash("content_id", KeyKind::Text).and_range("at", KeyKind::Text);
        let keys = Item::new().with("content_id", "550e8400").with("at", "1722421800000");
        let item = keys.clone().with("title", "Summer").with("owner", "ada");
        for shape in [Shape::Items, Shape::Cells(None), Shape::Cells(Some(shape()))] {
            let documents = Documents { region: String::new(), view: ChangeView::Both, shape };
            let document = documents
                .document(&change(keys.clone(), Some(&item), None, false), SequenceNumber::MIN)
                .unwrap();
            let read = super::super::read::documents(&document.into()).next().unwrap().unwrap();
            let row = documents.row(&item, &schema).unwrap();
            assert_eq!((read.key, read.new), (row.key, Some(row.image)), "{:?}", documents.shape);
        }
    }
}
