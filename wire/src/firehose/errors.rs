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
        Error::DiskFull | Error::Unavailable(_) | Error::Stopped(_) => {
            Fault::server("ServiceUnavailableException", error.to_string())
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

/// Records wait that cannot be delivered, so the delivery stream is not deleted.
pub(super) fn undelivered(name: &str, why: &Error) -> Fault {
    let message = format!(
        "Firehose {name} under accountId {ACCOUNT} has records that cannot be delivered: {why}. They are tried again; to \
         give them up, delete it with AllowForceDelete."
    );
    Fault::client("ResourceInUseException", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_tried_again_has_the_name_that_clients_know() {
        for error in [Error::Busy { budget_bytes: 1 }, Error::DiskFull, Error::Unavailable("x".into())] {
            let fault = fault(error);
            assert_eq!(
                (&*fault.code, fault.status),
                ("ServiceUnavailableException", StatusCode::SERVICE_UNAVAILABLE)
            );
        }
    }
}
