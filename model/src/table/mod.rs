//! Tables of items: values, keys, expressions, and the port of whoever stores them.
//!
//! Read in this order: what an item is made of ([`number`], [`value`]), how items are found ([`key`]), how they are
//! spoken about ([`path`], [`expression`]), and what a store must do ([`store`]).

pub mod number;
pub mod value;

pub mod key;

pub mod expression;
pub mod path;

mod encoding;

pub use expression::{Condition, KeyCondition, Projection, RangeCondition, Update};
pub use key::{Key, KeyAttribute, KeyKind, KeySchema, KeyValue};
pub use number::Number;
pub use path::{Path, Step, path};
pub use value::{Item, Kind, Value};
