//! PutSecretValue.

use serde::{Deserialize, Serialize};

use super::errors::{deleted, exists, invalid};
use super::secret::check_stages;
use super::value::Value;
use super::{name, stored};
use crate::binary::Binary;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    secret_id: Option<String>,
    client_request_token: Option<String>,
    secret_binary: Option<Binary>,
    secret_string: Option<String>,
    version_stages: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(rename = "ARN")]
    arn: String,
    name: String,
    version_id: String,
    version_stages: Vec<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let value = Value::given(request.secret_string, request.secret_binary)?;
    let value = value.ok_or_else(|| invalid("You must provide either SecretString or SecretBinary."))?;
    let version = token(request.client_request_token)?;
    let stages = check_stages(request.version_stages)?;
    let changing = context.secrets.changing().await;
    let mut secret = stored::find(context, &changing, request.secret_id.as_deref()).await?;
    if secret.deletion.is_some() {
        return Err(deleted());
    }
    if secret.version(&version).is_none() {
        let gone = secret.add(version.clone(), stages, context.clock.now().as_millis());
        secret.check_stages()?;
        stored::keep_value(context, &secret, &version, &value).await?;
        if let Err(fault) = stored::keep(context, &secret).await {
            // Nothing names a value whose secret was refused, so it would be there for ever. After any other failure the
            // secret may name it nevertheless. What the caller has to know is the refusal.
            if fault.status.is_client_error() {
                let _ = stored::drop_values(context, &secret, std::slice::from_ref(&version)).await;
            }
            return Err(fault);
        }
        stored::drop_values(context, &secret, &gone).await?;
    } else if stored::value(context, &secret, &version).await? != value {
        let message = "You can't use ClientRequestToken of a version that already exists with another value.";
        return Err(exists(message));
    }
    let version_stages = secret.version(&version).map(|version| version.stages.clone()).unwrap_or_default();
    Ok(Response { arn: secret.arn(context), name: secret.name, version_id: version, version_stages })
}

/// The identifier of the version that a call makes: its token, by which it is recognised when it is made again.
pub(super) fn token(token: Option<String>) -> Result<String, Fault> {
    match token {
        Some(token)
            if (32..=64).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(token)
        }
        Some(_) => Err(invalid("ClientRequestToken must be 32-64 characters long.")),
        None => name::version_id(),
    }
}
