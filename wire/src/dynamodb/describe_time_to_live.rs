//! DescribeTimeToLive.

use serde::{Deserialize, Serialize};

use super::errors::table_fault;
use super::names::own_table;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    time_to_live_description: Description,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Description {
    time_to_live_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute_name: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let table = own_table(request.table_name.as_deref())?;
    let attribute = context.ports.tables.table(&table).await.map_err(table_fault)?.options.time_to_live;
    let status = if attribute.is_some() { "ENABLED" } else { "DISABLED" };
    Ok(Response {
        time_to_live_description: Description { time_to_live_status: status, attribute_name: attribute },
    })
}
