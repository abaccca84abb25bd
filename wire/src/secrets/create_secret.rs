//! CreateSecret.

use serde::{Deserialize, Serialize};

use super::errors::{exists, invalid, wrong_state};
use super::name;
use super::put_secret_value::token;
use super::secret::{CURRENT, Secret};
use super::stored;
use super::value::Value;
use crate::binary::Binary;
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, bounded};

/// Most tags of a secret.
const TAGS_MAX: usize = 50;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    name: Option<String>,
    client_request_token: Option<String>,
    description: Option<String>,
    kms_key_id: Option<String>,
    secret_binary: Option<Binary>,
    secret_string: Option<String>,
    #[serde(default, deserialize_with = "bounded::<_, _, { ENTRIES_MAX }>")]
    tags: Vec<Tag>,
    #[serde(default)]
    add_replica_regions: Vec<serde_json::Value>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Tag {
    pub(super) key: String,
    #[serde(default)]
    pub(super) value: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(rename = "ARN")]
    arn: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_id: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let name = name::check(request.name)?;
    let value = Value::given(request.secret_string, request.secret_binary)?;
    let version = token(request.client_request_token)?;
    if !request.add_replica_regions.is_empty() {
        return Err(invalid("Secrets cannot be replicated: there is one region here."));
    }
    let long = |tag: &Tag| !(1..=128).contains(&tag.key.chars().count()) || tag.value.chars().count() > 256;
    if request.tags.len() > TAGS_MAX || request.tags.iter().any(long) {
        return Err(invalid(format!(
            "At most {TAGS_MAX} tags, with keys of 1 to 128 and values of 256 characters."
        )));
    }
    if request.description.as_ref().is_some_and(|text| text.chars().count() > 2_048) {
        return Err(invalid("The description can have 2048 characters at most."));
    }
    let changing = context.secrets.changing().await;
    if let Some(existing) = stored::get(context, &changing, &name).await? {
        return again(context, existing, &version, value).await;
    }
    let now = context.clock.now().as_millis();
    let mut secret = Secret {
        name,
        suffix: name::suffix()?,
        description: request.description,
        key_id: request.kms_key_id,
        tags: request.tags.into_iter().map(|tag| (tag.key, tag.value)).collect(),
        created_at: now,
        changed_at: now,
        ..Secret::default()
    };
    let version_id = match value {
        Some(value) => {
            stored::keep_value(context, &secret, &version, &value).await?;
            secret.add(version.clone(), vec![CURRENT.to_owned()], now);
            Some(version)
        }
        None => None,
    };
    stored::keep(context, &secret).await?;
    Ok(Response { arn: secret.arn(context), name: secret.name, version_id })
}

/// A call that is made again, by its token, is answered as the first was.
async fn again(
    context: &Context,
    secret: Secret,
    version: &str,
    value: Option<Value>,
) -> Result<Response, Fault> {
    if secret.deletion.is_some() {
        return Err(wrong_state(
            "You can't create this secret because a secret with this name is already scheduled for deletion.",
        ));
    }
    match value {
        Some(value)
            if secret.version(version).is_some()
                && stored::value(context, &secret, version).await? == value =>
        {
            let arn = secret.arn(context);
            Ok(Response { arn, name: secret.name, version_id: Some(version.to_owned()) })
        }
        _ => Err(exists(format!("The operation failed because the secret {} already exists.", secret.name))),
    }
}
