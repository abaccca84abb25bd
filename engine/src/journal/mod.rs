//! The journal: the only place where anything becomes durable.
//!
//! ```text
//!  callers ──▶ Sequencer ──▶ committer: one write, one sync ──▶ publish: index, followers, waiters
//!              (order)       (durability)                       (visibility)
//! ```
//!
//! What must hold: frames are written in the order of their positions; a frame is published only after the sync that
//! covers it; a failed write or sync ends all writing until the directory is opened again.

pub mod frame;
pub mod recovery;
pub mod segments;
pub mod sequencer;

pub mod committer;

pub use committer::{Committer, Publish};
pub use frame::{Draft, Header, Kind, Label};
pub use segments::{Segment, Segments};
pub use sequencer::{Refusal, Sequencer, Urgency};
