//! GetShardIterator.

use anabranch_model::Position;
use serde::{Deserialize, Serialize};

use super::ITERATOR;
use super::faults::{fault, invalid, retold};
use super::stream::find_by_arn;
use crate::context::Context;
use crate::dynamodb_streams::iterator::Place;
use crate::dynamodb_streams::numbers::{sequence, shard};
use crate::dynamodb_streams::resolved;
use crate::fault::Fault;
use crate::validation::Validation;

const TYPES: [&str; 4] = ["TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    stream_arn: Option<String>,
    shard_id: Option<String>,
    shard_iterator_type: Option<String>,
    sequence_number: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    shard_iterator: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let kind = request.shard_iterator_type.as_deref();
    Validation::default()
        .required("streamArn", &request.stream_arn)
        .required("shardId", &request.shard_id)
        .required("shardIteratorType", &request.shard_iterator_type)
        .one_of("shardIteratorType", kind, &TYPES)
        .done()
        .map_err(retold)?;
    let (named, _, _) = find_by_arn(context, request.stream_arn.as_deref().unwrap_or_default()).await?;
    let shard = shard(request.shard_id.as_deref().unwrap_or_default()).map_err(retold)?;
    let position = match (kind, request.sequence_number.as_deref()) {
        (Some("TRIM_HORIZON"), None) => Position::TrimHorizon,
        (Some("LATEST"), None) => Position::Latest,
        (Some("AT_SEQUENCE_NUMBER"), Some(number)) => Position::At(sequence(number).map_err(retold)?),
        (Some("AFTER_SEQUENCE_NUMBER"), Some(number)) => Position::After(sequence(number).map_err(retold)?),
        _ => {
            return Err(invalid(
                "A sequence number is given if, and only if, the type of the iterator asks for one",
            ));
        }
    };
    let position = resolved(context, &named.stream, &shard, position).await.map_err(fault)?;
    let place = Place { stream: named.stream, shard, position, note: named.table.to_string() };
    place.check_trimmed(context).await.map_err(retold)?;
    Ok(Response { shard_iterator: place.seal(context, ITERATOR).await? })
}
