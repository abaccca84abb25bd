//! DeleteTable.

use anabranch_model::table::TableState;
use serde::{Deserialize, Serialize};

use super::description::{Description, describe};
use super::errors::table_fault;
use super::names::own_table;
use super::settings::Settings;
use super::state::{changing, check_made};
use crate::context::Context;
use crate::dynamodb_streams;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    table_description: Description,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let table = own_table(request.table_name.as_deref())?;
    let _changing = changing(context).await?;
    let mut summary = context.ports.tables.table(&table).await.map_err(table_fault)?;
    check_made(context, &summary)?;
    let settings = Settings::load(context, &table).await?;
    if settings.deletion_protection {
        return Err(Fault::validation(
            "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection \
             first.",
        ));
    }
    // Its changes can be read for another day, and then somebody has to know what they were.
    dynamodb_streams::remember(context, &summary).await?;
    context.ports.tables.delete_table(&table).await.map_err(table_fault)?;
    summary.state = TableState::Deleting;
    Ok(Response { table_description: describe(context, &summary, &settings).of_deleted() })
}
