//! GetResourcePolicy.

use serde::{Deserialize, Serialize};

use super::errors::not_found;
use super::resource::Resource;
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
    policy: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let labels = Resource::of(context, &request.resource_arn).await?.labels(context).await?;
    let arn = request.resource_arn.unwrap_or_default();
    let policy = labels.policy.ok_or_else(|| not_found(format!("No policy is attached to {arn}.")))?;
    Ok(Response { policy })
}
