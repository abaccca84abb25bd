//! RemovePermission.

use serde::Deserialize;
use serde_json::Value;

use super::Nothing;
use super::add_permission::{label, policy, statements};
use super::errors::{fault, invalid_value};
use super::queue::{arn, resolve};
use super::settings::Settings;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    label: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let label = label(request.label)?;
    let _changing = context.sqs.changing().await;
    context.ports.queues.queue(&queue).await.map_err(fault)?;
    let mut settings = Settings::of(context, &queue).await?;
    let mut policy = policy(&settings, &arn(context, &queue))?;
    let statements = statements(&mut policy)?;
    let before = statements.len();
    statements.retain(|statement| statement["Sid"] != *label);
    if statements.len() == before {
        return Err(invalid_value("Label", label, "can't find label."));
    }
    match statements.is_empty() {
        true => settings.attributes.remove("Policy"),
        false => settings.attributes.insert("Policy".to_owned(), Value::Object(policy).to_string()),
    };
    settings.keep(context, &queue).await?;
    Ok(Nothing {})
}
