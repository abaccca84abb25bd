//! RemoveTagsFromStream.

use serde::Deserialize;

use super::stream::resolve;
use super::{settings, tags};
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    tag_keys: Option<Vec<String>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    tags::check_keys(&mut validation, &request.tag_keys);
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let keys = request.tag_keys.unwrap_or_default();
    settings::change(context, &stream, |settings| tags::remove(&mut settings.tags, &keys)).await?;
    Ok(Nothing)
}
