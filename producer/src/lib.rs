//! Writes records to a stream, and keeps the stream as wide as its load.
//!
//! A [`Producer`] puts records of many keys into few appends, keeps the order within a key whatever is refused, lost or
//! resharded on the way, and says of each record what became of it. A [`scaler`] looks at the traffic of all producers
//! and splits and merges shards. The crate takes any [`StreamStore`](anabranch_model::StreamStore): it cannot tell the
//! embedded engine from Kinesis.
//!
//! ```
//! use std::sync::Arc;
//!
//! use anabranch_producer::{Producer, Settings};
//! # use std::time::Duration;
//! # use anabranch_model::laws::reference::SimpleStreams;
//! # use anabranch_model::{Clock, NewRecord, StreamName, StreamOptions, StreamStore, Timestamp};
//! # struct Watch(std::time::Instant);
//! # impl Clock for Watch {
//! #     fn now(&self) -> Timestamp { Timestamp::from_millis(1_700_000_000_000).plus(self.elapsed()) }
//! #     fn elapsed(&self) -> Duration { self.0.elapsed() }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (streams, clock) = (SimpleStreams::new(), Arc::new(Watch(std::time::Instant::now())));
//! # let orders = StreamName::new("orders")?;
//! # streams.create_stream(&orders, StreamOptions::default()).await?;
//! let producer = Producer::start(Arc::new(streams), orders, clock, Settings::default()).await?;
//! let first = producer.send(NewRecord::new("customer-7", "one pair of skis")).await?;
//! let second = producer.send(NewRecord::new("customer-7", "and sticks")).await?;
//! let (first, second) = (first.await?, second.await?);
//! assert!(first.sequence < second.sequence);
//! producer.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Read in this order: what a sender holds ([`Producer`], [`Stored`], [`Lost`]), how records come in (`intake`), those of one key
//! (`lane`, `queue`), the task that sends them (`worker`, `batch`, `pace`), what goes past it where the store keeps runs (`strand`,
//! `page`, `runs`), what is known about the shards ([`traffic`], [`ShardMap`],
//! [`Place`]), and what is done about it ([`scaler`]).
//!
//! Invariant: this crate depends on `model` only; it knows no wire format and reads no clock that it was not given.

mod outcome;
mod producer;
mod settings;

mod batch;
mod intake;
mod lane;
mod pace;
mod page;
mod queue;
mod runs;
mod strand;
mod worker;

mod large;
mod map;
mod place;
pub mod traffic;

pub mod scaler;

mod metrics;
mod pause;

pub use large::collect as collect_payloads;
pub use map::ShardMap;
pub use outcome::{Lost, Outcome, Stored, Ticket, Why};
pub use place::Place;
pub use producer::{Producer, TrySendError};
pub use runs::NewRun;
pub use settings::{Large, Pace, Settings};
