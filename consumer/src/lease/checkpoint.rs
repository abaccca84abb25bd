//! How far a shard is processed, as a lease says it.

use std::fmt;

use anabranch_model::{Error, SequenceNumber};

/// How far a shard is processed. The order is that of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checkpoint {
    /// Nothing yet; it begins at the moment that the consumer is configured with.
    AtTimestamp,
    /// Nothing yet; it begins with the oldest record.
    TrimHorizon,
    /// Nothing yet; it begins behind the newest record.
    Latest,
    /// Everything up to this record and, of an aggregate, this part of it.
    At {
        /// The number of the record.
        sequence: SequenceNumber,
        /// Which part of an aggregate; zero for a record that is none.
        sub_sequence: u64,
    },
    /// Everything, to the end of the shard.
    ShardEnd,
}

impl Checkpoint {
    /// What the attribute `checkpoint` holds.
    pub fn text(&self) -> String {
        match self {
            Checkpoint::AtTimestamp => "AT_TIMESTAMP".to_owned(),
            Checkpoint::TrimHorizon => "TRIM_HORIZON".to_owned(),
            Checkpoint::Latest => "LATEST".to_owned(),
            Checkpoint::At { sequence, .. } => sequence.to_string(),
            Checkpoint::ShardEnd => "SHARD_END".to_owned(),
        }
    }

    /// What the attribute `checkpointSubSequenceNumber` holds.
    pub fn sub_sequence(&self) -> u64 {
        match self {
            Checkpoint::At { sub_sequence, .. } => *sub_sequence,
            _ => 0,
        }
    }

    /// The checkpoint that the two attributes spell.
    pub fn parse(text: &str, sub_sequence: u64) -> Result<Self, Error> {
        Ok(match text {
            "AT_TIMESTAMP" => Checkpoint::AtTimestamp,
            "TRIM_HORIZON" => Checkpoint::TrimHorizon,
            "LATEST" => Checkpoint::Latest,
            "SHARD_END" => Checkpoint::ShardEnd,
            digits => Checkpoint::At { sequence: digits.parse()?, sub_sequence },
        })
    }

    /// Everything up to this record, and if it is an aggregate all of it.
    pub fn behind(sequence: SequenceNumber) -> Self {
        Checkpoint::At { sequence, sub_sequence: u64::from(u32::MAX) }
    }

    /// Whether a record has been processed.
    pub fn covers(&self, sequence: SequenceNumber, sub_sequence: u64) -> bool {
        *self >= Checkpoint::At { sequence, sub_sequence }
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sub_sequence() {
            0 => f.write_str(&self.text()),
            sub => write!(f, "{}/{sub}", self.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_ordered_by_progress() {
        let at = |sequence, sub_sequence| Checkpoint::At {
            sequence: SequenceNumber::from_u128(sequence),
            sub_sequence,
        };
        let order = [
            Checkpoint::AtTimestamp,
            Checkpoint::TrimHorizon,
            Checkpoint::Latest,
            at(0, 0),
            at(5, 0),
            at(5, 1),
            at(6, 0),
            Checkpoint::ShardEnd,
        ];
        assert!(order.is_sorted_by(|a, b| a < b));
        for checkpoint in order {
            assert_eq!(Checkpoint::parse(&checkpoint.text(), checkpoint.sub_sequence()), Ok(checkpoint));
        }
        assert!(Checkpoint::parse("LATER", 0).is_err());
        assert!(at(5, 1).covers(SequenceNumber::from_u128(5), 1));
        assert!(!at(5, 1).covers(SequenceNumber::from_u128(5), 2));
    }
}
