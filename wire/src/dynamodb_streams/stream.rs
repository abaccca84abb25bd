//! Streams by their ARNs, and what is remembered of those that have ended.
//!
//! The label in an ARN is the time when the stream began and its name, so that a stream is found without asking
//! which table has it now. A stream can be read for a day after it ended, when its table may be gone: how it looked is
//! kept in a document.

use std::collections::BTreeMap;

use anabranch_model::admin::{Document, Owner};
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::table::TableSummary;
use anabranch_model::{Error, StreamName, TableName, Timestamp};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::dynamodb::{Element, elements, fault, not_found, view_name};
use crate::fault::Fault;

const KIND: &str = "change-stream";
/// Characters of the time in a label.
const TIME_CHARS: usize = "2026-01-01T00:00:00.000".len();

/// A stream as its ARN names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) table: TableName,
    pub(crate) label: String,
    pub(crate) stream: StreamName,
}

/// What is to be known of a stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) table: String,
    pub(crate) label: String,
    pub(crate) view: String,
    pub(crate) key: Vec<Element>,
    pub(crate) created_at_ms: u64,
    /// The keyspace, if the table belongs to one.
    #[serde(default)]
    pub(crate) keyspace: Option<String>,
    /// Whether changes are still written down.
    #[serde(skip)]
    pub(crate) enabled: bool,
}

/// The label of the stream of a table, if it has one.
pub(crate) fn label_of(summary: &TableSummary) -> Option<String> {
    summary.changes.as_ref().map(|stream| label(stream, begun_at(summary)))
}

/// When the stream of a table was turned on. A store that does not tell has had it as long as the table.
fn begun_at(summary: &TableSummary) -> Timestamp {
    summary.changes_since.unwrap_or(summary.created_at)
}

/// The label of a stream that began at this time.
fn label(stream: &StreamName, begun_at: Timestamp) -> String {
    let millis = i64::try_from(begun_at.as_millis()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    format!("{}-{stream}", time.strftime("%Y-%m-%dT%H:%M:%S.%3f"))
}

impl Named {
    /// The stream with this ARN.
    pub(super) fn parse(arn: &str) -> Result<Named, Fault> {
        let resource =
            arn.splitn(6, ':').nth(5).filter(|_| arn.starts_with("arn:") && arn.contains(":dynamodb:"));
        let parts = resource.and_then(|resource| resource.strip_prefix("table/")?.split_once("/stream/"));
        let (table, label) = parts.ok_or_else(|| {
            Fault::validation(format!("Invalid StreamArn: Invalid ARN provided as input {arn:.1024}"))
        })?;
        Named::of(table, label).ok_or_else(|| stream_not_found(arn))
    }

    /// The stream of a table with this label.
    pub(crate) fn of(table: &str, label: &str) -> Option<Named> {
        let stream = label.get(TIME_CHARS..)?.strip_prefix('-')?;
        Some(Named {
            table: TableName::new(table).ok()?,
            label: label.to_owned(),
            stream: StreamName::new(stream).ok()?,
        })
    }
}

/// The ARN of a stream.
pub(super) fn arn(context: &Context, table: &str, label: &str) -> String {
    context.arn("dynamodb", &format!("table/{table}/stream/{label}"))
}

/// There is no such stream.
pub(super) fn stream_not_found(arn: &str) -> Fault {
    not_found(format!("Requested resource not found: Stream: {arn:.1024} not found"))
}

/// What is to be known of the stream of a table, if it has one.
pub(crate) fn of_table(summary: &TableSummary) -> Option<(StreamName, Known)> {
    let stream = summary.changes.clone()?;
    let known = Known {
        table: summary.name.to_string(),
        label: label(&stream, begun_at(summary)),
        view: view_name(summary.options.changes?).to_owned(),
        key: elements(&summary.options.key),
        created_at_ms: begun_at(summary).as_millis(),
        keyspace: summary.options.keyspace.as_ref().map(|shape| shape.keyspace.clone()),
        enabled: true,
    };
    Some((stream, known))
}

/// Keeps what is to be known of the stream of a table, for when it has ended.
pub(crate) async fn remember(context: &Context, summary: &TableSummary) -> Result<(), Fault> {
    let Some((stream, known)) = of_table(summary) else { return Ok(()) };
    let value = serde_json::to_vec(&known).unwrap_or_default();
    let document = Document::new(stream.as_str(), value);
    context.ports.admin.put_documents(&Owner::Store, KIND, vec![document]).await.map_err(fault)
}

/// What is known of a stream: of its table if it has it still, otherwise of the document.
pub(crate) async fn find(context: &Context, named: &Named) -> Result<Option<Known>, Fault> {
    let current = match context.ports.tables.table(&named.table).await {
        Ok(summary) => of_table(&summary).filter(|(stream, _)| *stream == named.stream),
        Err(Error::TableNotFound(_)) => None,
        Err(error) => return Err(fault(error)),
    };
    let known = match current {
        Some((_, known)) => Some(known),
        None => {
            let name = named.stream.as_str();
            let document = context.ports.admin.document(&Owner::Store, KIND, name).await.map_err(fault)?;
            document.and_then(|bytes| serde_json::from_slice::<Known>(&bytes).ok())
        }
    };
    Ok(known.filter(|known| known.label == named.label && known.table == named.table.as_str()))
}

/// The streams that have ended and can still be read. What is remembered of others is forgotten.
async fn ended(context: &Context) -> Result<Vec<Known>, Fault> {
    let (mut found, mut gone, mut after) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let page = context
            .ports
            .admin
            .documents(&Owner::Store, KIND, after.as_deref(), 1_000)
            .await
            .map_err(fault)?;
        for document in &page.entries {
            let stream = StreamName::new(&document.name).map_err(fault)?;
            match context.ports.tables.changes().shards(&stream, None, 1).await {
                Ok(_) => found.extend(serde_json::from_slice::<Known>(&document.value).ok()),
                Err(Error::StreamNotFound(_)) => gone.push(document.name.clone()),
                Err(error) => return Err(fault(error)),
            }
        }
        after = page.entries.last().map(|document| document.name.clone());
        if !page.more || after.is_none() {
            break;
        }
    }
    for names in gone.chunks(100) {
        context.ports.admin.delete_documents(&Owner::Store, KIND, names.to_vec()).await.map_err(fault)?;
    }
    Ok(found)
}

