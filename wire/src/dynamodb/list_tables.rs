//! ListTables.

use serde::{Deserialize, Serialize};

use super::errors::fault;
use super::names::{check_name, table_name};
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// Most tables on a page.
const LIMIT_MAX: i32 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    exclusive_start_table_name: Option<String>,
    limit: Option<i32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    table_names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_evaluated_table_name: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    let after = request.exclusive_start_table_name.as_deref();
    check_name(&mut validation, "exclusiveStartTableName", after);
    validation.range("limit", request.limit.map(i64::from), 1..=i64::from(LIMIT_MAX)).done()?;
    let after = after.map(|name| table_name(Some(name))).transpose()?;
    let limit = request.limit.unwrap_or(LIMIT_MAX) as usize;
    let page = context.ports.tables.tables(after.as_ref(), limit).await.map_err(fault)?;
    let names: Vec<_> = page.entries.iter().map(ToString::to_string).collect();
    let last = names.last().filter(|_| page.more).cloned();
    Ok(Response { table_names: names, last_evaluated_table_name: last })
}
