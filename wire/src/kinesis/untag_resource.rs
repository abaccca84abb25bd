//! UntagResource.

use serde::Deserialize;

use super::resource::Resource;
use super::tags;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "ResourceARN")]
    resource_arn: Option<String>,
    tag_keys: Option<Vec<String>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    tags::check_keys(&mut validation, &request.tag_keys);
    validation.done()?;
    let resource = Resource::of(context, &request.resource_arn).await?;
    let keys = request.tag_keys.unwrap_or_default();
    resource.change(context, |labels| tags::remove(&mut labels.tags, &keys)).await?;
    Ok(Nothing)
}
