//! What a scaler decides, with the numbers that made it decide so.

use std::fmt;

use anabranch_model::{HashKey, ShardId};

/// What is done, or not done although somebody might expect it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Cut a shard at these keys, each the first of the part above it.
    Split {
        /// The shard.
        shard: ShardId,
        /// Ascending; more than one if one cut would not be enough.
        at: Vec<HashKey>,
    },
    /// Make one shard of two neighbours.
    Merge {
        /// The one with the lower keys.
        lower: ShardId,
        /// The one with the upper keys.
        upper: ShardId,
    },
    /// One key by itself is too much for a shard. No split helps; its writer must spread it over several keys.
    HotKey {
        /// Where it goes.
        shard: ShardId,
        /// Its place.
        key: HashKey,
    },
    /// The shard stays as it is, for the reason that the decision gives.
    Hold {
        /// The shard.
        shard: ShardId,
    },
}

/// The numbers behind a decision. Shares are of the capacity of one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// The worse of the next two.
    pub usage: f64,
    /// The share of bytes.
    pub bytes: f64,
    /// The share of records.
    pub records: f64,
    /// Records that were refused or held back.
    pub throttles: u64,
    /// What the shard would have to take if it refused nothing.
    pub demand: f64,
    /// What the threshold is.
    pub threshold: f64,
}

/// One decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is done.
    pub action: Action,
    /// The numbers.
    pub figures: Figures,
    /// The reason in words.
    pub why: String,
}

impl Action {
    /// The kind in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Action::Split { .. } => "split",
            Action::Merge { .. } => "merge",
            Action::HotKey { .. } => "hot key",
            Action::Hold { .. } => "hold",
        }
    }

    /// Whether it changes the stream.
    pub fn changes(&self) -> bool {
        matches!(self, Action::Split { .. } | Action::Merge { .. })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Split { shard, at } => {
                let keys: Vec<_> = at.iter().map(HashKey::to_string).collect();
                write!(f, "split {shard} at {}", keys.join(", "))
            }
            Action::Merge { lower, upper } => write!(f, "merge {lower} and {upper}"),
            Action::HotKey { shard, key } => write!(f, "leave {shard} with the hot key {key}"),
            Action::Hold { shard } => write!(f, "leave {shard}"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.action, self.why)
    }
}
