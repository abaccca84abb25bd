//! SubscribeToShard: records as they become durable, pushed as an event stream for five minutes.
//!
//! ```text
//!   initial-response ─▶ event … event ─▶ five minutes are over: the client subscribes again, behind the last number
//!                             ├──────────▶ the shard has ended: the last event names the shards that continue it
//!                             └──────────▶ an exception, if the stream is gone
//! ```

use std::time::Duration;

use anabranch_model::{Position, SequenceNumber, Shard, ShardId, StreamName};
use http::Response;
use serde::Deserialize;

use super::consumer;
use super::errors::{fault, in_use};
use super::events::Events;
use super::state::check_usable;
use super::stream::check_name;
use super::{position, shards};
use crate::answer::Answer;
use crate::context::Context;
use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::receive::Body;
use crate::time::Time;
use crate::validation::Validation;

/// How long a subscription lasts.
const LIFE: Duration = Duration::from_secs(300);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "ConsumerARN")]
    consumer_arn: Option<String>,
    shard_id: Option<String>,
    starting_position: Option<StartingPosition>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StartingPosition {
    r#type: Option<String>,
    sequence_number: Option<String>,
    timestamp: Option<Time>,
}

/// A subscription that has begun.
pub(super) struct Subscribed(Events);

impl Answer for Subscribed {
    fn render(self, protocol: Protocol) -> Result<Response<Body>, Fault> {
        Ok(self.0.render(protocol))
    }
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Subscribed, Fault> {
    let mut validation = Validation::default();
    validation
        .required("consumerARN", &request.consumer_arn)
        .length("consumerARN", request.consumer_arn.as_deref(), 1..=2048)
        .required("shardId", &request.shard_id)
        .required("startingPosition", &request.starting_position);
    check_name(&mut validation, "shardId", request.shard_id.as_deref());
    if let Some(start) = &request.starting_position {
        let fields = ["startingPosition.type", "startingPosition.sequenceNumber"];
        position::check(&mut validation, fields, &start.r#type, start.sequence_number.as_deref());
    }
    validation.done()?;
    let arn = request.consumer_arn.unwrap_or_default();
    let (stream, consumer) = consumer::of_consumer_arn(context, &arn).await?;
    check_usable(context, &stream).await?;
    let id = shards::parse_of(&stream, &request.shard_id.unwrap_or_default())?;
    let shard = shards::find(context, &stream, &id).await?;
    let position = match &request.starting_position {
        Some(start) => {
            let kind = start.r#type.as_deref().unwrap_or_default();
            position::parse(kind, start.sequence_number.as_deref(), start.timestamp)?
        }
        None => Position::Latest,
    };
    let behind = number_before(context, &stream, &shard, position).await?;
    let from = Position::After(behind);
    let follow = context.ports.streams.follow(&stream, &id, from).await.map_err(fault)?;
    let subscriptions = &context.kinesis.subscriptions;
    let arn = consumer.arn(context, &stream);
    let held =
        subscriptions.take(arn, id.clone(), context.clock.elapsed()).ok_or_else(|| refused(&stream, &id))?;
    Ok(Subscribed(Events::new(context, stream, id, follow, held, behind, LIFE)))
}

fn refused(stream: &StreamName, shard: &ShardId) -> Fault {
    in_use(format!("Another active subscription exists for this consumer: shard {shard} of stream {stream}."))
}

/// The number behind which the records of a position begin. It is told before the first record is there, so that a
/// client can go on from it, and nothing is read for it: a subscriber has a shard to itself.
async fn number_before(
    context: &Context,
    stream: &StreamName,
    shard: &Shard,
    position: Position,
) -> Result<SequenceNumber, Fault> {
    let settled = context.ports.streams.settle(stream, &shard.id, position).await.map_err(fault)?;
    Ok(match (settled, shard.ends_before) {
        (Position::At(number), _) => shards::before(number),
        (Position::After(number), _) => number,
        (_, Some(end)) => shards::before(end),
        _ => shards::before(shard.starts_at),
    })
}
