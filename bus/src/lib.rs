//! Runs bots. A bot reads from a source, sends each event through steps and writes what comes out to a sink; what runs it,
//! tries again, gives up and remembers how far it came is written here, once.
//!
//! ```text
//!   shards (leases, checkpoints: the consumer) ─┐                                     ┌─▶ done: checkpoint, or delete
//!                                               ├─▶ steps ──▶ [batch] ──▶ sink ───────┼─▶ failed: again, then a dead letter
//!   queue (visibility, receive counts) ─────────┘              ▲          │           └─▶ refused: a dead letter
//!                                                              └──────────┘ unavailable: again, for as long as it takes
//! ```
//!
//! Read in this order: what travels ([`Event`]), what a bot is made of ([`Step`], [`Sink`]), what becomes of a batch of events
//! (`line`, `batcher`), where they come from (`source`), how a bot is put together and stopped ([`Bot`]), how it is declared
//! in a file ([`flow`]), the sink for change capture ([`archive`]) with what
//! proves it (`archive::verify`), and the bot for submissions of sensors ([`telemetry`]).
//!
//! Invariant: this crate depends on `model`, `consumer` and `producer` only. A bot cannot tell the embedded engine from AWS, and a step or
//! a sink cannot tell a shard from a queue.

mod event;
mod sink;
mod step;

mod batcher;
mod line;
mod source;

mod bot;
pub mod flow;

pub mod archive;
pub mod telemetry;

mod metrics;
mod pause;

pub use crate::metrics::describe as describe_metrics;
pub use batcher::BatchLimits;
pub use bot::{Bot, BotBuilder, Handle};
pub use event::{Event, Origin, Place};
pub use sink::{Earlier, Outcome, Sink};
pub use source::{Changes, Lineage, Queue, Shards, Source};
pub use step::{Refusal, Step};
