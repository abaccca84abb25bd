//! Tables of items: values, keys, expressions, and the port of whoever stores them.
//!
//! Read in this order: what an item is made of ([`number`], [`value`]), how items are found ([`key`]), how they are
//! spoken about ([`mod@path`], [`expression`]), and what a store must do ([`store`]).

pub mod number;
pub mod value;

pub mod key;

pub mod expression;
pub mod path;

pub mod keyspace;
pub mod options;
pub mod read;
mod room;
pub mod write;

pub mod change;
pub mod store;

mod encoding;
mod fingerprint;

pub use change::{Change, Event};
pub use encoding::Names;
pub use expression::{Condition, KeyCondition, Projection, RangeCondition, Update};
pub use fingerprint::fingerprint;
pub use key::{Key, KeyAttribute, KeyKind, KeySchema, KeyValue};
pub use keyspace::{Clustering, Column, ColumnKind, KeyspaceShape};
pub use number::{NotANumber, Number};
pub use options::{
    Alteration, ChangeView, IndexOptions, IndexProjection, IndexScope, IndexSummary, TableOptions,
    TableState, TableSummary,
};
pub use path::{Path, Step, path};
pub use read::{Get, Got, ItemPage, PageFilling, Query, Reading, Scan, Segment, check_read_bytes};
pub use store::{TableCapabilities, TableStore, Token, check_parts};
pub use value::{Attributes, Item, Kind, Value};
pub use write::{Action, Outcome, Returning, Write, check_transaction_bytes};
