//! GetShardIterator.

use anabranch_model::{Batch, Error, Next, Position, ReadLimit, ShardId, StreamName};
use serde::{Deserialize, Serialize};

use super::ITERATOR;
use super::iterator::Place;
use super::numbers::{sequence, shard};
use super::stream::{Named, find, stream_not_found};
use crate::context::Context;
use crate::dynamodb::{fault, not_found};
use crate::fault::Fault;
use crate::validation::Validation;

const TYPES: [&str; 4] = ["TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_arn: Option<String>,
    shard_id: Option<String>,
    shard_iterator_type: Option<String>,
    sequence_number: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    shard_iterator: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let kind = request.shard_iterator_type.as_deref();
    let mut validation = Validation::default();
    validation
        .required("streamArn", &request.stream_arn)
        .required("shardId", &request.shard_id)
        .required("shardIteratorType", &request.shard_iterator_type)
        .one_of("shardIteratorType", kind, &TYPES)
        .done()?;
    let given = request.stream_arn.unwrap_or_default();
    let named = Named::parse(&given)?;
    let view = find(context, &named).await?.ok_or_else(|| stream_not_found(&given))?.view;
    let shard = shard(request.shard_id.as_deref().unwrap_or_default())?;
    let numbered = matches!(kind, Some("AT_SEQUENCE_NUMBER" | "AFTER_SEQUENCE_NUMBER"));
    let position = match (kind, request.sequence_number.as_deref()) {
        (_, Some(_)) if !numbered => {
            return Err(Fault::validation(format!(
                "SequenceNumber must not be given for the ShardIteratorType {}",
                kind.unwrap_or_default()
            )));
        }
        (Some("TRIM_HORIZON"), _) => Position::TrimHorizon,
        (Some("LATEST"), _) => Position::Latest,
        (_, None) => {
            return Err(Fault::validation(format!(
                "SequenceNumber must be given for the ShardIteratorType {}",
                kind.unwrap_or_default()
            )));
        }
        (Some("AT_SEQUENCE_NUMBER"), Some(number)) => Position::At(sequence(number)?),
        (_, Some(number)) => Position::After(sequence(number)?),
    };
    let position = resolved(context, &named.stream, &shard, position).await.map_err(|error| match error {
        Error::StreamNotFound(_) => stream_not_found(&given),
        Error::ShardNotFound(..) => not_found("Requested resource not found: Shard does not exist"),
        other => fault(other),
    })?;
    let place = Place { stream: named.stream, shard, position, note: view };
    place.check_trimmed(context).await?;
    Ok(Response { shard_iterator: place.seal(context, ITERATOR).await? })
}

/// A position of a shard that exists; the latest is what is the latest now.
pub(crate) async fn resolved(
    context: &Context,
    stream: &StreamName,
    shard: &ShardId,
    position: Position,
) -> anabranch_model::Result<Position> {
    let limit = ReadLimit { records: 1, bytes: 1 };
    match context.ports.tables.changes().read(stream, shard, position, limit).await {
        Ok(Batch { next: Next::At(latest), .. }) if position == Position::Latest => Ok(latest),
        // Whoever reads from there passes over what is damaged.
        Ok(_) | Err(Error::Damaged { .. }) => Ok(position),
        Err(error) => Err(error),
    }
}
