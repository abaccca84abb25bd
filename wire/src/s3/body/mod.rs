//! The body of a request on its way to a store: in pieces, decoded, compared with what was said about it, and never in
//! memory as a whole.

mod chunks;
mod coding;
mod incoming;
mod payload;

#[cfg(test)]
pub(super) use chunks::Chunks;
pub(super) use incoming::Incoming;
pub(super) use payload::Payload;
