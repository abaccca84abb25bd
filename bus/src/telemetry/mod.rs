//! The telemetry bot: submissions of sensors come from a queue, are checked, taken apart into events, and go to a stream.
//!
//! ```text
//!   queue ──▶ base64 ──▶ JSON ──▶ schema ──▶ events with ids and order ──▶ one place of the stream, in order
//!                └─────────┴─────────┴──▶ broken: counted, a sample kept with the reason, and done with
//! ```
//!
//! What must hold: a message is done with when every event of it is durable, or when it can never have one. An event has the
//! same id however often its submission is processed. The events of a submission are written one behind the other, and a
//! submission that is written again starts with its first event, so whoever drops ids that he has seen gets each event once
//! and in order.

mod explode;
mod sink;
mod step;
mod waiting;

pub use explode::{Broken, Exploder, SUBMISSION_SCHEMA};
pub use sink::{StreamRuns, Tally};
pub use step::{Explode, Samples};
pub use waiting::{Yield, waiting};
