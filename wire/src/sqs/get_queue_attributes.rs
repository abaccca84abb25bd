//! GetQueueAttributes.

use serde::{Deserialize, Serialize};

use super::attributes::{Attributes, describe, exists, unknown};
use super::errors::fault;
use super::queue::{arn, resolve};
use super::settings::Settings;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    #[serde(alias = "AttributeName")]
    attribute_names: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    attributes: Attributes,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let names = request.attribute_names.unwrap_or_default();
    let all = names.iter().any(|name| name == "All");
    if let Some(name) = names.iter().find(|name| *name != "All" && !exists(name)) {
        return Err(unknown(name));
    }
    let summary = context.ports.queues.queue(&queue).await.map_err(fault)?;
    let settings = Settings::of(context, &queue).await?;
    let mut attributes = describe(&summary, &settings.attributes, |queue| arn(context, queue));
    attributes.retain(|name, _| all || names.contains(name));
    Ok(Response { attributes })
}
