//! AddTagsToStream.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::stream::resolve;
use super::{settings, tags};
use crate::answer::Nothing;
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    tags: Option<BTreeMap<String, String>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    tags::check_given(&mut validation, &request.tags);
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let tags = request.tags.unwrap_or_default();
    let whose = format!("stream {stream} under account {ACCOUNT}");
    settings::change(context, &stream, |settings| tags::add(&mut settings.tags, tags, &whose)).await?;
    Ok(Nothing)
}
