//! GetSecretValue.

use anabranch_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::errors::{deleted, no_version, wrong_state};
use super::secret::CURRENT;
use super::stored;
use super::value::Value;
use crate::binary::Binary;
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    secret_id: Option<String>,
    version_id: Option<String>,
    version_stage: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(rename = "ARN")]
    arn: String,
    name: String,
    version_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_binary: Option<Binary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_string: Option<String>,
    version_stages: Vec<String>,
    created_date: Time,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    // A change between both reads could remove the value.
    let changing = context.secrets.changing().await;
    let mut secret = stored::find(context, &changing, request.secret_id.as_deref()).await?;
    if secret.deletion.is_some() {
        return Err(deleted());
    }
    let stage = request.version_stage.as_deref();
    let version = match &request.version_id {
        Some(id) => secret.version(id).ok_or_else(|| no_version(&format!("VersionId: {id}")))?,
        None => {
            let stage = stage.unwrap_or(CURRENT);
            secret.staged(stage).ok_or_else(|| no_version(&format!("staging label: {stage}")))?
        }
    };
    if stage.is_some_and(|stage| !version.stages.iter().any(|staged| staged == stage)) {
        return Err(wrong_state(
            "You provided a VersionStage that is not associated to the provided VersionId.",
        ));
    }
    let (secret_string, secret_binary) = match stored::value(context, &secret, &version.id).await? {
        Value::Text(text) => (Some(text), None),
        Value::Bytes(bytes) => (None, Some(bytes)),
    };
    let version = version.clone();
    if secret.access(context.clock.now().as_millis()) {
        // That it was read is noted once a day; whoever reads it is not refused because nothing can be written.
        if let Err(fault) = stored::keep(context, &secret).await {
            tracing::warn!(secret = %secret.name, code = %fault.code, "that a secret was read is not noted");
        }
    }
    Ok(Response {
        arn: secret.arn(context),
        name: secret.name.clone(),
        version_id: version.id.clone(),
        secret_binary,
        secret_string,
        version_stages: version.stages.clone(),
        created_date: Time(Timestamp::from_millis(version.created_at)),
    })
}
