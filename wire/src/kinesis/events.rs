//! The events of a subscription, made one at a time from what a follower gets.

use std::time::Duration;

use anabranch_model::{Batch, Error, Follow, Next, Position, Record, SequenceNumber, ShardId, StreamName};
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Response;
use http::header::CONTENT_TYPE;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde::Serialize;

use super::errors::fault;
use super::records::RecordShape;
use super::settings;
use super::shards::{self, ChildShard};
use super::subscriptions::Held;
use crate::context::Context;
use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::receive::{Body, BodyError};

/// Silence after which an event without records is sent, so that both sides notice when the other is gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Bytes of records after which an event is sent.
const EVENT_BYTES: usize = 1 << 20;

/// A subscription under way.
pub(super) struct Events {
    context: Context,
    stream: StreamName,
    shard: ShardId,
    follow: Follow,
    held: Held,
    /// When it ends, by the stopwatch.
    ends_at: Duration,
    /// The last number that was sent.
    continuation: SequenceNumber,
    /// What is left of the batch that came last.
    rest: Option<Rest>,
}

/// A part of a batch that was not sent yet.
struct Rest {
    records: std::iter::Peekable<std::vec::IntoIter<Record>>,
    next: Next,
    behind: Duration,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    records: Vec<RecordShape>,
    /// Absent in the last event of a shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation_sequence_number: Option<String>,
    millis_behind_latest: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    child_shards: Option<Vec<ChildShard>>,
}

/// What happens next.
enum Step {
    Event(Event),
    Exception(Fault),
    End,
}

impl Events {
    /// Begins to send what `follow` gives.
    pub(super) fn new(
        context: &Context,
        stream: StreamName,
        shard: ShardId,
        follow: Follow,
        held: Held,
        continuation: SequenceNumber,
        life: Duration,
    ) -> Self {
        let ends_at = context.clock.elapsed() + life;
        let context = context.clone();
        Events { context, stream, shard, follow, held, ends_at, continuation, rest: None }
    }

    /// The answer, whose body goes on until the subscription ends.
    pub(super) fn render(self, protocol: Protocol) -> Response<Body> {
        let initial = message("event", ":event-type", "initial-response", protocol, &Empty {});
        let events = stream::unfold(Some(self), move |events| async move {
            let mut events = events?;
            match events.step().await {
                Step::Event(event) => {
                    let bytes = message("event", ":event-type", "SubscribeToShardEvent", protocol, &event);
                    Some((bytes, Some(events)))
                }
                Step::Exception(fault) => {
                    let told = Told { message: fault.message };
                    Some((message("exception", ":exception-type", &fault.code, protocol, &told), None))
                }
                Step::End => None,
            }
        });
        let frames =
            stream::iter([initial]).chain(events).map(|bytes| Ok::<_, BodyError>(Frame::data(bytes)));
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        let content_type = http::HeaderValue::from_static("application/vnd.amazon.eventstream");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }

