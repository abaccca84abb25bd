//! DescribeSecret.

use std::collections::BTreeMap;

use anabranch_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::create_secret::Tag;
use super::secret::Secret;
use super::stored;
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    secret_id: Option<String>,
}

/// What is told about a secret, here and in a list of secrets, which has another name for one member.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Description {
    #[serde(rename = "ARN")]
    arn: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms_key_id: Option<String>,
    created_date: Time,
    last_changed_date: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_accessed_date: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_date: Option<Time>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_ids_to_stages: Option<BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_versions_to_stages: Option<BTreeMap<String, Vec<String>>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Description, Fault> {
    let changing = context.secrets.changing().await;
    let secret = stored::find(context, &changing, request.secret_id.as_deref()).await?;
    let description = describe(context, secret);
    Ok(Description {
        version_ids_to_stages: description.secret_versions_to_stages,
        secret_versions_to_stages: None,
        ..description
    })
}

/// A secret as a list shows it.
pub(super) fn describe(context: &Context, secret: Secret) -> Description {
    let time = |millis: u64| Time(Timestamp::from_millis(millis));
    let staged = secret.versions.iter().filter(|version| !version.stages.is_empty());
    let stages: BTreeMap<_, _> = staged.map(|version| (version.id.clone(), version.stages.clone())).collect();
    Description {
        arn: secret.arn(context),
        name: secret.name,
        description: secret.description.filter(|text| !text.is_empty()),
        kms_key_id: secret.key_id,
        created_date: time(secret.created_at),
        last_changed_date: time(secret.changed_at),
        last_accessed_date: secret.accessed_at.map(time),
        deleted_date: secret.deletion.map(|deletion| time(deletion.said_at)),
        tags: secret.tags.into_iter().map(|(key, value)| Tag { key, value }).collect(),
        version_ids_to_stages: None,
        secret_versions_to_stages: Some(stages).filter(|stages| !stages.is_empty()),
    }
}
