//! Requests and replies of the control API, and how they become values of the model and back.
//!
//! These types belong to the wire alone: a field may be renamed here, or a noun of the model there, without the
//! other noticing. Durations have whole seconds and nanoseconds, so that none is rounded on the way.

mod bounded;
mod listing;
mod record;
mod request;
mod status;

mod message;
mod queue;

mod backup;
mod blob;
mod body;
mod condition;
mod meta;
mod upload;

pub use backup::{BackupLine, BackupRequest, ContentsBody};
mod table;

pub use blob::{
    BlobPlace, BlobSummaryBody, BlobsReply, BlobsRequest, BucketBody, BucketRequest, BucketsRequest,
    CopyBlobRequest, DeleteBlobRequest, DeleteBlobsRequest, GetBlobReply, GetBlobRequest, ListAfterBody,
    PieceBody, PutBlobRequest,
};
pub use body::{AlgorithmBody, BodyOptionsBody, ChecksumScopeBody, ChecksumsBody};
pub use condition::{ETagMatchBody, ReadConditionsBody, WriteConditionBody};
pub use listing::{PageReply, RangeBody, ShardBody, StreamBody};
pub use message::{
    AttributeBody, AttributeValueBody, MessageBody, NewMessageBody, ReceiveReply, ReceiveRequest, ResultBody,
    ResultsReply, SendRequest, SentBody,
};
pub use meta::{BlobMetaBody, HeaderBody, PropertiesBody};
pub use queue::{
    DeleteMessagesRequest, MoveBody, MoveStatusBody, MoveSummaryBody, MovedReply, MovesReply, QueueBody,
    QueueOptionsBody, QueueOptionsRequest, QueueRequest, QueuesRequest, RedriveAllowBody, RedriveBody,
    ScopeBody, StartMoveRequest, VisibilityRequest,
};
pub use record::{
    AppendReply, AppendedBody, BatchBody, FollowLine, NewRecordBody, NextBody, PositionBody, RecordBody,
};
pub use request::{
    AppendRequest, CreateRequest, Empty, FollowRequest, MergeRequest, ReadRequest, RetentionRequest,
    ShardsRequest, SplitRequest, StreamRequest, StreamsRequest,
};
pub use status::{EngineBody, StatusReply};
pub use table::{
    ActionBody, ActionsBody, AlterationBody, CancelledBody, ChangeStreamsReply, ChangeViewBody,
    ClusteringBody, ColumnBody, ColumnKindBody, ComparisonBody, ConditionBody, Distinct, GetBody,
    GetsRequest, GotBody, GotReply, IndexOptionsBody, IndexProjectionBody, IndexScopeBody, IndexSummaryBody,
    ItemBody, ItemPageBody, ItemReply, ItemsReply, KeyAttributeBody, KeyConditionBody, KeyKindBody,
    KeySchemaBody, KeyspaceShapeBody, KindBody, Millis, Mirror, OperandBody, PathBody, ProjectionBody,
    QueryBody, RangeConditionBody, ReadingBody, ReturningBody, ScanBody, SegmentBody, SetOperandBody,
    SetValueBody, StepBody, TableBody, TableCall, TableOptionsBody, TableRequest, TableStateBody,
    TablesRequest, TransactRequest, UpdateBody, ValueBody, WriteBody,
};
pub use upload::{
    BeginUploadRequest, CompleteUploadRequest, PartBody, PartsRequest, PutPartRequest, UploadBody,
    UploadSummaryBody, UploadsRequest,
};

use anabranch_model::ShardId;
use serde::{Deserialize, Serialize};

use super::error::ErrorBody;
use super::text::Text;

/// The answer to a call that opens shards, in the order of their ranges.
#[derive(Debug, Serialize, Deserialize)]
pub struct OpenedReply {
    /// The shards.
    pub shards: Vec<Text<ShardId>>,
}

/// The body of an answer that is not a success.
#[derive(Debug, Serialize, Deserialize)]
pub struct FailedReply {
    /// For programs: exactly the error of the model.
    pub error: ErrorBody,
    /// For people.
    pub message: String,
}
