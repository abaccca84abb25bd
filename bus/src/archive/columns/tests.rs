use anabranch_model::table::{
    Change, ChangeView, Clustering, Column, ColumnKind, Item, KeyspaceShape, Value,
};
use anabranch_model::{PartitionKey, SequenceNumber, ShardId, StreamName, Timestamp};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;

use super::*;
use crate::archive::read::{Archived, documents};
use crate::archive::{Documents, Names, Shape};
use crate::event::Origin;

const AT: u64 = 1_722_421_800_123;
/// The number of the first change; longer than integers are.
const FIRST: u128 = u128::MAX - 10_000;

fn items() -> Documents {
    Documents { region: "eu-north-1".to_owned(), view: ChangeView::Both, shape: Shape::Items }
}

fn names() -> Names {
    Names { keyspace: Some("tables".to_owned()), table: Some("people".to_owned()), ..Names::default() }
}

fn change(old: Option<&Item>, new: Option<&Item>, expired: bool) -> Change {
    let keys = Item::new().with("id", new.or(old).unwrap().get("id").unwrap().clone());
    Change::between(keys, old, new, ChangeView::Both, Timestamp::from_millis(AT), expired).unwrap()
}

fn events(documents: &Documents, changes: &[Change]) -> Vec<Event> {
    let event = |(place, change): (usize, &Change)| {
        let sequence = SequenceNumber::from_u128(FIRST + place as u128);
        Event {
            origin: Origin::Shard {
                stream: StreamName::new("people-changes").unwrap(),
                shard: ShardId::new("shardId-000000000007").unwrap(),
                sequence,
                sub_sequence: 0,
            },
            key: PartitionKey::default(),
            data: documents.document(change, sequence).unwrap().into(),
            at: change.at,
            attempt: 1,
        }
    };
    changes.iter().enumerate().map(event).collect()
}

/// Changes with every kind of value, and with values that are as odd as they may be.
fn odd() -> Vec<Change> {
    let all = Item::new()
        .with("id", "all")
        .with("n", Value::number("-1234567890123456789012345678901234567.8E-90").unwrap())
        .with("b", &[0u8, 255, 34, 92][..])
        .with("yes", true)
        .with("null", Value::Null)
        .with("l", vec![Value::Null, Value::List(Vec::new()), "".into()])
        .with("m", Item::new().with("", Item::new()).with("\"\\\u{0}\n", "🦀\u{10ffff}e\u{301}"))
        .with("ss", Value::text_set(["b", "a"]).unwrap())
        .with("ns", Value::number_set([2, 1]).unwrap())
        .with("bs", Value::binary_set([&[1u8][..], &[]]).unwrap());
    let bare = Item::new().with("id", "bare");
    let unicode = Item::new().with("id", "Ünïcode ☃ \u{202e}\u{0}\"'\\").with("名前", "値\r\n\t");
    let noise = (0_u32..400_000).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>();
    let large = Item::new().with("id", "large").with("b", &noise[..]);
    vec![
        change(None, Some(&all), false),
        change(None, Some(&bare), false),
        change(Some(&all), Some(&Item::new().with("id", "all")), false),
        change(Some(&bare), None, true),
        change(None, Some(&unicode), false),
        change(None, Some(&large), false),
        change(Some(&large), None, false),
    ]
}

fn as_lines(events: &[Event]) -> Vec<Archived> {
    events.iter().map(|event| documents(&event.data).next().unwrap().unwrap()).collect()
}

fn read(file: &Bytes) -> Result<Vec<Archived>, String> {
    documents(file).collect()
}

/// What is compared with a table is the same, whether it lies in lines or in columns.
#[test]
fn odd_values_come_back_as_they_do_from_lines() {
    let cells = |shape| Documents { shape: Shape::Cells(shape), ..items() };
    let shape = KeyspaceShape {
        keyspace: "media".to_owned(),
        columns: vec![Column { name: "id".to_owned(), kind: ColumnKind::Text, shared: false }],
        partition: vec!["id".to_owned()],
        clustering: vec![Clustering { column: "at".to_owned(), descending: false }],
    };
    for documents in [items(), cells(None), cells(Some(shape))] {
        let events = events(&documents, &odd());
        let file = write(&events, &names()).unwrap();
        assert_eq!(read(&file).unwrap(), as_lines(&events), "{:?}", documents.shape);
        assert_eq!(write(&events, &names()).unwrap(), file, "the same events give the same file");
    }
}

