//! DeleteDeliveryStream. What still waits is delivered before; what cannot be keeps the delivery stream from going.

use serde::{Deserialize, Serialize};

use super::definition::Definition;
use super::delivery::{Until, deliver_waiting};
use super::errors::{fault, undelivered};
use super::{buffer, definition};
use crate::context::Context;
use crate::fault::Fault;
use crate::making::to_its_end;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
    allow_force_delete: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct Response {}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let name = definition::check_name(request.delivery_stream_name)?;
    let forced = request.allow_force_delete.unwrap_or(false);
    let context = context.clone();
    to_its_end(async move { delete(&context, name, forced).await }).await
}

async fn delete(context: &Context, name: String, forced: bool) -> Result<Response, Fault> {
    let _alone = context.firehose.delivering(&name).await;
    let found = definition::find(context, Some(name)).await?;
    // Most is delivered while records still come, so that those who put them do not wait for long.
    deliver(context, &found, Until::Now, forced).await?;
    let _closed = context.firehose.closed(&found.name).await;
    deliver(context, &found, Until::Empty, forced).await?;
    // The stream goes first, so that nothing is put any more: a definition that a crash leaves behind can be deleted again.
    buffer::delete(&context.ports, &found.name).await.map_err(fault)?;
    definition::forget(context, &found.name).await?;
    context.firehose.forget(&found.name);
    Ok(Response {})
}

/// What was acknowledged and cannot be delivered stays, and its delivery stream with it, unless the caller gives it up.
async fn deliver(context: &Context, found: &Definition, end: Until, forced: bool) -> Result<(), Fault> {
    match deliver_waiting(&context.shared, found, end).await {
        Ok(()) => Ok(()),
        Err(error) if *context.stop.borrow() => Err(fault(error)),
        Err(error) if forced => {
            tracing::warn!(name = found.name, %error, "what waits in a deleted delivery stream is given up");
            Ok(())
        }
        Err(error) => Err(undelivered(&found.name, &error)),
    }
}
