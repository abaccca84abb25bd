//! Change capture: the changes of a table as documents in a bucket, and what proves that none is missing.
//!
//! ```text
//!   change ──▶ document (JSON) ──▶ one blob each, named by the event         media/media_content/2024-07-31/12345.json
//!                              └─▶ many in one blob, and a line in the manifest before it
//!                                    ├─▶ lines of JSON, compressed            media/media_content/2024-07-31/12345-12399.jsonl.gz
//!                                    └─▶ columns                              media/media_content/2024-07-31/12345-12399.parquet
//! ```
//!
//! Read in this order: what a change looks like ([`Documents`], `cell`), under which key it lies ([`KeyTemplate`]), the two
//! sinks ([`Blobs`], [`Batches`] with `gzip`, `columns` and `manifest`), and the reconciliation of a table with its archive
//! ([`verify`](verify())).

mod template;

mod cell;
mod document;

mod batches;
mod blobs;
mod columns;
mod gzip;
mod manifest;

mod fold;
mod read;
mod verify;

pub use batches::{Batches, Format};
pub use blobs::Blobs;
pub use document::{Documents, Shape};
pub use template::{KEY_DEFAULT, KeyTemplate, LINES_KEY_DEFAULT, NO_KEYSPACE, Names, PARQUET_KEY_DEFAULT};
pub use verify::{Difference, Found, Pair, Verification, Watch, verify};

pub(crate) use template::lease_table;
