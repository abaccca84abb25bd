//! Queues: the port [`QueueStore`](anabranch_model::QueueStore) on rows.
//!
//! A message is a *body*, written once, and small rows that say where it stands. A receive, a changed visibility and a
//! delete change small rows only, so a queue is as fast with a million messages as with none.
//!
//! ```text
//!   send ──▶ waiting ──────▶ given: another row in `waiting`, ordered by the end of its hiding ──▶ delete
//!              ▲ due            │ time passes                  │ received too often
//!              └────────────────┘                              └──▶ a body in the queue for dead letters
//! ```
//!
//! The rows `waiting` are in the order in which messages become visible. In a queue that keeps an order only the first
//! message of each group has one, so a group whose first message is hidden is hidden as a whole.
//!
//! Every call on a queue is *accepted* under the lock of the queue: it looks at the rows as they were accepted last
//! ([`frame::Frame`]), gets its place in the journal, and lets go of the lock before the disk is waited for. So any
//! number of calls on one queue share a sync. What must hold: whoever locks several queues asks in the order of their
//! numbers, behind the lock of the catalogue; nothing is answered that rests on a frame which is not durable.
//!
//! Read in this order: what is stored ([`keys`], [`stored`]), one queue ([`held`], [`counts`], [`frame`], [`place`], [`window`]),
//! the calls ([`catalogue`], [`send`], [`receive`], [`receipts`], [`purge`]), dead letters ([`bury`], [`moves`]), and
//! what happens by itself ([`upkeep`], [`carry`]).

pub mod keys;
pub mod options;
pub mod stored;

pub mod counts;
pub mod frame;
pub mod held;
pub mod place;
pub mod window;

pub mod catalogue;
pub mod purge;
pub mod receipts;
pub mod receive;
pub mod send;

pub mod bury;
pub mod carry;
pub mod moves;
pub mod upkeep;

mod port;

pub use catalogue::Queues;
