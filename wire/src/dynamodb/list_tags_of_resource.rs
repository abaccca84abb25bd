//! ListTagsOfResource.

use serde::{Deserialize, Serialize};

use super::names::{resource, resource_not_found, table_of_resource};
use super::state::settle;
use super::tags::{self, Tag};
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    resource_arn: Option<String>,
}

/// All tags come on one page.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    tags: Vec<Tag>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let arn = resource(request.resource_arn.as_deref())?;
    let table = table_of_resource(arn)?;
    settle(context).await?;
    let tags = tags::list(context, &table).await.map_err(|fault| resource_not_found(fault, arn))?;
    Ok(Response { tags })
}
