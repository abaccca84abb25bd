//! Refusals in the words of Firehose.

use anabranch_model::Error;
use http::StatusCode;

use crate::context::ACCOUNT;
use crate::fault::Fault;

/// What the service says about an error of a store.
pub(super) fn fault(error: Error) -> Fault {
    match error {
        Error::Throttled { .. } | Error::Busy { .. } => {
            Fault::server("ServiceUnavailableException", "Slow down.")
                .with_status(StatusCode::SERVICE_UNAVAILABLE)
        }
        other => Fault::of_server(&other).unwrap_or_else(|| invalid(other.to_string())),
    }
}

/// A value is not allowed here.
pub(super) fn invalid(message: impl Into<String>) -> Fault {
    Fault::client("InvalidArgumentException", message)
}

/// There is no such delivery stream.
pub(super) fn not_found(name: &str) -> Fault {
    let message = format!("Firehose {name} under account {ACCOUNT} not found.");
    Fault::client("ResourceNotFoundException", message)
}

/// There is one of this name already.
pub(super) fn in_use(name: &str) -> Fault {
    let message = format!("Firehose {name} under accountId {ACCOUNT} already exists");
    Fault::client("ResourceInUseException", message)
}
