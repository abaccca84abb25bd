//! GetResourcePolicy.

use serde::{Deserialize, Serialize};

use super::resource::Resource;
use crate::context::Context;
use crate::fault::Fault;

/// What stands for a policy where there is none.
const NO_POLICY: &str = "{}";

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
    Ok(Response { policy: labels.policy.unwrap_or_else(|| NO_POLICY.to_owned()) })
}
