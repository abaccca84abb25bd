//! AddPermission: a statement of the policy, which is kept with it. Who may do what is not checked here; the policy is
//! there for those who read it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Nothing;
use super::attributes::json_object;
use super::errors::{fault, invalid, invalid_value, missing};
use super::queue::{arn, resolve};
use super::settings::Settings;
use crate::context::Context;
use crate::fault::Fault;

/// Most actions of one permission.
const ACTIONS_MAX: usize = 7;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    label: Option<String>,
    #[serde(rename = "AWSAccountIds", alias = "AWSAccountId", default)]
    aws_account_ids: Vec<String>,
    #[serde(alias = "ActionName", default)]
    actions: Vec<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let label = label(request.label)?;
    check(&request.aws_account_ids, &request.actions)?;
    let _changing = context.sqs.changing().await;
    context.ports.queues.queue(&queue).await.map_err(fault)?;
    let mut settings = Settings::of(context, &queue).await?;
    let arn = arn(context, &queue);
    let mut policy = policy(&settings, &arn)?;
    let statements = statements(&mut policy)?;
    if statements.iter().any(|statement| statement["Sid"] == *label) {
        return Err(invalid_value("Label", &label, "Already exists."));
    }
    let principals: Vec<_> =
        request.aws_account_ids.iter().map(|account| format!("arn:aws:iam::{account}:root")).collect();
    let actions: Vec<_> = request.actions.iter().map(|action| format!("SQS:{action}")).collect();
    statements.push(json!({
        "Sid": label,
        "Effect": "Allow",
        "Principal": { "AWS": one_or_all(principals) },
        "Action": one_or_all(actions),
        "Resource": arn,
    }));
    settings.attributes.insert("Policy".to_owned(), Value::Object(policy).to_string());
    settings.keep(context, &queue).await?;
    Ok(Nothing {})
}

/// The name of a permission.
pub(super) fn label(label: Option<String>) -> Result<String, Fault> {
    let label = label.filter(|label| !label.is_empty()).ok_or_else(|| missing("Label"))?;
    let allowed = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !allowed || label.len() > 80 {
        let reason = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.";
        return Err(invalid_value("Label", label, reason));
    }
    Ok(label)
}

fn check(accounts: &[String], actions: &[String]) -> Result<(), Fault> {
    if accounts.is_empty() {
        return Err(missing("AWSAccountIds"));
    }
    if let Some(account) =
        accounts.iter().find(|id| id.len() != 12 || !id.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Err(invalid_value("PrincipalId", account, "Unable to verify."));
    }
    if actions.is_empty() {
        return Err(missing("Actions"));
    }
    if actions.len() > ACTIONS_MAX {
        return Err(super::errors::refusal(
            "OverLimit",
            "OverLimit",
            format!("{} Actions were found, maximum allowed is {ACTIONS_MAX}.", actions.len()),
        )
        .with_status(http::StatusCode::FORBIDDEN));
    }
    let known = |action: &str| action == "*" || super::OPERATIONS.contains(&action);
    match actions.iter().find(|action| !known(action)) {
        Some(action) => {
            let reason = "Only the queue owner is allowed to invoke this action, or there is none.";
            Err(invalid_value("ActionName", action, reason))
        }
        None => Ok(()),
    }
}

/// The policy of a queue, or an empty one.
pub(super) fn policy(settings: &Settings, arn: &str) -> Result<Map<String, Value>, Fault> {
    match settings.attributes.get("Policy") {
        Some(text) => json_object("Policy", text),
        None => {
            let empty = [
                ("Version".to_owned(), json!("2008-10-17")),
                ("Id".to_owned(), json!(format!("{arn}/SQSDefaultPolicy"))),
                ("Statement".to_owned(), json!([])),
            ];
            Ok(empty.into_iter().collect())
        }
    }
}

/// The statements of a policy.
pub(super) fn statements(policy: &mut Map<String, Value>) -> Result<&mut Vec<Value>, Fault> {
    let statements = policy.entry("Statement").or_insert_with(|| json!([]));
    if statements.is_object() {
        *statements = json!([statements.take()]);
    }
    statements.as_array_mut().ok_or_else(|| invalid("The policy of the queue has no list of statements."))
}

fn one_or_all(mut texts: Vec<String>) -> Value {
    match texts.len() {
        1 => Value::String(texts.remove(0)),
        _ => json!(texts),
    }
}