/// The streams that can be read, of one table or of all.
pub(crate) async fn all_of(context: &Context, table: Option<&TableName>) -> Result<Vec<Known>, Fault> {
    let place = |known: Known| ((known.table.clone(), known.label.clone()), known);
    let ended = ended(context).await?.into_iter();
    let ended = ended.filter(|known| table.is_none_or(|table| table.as_str() == known.table));
    let mut found: BTreeMap<_, _> = ended.map(place).collect();
    let mut names = Vec::from_iter(table.cloned());
    let mut after = None;
    while table.is_none() {
        let page = context.ports.tables.tables(after.as_ref(), PAGE_ENTRIES_MAX).await.map_err(fault)?;
        after = page.entries.last().cloned();
        names.extend(page.entries);
        if !page.more || after.is_none() {
            break;
        }
    }
    for name in names {
        match context.ports.tables.table(&name).await {
            Ok(summary) => found.extend(of_table(&summary).map(|(_, known)| place(known))),
            // It was deleted since it was listed, or never was there.
            Err(Error::TableNotFound(_)) => {}
            Err(error) => return Err(fault(error)),
        }
    }
    Ok(found.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_its_stream() {
        let stream = StreamName::new("changes-42").unwrap();
        let label = label(&stream, Timestamp::from_millis(1_763_000_000_123));
        assert_eq!(label, "2025-11-13T02:13:20.123-changes-42");
        let named =
            Named::parse(&format!("arn:aws:dynamodb:us-east-1:0:table/orders/stream/{label}")).unwrap();
        assert_eq!(named, Named { table: TableName::new("orders").unwrap(), label, stream });
    }

    #[test]
    fn other_texts_name_no_stream() {
        for text in [
            "",
            "orders",
            "arn:aws:dynamodb:us-east-1:0:table/orders",
            "arn:aws:kinesis:us-east-1:0:table/orders/stream/2025-11-13T02:13:20.123-changes-1",
        ] {
            assert_eq!(Named::parse(text).unwrap_err().code, "ValidationException", "{text}");
        }
        for text in [
            "arn:aws:dynamodb:us-east-1:0:table/orders/stream/",
            "arn:aws:dynamodb:us-east-1:0:table/orders/stream/2026",
            "arn:aws:dynamodb:us-east-1:0:table/orders/stream/2025-11-13T02:13:20.123-a/b",
            "arn:aws:dynamodb:us-east-1:0:table/orders/stream/üüüüüüüüüüüüüüüüüüü",
        ] {
            assert_eq!(Named::parse(text).unwrap_err().code, "ResourceNotFoundException", "{text}");
        }
    }
}