    async fn step(&mut self) -> Step {
        loop {
            if let Some(rest) = self.rest.take() {
                return self.send(rest).await;
            }
            let left = self.ends_at.saturating_sub(self.context.clock.elapsed());
            if left.is_zero() {
                return Step::End;
            }
            let mut stop = self.context.stop.clone();
            let news = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return Step::End,
                () = self.held.replaced() => return Step::End,
                news = tokio::time::timeout(SILENCE_MAX.min(left), self.follow.next()) => news,
            };
            match news {
                Ok(Some(Ok(Batch { records, next, behind }))) => {
                    self.rest = Some(Rest { records: records.into_iter().peekable(), next, behind });
                }
                Ok(Some(Err(Error::Damaged { from, resume_at, .. }))) => {
                    let (stream, shard) = (&self.stream, &self.shard);
                    tracing::error!(%stream, %shard, %from, %resume_at, "damaged records are passed over");
                    let from = Position::At(resume_at);
                    match self.context.ports.streams.follow(stream, shard, from).await {
                        Ok(follow) => self.follow = follow,
                        Err(error) => return exception(error),
                    }
                }
                Ok(Some(Err(error))) => return exception(error),
                Ok(None) => return Step::End,
                // Nothing came: the subscription has caught up.
                Err(_) => return Step::Event(self.event(Vec::new(), Duration::ZERO)),
            }
        }
    }

    async fn send(&mut self, mut rest: Rest) -> Step {
        let encryption = match settings::of_records(&self.context, &self.stream).await {
            Ok(settings) => settings.key_id.is_some().then_some("KMS"),
            Err(fault) => return Step::Exception(for_events(fault)),
        };
        let (mut records, mut bytes, mut last) = (Vec::new(), 0, None);
        while let Some(record) = rest.records.next_if(|next| bytes == 0 || bytes + next.size() <= EVENT_BYTES)
        {
            bytes += record.size().max(1);
            (self.continuation, last) = (record.sequence, Some(record.arrival));
            records.push(RecordShape::of(record, encryption));
        }
        if rest.records.peek().is_some() {
            let behind = last.map_or(rest.behind, |arrival| self.context.clock.now().since(arrival));
            self.rest = Some(rest);
            return Step::Event(self.event(records, behind));
        }
        let mut event = self.event(records, rest.behind);
        match rest.next {
            Next::At(Position::After(number)) => self.continuation = self.continuation.max(number),
            Next::At(_) => {}
            Next::Ended(ids) => {
                match shards::children(&self.context, &self.stream, &self.shard, &ids).await {
                    Ok(children) => event.child_shards = Some(children),
                    Err(fault) => return Step::Exception(for_events(fault)),
                }
                event.continuation_sequence_number = None;
                self.ends_at = Duration::ZERO;
            }
        }
        Step::Event(event)
    }

    fn event(&self, records: Vec<RecordShape>, behind: Duration) -> Event {
        Event {
            records,
            continuation_sequence_number: Some(self.continuation.to_string()),
            millis_behind_latest: u64::try_from(behind.as_millis()).unwrap_or(u64::MAX),
            child_shards: None,
        }
    }
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Told {
    message: String,
}

fn exception(error: Error) -> Step {
    Step::Exception(for_events(fault(error)))
}

/// Events have one exception for everything that is not the caller's doing.
fn for_events(fault: Fault) -> Fault {
    if fault.status.is_server_error() {
        Fault { code: "InternalFailureException".into(), ..fault }
    } else {
        fault
    }
}

/// A message of the event stream.
fn message<T: Serialize>(
    kind: &'static str,
    name: &'static str,
    value: &str,
    protocol: Protocol,
    payload: &T,
) -> Bytes {
    let text = |text: &str| HeaderValue::String(text.to_owned().into());
    // Texts and numbers: there is nothing that cannot be spelled.
    let message = Message::new(protocol.encode(payload).unwrap_or_default())
        .add_header(Header::new(":message-type", text(kind)))
        .add_header(Header::new(name, text(value)))
        .add_header(Header::new(":content-type", text(protocol.content_type())));
    let mut bytes = Vec::new();
    if let Err(error) = write_message_to(&message, &mut bytes) {
        tracing::error!(%error, "an event cannot be framed");
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use aws_smithy_eventstream::frame::read_message_from;

    use super::*;

    #[test]
    fn messages_say_what_they_are() {
        let bytes = message("event", ":event-type", "initial-response", Protocol::Json11, &Empty {});
        let read = read_message_from(bytes).unwrap();
        assert_eq!(&read.payload()[..], b"{}");
        let headers: Vec<_> = read
            .headers()
            .iter()
            .map(|header| (header.name().as_str(), header.value().as_string().unwrap().as_str()))
            .collect();
        assert_eq!(
            headers,
            [
                (":message-type", "event"),
                (":event-type", "initial-response"),
                (":content-type", "application/x-amz-json-1.1")
            ]
        );
    }
}
