//! A disk, a clock and a source of chance that a test holds in its hand.
//!
//! [`SimDisk`] runs the engine in memory, remembers every operation, and shows what a power loss after any of
//! them could have left behind, within the laws of [`anabranch_model::disk`]. [`SimClock`] moves when it is
//! told to, and [`Rng`] gives the same numbers for the same seed.
//!
//! Invariant: nothing here reads a real clock, a real file or real chance. The same calls with the same seeds
//! give the same bytes.
//!
//! Read in this order: the bytes of a file (`content`) and the names of files (`entries`), what is done to
//! them (`operation`), which of it must survive (`durable`, `history`), what may survive (`crash`), and the disk
//! that the engine sees (`live`, `file`, `disk`) with its `faults`.
//!
//! ```
//! use std::io::IoSlice;
//!
//! use anabranch_model::{Disk, Open};
//! use anabranch_sim::SimDisk;
//!
//! # fn main() -> std::io::Result<()> {
//! let disk = SimDisk::new();
//! let file = disk.open("journal", Open::CreateNew)?;
//! disk.sync_directory("")?;
//! file.write_all_at(0, &[IoSlice::new(b"synced")])?;
//! file.sync()?;
//! let synced = disk.operations();
//! file.write_all_at(6, &[IoSlice::new(b", not synced")])?;
//!
//! for point in disk.crash_points().skip(synced) {
//!     for seed in 0..100 {
//!         let after = point.image(seed);
//!         assert!(after.contents("journal")?.starts_with(b"synced"));
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod content;
mod entries;
mod operation;

mod durable;
mod history;

mod crash;

mod disk;
mod faults;
mod file;
mod live;

mod clock;
mod rng;

pub use clock::SimClock;
pub use crash::{CrashPoint, CrashPoints};
pub use disk::SimDisk;
pub use faults::Fault;
pub use operation::{SyncEvent, SyncKind};
pub use rng::Rng;
