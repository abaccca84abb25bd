//! Bots that are declared in a file.
//!
//! ```toml
//! [[bot]]
//! name = "media-archive"
//! source = { keyspace = "media", table = "media_content" }
//! sink = { blobs = "keyspaces-data-bucket" }
//! failure = { dead_letters = { queue = "media-archive-dead" } }
//! ```
//!
//! `spec` has every word of such a file, and refuses what no setting can make right; `assemble` looks for what the file names
//! and makes bots of it; `lineage` knows the streams that the changes of a table have one after the other; `error` says where in the file something is wrong.

mod assemble;
mod error;
mod lineage;
mod spec;
mod telemetry;

pub use assemble::{Archive, Keyspaces, Listing, Ports};
pub use error::FlowError;
pub use spec::{
    BatchSpec, BotSpec, DeadLetterSpec, FailureSpec, Flow, From, LeaseSpec, SinkSpec, SourceSpec,
};
pub use telemetry::{SubmissionWorker, TelemetrySpec};
