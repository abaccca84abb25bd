//! GetShardIterator.

use anabranch_model::{Position, Shard, StreamName};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid, of_shard};
use super::iterator::Place;
use super::state::check_usable;
use super::stream::{check_name, resolve};
use super::{position, shards};
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    shard_id: Option<String>,
    shard_iterator_type: Option<String>,
    starting_sequence_number: Option<String>,
    timestamp: Option<Time>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    shard_iterator: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("shardId", &request.shard_id);
    check_name(&mut validation, "shardId", request.shard_id.as_deref());
    let sequence = request.starting_sequence_number.as_deref();
    let fields = ["shardIteratorType", "startingSequenceNumber"];
    position::check(&mut validation, fields, &request.shard_iterator_type, sequence);
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let kind = request.shard_iterator_type.unwrap_or_default();
    let shard = shards::parse_of(&stream, &request.shard_id.unwrap_or_default())?;
    check_start(&kind, sequence)?;
    let position = position::parse(&kind, sequence, request.timestamp)?;
    check_arrived(context, position)?;
    let found = async {
        check_usable(context, &stream).await?;
        shards::find(context, &stream, &shard).await
    };
    let found = found.await.map_err(|fault| of_shard(fault, &stream, &shard))?;
    let position = settled(context, &stream, &found, position).await?;
    let place = Place { stream, shard, position };
    Ok(Response { shard_iterator: place.seal(context).await? })
}

/// Refuses a start that contradicts itself.
fn check_start(kind: &str, sequence: Option<&str>) -> Result<(), Fault> {
    let wrong = match (kind, sequence) {
        ("TRIM_HORIZON" | "LATEST", Some(_)) => "also a",
        ("AT_SEQUENCE_NUMBER" | "AFTER_SEQUENCE_NUMBER", None) => "no",
        _ => return Ok(()),
    };
    Err(invalid(format!(
        "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber or (2) \
         TRIM_HORIZON or LATEST and no StartingSequenceNumber. Request specified {kind} and {wrong} \
         StartingSequenceNumber."
    )))
}

/// Refuses a start that is not there yet.
fn check_arrived(context: &Context, position: Position) -> Result<(), Fault> {
    match position {
        Position::AtTimestamp(time) if time > context.clock.now() => Err(invalid(format!(
            "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. timestampInMillis: {}, \
             currentTimestampInMillis: {}",
            time.as_millis(),
            context.clock.now().as_millis()
        ))),
        _ => Ok(()),
    }
}

/// A position that means the same whenever it is read: the newest record is that of now. Nothing is read for it, because
/// only reads count against the limits of a shard.
async fn settled(
    context: &Context,
    stream: &StreamName,
    shard: &Shard,
    position: Position,
) -> Result<Position, Fault> {
    match position {
        Position::Latest => match shard.ends_before {
            Some(end) => Ok(Position::At(end)),
            None => context.ports.streams.settle(stream, &shard.id, position).await.map_err(fault),
        },
        Position::At(sequence) | Position::After(sequence) => match shard.ends_before {
            Some(end) if sequence >= end => Err(invalid(format!(
                "StartingSequenceNumber {sequence} used in GetShardIterator on shard {} in stream {stream} under account \
                 {ACCOUNT} is invalid because it lies behind the end of the shard.",
                shard.id
            ))),
            _ => Ok(position),
        },
        Position::TrimHorizon | Position::AtTimestamp(_) => Ok(position),
    }
}
