//! DecreaseStreamRetentionPeriod.

pub(super) use super::increase_stream_retention_period::Request;
use super::increase_stream_retention_period::{Direction, change};
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    change(context, request, Direction::Shorter).await
}
