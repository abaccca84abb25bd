//! RestoreSecret.

use serde::{Deserialize, Serialize};

use super::stored;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    secret_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(rename = "ARN")]
    arn: String,
    name: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let changing = context.secrets.changing().await;
    let mut secret = stored::find(context, &changing, request.secret_id.as_deref()).await?;
    if secret.deletion.take().is_some() {
        stored::keep(context, &secret).await?;
    }
    Ok(Response { arn: secret.arn(context), name: secret.name })
}
