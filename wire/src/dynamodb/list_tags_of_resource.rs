//! ListTagsOfResource.

use serde::{Deserialize, Serialize};

use super::names::table_of_resource;
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
    let table = table_of_resource(request.resource_arn.as_deref())?;
    Ok(Response { tags: tags::list(context, &table).await? })
}
