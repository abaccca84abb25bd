//! Leases: who reads which shard, and how far.
//!
//! ```text
//!              take, assign                    hand over
//!   unowned ───────────────▶ owned ──────────────────────────▶ owned, with a checkpoint owner
//!      ▲                      │ ▲  renew, checkpoint               │ drained, checkpointed
//!      │ release, evict       │ └──────────────◀───────────────────┘ assign to the next owner
//!      └──────────◀───────────┤
//!                             │ last record acknowledged
//!                             ▼
//!                         shard end ──▶ removed, when the children are under way
//! ```
//!
//! The table is the one of the Kinesis Client Library, attribute for attribute, and so is every condition. What must
//! hold: each write of an owner names the counter that it wrote last, so whoever was replaced can write no more.

pub(crate) mod checkpoint;
pub(crate) mod held;
pub(crate) mod item;
pub(crate) mod layout;
pub(crate) mod leader;
pub(crate) mod table;
mod throughput;
pub(crate) mod worker;
pub(crate) mod write;

pub(crate) mod balance;
pub(crate) mod renew;
pub(crate) mod take;

pub use checkpoint::Checkpoint;
pub use item::Lease;
pub use layout::{Layout, TableNames};
pub use table::LeaseTable;
