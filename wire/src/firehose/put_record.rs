//! PutRecord.

use anabranch_model::{Error, SequenceNumber};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::buffer;
use super::definition::{self, Definition};
use super::errors::{fault, invalid, not_found};
use crate::binary::Binary;
use crate::context::Context;
use crate::fault::Fault;

/// Largest record.
const RECORD_BYTES_MAX: usize = 1_024_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
    record: Option<Record>,
}

/// A record as senders spell it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Record {
    data: Option<Binary>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    record_id: String,
    encrypted: bool,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let record = request.record.ok_or_else(|| invalid("Record is missing."))?.data()?;
    let found = definition::find(context, request.delivery_stream_name).await?;
    let bytes = record.len() as u64;
    let mut results = append(context, &found, vec![record]).await?;
    let result = results.pop().ok_or_else(|| Fault::server("InternalFailure", "the record has no result"))?;
    let sequence = result.map_err(fault)?;
    context.firehose.add(&found, bytes, context.clock.elapsed());
    Ok(Response { record_id: sequence.to_string(), encrypted: false })
}

/// Makes records durable. One whose delivery stream goes at the same time has none.
pub(super) async fn append(
    context: &Context,
    found: &Definition,
    records: Vec<Bytes>,
) -> Result<Vec<Result<SequenceNumber, Error>>, Fault> {
    let _open = context.firehose.putting(&found.name).await;
    buffer::append(&context.ports, &found.name, records).await.map_err(|error| match error {
        Error::StreamNotFound(_) => not_found(&found.name),
        other => fault(other),
    })
}

impl Record {
    /// The payload.
    pub(super) fn data(self) -> Result<Bytes, Fault> {
        let data = self.data.ok_or_else(|| invalid("Data of a record is missing."))?.0;
        if data.len() > RECORD_BYTES_MAX {
            return Err(invalid(format!("A record can have {RECORD_BYTES_MAX} bytes at most.")));
        }
        Ok(data)
    }
}
