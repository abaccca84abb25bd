//! Queues: messages that are sent, received for a while, and deleted by whoever has dealt with them.
//!
//! Read in this order: what a queue and a message are called ([`name`], [`receipt`]), what goes in and comes out
//! ([`message`]), how a queue behaves ([`options`]), how dead letters go back ([`moving`]), and then what a store must
//! do ([`store`]).

pub mod name;
pub mod receipt;

pub mod message;
pub mod options;

pub mod moving;
pub mod store;

pub use message::{Attribute, AttributeValue, Message, NewMessage, Sent};
pub use moving::{MoveId, MoveStatus, MoveSummary, check_rate};
pub use name::{MessageId, QueueName};
pub use options::{DeduplicationScope, QueueOptions, RedriveAllow, RedrivePolicy, ThroughputLimit};
pub use receipt::{Receipt, ReceiptParts};
pub use store::{
    QueueCounts, QueueStore, QueueSummary, ReceiveOptions, check_batch, check_extension, check_send,
    check_visibility,
};
