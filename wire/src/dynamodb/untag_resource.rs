//! UntagResource.

use serde::Deserialize;

use super::names::{resource, table_of_resource};
use super::state::changing;
use super::tags;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    resource_arn: Option<String>,
    tag_keys: Option<Vec<String>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let arn = resource(request.resource_arn.as_deref())?;
    let mut validation = Validation::default();
    validation.required("tagKeys", &request.tag_keys);
    for (at, key) in request.tag_keys.iter().flatten().enumerate() {
        validation.length(&format!("tagKeys.{}.member", at + 1), Some(key), 1..=128);
    }
    validation.done()?;
    let table = table_of_resource(arn)?;
    let keys = request.tag_keys.unwrap_or_default();
    if keys.is_empty() {
        return Err(Fault::validation("Atleast one Tag Key needs to be provided as Input."));
    }
    let _changing = changing(context).await?;
    tags::remove(context, &table, keys).await?;
    Ok(Nothing)
}
