//! ListSecrets.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::describe_secret::{Description, describe};
use super::errors::invalid;
use super::secret::Secret;
use super::stored;
use crate::context::Context;
use crate::fault::Fault;

/// Most secrets on a page, and how many there are unless the caller says otherwise.
const RESULTS_MAX: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(default)]
    include_planned_deletion: bool,
    max_results: Option<i64>,
    next_token: Option<String>,
    #[serde(default)]
    filters: Vec<Filter>,
    sort_order: Option<String>,
    sort_by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Filter {
    key: String,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    secret_list: Vec<Description>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let limit = request.max_results.unwrap_or(RESULTS_MAX);
    if !(1..=RESULTS_MAX).contains(&limit) {
        return Err(invalid(format!("MaxResults must be between 1 and {RESULTS_MAX}.")));
    }
    // Pages follow the names, so there is no other order.
    let by_name = request.sort_by.as_deref().is_none_or(|key| key == "name");
    if !by_name || request.sort_order.as_deref().is_some_and(|order| order != "asc") {
        return Err(invalid("Secrets are listed in the order of their names only."));
    }
    request.filters.iter().try_for_each(Filter::check)?;
    let mut after = request.next_token.as_deref().map(of_token).transpose()?;
    let wanted = |secret: &Secret| {
        (request.include_planned_deletion || secret.deletion.is_none())
            && request.filters.iter().all(|filter| filter.takes(secret))
    };
    let mut found: Vec<Secret> = Vec::new();
    // Pages of the store until this one is full.
    while found.len() < limit as usize {
        let (page, next) = stored::page(context, after.as_deref(), limit as usize - found.len()).await?;
        found.extend(page.into_iter().filter(wanted));
        after = next;
        if after.is_none() {
            break;
        }
    }
    let next_token = after.map(|name| BASE64_URL_SAFE_NO_PAD.encode(name));
    Ok(Response {
        secret_list: found.into_iter().map(|secret| describe(context, secret)).collect(),
        next_token,
    })
}

fn of_token(token: &str) -> Result<String, Fault> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
    let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|name| !name.is_empty());
    name.ok_or_else(|| Fault::client("InvalidNextTokenException", "The NextToken value is invalid."))
}

impl Filter {
    fn check(&self) -> Result<(), Fault> {
        match self.key.as_str() {
            "name" | "description" | "tag-key" | "tag-value" | "all" if !self.values.is_empty() => Ok(()),
            key => {
                Err(invalid(format!("The filter {key} without values, or of this kind, is not known here.")))
            }
        }
    }

    /// Whether the secret has what begins with one of the values; with `!` before it, what does not.
    fn takes(&self, secret: &Secret) -> bool {
        let texts: Vec<&str> = match self.key.as_str() {
            "name" => vec![&secret.name],
            "description" => secret.description.as_deref().into_iter().collect(),
            "tag-key" => secret.tags.keys().map(String::as_str).collect(),
            "tag-value" => secret.tags.values().map(String::as_str).collect(),
            _ => {
                let tags = secret.tags.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
                tags.chain([secret.name.as_str()]).chain(secret.description.as_deref()).collect()
            }
        };
        let begins = |beginning: &str| texts.iter().any(|text| text.starts_with(beginning));
        self.values.iter().any(|value| match value.strip_prefix('!') {
            Some(unwanted) => !begins(unwanted),
            None => begins(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_look_at_beginnings() {
        let secret = Secret {
            name: "app/db".into(),
            description: Some("the database".into()),
            tags: [("team".to_owned(), "red".to_owned())].into(),
            ..Secret::default()
        };
        for (key, value, taken) in [
            ("name", "app/", true),
            ("name", "db", false),
            ("name", "!app", false),
            ("name", "!web", true),
            ("description", "the", true),
            ("tag-key", "te", true),
            ("tag-value", "blue", false),
            ("all", "red", true),
        ] {
            let filter = Filter { key: key.into(), values: vec!["nothing".into(), value.into()] };
            assert_eq!(filter.takes(&secret), taken, "{key} {value}");
            filter.check().unwrap();
        }
        assert!(Filter { key: "owning-service".into(), values: vec!["a".into()] }.check().is_err());
        assert!(Filter { key: "name".into(), values: vec![] }.check().is_err());
        assert!(of_token("%").is_err() && of_token("").is_err());
    }
}
