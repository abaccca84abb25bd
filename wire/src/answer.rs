//! What an operation answers with, and how it becomes a response.

use http::{Response, StatusCode};
use serde::Serialize;

use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::receive::Body;

/// An answer to a call.
pub(crate) trait Answer {
    /// The answer in the language of the call.
    fn render(self, protocol: Protocol) -> Result<Response<Body>, Fault>;
}

/// Values answer as they are.
impl<T: Serialize> Answer for T {
    fn render(self, protocol: Protocol) -> Result<Response<Body>, Fault> {
        Ok(protocol.response(StatusCode::OK, protocol.encode(&self)?))
    }
}

/// The answer of an operation that has nothing to say.
pub(crate) struct Nothing;

impl Answer for Nothing {
    fn render(self, protocol: Protocol) -> Result<Response<Body>, Fault> {
        Ok(protocol.response(StatusCode::OK, Vec::new()))
    }
}
