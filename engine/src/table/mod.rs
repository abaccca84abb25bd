//! Tables: items in rows, with their indexes, counts and changes written in the same frame.
//!
//! Read in this order: what lies where ([`layout`]), a table as it is ([`catalogue`]), how it is made and changed
//! ([`manage`]), how items are written ([`write`]) and read ([`read`]), the streams of changes ([`changes`]), and what
//! happens behind the writers' backs ([`tend`]).
//!
//! Locks, in this order: `Table::accepted` of the tables of a call, by their numbers; the rows of its items; then
//! `Table::tally` of its tables, by their numbers; then the turn of the journal. Nothing that runs when a frame is
//! durable takes any of them but `Table::visible`.

pub mod catalogue;
pub mod changes;
pub mod layout;
mod manage;
mod port;
mod read;
mod tend;
mod write;

pub use catalogue::Tables;
pub use port::Changes;
