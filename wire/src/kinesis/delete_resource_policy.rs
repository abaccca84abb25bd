//! DeleteResourcePolicy.

use serde::Deserialize;

use super::errors::not_found;
use super::resource::Resource;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "ResourceARN")]
    resource_arn: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let resource = Resource::of(context, &request.resource_arn).await?;
    let arn = request.resource_arn.unwrap_or_default();
    resource
        .change(context, |labels| match labels.policy.take() {
            Some(_) => Ok(()),
            None => Err(not_found(format!("No policy is attached to {arn}."))),
        })
        .await?;
    Ok(Nothing)
}
