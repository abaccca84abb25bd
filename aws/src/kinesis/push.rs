//! Following with a registered consumer: Kinesis pushes what a shard takes, for five minutes at a time.
//!
//! ```text
//!   subscribe ──▶ events ──▶ end of the five minutes, silence, or a cut ──▶ subscribe behind the last event
//!       └─▶ the endpoint cannot do it ─▶ poll from the same position
//! ```
//!
//! What must hold: the next subscription starts behind the last event that was handed on, so nothing is skipped and
//! nothing comes twice, however a subscription ends.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_model::{
    Batch, Error, Follow, Next, Position, ReadLimit, Record, Result, SequenceNumber, ShardId, StreamName,
};
use aws_sdk_kinesis::operation::subscribe_to_shard::SubscribeToShardOutput;
use aws_sdk_kinesis::types::{
    ConsumerStatus, ShardIteratorType, StartingPosition, SubscribeToShardEvent, SubscribeToShardEventStream,
};
use futures_util::{StreamExt, stream};

use super::{CHANGE_PATIENCE, PATIENCE, Streams, action, translate};
use crate::call::Deadline;
use crate::failure::{Failure, Kind, Outcome};

/// How long a subscription may be silent. Kinesis sends an event every few seconds even when there is no record.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Longest name of a consumer, in characters.
const NAME_CHARS_MAX: usize = 128;

/// The registered consumer of one process.
#[derive(Debug)]
pub(super) struct FanOut {
    name: String,
    /// The consumer's full name by stream.
    registered: Mutex<HashMap<StreamName, String>>,
    /// The shards that are followed: a second subscription would end the first.
    taken: Mutex<HashSet<(StreamName, ShardId)>>,
}

impl FanOut {
    pub(super) fn new(name: &str) -> Result<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(allowed) {
            return Err(Error::Invalid(format!(
                "consumer name `{}` is not allowed: it must have 1 to {NAME_CHARS_MAX} of a-z, A-Z, 0-9, `_`, `.` and `-`",
                name.escape_debug()
            )));
        }
        Ok(FanOut { name: name.to_string(), registered: Mutex::default(), taken: Mutex::default() })
    }

    /// Forgets a stream that was removed.
    pub(super) fn forget(&self, stream: &StreamName) {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner).remove(stream);
    }

    fn take(self: &Arc<Self>, stream: &StreamName, shard: &ShardId) -> Option<Taken> {
        let key = (stream.clone(), shard.clone());
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.insert(key.clone()).then(|| Taken { fan_out: self.clone(), key })
    }
}

/// A shard that this follower has for itself until it is dropped.
struct Taken {
    fan_out: Arc<FanOut>,
    key: (StreamName, ShardId),
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.fan_out.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// One follower.
struct Push {
    streams: Streams,
    taken: Taken,
    /// Behind what was handed on; none behind the end or an error.
    position: Option<Position>,
    subscription: Option<SubscribeToShardOutput>,
    /// Subscriptions in a row that brought nothing, and since when their patience runs.
    fruitless: Option<(u32, Deadline)>,
    /// What follows in its place when the endpoint cannot push.
    poll: Option<Follow>,
}

impl Streams {
    /// Follows with pushes, or by polling if this process follows the shard already.
    pub(super) async fn subscribe(
        &self,
        fan_out: &Arc<FanOut>,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
    ) -> Result<Follow> {
        let Some(taken) = fan_out.take(stream, shard) else { return self.poll(stream, shard, from).await };
        // The first read says what does not exist, and makes `Latest` the end as it is now.
        let one = ReadLimit { records: 1, ..ReadLimit::default() };
        let first = self.read_batch(stream, shard, from, one).await?;
        let position = match (from, first.next) {
            (Position::Latest | Position::AtTimestamp(_), Next::At(next)) if first.records.is_empty() => next,
            (Position::Latest, Next::Ended(children)) => {
                let end = Batch { records: Vec::new(), next: Next::Ended(children), behind: Duration::ZERO };
                return Ok(Box::pin(stream::iter([Ok(end)])));
            }
            _ => from,
        };
        let push = Push {
            streams: self.clone(),
            taken,
            position: Some(position),
            subscription: None,
            fruitless: None,
            poll: None,
        };
        Ok(Box::pin(stream::unfold(push, |mut push| async move {
            let item = push.next().await?;
            Some((item, push))
        })))
    }
}

impl Push {
    async fn next(&mut self) -> Option<Result<Batch>> {
        if let Some(poll) = &mut self.poll {
            return poll.next().await;
        }
        loop {
            let position = self.position?;
            let step = match self.subscription.as_mut() {
                None => self.begin(position).await,
                Some(subscription) => {
                    let event = tokio::time::timeout(SILENCE_MAX, subscription.event_stream.recv()).await;
                    match event {
                        Ok(Ok(Some(SubscribeToShardEventStream::SubscribeToShardEvent(event)))) => {
                            self.event(event).await
                        }
                        // An event of a kind that came after this code.
                        Ok(Ok(Some(_))) => Ok(None),
                        Ok(Ok(None)) | Ok(Err(_)) | Err(_) => {
                            self.subscription = None;
                            Ok(None)
                        }
                    }
                }
            };
            match step {
                Ok(Some(batch)) => return Some(Ok(batch)),
                Ok(None) => {}
                Err(error) => {
                    self.position = None;
                    return Some(Err(error));
                }
            }
            if let Some(poll) = &mut self.poll {
                return poll.next().await;
            }
        }
    }

