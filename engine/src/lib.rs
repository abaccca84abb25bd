//! The embedded engine: one directory, one journal, durable before acknowledged.
//!
//! Invariant: this crate knows no HTTP, no JSON and no AWS name. It reaches files only through
//! [`Disk`](anabranch_model::Disk) and time only through [`Clock`](anabranch_model::Clock).
//!
//! A record's way through it: `stream/append` checks and routes it, `journal/sequencer` gives it its place,
//! `journal/committer` makes it durable, `stream/publish` shows it, `stream/read` and `stream/follow` hand it out.
//!
//! A blob's way: `blob/write` brings its body to the disk, `blob/put` gives its row a place in the journal, from which it
//! goes the way of a record, and `blob/read` hands it out.

pub mod engine;
pub mod status;

mod backup;
mod core;
mod opening;
mod queue;
mod rebuild;
mod rows;

mod admin;
mod blob;
mod stream;
mod table;

mod journal;
mod state;

mod cleaner;
mod upkeep;

mod ballast;
mod budget;
mod directory;
mod encoding;
mod system;

pub use backup::{Contents, Progress, Watch, backup_folder, restore, restore_folder};
pub use directory::{DirectoryLock, FORMAT_VERSION, Holder, LockError};
pub use engine::{Drive, Engine, Options};
pub use status::Status;
pub use system::{SystemClock, SystemDisk};
