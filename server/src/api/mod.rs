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
//! Bodies of blobs are the exception: they travel as they are, in pieces, beside a header with the JSON ([`transfer`]).
//!
//! Invariant: what arrives is parsed into checked values here, and no type of this module is seen behind it.

pub mod error;
pub mod text;
pub mod wire;

pub mod transfer;

mod backups;
mod batch;
mod blobs;
mod meter;
mod queues;
mod receive;
mod serve;
mod tables;

pub(crate) use meter::describe as describe_metrics;
pub(crate) use serve::{Api, router};

use anabranch_model::TableName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use text::Text;
use wire::{
    ActionsBody, AlterationBody, AppendReply, AppendRequest, BackupLine, BackupRequest, BatchBody,
    BeginUploadRequest, BlobMetaBody, BlobPlace, BlobsReply, BlobsRequest, BucketBody, BucketRequest,
    BucketsRequest, ChangeStreamsReply, CompleteUploadRequest, CopyBlobRequest, CreateRequest,
    DeleteBlobRequest, DeleteBlobsRequest, DeleteMessagesRequest, Empty, FollowLine, FollowRequest,
    GetBlobReply, GetBlobRequest, GetBody, GetsRequest, GotReply, ItemPageBody, ItemReply, ItemsReply,
    MergeRequest, MoveBody, MovedReply, MovesReply, OpenedReply, PageReply, PartBody, PartsRequest,
    PutBlobRequest, PutPartRequest, QueryBody, QueueBody, QueueOptionsRequest, QueueRequest, QueuesRequest,
    ReadRequest, ReceiveReply, ReceiveRequest, ResultsReply, RetentionRequest, ScanBody, SendRequest,
    SentBody, ShardBody, ShardsRequest, SplitRequest, StartMoveRequest, StatusReply, StreamBody,
    StreamRequest, StreamsRequest, TableBody, TableCall, TableOptionsBody, TableRequest, TablesRequest,
    TransactRequest, UploadBody, UploadSummaryBody, UploadsRequest, VisibilityRequest, WriteBody,
};

/// A call that the server answers.
pub trait Operation {
    /// The path of the call.
    const PATH: &'static str;
    /// Its name in metrics.
    const NAME: &'static str;
    /// What the caller sends.
    type Request: Serialize + DeserializeOwned + Send + 'static;
    /// What it gets; of [`Follow`] and [`Backup`] it gets many, one a line.
    type Reply: Serialize + DeserializeOwned + Send + 'static;
}

