//! Keeps a stream as wide as its load: splits shards that stay too full and merges neighbours that stay nearly empty.
//!
//! ```text
//!   producers ──traffic──▶ table ──▶ observed ──▶ plan ──▶ decisions ──▶ split, merge
//!                            ▲          who holds the lease does the rest        │
//!                            └───────────── every decision, with its numbers ────┘
//! ```
//!
//! Look at [`plan()`] first: everything that is decided is decided there, from values alone.

mod backlog;
mod cut;
mod decision;
mod drive;
mod lease;
mod plan;
mod report;
mod settings;
mod table;

pub use backlog::{Backlog, Depth, Waiting};
pub use cut::{Cuts, Dimension, cuts};
pub use decision::{Action, Decision, Figures};
pub use drive::Scaler;
pub use plan::{Observed, ObservedShard, plan};
pub use report::report;
pub use settings::ScalerSettings;
pub use table::{ScalerTable, TABLE_DEFAULT, Told};
