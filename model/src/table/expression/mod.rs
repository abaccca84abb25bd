//! What is said about items: conditions, conditions on keys, projections and updates.
//!
//! An engine evaluates them, another backend renders them as text, and a wire format is parsed into them. They are
//! built with a few words:
//!
//! ```
//! use anabranch_model::table::expression::{Update, exists, size};
//! use anabranch_model::table::{Item, path};
//!
//! let condition = path("count").at_most(4).and(exists("owner")).or(size("tags").above(2));
//! assert!(!condition.holds(&Item::new().with("count", 3)));
//! let update = Update::new().set("state", "open").add("count", 1).remove(path("tags").index(0));
//! ```

mod condition;
mod key_condition;
mod operand;
mod projection;
mod update;

pub use condition::{Condition, exists, missing};
pub use key_condition::{KeyBounds, KeyCondition, RangeCondition};
pub use operand::{Comparison, Operand, size};
pub use projection::Projection;
pub use update::{SetOperand, SetValue, Update, if_missing, list_append};
