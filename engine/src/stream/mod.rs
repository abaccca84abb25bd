//! Streams on the journal, in the order of a record's life: accepted by `append`, published to its `shard`, handed out
//! by `read` and `follow`, dropped by `retention`; `reshard` makes, splits, merges and deletes.

pub mod catalogue;
pub mod operation;
pub mod records;
pub mod shard;

pub mod append;
pub mod publish;

pub mod follow;
pub mod locate;
pub mod read;

pub mod reshard;
pub mod retention;
pub mod throttle;
