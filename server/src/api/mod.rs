//! The control API under `/_anabranch/v1/`: how the command line talks to a running server.
//!
//! Each call is a POST with a JSON body to the path of its [`Operation`]. Server and client name the same
//! operation, so that path, request and reply cannot drift apart.
//!
//! ```text
//!   Remote::append ──▶ AppendRequest ──▶ JSON ──▶ serve ──▶ StreamStore::append
//!        Error    ◀── ErrorBody ◀── JSON ◀── FailedReply ◀── Error
//! ```
//!
//! Invariant: what arrives is parsed into checked values here, and no type of this module is seen behind it.

pub mod error;
pub mod text;
pub mod wire;

mod batch;
mod receive;
mod serve;

pub(crate) use serve::{Api, router};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::{
    AppendReply, AppendRequest, BatchBody, CreateRequest, Empty, FollowLine, FollowRequest, MergeRequest,
    OpenedReply, PageReply, ReadRequest, RetentionRequest, ShardBody, ShardsRequest, SplitRequest,
    StatusReply, StreamBody, StreamRequest, StreamsRequest,
};

/// A call that the server answers.
pub trait Operation {
    /// The path of the call.
    const PATH: &'static str;
    /// Its name in metrics.
    const NAME: &'static str;
    /// What the caller sends.
    type Request: Serialize + DeserializeOwned + Send + 'static;
    /// What it gets; of [`Follow`] it gets many, one a line.
    type Reply: Serialize + DeserializeOwned + Send + 'static;
}

macro_rules! operations {
    ($($(#[$doc:meta])* $operation:ident $name:literal: $request:ty => $reply:ty;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $operation;

        impl Operation for $operation {
            const PATH: &'static str = concat!("/_anabranch/v1/", $name);
            const NAME: &'static str = $name;
            type Request = $request;
            type Reply = $reply;
        })*

        /// The name of the operation at a path; none if there is no operation.
        pub(crate) fn operation_at(path: &str) -> Option<&'static str> {
            $(if path == $operation::PATH {
                return Some($operation::NAME);
            })*
            None
        }
    };
}

operations! {
    /// Numbers about the server and its engine.
    Status "status": Empty => StatusReply;
    /// A page of streams.
    Streams "streams": StreamsRequest => PageReply<StreamBody>;
    /// One stream.
    Stream "stream": StreamRequest => StreamBody;
    /// A page of shards.
    Shards "shards": ShardsRequest => PageReply<ShardBody>;
    /// Makes a stream.
    CreateStream "create-stream": CreateRequest => Empty;
    /// Removes a stream.
    DeleteStream "delete-stream": StreamRequest => Empty;
    /// Changes how long records are kept.
    SetRetention "set-retention": RetentionRequest => Empty;
    /// Splits a shard.
    Split "split": SplitRequest => OpenedReply;
    /// Merges two shards.
    Merge "merge": MergeRequest => OpenedReply;
    /// Stores records.
    Append "append": AppendRequest => AppendReply;
    /// Reads a batch.
    Read "read": ReadRequest => BatchBody;
    /// Reads and waits for more.
    Follow "follow": FollowRequest => FollowLine;
}
