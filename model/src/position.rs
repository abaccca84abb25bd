//! Where reading starts.

use crate::clock::Timestamp;
use crate::sequence::SequenceNumber;

/// A place in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The oldest record that retention has left.
    TrimHorizon,
    /// Behind the newest record at the moment of the call.
    Latest,
    /// The record with this number, or the first one behind it.
    At(SequenceNumber),
    /// The first record behind this number.
    After(SequenceNumber),
    /// The first record that arrived at this moment or later.
    AtTimestamp(Timestamp),
}
