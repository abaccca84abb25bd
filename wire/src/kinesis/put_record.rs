//! PutRecord.

use anabranch_model::limits::PARTITION_KEY_CHARS_MAX;
use anabranch_model::{HashKey, NewRecord};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid};
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
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    shard_id: String,
    sequence_number: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("data", &request.data).required("partitionKey", &request.partition_key).length(
        "partitionKey",
        request.partition_key.as_deref(),
        1..=PARTITION_KEY_CHARS_MAX,
    );
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let explicit = request.explicit_hash_key.as_deref().map(str::parse::<HashKey>).transpose();
    let record = NewRecord {
        partition_key: request.partition_key.unwrap_or_default().into(),
        explicit_hash_key: explicit.map_err(|error| invalid(error.to_string()))?,
        data: request.data.unwrap_or_default().0,
    };
    let mut results = context.ports.streams.append(&stream, vec![record]).await.map_err(fault)?;
    let result = results.pop().ok_or_else(|| Fault::server("InternalFailure", "the record has no result"))?;
    let appended = result.map_err(fault)?;
    Ok(Response { shard_id: appended.shard.to_string(), sequence_number: appended.sequence.to_string() })
}
