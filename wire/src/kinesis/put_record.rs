//! PutRecord.

use serde::{Deserialize, Serialize};

use super::errors::fault;
use super::position::SEQUENCE;
use super::records::Incoming;
use super::settings;
use super::shard_numbers::ShardNumbers;
use super::state::check_usable;
use super::stream::resolve;
use crate::binary::Binary;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    data: Option<Binary>,
    partition_key: Option<String>,
    explicit_hash_key: Option<String>,
    /// Records of one caller come in order whatever it says: an acknowledged record has a smaller number.
    sequence_number_for_ordering: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    shard_id: String,
    sequence_number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    encryption_type: Option<&'static str>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    let ordering = request.sequence_number_for_ordering.as_deref();
    validation.pattern("sequenceNumberForOrdering", ordering, SEQUENCE);
    let incoming = Incoming {
        data: request.data,
        partition_key: request.partition_key,
        explicit_hash_key: request.explicit_hash_key,
    };
    incoming.check(&mut validation, "");
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let settings = settings::load(context, &stream).await?;
    incoming.check_size(&mut validation, "", settings.record_bytes_max());
    validation.done()?;
    check_usable(context, &stream).await?;
    let record = incoming.into_record()?;
    let numbers = ShardNumbers::of(&stream, &settings);
    let sizes = numbers.sizes(std::slice::from_ref(&record));
    let mut results = context.ports.streams.append(&stream, vec![record]).await.map_err(fault)?;
    numbers.have_put(&sizes, &results);
    let result = results.pop().ok_or_else(|| Fault::server("InternalFailure", "the record has no result"))?;
    let appended = result.map_err(fault)?;
    Ok(Response {
        shard_id: appended.shard.to_string(),
        sequence_number: appended.sequence.to_string(),
        encryption_type: settings.key_id.is_some().then_some("KMS"),
    })
}
