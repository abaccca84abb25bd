//! Rows of the catalogue: how a queue behaves, and how far a move is.

use std::time::Duration;

use anabranch_model::queue::{
    DeduplicationScope, MoveStatus, QueueName, QueueOptions, RedriveAllow, RedrivePolicy, ThroughputLimit,
};
use anabranch_model::{Error, Result};

use super::stored::{corrupt, put_option, take_option};
use crate::encoding::{Malformed, Put, Take};

/// A queue in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRow {
    /// The number that it got when it was made; receipts carry it.
    pub born: u64,
    /// The number that its messages lie under; each purge gives it a new one.
    pub number: u64,
    /// When it was made, in milliseconds.
    pub created_at: u64,
    /// When its options were changed the last time.
    pub changed_at: u64,
    /// How it behaves.
    pub options: QueueOptions,
}

impl QueueRow {
    /// As it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let options = &self.options;
        let mut bytes = Vec::with_capacity(128);
        for number in [self.born, self.number, self.created_at, self.changed_at] {
            bytes.put_u64(number);
        }
        bytes.put_u8(u8::from(options.fifo));
        for time in [options.delay, options.visibility, options.retention, options.receive_wait] {
            bytes.put_u64(millis(time));
        }
        bytes.put_u64(options.message_bytes_max as u64);
        put_option(&mut bytes, options.redrive.as_ref().map(|policy| policy.dead_letters.as_str()));
        bytes.put_u32(options.redrive.as_ref().map_or(0, |policy| policy.receives_max));
        let (tag, queues): (u8, &[QueueName]) = match &options.redrive_allow {
            RedriveAllow::All => (0, &[]),
            RedriveAllow::None => (1, &[]),
            RedriveAllow::Queues(queues) => (2, queues),
        };
        bytes.put_u8(tag);
        bytes.put_u32(queues.len() as u32);
        queues.iter().for_each(|queue| bytes.put_text(queue.as_str()));
        bytes.put_u8(u8::from(options.deduplicates_content));
        bytes.put_u8(u8::from(options.deduplication_scope == DeduplicationScope::Group));
        bytes.put_u8(u8::from(options.throughput_limit == ThroughputLimit::Group));
        bytes
    }

    /// From what is stored.
    pub fn decode(stored: &[u8]) -> Result<QueueRow> {
        QueueRow::take(Take(stored)).map_err(|_| corrupt("the catalogue"))
    }

    fn take(mut take: Take<'_>) -> std::result::Result<QueueRow, Malformed> {
        let (born, number, created_at, changed_at) = (take.u64()?, take.u64()?, take.u64()?, take.u64()?);
        let fifo = take.u8()? == 1;
        let mut time = || take.u64().map(Duration::from_millis);
        let (delay, visibility, retention, receive_wait) = (time()?, time()?, time()?, time()?);
        let message_bytes_max = take.u64()? as usize;
        let dead_letters = take_option(&mut take)?.map(|text| name(&text)).transpose()?;
        let receives_max = take.u32()?;
        let redrive = dead_letters.map(|dead_letters| RedrivePolicy { dead_letters, receives_max });
        let (tag, count) = (take.u8()?, take.u32()?);
        let queues: Vec<QueueName> =
            (0..count).map(|_| name(take.text()?)).collect::<std::result::Result<_, _>>()?;
        let redrive_allow = match tag {
            0 => RedriveAllow::All,
            1 => RedriveAllow::None,
            2 => RedriveAllow::Queues(queues),
            _ => return Err(Malformed),
        };
        let deduplicates_content = take.u8()? == 1;
        let [scope, limit] = [take.u8()? == 1, take.u8()? == 1];
        take.end()?;
        let options = QueueOptions {
            fifo,
            delay,
            visibility,
            retention,
            message_bytes_max,
            receive_wait,
            redrive,
            redrive_allow,
            deduplicates_content,
            deduplication_scope: if scope { DeduplicationScope::Group } else { DeduplicationScope::Queue },
            throughput_limit: if limit { ThroughputLimit::Group } else { ThroughputLimit::Queue },
        };
        Ok(QueueRow { born, number, created_at, changed_at, options })
    }
}

