//! Errors of the ports in the words of Kinesis.

use anabranch_model::limits::OPEN_SHARDS_MAX;
use anabranch_model::{Error, ShardId, StreamName};

use crate::context::ACCOUNT;
use crate::fault::Fault;

/// The code of what comes too fast.
pub(super) const THROTTLED: &str = "ProvisionedThroughputExceededException";

/// What Kinesis says about an error.
pub(super) fn fault(error: Error) -> Fault {
    if let Some(fault) = Fault::of_server(&error) {
        return fault;
    }
    match error {
        Error::StreamNotFound(stream) => stream_not_found(&stream),
        Error::StreamExists(stream) => {
            in_use(format!("Stream {stream} under account {ACCOUNT} already exists."))
        }
        Error::ShardNotFound(stream, shard) => shard_not_found(&stream, &shard),
        Error::ShardClosed(shard) => {
            in_use(format!("Shard {shard} is closed: it was split or merged already."))
        }
        Error::Throttled { .. } => Fault::client(THROTTLED, error.to_string()),
        Error::LimitExceeded(message) => Fault::client("LimitExceededException", message),
        other => invalid(other.to_string()),
    }
}

/// A value is not allowed here.
pub(super) fn invalid(message: impl Into<String>) -> Fault {
    Fault::client("InvalidArgumentException", message)
}

/// More shards than a stream may have.
pub(super) fn too_many_shards() -> Fault {
    Fault::client("LimitExceededException", format!("A stream has at most {OPEN_SHARDS_MAX} open shards."))
}

/// Something is in the way.
pub(super) fn in_use(message: impl Into<String>) -> Fault {
    Fault::client("ResourceInUseException", message)
}

/// Something does not exist.
pub(super) fn not_found(message: impl Into<String>) -> Fault {
    Fault::client("ResourceNotFoundException", message)
}

/// There is no such stream.
pub(super) fn stream_not_found(stream: &StreamName) -> Fault {
    not_found(format!("Stream {stream} under account {ACCOUNT} not found."))
}

/// A shard that is to be changed, or whose name is none, is not there.
pub(super) fn no_such_shard(stream: &StreamName, shard: &str) -> Fault {
    not_found(format!("Could not find shard {shard} in stream {stream} under account {ACCOUNT}."))
}

/// What is said to a reader of a shard: of a stream that is not there, the service says that the shard is not.
pub(super) fn of_shard(fault: Fault, stream: &StreamName, shard: &ShardId) -> Fault {
    if fault == stream_not_found(stream) { shard_not_found(stream, shard) } else { fault }
}

/// The stream has no such shard.
pub(super) fn shard_not_found(stream: &StreamName, shard: &ShardId) -> Fault {
    not_found(format!("Shard {shard} in stream {stream} under account {ACCOUNT} does not exist"))
}