    /// What an event brings; none if it is only a sign of life.
    async fn event(&mut self, event: SubscribeToShardEvent) -> Result<Option<Batch>> {
        let records = event.records.into_iter().map(translate::record).collect::<Result<Vec<_>>>()?;
        let (stream, shard) = &self.taken.key;
        let children = event.child_shards.unwrap_or_default();
        let ended = !children.is_empty() || event.continuation_sequence_number.is_empty();
        let next = if ended {
            self.position = None;
            let named = children.iter().map(|child| translate::shard_id(&child.shard_id));
            let named = named.collect::<Result<Vec<_>>>()?;
            Next::Ended(match named.is_empty() {
                false => named,
                true => self.streams.children(stream, shard, self.streams.soon()).await?,
            })
        } else {
            let reached = translate::sequence(&event.continuation_sequence_number)?;
            let reached = Position::After(furthest(self.position, records.last(), reached));
            self.position = Some(reached);
            Next::At(reached)
        };
        self.fruitless = None;
        if records.is_empty() && !ended {
            return Ok(None);
        }
        let behind = Duration::from_millis(event.millis_behind_latest.max(0) as u64);
        Ok(Some(Batch { records, next, behind }))
    }

    /// Subscribes from a position, or turns to polling if the endpoint cannot push.
    async fn begin(&mut self, from: Position) -> Result<Option<Batch>> {
        let (stream, shard) = self.taken.key.clone();
        let patience = self.streams.caller.deadline(PATIENCE);
        let (rounds, deadline) = *self.fruitless.get_or_insert((0, patience));
        if rounds > 0 && !self.streams.caller.back_off(rounds, deadline).await {
            return Err(Error::Unavailable(format!(
                "Kinesis ends each subscription to shard `{shard}` at once"
            )));
        }
        self.fruitless = Some((rounds + 1, deadline));
        let consumer = self.streams.consumer(&self.taken.fan_out, &stream).await?;
        let start = starting_position(from)?;
        let request = || {
            self.streams
                .client
                .subscribe_to_shard()
                .consumer_arn(&consumer)
                .shard_id(shard.as_str())
                .starting_position(start.clone())
                .send()
        };
        match self.streams.caller.call(&action::SUBSCRIBE_TO_SHARD, deadline, request).await {
            Ok(subscription) => self.subscription = Some(subscription),
            // The last subscription of this consumer is not over yet.
            Err(failure) if failure.kind == Kind::InUse => {}
            // The answer was cut in its first event. Who answers is Kinesis: the shard has been read before.
            Err(failure) if failure.kind == Kind::Stranger && failure.detail.is_none() => {}
            Err(failure) if failure.kind == Kind::NotFound => {
                self.taken.fan_out.forget(&stream);
                // The consumer may be gone while the stream is not.
                let error = self.streams.missing(&stream, &shard, None, deadline).await;
                if !matches!(error, Error::ShardNotFound(..)) || rounds > 0 {
                    return Err(error);
                }
            }
            Err(failure) if cannot_push(&failure) => {
                tracing::info!(%stream, %shard, message = failure.message, "cannot push; polling");
                self.poll = Some(self.streams.poll(&stream, &shard, from).await?);
            }
            Err(failure) => return Err(failure.into()),
        }
        Ok(None)
    }
}

/// Behind which number the next subscription starts. A server that counts otherwise than Kinesis may name a number before
/// what it has sent, in the same event or a later one; nothing is to come twice for that.
fn furthest(position: Option<Position>, last: Option<&Record>, reached: SequenceNumber) -> SequenceNumber {
    let reached = last.map_or(reached, |last| last.sequence.max(reached));
    match position {
        Some(Position::After(number)) => number.max(reached),
        _ => reached,
    }
}

/// Whether the endpoint answers, but not to this.
fn cannot_push<D>(failure: &Failure<D>) -> bool {
    failure.kind == Kind::Unsupported
        || failure.kind == Kind::Away && failure.outcome == Outcome::Unknown && failure.detail.is_some()
}

fn starting_position(from: Position) -> Result<StartingPosition> {
    let builder = StartingPosition::builder();
    let builder = match from {
        Position::TrimHorizon => builder.r#type(ShardIteratorType::TrimHorizon),
        Position::Latest => builder.r#type(ShardIteratorType::Latest),
        Position::At(number) => {
            builder.r#type(ShardIteratorType::AtSequenceNumber).sequence_number(number.to_string())
        }
        Position::After(number) => {
            builder.r#type(ShardIteratorType::AfterSequenceNumber).sequence_number(number.to_string())
        }
        Position::AtTimestamp(moment) => {
            builder.r#type(ShardIteratorType::AtTimestamp).timestamp(translate::date_time(moment))
        }
    };
    builder.build().map_err(|error| Error::Invalid(error.to_string()))
}

/// The registration.
impl Streams {
    /// The full name of the consumer, registered and active.
    async fn consumer(&self, fan_out: &FanOut, stream: &StreamName) -> Result<String> {
        let known = fan_out.registered.lock().unwrap_or_else(PoisonError::into_inner).get(stream).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        let full_name = self.describe(stream, deadline).await?.stream_arn;
        let mut patience = deadline;
        let mut rounds = 0;
        let consumer = loop {
            if let Some((consumer, ConsumerStatus::Active)) =
                self.registered(fan_out, stream, &full_name, &mut patience).await?
            {
                break consumer;
            }
            rounds += 1;
            if !self.caller.back_off(rounds, patience).await {
                return Err(Error::StreamBusy(stream.clone()));
            }
        };
        let mut registered = fan_out.registered.lock().unwrap_or_else(PoisonError::into_inner);
        registered.insert(stream.clone(), consumer.clone());
        Ok(consumer)
    }

