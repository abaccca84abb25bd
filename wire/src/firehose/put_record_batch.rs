//! PutRecordBatch.

use anabranch_model::{Error, SequenceNumber};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::definition;
use super::errors::{fault, invalid};
use super::put_record::{Record, append};
use crate::context::Context;
use crate::fault::Fault;
use crate::list::at_most;

/// Most records of one call.
const RECORDS_MAX: usize = 500;
/// Most bytes of one call.
const BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
    #[serde(default, deserialize_with = "at_most::<_, _, { RECORDS_MAX }>")]
    records: Vec<Record>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    failed_put_count: usize,
    encrypted: bool,
    request_responses: Vec<Entry>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    record_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    if !(1..=RECORDS_MAX).contains(&request.records.len()) {
        return Err(invalid(format!("A batch has 1 to {RECORDS_MAX} records.")));
    }
    let records = request.records.into_iter().map(Record::data).collect::<Result<Vec<Bytes>, _>>()?;
    let bytes: usize = records.iter().map(Bytes::len).sum();
    if bytes > BYTES_MAX {
        return Err(invalid(format!("A batch can have {BYTES_MAX} bytes at most.")));
    }
    let found = definition::find(context, request.delivery_stream_name).await?;
    let results = append(context, &found, records).await?;
    context.firehose.add(&found, bytes as u64, context.clock.elapsed());
    let failed_put_count = results.iter().filter(|result| result.is_err()).count();
    let entry = |result: Result<SequenceNumber, Error>| match result {
        Ok(sequence) => Entry { record_id: Some(format!("{sequence}")), ..Entry::default() },
        Err(error) => {
            let fault = fault(error);
            let (code, message) = (fault.code.into_owned(), fault.message);
            Entry { error_code: Some(code), error_message: Some(message), ..Entry::default() }
        }
    };
    let request_responses = results.into_iter().map(entry).collect();
    Ok(Response { failed_put_count, encrypted: false, request_responses })
}
