//! PutRecords: every record has its own result.

use anabranch_model::limits::{APPEND_BYTES_MAX, APPEND_RECORDS_MAX};
use anabranch_model::{Appended, Error, NewRecord};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid};
use super::records::Incoming;
use super::settings;
use super::shard_numbers::ShardNumbers;
use super::state::check_usable;
use super::stream::resolve;
use crate::binary::Binary;
use crate::context::Context;
use crate::fault::Fault;
use crate::list::some_at_most;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    #[serde(default, deserialize_with = "some_at_most::<_, _, { APPEND_RECORDS_MAX }>")]
    records: Option<Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    data: Option<Binary>,
    partition_key: Option<String>,
    explicit_hash_key: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    failed_record_count: usize,
    records: Vec<EntryResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encryption_type: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum EntryResult {
    #[serde(rename_all = "PascalCase")]
    Stored { sequence_number: String, shard_id: String },
    #[serde(rename_all = "PascalCase")]
    Failed { error_code: String, error_message: String },
}

/// Bytes from the network become records here; the words of AWS end.
pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("records", &request.records);
    let entries = request.records.unwrap_or_default();
    let count = entries.len();
    let shown = if count == 0 { "[]".to_owned() } else { format!("[{count} records]") };
    validation.size("records", shown, count, 1..=APPEND_RECORDS_MAX);
    let incoming = checked(&mut validation, entries);
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let settings = settings::load(context, &stream).await?;
    let records = admitted(&mut validation, incoming, settings.record_bytes_max())?;
    check_usable(context, &stream).await?;
    let numbers = ShardNumbers::of(&stream, &settings);
    let sizes = numbers.sizes(&records);
    let results = context.ports.streams.append(&stream, records).await.map_err(fault)?;
    numbers.have_put(&sizes, &results);
    let failed = results.iter().filter(|result| result.is_err()).count();
    Ok(Response {
        failed_record_count: failed,
        records: results.into_iter().map(EntryResult::from).collect(),
        encryption_type: settings.key_id.is_some().then_some("KMS"),
    })
}

fn checked(validation: &mut Validation, entries: Vec<Entry>) -> Vec<Incoming> {
    let incoming = entries.into_iter().map(|entry| Incoming {
        data: entry.data,
        partition_key: entry.partition_key,
        explicit_hash_key: entry.explicit_hash_key,
    });
    let incoming: Vec<Incoming> = incoming.collect();
    for (index, record) in incoming.iter().enumerate() {
        record.check(validation, format_args!("records.{}.member.", index + 1));
    }
    incoming
}

fn admitted(
    validation: &mut Validation,
    incoming: Vec<Incoming>,
    bytes_max: usize,
) -> Result<Vec<NewRecord>, Fault> {
    for (index, record) in incoming.iter().enumerate() {
        record.check_size(validation, format_args!("records.{}.member.", index + 1), bytes_max);
    }
    validation.done()?;
    let records: Vec<NewRecord> =
        incoming.into_iter().map(Incoming::into_record).collect::<Result<_, _>>()?;
    let bytes: usize = records.iter().map(NewRecord::size).sum();
    if records.len() > 1 && bytes > APPEND_BYTES_MAX {
        return Err(invalid(format!("Records size exceeds {} MB limit", APPEND_BYTES_MAX >> 20)));
    }
    Ok(records)
}

impl From<Result<Appended, Error>> for EntryResult {
    fn from(result: Result<Appended, Error>) -> Self {
        match result {
            Ok(appended) => EntryResult::Stored {
                sequence_number: appended.sequence.to_string(),
                shard_id: appended.shard.to_string(),
            },
            Err(error) => {
                let fault = fault(error);
                EntryResult::Failed { error_code: fault.code.into_owned(), error_message: fault.message }
            }
        }
    }
}
