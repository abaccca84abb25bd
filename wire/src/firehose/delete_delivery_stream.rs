//! DeleteDeliveryStream. What still waits is delivered before, if that is possible.

use anabranch_model::Error;
use serde::{Deserialize, Serialize};

use super::delivery::deliver_waiting;
use super::errors::fault;
use super::{buffer, definition};
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Response {}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let name = definition::check_name(request.delivery_stream_name)?;
    let _alone = context.firehose.delivering(&name).await;
    let found = definition::find(context, Some(name)).await?;
    deliver_waiting(&context.shared, &found).await;
    if *context.stop.borrow() {
        return Err(fault(Error::Unavailable("the server stops".to_owned())));
    }
    // The stream goes first, so that nothing is put any more: a definition that a crash leaves behind can be deleted again.
    buffer::delete(&context.ports, &found.name).await.map_err(fault)?;
    definition::forget(context, &found.name).await?;
    context.firehose.forget(&found.name);
    Ok(Response {})
}
