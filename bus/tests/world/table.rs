//! Files of columns, read as a whole and row by row, which is another way than that of `cdc verify`.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value as Json, json};

/// The rows of a file: what is null is missing.
pub fn rows(file: Bytes) -> Vec<Map<String, Json>> {
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| {
        let columns = row.unwrap();
        let columns = columns.get_column_iter().filter_map(|(name, field)| {
            let value = match field {
                Field::Str(text) => json!(text),
                Field::Long(number) | Field::TimestampMillis(number) => json!(number),
                Field::Null => return None,
                other => panic!("{name}: {other:?}"),
            };
            Some((name.clone(), value))
        });
        columns.collect()
    })
    .collect()
}

/// The same as lines of documents, of what both have.
pub fn lines(rows: &[Map<String, Json>]) -> String {
    let line = |row: &Map<String, Json>| {
        let parsed = |name: &str| -> Option<Json> {
            Some(serde_json::from_str(row.get(name)?.as_str().unwrap()).unwrap())
        };
        let mut change = json!({ "Keys": parsed("keys"), "SequenceNumber": row["sequence_number"] });
        for (name, column) in [("NewImage", "new_image"), ("OldImage", "old_image")] {
            if let Some(image) = parsed(column) {
                change[name] = image;
            }
        }
        format!("{}\n", json!({ "eventName": row["event_name"], "dynamodb": change }))
    };
    rows.iter().map(line).collect()
}
