//! PutResourcePolicy. The policy is kept and shown; there is one account, so it decides nothing.

use serde::Deserialize;

use super::errors::invalid;
use super::resource::Resource;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// Longest policy, in characters.
const POLICY_CHARS_MAX: usize = 20_480;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "ResourceARN")]
    resource_arn: Option<String>,
    policy: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    Validation::default()
        .required("policy", &request.policy)
        .length("policy", request.policy.as_deref(), 1..=POLICY_CHARS_MAX)
        .done()?;
    let policy = request.policy.unwrap_or_default();
    let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&policy);
    if !parsed.is_ok_and(|policy| policy.contains_key("Statement")) {
        return Err(invalid("The policy is not a JSON document with a Statement."));
    }
    let resource = Resource::of(context, &request.resource_arn).await?;
    resource
        .change(context, |labels| {
            labels.policy = Some(policy);
            Ok(())
        })
        .await?;
    Ok(Nothing)
}
