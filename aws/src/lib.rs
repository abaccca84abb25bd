//! The ports of Anabranch on AWS: streams on Kinesis, queues on SQS, tables on DynamoDB, blobs on S3.
//!
//! Invariant: this crate depends on `model` only, and no word of AWS leaves it except in the text of an error. Nothing
//! above the ports can tell these stores from the embedded ones.
//!
//! Read in this order: where the services are and who calls ([`config`]), what can be asked of them ([`action`]), the one
//! way to ask (`call`), and what comes back when it fails (`failure`). Each service has a folder of its own that knows
//! nothing of the others.
//!
//! # How a port is written
//!
//! Every request goes through `Caller::call` with the row of its action, a deadline and a closure that begins the
//! request; nothing else of the SDK's machinery is used. What the failure means for this port is said in one place, and
//! everything else falls through to the general translation:
//!
//! ```ignore
//! // kinesis/action.rs: the row says what a policy must allow, the account's quota, and that it may be repeated.
//! DESCRIBE_STREAM_SUMMARY = kinesis("DescribeStreamSummary", Resource::Stream).control(20).repeatable();
//!
//! // kinesis/describe.rs
//! let request = || self.client.describe_stream_summary().stream_name(stream.as_str()).send();
//! let answer = self.caller.call(&action::DESCRIBE_STREAM_SUMMARY, deadline, request).await;
//! let answer = answer.map_err(|failure| {
//!     failure.explained(|kind| match kind {
//!         Kind::NotFound => Some(Error::StreamNotFound(stream.clone())),
//!         _ => None,
//!     })
//! })?;
//! ```
//!
//! * A row that is not `repeatable` is tried again only when the service certainly did nothing. A failure whose
//!   `outcome` is `Unknown` comes back to the port, which finds out what happened: by looking, or with a token or a
//!   condition that makes the second call harmless.
//! * `failure.detail` is the SDK's own error, for what only it carries (the item that a condition found).
//! * A batch whose answer has an unprocessed rest sends the rest again after `Caller::back_off`, until the deadline.
//! * Loops that wait for something to become active use `Caller::back_off` as well. Nothing sleeps by itself.
//! * The rows of a service are joined to the others in `action::all`, from which policies are made.

pub mod action;
pub mod bare;
pub mod config;
pub mod policy;

mod attribute;
mod backoff;
mod call;
mod change;
mod failure;
mod pace;
mod probe;
mod source;

pub mod dynamodb;
pub mod dynamodb_streams;
pub mod keyspaces_streams;
pub mod kinesis;
pub mod s3;
pub mod sqs;

pub use config::{AccessKey, Aws, AwsOptions};
pub use dynamodb::Tables;
pub use dynamodb_streams::TableChanges;
pub use keyspaces_streams::KeyspaceChanges;
pub use kinesis::Streams;
pub use s3::Blobs;
pub use sqs::Queues;
