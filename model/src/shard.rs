//! A shard: one ordered sequence of records over a range of the hash-key space.
//!
//! ```text
//!   open ──split──▶ closed ──retention──▶ gone
//!     └────merge────▶┘
//! ```

use crate::clock::Timestamp;
use crate::hash_key::HashRange;
use crate::name::ShardId;
use crate::sequence::SequenceNumber;

/// A shard as a store describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Unique within its stream, never used again.
    pub id: ShardId,
    /// None before the first split or merge; one after a split; two after a merge, the lower range first.
    pub parents: Vec<ShardId>,
    /// The keys it takes or took. Change streams have none.
    pub range: Option<HashRange>,
    /// No record of this shard has a smaller number.
    pub starts_at: SequenceNumber,
    /// Set when the shard is closed: no record of this shard has a number this large or larger.
    pub ends_before: Option<SequenceNumber>,
    /// When the shard was closed.
    pub closed_at: Option<Timestamp>,
}

impl Shard {
    /// Whether the shard takes records.
    pub fn is_open(&self) -> bool {
        self.ends_before.is_none()
    }
}
