//! TagResource.

use serde::Deserialize;

use super::names::{resource, resource_not_found, table_of_resource};
use super::state::changing;
use super::tags::{self, Tag};
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, some_bounded};
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    resource_arn: Option<String>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    tags: Option<Vec<Tag>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let arn = resource(request.resource_arn.as_deref())?;
    Validation::default().required("tags", &request.tags).done()?;
    let table = table_of_resource(arn)?;
    let tags = request.tags.unwrap_or_default();
    if tags.is_empty() {
        return Err(Fault::validation("Atleast one Tag needs to be provided as Input."));
    }
    tags::check(&tags)?;
    let _changing = changing(context).await?;
    tags::put(context, &table, tags).await.map_err(|fault| resource_not_found(fault, arn))?;
    Ok(Nothing)
}
