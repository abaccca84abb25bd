//! Stores that are simple enough to be right: what other implementations are compared with.

mod log;
mod tables;

mod store;

pub use store::ReferenceTables;
pub use tables::Tables;
