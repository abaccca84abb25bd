//! StartStreamEncryption. The key is kept and shown with every record, and nothing is encrypted with it: what the disk holds is
//! as safe as the disk. The documentation says so.

use serde::Deserialize;

use super::errors::fault;
use super::settings;
use super::state::{begin_update, check_changeable};
use super::stream::resolve;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// What both operations on encryption are asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    encryption_type: Option<String>,
    key_id: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let key = request.key_id.clone();
    change(context, request, key).await
}

/// Sets the key of a stream.
pub(super) async fn change(
    context: &Context,
    request: Request,
    key: Option<String>,
) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    validation
        .required("encryptionType", &request.encryption_type)
        .one_of("encryptionType", request.encryption_type.as_deref(), &["KMS"])
        .required("keyId", &request.key_id)
        .length("keyId", request.key_id.as_deref(), 1..=2048);
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    settings::change(context, &stream, |settings| {
        settings.key_id = key;
        Ok(())
    })
    .await?;
    begin_update(context, &stream);
    Ok(Nothing)
}
