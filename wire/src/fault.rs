//! Why a call is refused, in the words of its service.

use std::borrow::Cow;

use anabranch_model::Error;
use http::StatusCode;
use serde_json::{Map, Value};

/// A refusal. Each protocol has its way to spell it (`protocol::fault`).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// The status of the answer.
    pub(crate) status: StatusCode,
    /// What clients match on.
    pub(crate) code: Cow<'static, str>,
    /// What people read.
    pub(crate) message: String,
    /// The code in the Query protocol, where it is another one.
    pub(crate) query_code: Option<&'static str>,
    /// The status in the Query protocol, where it is another one.
    pub(crate) query_status: Option<StatusCode>,
    /// What the answer has beside code and message.
    pub(crate) members: Map<String, Value>,
}

impl Fault {
    /// A refusal with status 400: the caller has to change something.
    pub(crate) fn client(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Fault {
            status: StatusCode::BAD_REQUEST,
            code: code.into(),
            message: message.into(),
            query_code: None,
            query_status: None,
            members: Map::new(),
        }
    }

    /// A failure with status 500: the same call may succeed later.
    pub(crate) fn server(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Fault { status: StatusCode::INTERNAL_SERVER_ERROR, ..Fault::client(code, message) }
    }

    /// This fault with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Fault { status, ..self }
    }

    /// The request is not what the protocol demands.
    pub(crate) fn serialization(message: impl Into<String>) -> Self {
        Fault::client("SerializationException", message)
    }

    /// A value is missing or not allowed.
    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Fault::client("ValidationException", message)
    }

    /// The service has no such operation, or this build does not have it.
    pub(crate) fn unknown_operation(operation: &str) -> Self {
        let shown: String = operation.chars().take(128).collect();
        Fault::client("UnknownOperationException", format!("unknown operation {shown:?}"))
    }

    /// What every service says about an error that has nothing to do with the call. None if it has.
    pub(crate) fn of_server(error: &Error) -> Option<Self> {
        let unavailable = |code| Fault::server(code, error.to_string());
        Some(match error {
            Error::Busy { .. } | Error::DiskFull | Error::Unavailable(_) | Error::Stopped(_) => {
                unavailable("ServiceUnavailable").with_status(StatusCode::SERVICE_UNAVAILABLE)
            }
            Error::Damaged { .. } | Error::Corrupt(_) => unavailable("InternalFailure"),
            _ => return None,
        })
    }

    /// Whose fault it is, as the Query protocol says it.
    pub(crate) fn blames(&self) -> &'static str {
        if self.status.is_server_error() { "Receiver" } else { "Sender" }
    }
}