/// More rows than are handed over or read at a time, and more bytes than a page has.
#[test]
fn many_rows_come_back_in_order() {
    let change = |number: u64| {
        let item = Item::new().with("id", number).with("text", "x".repeat(number as usize % 3_000));
        change(None, Some(&item), false)
    };
    let changes: Vec<_> = (0..3_000).map(change).collect();
    let events = events(&items(), &changes);
    let file = write(&events, &names()).unwrap();
    assert!(read(&file).unwrap() == as_lines(&events));
    let bytes: usize = events.iter().map(|event| event.data.len()).sum();
    assert!(file.len() < bytes / 10, "{bytes} bytes of documents took {}", file.len());
}

#[test]
fn columns_say_what_documents_do() {
    let item = Item::new().with("id", "a").with("n", 1);
    let changes = [change(None, Some(&item), false), change(Some(&item), None, true)];
    let file = write(&events(&items(), &changes), &names()).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    assert_eq!(reader.metadata().file_metadata().created_by(), Some("anabranch version 1"));
    let rows: Vec<Vec<(String, Field)>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            row.unwrap().get_column_iter().map(|(name, value)| (name.clone(), value.clone())).collect()
        })
        .collect();
    let text = |text: &str| Field::Str(text.to_owned());
    let size = i64::try_from(changes[0].size).unwrap();
    let number = FIRST.to_string();
    let expected = [
        ("event_id", text(&number)),
        ("event_name", text("INSERT")),
        ("event_version", text("1.1")),
        ("event_source", text("aws:dynamodb")),
        ("aws_region", text("eu-north-1")),
        ("event_time", Field::TimestampMillis(AT as i64)),
        ("keyspace_name", text("tables")),
        ("table_name", text("people")),
        ("shard_id", text("shardId-000000000007")),
        ("sequence_number", text(&number)),
        ("keys", text(r#"{"id":{"S":"a"}}"#)),
        ("clustering_keys", Field::Null),
        ("new_image", text(r#"{"id":{"S":"a"},"n":{"N":"1"}}"#)),
        ("old_image", Field::Null),
        ("size_bytes", Field::Long(size)),
        ("stream_view_type", text("NEW_AND_OLD_IMAGES")),
        ("origin", Field::Null),
        ("user_identity", Field::Null),
    ];
    assert_eq!(rows[0], expected.map(|(name, value)| (name.to_owned(), value)));
    let identity = r#"{"principalId":"dynamodb.amazonaws.com","type":"Service"}"#;
    assert_eq!(rows[1][17].1, text(identity));
    assert_eq!(rows[1][12].1, Field::Null);
}

#[test]
fn what_is_no_document_is_refused() {
    let mut events = events(&items(), &odd());
    events[3].data = Bytes::from_static(b"{\"eventName\":\"INSERT\"}");
    let error = write(&events, &names()).unwrap_err().to_string();
    assert!(error.contains("is no document of a change") && error.contains("dynamodb"), "{error}");
}

/// Columns of others are none of ours.
#[test]
fn what_has_other_columns_cannot_be_read() {
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    for (columns, why) in [
        ("required binary event_name;", "no column `sequence_number`"),
        ("required int64 event_name;", "`event_name` is none of texts"),
        ("repeated binary event_name;", "`event_name` is none of texts"),
    ] {
        let schema = parse_message_type(&format!("message other {{ {columns} }}")).unwrap();
        let mut file = Vec::new();
        let properties = WriterProperties::default();
        let mut writer = SerializedFileWriter::new(&mut file, schema.into(), properties.into()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        group.next_column().unwrap().unwrap().close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        let error = read(&file.into()).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A file that was damaged somewhere is refused, or says what it said; it does no harm.
    #[test]
    fn a_damaged_file_never_lies(places in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..4), cut in prop::option::of(any::<prop::sample::Index>())) {
        let small = &odd()[..5];
        let events = events(&items(), small);
        let mut file = write(&events, &names()).unwrap().to_vec();
        // The four bytes that say what it is are left alone: without them it is something else.
        for (place, change) in &places {
            let place = 4 + place.index(file.len() - 4);
            file[place] ^= change;
        }
        if let Some(cut) = cut {
            file.truncate(4 + cut.index(file.len() - 4));
        }
        if let Ok(changes) = read(&file.into()) {
            prop_assert_eq!(changes, as_lines(&events));
        }
    }
}