/// What every path of the control API begins with.
pub(crate) const PREFIX: &str = "/_anabranch/";

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

    /// Backs the data directory up, and says how far it is.
    Backup "backup": BackupRequest => BackupLine;

    /// A page of queues.
    Queues "queues": QueuesRequest => PageReply<QueueBody>;
    /// One queue.
    Queue "queue": QueueRequest => QueueBody;
    /// Makes a queue.
    CreateQueue "create-queue": QueueOptionsRequest => Empty;
    /// Removes a queue.
    DeleteQueue "delete-queue": QueueRequest => Empty;
    /// Changes how a queue behaves.
    SetQueueOptions "set-queue-options": QueueOptionsRequest => Empty;
    /// Sends messages.
    SendMessages "send-messages": SendRequest => ResultsReply<SentBody>;
    /// Takes messages, and waits for them.
    Receive "receive": ReceiveRequest => ReceiveReply;
    /// Deletes messages.
    DeleteMessages "delete-messages": DeleteMessagesRequest => ResultsReply<Empty>;
    /// Hides messages for longer or shorter.
    ChangeVisibility "change-visibility": VisibilityRequest => ResultsReply<Empty>;
    /// Deletes every message of a queue.
    Purge "purge": QueueRequest => Empty;
    /// Starts to move dead letters.
    StartMove "start-move": StartMoveRequest => MoveBody;
    /// The moves out of a queue.
    Moves "moves": QueueRequest => MovesReply;
    /// Stops a move.
    CancelMove "cancel-move": MoveBody => MovedReply;

    /// A page of buckets.
    Buckets "buckets": BucketsRequest => PageReply<BucketBody>;
    /// One bucket.
    Bucket "bucket": BucketRequest => BucketBody;
    /// Makes a bucket.
    CreateBucket "create-bucket": BucketRequest => Empty;
    /// Removes a bucket.
    DeleteBucket "delete-bucket": BucketRequest => Empty;
    /// Stores a blob. Its request stands in the header [`transfer::HEAD`], its body is the blob.
    PutBlob "put-blob": PutBlobRequest => BlobMetaBody;
    /// Opens a blob. Its reply stands in the header [`transfer::HEAD`], its body is the blob.
    GetBlob "get-blob": GetBlobRequest => GetBlobReply;
    /// What is known about a blob.
    HeadBlob "head-blob": BlobPlace => BlobMetaBody;
    /// Removes a blob.
    DeleteBlob "delete-blob": DeleteBlobRequest => Empty;
    /// Removes blobs.
    DeleteBlobs "delete-blobs": DeleteBlobsRequest => ResultsReply<Empty>;
    /// Stores a blob with the body of another.
    CopyBlob "copy-blob": CopyBlobRequest => BlobMetaBody;
    /// A page of keys.
    Blobs "blobs": BlobsRequest => BlobsReply;
    /// Begins an upload in parts.
    BeginUpload "begin-upload": BeginUploadRequest => UploadBody;
    /// Stores a part. Its request stands in the header [`transfer::HEAD`], its body is the part.
    PutPart "put-part": PutPartRequest => PartBody;
    /// A page of parts.
    Parts "parts": PartsRequest => PageReply<PartBody>;
    /// A page of open uploads.
    Uploads "uploads": UploadsRequest => PageReply<UploadSummaryBody>;
    /// Makes a blob of parts.
    CompleteUpload "complete-upload": CompleteUploadRequest => BlobMetaBody;
    /// Ends an upload and forgets its parts.
    AbortUpload "abort-upload": UploadBody => Empty;

    /// A page of names of tables.
    Tables "tables": TablesRequest => PageReply<Text<TableName>>;
    /// One table.
    Table "table": TableRequest => TableBody;
    /// Makes a table.
    CreateTable "create-table": TableCall<TableOptionsBody> => Empty;
    /// Removes a table.
    DeleteTable "delete-table": TableRequest => Empty;
    /// Changes a living table.
    AlterTable "alter-table": TableCall<AlterationBody> => Empty;
    /// Reads an item.
    GetItem "get-item": TableCall<GetBody> => ItemReply;
    /// Writes an item.
    WriteItem "write-item": TableCall<WriteBody> => ItemReply;
    /// Reads items, as many as there is room for.
    BatchGet "batch-get": GetsRequest => GotReply;
    /// Writes items, each on its own; answered with those that were not done.
    BatchWrite "batch-write": ActionsBody => ActionsBody;
    /// Reads items at one moment.
    TransactGet "transact-get": GetsRequest => ItemsReply;
    /// Writes items, all or none.
    TransactWrite "transact-write": TransactRequest => Empty;
    /// Reads items of one hash value.
    Query "query": TableCall<QueryBody> => ItemPageBody;
    /// Reads items of all hash values.
    Scan "scan": TableCall<ScanBody> => ItemPageBody;
    /// The streams of the changes of a table.
    ChangeStreams "change-streams": TableRequest => ChangeStreamsReply;
    /// A page of shards of a stream of changes.
    ChangeShards "change-shards": ShardsRequest => PageReply<ShardBody>;
    /// Reads a batch of changes.
    ReadChanges "read-changes": ReadRequest => BatchBody;
    /// Reads changes and waits for more.
    FollowChanges "follow-changes": FollowRequest => FollowLine;
}
