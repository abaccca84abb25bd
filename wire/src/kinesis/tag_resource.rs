//! TagResource.

use std::collections::BTreeMap;

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
    tags: Option<BTreeMap<String, String>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    tags::check_given(&mut validation, &request.tags);
    validation.done()?;
    let resource = Resource::of(context, &request.resource_arn).await?;
    let tags = request.tags.unwrap_or_default();
    resource.change(context, |labels| tags::add(&mut labels.tags, tags, "resource")).await?;
    Ok(Nothing)
}
