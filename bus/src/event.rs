//! What travels through a bot.

use anabranch_consumer::{Received, ShardInfo};
use anabranch_model::{
    Message, MessageId, PartitionKey, QueueName, SequenceNumber, ShardId, StreamName, Timestamp,
};
use bytes::Bytes;

/// An event on its way from a source through steps to a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it comes from. A step leaves it as it is, so that everything which comes of a record can be traced to it.
    pub origin: Origin,
    /// Events with one key stay in order, where the source keeps an order.
    pub key: PartitionKey,
    /// The payload.
    pub data: Bytes,
    /// When it happened; when the source took it, until a step knows better.
    pub at: Timestamp,
    /// How often it was delivered, this time included.
    pub attempt: u32,
}

/// What an event comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A record of a shard.
    Shard {
        /// Its stream.
        stream: StreamName,
        /// Its shard.
        shard: ShardId,
        /// Its place in the shard.
        sequence: SequenceNumber,
        /// Which part of an aggregate it is; zero for a record that is none.
        sub_sequence: u64,
    },
    /// A message of a queue.
    Queue {
        /// Its queue.
        queue: QueueName,
        /// What the queue calls it, the same at every receive.
        message: MessageId,
    },
}

impl Event {
    pub(crate) fn of_record(shard: &ShardInfo, record: &Received) -> Self {
        Event {
            origin: Origin::Shard {
                stream: shard.stream.clone(),
                shard: shard.shard.clone(),
                sequence: record.sequence,
                sub_sequence: record.sub_sequence,
            },
            key: record.partition_key.clone(),
            data: record.data.clone(),
            at: record.arrival,
            attempt: record.attempt,
        }
    }

    pub(crate) fn of_message(queue: &QueueName, message: &Message) -> Self {
        Event {
            origin: Origin::Queue { queue: queue.clone(), message: message.id.clone() },
            key: message.group.clone().unwrap_or_else(|| message.id.as_str().to_owned()).into(),
            data: message.body.clone(),
            at: message.sent_at,
            attempt: message.receive_count,
        }
    }

    /// This event with another payload.
    pub fn with_data(self, data: impl Into<Bytes>) -> Self {
        Event { data: data.into(), ..self }
    }
}

/// Where a record of a shard is: its number, and which part of an aggregate it is. Places sort as the records do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the record.
    pub sequence: SequenceNumber,
    /// Which part of an aggregate it is; zero for a record that is none.
    pub sub_sequence: u64,
}

impl Origin {
    /// The place in the shard. Messages of a queue have none.
    pub fn place(&self) -> Option<Place> {
        match self {
            Origin::Shard { sequence, sub_sequence, .. } => {
                Some(Place { sequence: *sequence, sub_sequence: *sub_sequence })
            }
            Origin::Queue { .. } => None,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.sub_sequence {
            0 => write!(f, "{}", self.sequence),
            sub_sequence => write!(f, "{}.{sub_sequence}", self.sequence),
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Shard { stream, shard, sequence, sub_sequence } => {
                let place = Place { sequence: *sequence, sub_sequence: *sub_sequence };
                write!(f, "{stream}/{shard}/{place}")
            }
            Origin::Queue { queue, message } => write!(f, "{queue}/{message}"),
        }
    }
}