    /// The consumer as it is; none if it has only just been registered. The patience ends soon if nobody knows that.
    async fn registered(
        &self,
        fan_out: &FanOut,
        stream: &StreamName,
        full_name: &str,
        patience: &mut Deadline,
    ) -> Result<Option<(String, ConsumerStatus)>> {
        let deadline = *patience;
        let request = || {
            self.client.describe_stream_consumer().stream_arn(full_name).consumer_name(&fan_out.name).send()
        };
        match self.caller.call(&action::DESCRIBE_STREAM_CONSUMER, deadline, request).await {
            Ok(answer) => {
                let consumer = answer.consumer_description;
                let consumer = consumer.ok_or_else(|| super::strange("a description without a consumer"))?;
                return Ok(Some((consumer.consumer_arn, consumer.consumer_status)));
            }
            Err(failure) if failure.kind == Kind::NotFound => {}
            Err(failure) => return Err(failure.into()),
        }
        let request = || {
            self.client.register_stream_consumer().stream_arn(full_name).consumer_name(&fan_out.name).send()
        };
        match self.caller.call(&action::REGISTER_STREAM_CONSUMER, deadline, request).await {
            Ok(_) => Ok(None),
            // Someone else is registering it.
            Err(failure) if failure.kind == Kind::InUse => Ok(None),
            // This call may have done so before its answer was lost.
            Err(failure) if failure.outcome == Outcome::Unknown => {
                *patience = deadline.min(self.caller.absence());
                Ok(None)
            }
            Err(failure) => Err(self.busy(stream, failure)),
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::Timestamp;

    use super::*;

    #[test]
    fn a_subscription_never_goes_back() {
        let number = SequenceNumber::from_u128;
        let at = |place: u128| Some(Position::After(number(place)));
        let moment = Some(Position::AtTimestamp(Timestamp::EPOCH));
        for (position, reached, next) in [
            (at(7), 9, 9),
            (at(7), 3, 7),
            (moment, 3, 3),
            // The record at the position itself may still be to come.
            (Some(Position::At(number(7))), 3, 3),
        ] {
            assert_eq!(furthest(position, None, number(reached)), number(next), "{position:?}, {reached}");
        }
    }
}
