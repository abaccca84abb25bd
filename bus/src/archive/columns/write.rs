//! Writes the file.

use std::sync::Arc;

use anabranch_model::{Error, Result};
use bytes::Bytes;
use parquet::basic::{Compression, GzipLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::Result as FileResult;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{COLUMNS, Row, Shared, UNIQUE, UNORDERED, Values};
use crate::archive::read::Told;
use crate::archive::template::Names;
use crate::event::{Event, Origin};

/// Who wrote a file, in the form that readers know. The number is that of the layout and not of the program, so that a newer
/// program writes the same file over an older one.
const WRITER: &str = "anabranch version 1";
/// The fastest level: a batch is written while the next one is gathered.
const GZIP_LEVEL: u32 = 1;
/// Values of a column that are handed over at a time.
const AT_ONCE: usize = 1_024;

/// The file of these events, all of them documents of changes.
pub(in crate::archive) fn write(events: &[Event], names: &Names) -> Result<Bytes> {
    let shared = Shared::of(events, names);
    let mut rows = Vec::with_capacity(events.len());
    for event in events {
        let told = Told::parse(&event.data)
            .map_err(|why| Error::Invalid(format!("{} is no document of a change: {why}", event.origin)))?;
        rows.push(Row { told, event, shared: &shared });
    }
    let mut file = Vec::new();
    write_rows(&rows, &mut file).map_err(|error| Error::Corrupt(error.to_string()))?;
    Ok(file.into())
}

impl Shared {
    fn of(events: &[Event], names: &Names) -> Shared {
        let text = |text: Option<&str>| Bytes::copy_from_slice(text.unwrap_or_default().as_bytes());
        // A batch is of one shard.
        let shard = events.first().and_then(|event| match &event.origin {
            Origin::Shard { shard, .. } => Some(shard.as_str()),
            Origin::Queue { .. } => None,
        });
        Shared {
            keyspace: text(names.keyspace.as_deref()),
            table: text(names.table.as_deref()),
            shard: text(shard),
        }
    }
}

fn write_rows(rows: &[Row<'_>], file: &mut Vec<u8>) -> FileResult<()> {
    let declared = COLUMNS.map(|(column, _)| format!("{column};")).concat();
    let schema = parse_message_type(&format!("message change {{ {declared} }}"))?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties()?))?;
    let mut group = writer.next_row_group()?;
    for (_, values) in &COLUMNS {
        let Some(mut column) = group.next_column()? else { break };
        for rows in rows.chunks(AT_ONCE) {
            write_values(&mut column, values, rows)?;
        }
        column.close()?;
    }
    group.close()?;
    writer.close().map(drop)
}

fn properties() -> FileResult<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(WRITER.to_owned())
        .set_compression(Compression::GZIP(GzipLevel::try_new(GZIP_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for name in UNIQUE {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), false);
    }
    for name in UNORDERED {
        properties =
            properties.set_column_statistics_enabled(ColumnPath::from(name), EnabledStatistics::None);
    }
    Ok(properties.build())
}

fn write_values(
    column: &mut SerializedColumnWriter<'_>,
    values: &Values,
    rows: &[Row<'_>],
) -> FileResult<()> {
    // Values stand side by side, and the levels say which rows have one.
    let level = |there: bool| i16::from(there);
    match values {
        Values::Text(value) => {
            let values: Vec<_> = rows.iter().map(value).collect();
            let levels: Vec<_> = values.iter().map(|value| level(value.is_some())).collect();
            let values: Vec<_> = values.into_iter().flatten().map(ByteArray::from).collect();
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
        Values::Number(value) => {
            let values: Vec<_> = rows.iter().map(value).collect();
            let levels: Vec<_> = values.iter().map(|value| level(value.is_some())).collect();
            let values: Vec<_> = values.into_iter().flatten().collect();
            column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
    }
    Ok(())
}
