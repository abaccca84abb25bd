//! DescribeContinuousBackups: there are none of a single table; the whole store is backed up otherwise.

use serde::{Deserialize, Serialize};

use super::errors::not_found;
use super::names::table_name;
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
    continuous_backups_description: Description,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Description {
    continuous_backups_status: &'static str,
    point_in_time_recovery_description: Recovery,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Recovery {
    point_in_time_recovery_status: &'static str,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let table = table_name(request.table_name.as_deref())?;
    context.ports.tables.table(&table).await.map_err(|error| match error {
        anabranch_model::Error::TableNotFound(table) => {
            Fault { code: "TableNotFoundException".into(), ..not_found(format!("Table not found: {table}")) }
        }
        other => super::fault(other),
    })?;
    let recovery = Recovery { point_in_time_recovery_status: "DISABLED" };
    let description =
        Description { continuous_backups_status: "DISABLED", point_in_time_recovery_description: recovery };
    Ok(Response { continuous_backups_description: description })
}
