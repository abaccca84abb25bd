//! Refusals in the words of Secrets Manager.

use anabranch_model::Error;

use crate::fault::Fault;

/// What the service says about an error of the store.
pub(super) fn fault(error: Error) -> Fault {
    Fault::of_server(&error).unwrap_or_else(|| invalid(error.to_string()))
}

/// A value is not allowed here.
pub(super) fn invalid(message: impl Into<String>) -> Fault {
    Fault::client("InvalidParameterException", message)
}

/// The secret is not in a state for this.
pub(super) fn wrong_state(message: impl Into<String>) -> Fault {
    Fault::client("InvalidRequestException", message)
}

/// The secret was deleted and can only be restored.
pub(super) fn deleted() -> Fault {
    wrong_state("You can't perform this operation on the secret because it was marked for deletion.")
}

/// There is something of this name already.
pub(super) fn exists(message: impl Into<String>) -> Fault {
    Fault::client("ResourceExistsException", message)
}

/// There is no such secret.
pub(super) fn no_secret() -> Fault {
    Fault::client("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
}

/// The secret has no such version.
pub(super) fn no_version(which: &str) -> Fault {
    let message = format!("Secrets Manager can't find the specified secret value for {which}");
    Fault::client("ResourceNotFoundException", message)
}
