//! How a port is served: accepted under a cap, guarded against web pages and strangers, observed, and drained.
//!
//! Nothing here knows what is behind a path.

mod accept;
mod budget;
mod calls;
mod guard;
mod http2;
mod observe;
mod preface;
mod stall;
mod stop;

pub(crate) use accept::{Port, serve};
pub(crate) use budget::{Admission, Budget};
pub(crate) use guard::{Guard, refuse_strangers};
pub(crate) use observe::{Observer, observe};
pub(crate) use stop::{Stop, Stopper};
