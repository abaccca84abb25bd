//! Reads the shards of a stream with many workers: each shard has one at a time, every record is processed at least once
//! and in order, and when a worker dies another one goes on within the time of a lease and a second.
//!
//! The leases lie in the tables of the Kinesis Client Library, attribute for attribute, so workers of both run side by side
//! in one application and hand shards to each other. The crate takes any [`ShardSource`](anabranch_model::ShardSource): it
//! cannot tell the embedded engine from Kinesis.
//!
//! ```
//! use std::sync::Arc;
//!
//! use anabranch_consumer::{Consumer, StreamChoice, process_fn};
//! # use std::time::Duration;
//! # use anabranch_model::laws::reference::{ReferenceTables, SimpleStreams};
//! # use anabranch_model::{Clock, NewRecord, StreamName, StreamOptions, StreamStore, Timestamp};
//! # struct Watch(std::time::Instant);
//! # impl Clock for Watch {
//! #     fn now(&self) -> Timestamp { Timestamp::from_millis(1_700_000_000_000).plus(self.elapsed()) }
//! #     fn elapsed(&self) -> Duration { self.0.elapsed() }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anabranch_model::Result<()> {
//! # let (streams, tables) = (SimpleStreams::new(), ReferenceTables::new());
//! # let clock = Arc::new(Watch(std::time::Instant::now()));
//! # let orders = StreamName::new("orders")?;
//! # streams.create_stream(&orders, StreamOptions::default()).await?;
//! # streams.append(&orders, vec![NewRecord::new("customer-7", "one pair of skis")]).await?;
//! let (seen, mut news) = tokio::sync::mpsc::channel(16);
//! let processor = process_fn(move |delivery| {
//!     let seen = seen.clone();
//!     async move {
//!         for record in &delivery.records {
//!             let _ = seen.send(record.data.clone()).await;
//!         }
//!         delivery.done()
//!     }
//! });
//! let consumer = Consumer::builder(
//!     "billing",
//!     [StreamChoice::only(orders)],
//!     Arc::new(streams),
//!     Arc::new(tables),
//!     clock,
//!     processor,
//! )
//! .build()?;
//! let handle = consumer.handle();
//! let running = tokio::spawn(consumer.run());
//!
//! assert_eq!(news.recv().await.unwrap(), "one pair of skis");
//! handle.shutdown();
//! running.await.unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! Read in this order: what a user writes ([`Processor`], [`Delivery`]), what is acknowledged (`acknowledge`), what happens
//! when it is not ([`failure`]), one shard (`pipeline`, `fetch`), the leases (`lease`), and the task that decides
//! (`coordinator`, `upkeep`).
//!
//! Invariant: this crate depends on `model` only; it knows no wire format and reads no clock that it was not given.

mod delivery;
mod processor;

mod acknowledge;
mod dead_letter;
pub mod failure;
mod work;

mod fetch;
mod pipeline;
mod watchdog;

mod lease;
mod shards;

mod coordinator;
mod upkeep;

mod consumer;
mod driver;
mod inspect;
mod settings;

mod attached;
mod flag;
mod metrics;
mod name;
mod pause;

pub use acknowledge::Acknowledgement;
pub use consumer::{Consumer, ConsumerBuilder, Ending, Handle, TABLE_TEMPLATE};
pub use delivery::{Delivery, Outcome, Received, ShardInfo};
pub use driver::{Driver, Report};
pub use failure::{DeadLetters, FailurePolicy, Finally};
pub use inspect::{Application, Leftover, applications, leftovers};
pub use lease::{Checkpoint, Layout, Lease, LeaseTable, TableNames};
pub use processor::{Processor, ProcessorFactory, process_fn};
pub use settings::{BalanceBy, InitialPosition, Reading, StreamChoice};
