//! ListTagsForResource.

use serde::{Deserialize, Serialize};

use super::resource::Resource;
use super::tags::{self, Tag};
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "ResourceARN")]
    resource_arn: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    tags: Vec<Tag>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let resource = Resource::of(context, &request.resource_arn).await?;
    Ok(Response { tags: tags::shapes(&resource.labels(context).await?.tags) })
}
