//! StopStreamEncryption.

pub(super) use super::start_stream_encryption::Request;
use super::start_stream_encryption::change;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    change(context, request, None).await
}
