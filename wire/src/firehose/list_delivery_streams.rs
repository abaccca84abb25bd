//! ListDeliveryStreams.

use serde::{Deserialize, Serialize};

use super::definition::{self, check_name};
use super::errors::{fault, invalid};
use crate::context::Context;
use crate::fault::Fault;

/// Names on a page unless the caller says otherwise.
const LIMIT_DEFAULT: i64 = 10;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    limit: Option<i64>,
    delivery_stream_type: Option<String>,
    exclusive_start_delivery_stream_name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    delivery_stream_names: Vec<String>,
    has_more_delivery_streams: bool,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let limit = request.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=10_000).contains(&limit) {
        return Err(invalid("Limit must be 1 to 10000."));
    }
    let after = request.exclusive_start_delivery_stream_name;
    let after = after.map(|name| check_name(Some(name))).transpose()?;
    // There is one type, so whoever asks for another one finds nothing.
    if request.delivery_stream_type.is_some_and(|kind| kind != "DirectPut") {
        return Ok(Response { delivery_stream_names: Vec::new(), has_more_delivery_streams: false });
    }
    let page = definition::page(&context.ports, after.as_deref(), limit as usize).await;
    let (page, has_more_delivery_streams) = page.map_err(fault)?;
    let delivery_stream_names = page.into_iter().map(|definition| definition.name).collect();
    Ok(Response { delivery_stream_names, has_more_delivery_streams })
}