/// A move out of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRow {
    /// Its number.
    pub id: u64,
    /// Where messages go; without it each goes back to where it came from.
    pub to: Option<QueueName>,
    /// Most messages in a second.
    pub messages_per_second: Option<u32>,
    /// How far it is.
    pub status: MoveStatus,
    /// Messages that were moved.
    pub moved: u64,
    /// Messages that there were at the start.
    pub to_move: u64,
    /// When it was started.
    pub started_at: u64,
}

impl MoveRow {
    /// As it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.put_u64(self.id);
        put_option(&mut bytes, self.to.as_ref().map(QueueName::as_str));
        bytes.put_u32(self.messages_per_second.unwrap_or(0));
        let (tag, reason) = match &self.status {
            MoveStatus::Running => (0, ""),
            MoveStatus::Completed => (1, ""),
            MoveStatus::Cancelled => (2, ""),
            MoveStatus::Failed(reason) => (3, reason.as_str()),
        };
        bytes.put_u8(tag);
        bytes.put_text(reason);
        for number in [self.moved, self.to_move, self.started_at] {
            bytes.put_u64(number);
        }
        bytes
    }

    /// From what is stored.
    pub fn decode(stored: &[u8]) -> Result<MoveRow> {
        MoveRow::take(Take(stored)).map_err(|_| corrupt("a move"))
    }

    fn take(mut take: Take<'_>) -> std::result::Result<MoveRow, Malformed> {
        let id = take.u64()?;
        let to = take_option(&mut take)?.map(|text| name(&text)).transpose()?;
        let messages_per_second = Some(take.u32()?).filter(|rate| *rate > 0);
        let (tag, reason) = (take.u8()?, take.text()?.to_owned());
        let status = match tag {
            0 => MoveStatus::Running,
            1 => MoveStatus::Completed,
            2 => MoveStatus::Cancelled,
            3 => MoveStatus::Failed(reason),
            _ => return Err(Malformed),
        };
        let (moved, to_move, started_at) = (take.u64()?, take.u64()?, take.u64()?);
        take.end()?;
        Ok(MoveRow { id, to, messages_per_second, status, moved, to_move, started_at })
    }
}

fn name(text: &str) -> std::result::Result<QueueName, Malformed> {
    QueueName::new(text).map_err(|_: Error| Malformed)
}

/// Whole milliseconds; a part of one counts as one, so that nothing ends early.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_catalogue_round_trip() {
        let named = |text: &str| QueueName::new(text).expect("a name");
        let redrive = Some(RedrivePolicy { dead_letters: named("dead"), receives_max: 7 });
        for redrive_allow in [RedriveAllow::All, RedriveAllow::None, RedriveAllow::Queues(vec![named("a")])] {
            for redrive in [None, redrive.clone()] {
                let options = QueueOptions {
                    fifo: redrive.is_some(),
                    delay: Duration::from_millis(3),
                    redrive,
                    redrive_allow: redrive_allow.clone(),
                    deduplication_scope: DeduplicationScope::Group,
                    throughput_limit: ThroughputLimit::Group,
                    ..QueueOptions::default()
                };
                let row = QueueRow { born: 1, number: 2, created_at: 3, changed_at: 4, options };
                assert_eq!(QueueRow::decode(&row.encode()), Ok(row));
            }
        }
    }

    #[test]
    fn moves_round_trip() {
        let running = MoveRow {
            id: 9,
            to: QueueName::new("q").ok(),
            messages_per_second: Some(3),
            status: MoveStatus::Running,
            moved: 4,
            to_move: 5,
            started_at: 6,
        };
        for status in [MoveStatus::Running, MoveStatus::Completed, MoveStatus::Failed("why".into())] {
            let row = MoveRow { status, ..running.clone() };
            assert_eq!(MoveRow::decode(&row.encode()), Ok(row));
        }
    }
}
