//! DescribeTable.

use serde::{Deserialize, Serialize};

use super::description::{Description, describe};
use super::errors::table_fault;
use super::names::own_table;
use super::settings::Settings;
use super::state::settle;
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
    table: Description,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let table = own_table(request.table_name.as_deref())?;
    settle(context).await?;
    let summary = context.ports.tables.table(&table).await.map_err(table_fault)?;
    let settings = Settings::load(context, &table).await?;
    Ok(Response { table: describe(context, &summary, &settings) })
}
