//! The AWS protocols on one port, answered from the ports of the model.
//!
//! Invariant: this is the only crate that can spell the names of AWS, and it knows no engine: whatever keeps the laws
//! of `anabranch_model` can stand behind it. Nothing answers success without doing the work.
//!
//! Read in this order: a request from its arrival to its answer ([`Wire`], `dispatch`, `receive`, `auth`), how values
//! are spelled (`protocol`, `binary`, `time`), how calls are refused (`fault`, `validation`), and then the services,
//! each a folder with a file for each operation.
//!
//! # How an operation is written
//!
//! A file has the typed `Request` (serde; what may be missing is an `Option`), the typed `Response`, and
//!
//! ```text
//! pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault>
//! ```
//!
//! which checks the request (`validation`), calls a port (`context.ports`), and maps its error with the function of
//! the service. One line in the table of the service (`operations!` in its `mod.rs`, see `operations`) makes it known. An operation that
//! answers nothing returns `answer::Nothing`, one that answers a stream implements `answer::Answer` itself.

mod wire;

mod deflate;
mod dispatch;
mod inflate;
mod receive;

mod auth;

mod answer;
mod binary;
mod protocol;
mod time;

mod fault;
mod validation;

mod context;
mod limits;
mod list;
mod making;
mod operations;
mod request_id;
mod token;

mod cloudwatch;
mod dynamodb;
mod dynamodb_streams;
mod firehose;
mod keyspaces_streams;
mod kinesis;
mod s3;
mod secrets;
mod sqs;
mod sts;

pub use auth::Keys;
pub use context::{Memory, Ports, Reservation};
pub use receive::{Body, BodyError, BoxError};
pub use wire::{Options, OverTls, Wire, operations};
