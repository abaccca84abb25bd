//! ListSecrets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::describe_secret::{Description, describe};
use super::errors::{fault, invalid};
use super::order::{Order, Place};
use super::secret::Secret;
use super::stored;
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, bounded};

/// Most secrets on a page, and how many there are unless the caller says otherwise.
const RESULTS_MAX: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(default)]
    include_planned_deletion: bool,
    max_results: Option<i64>,
    next_token: Option<String>,
    #[serde(default, deserialize_with = "bounded::<_, _, { ENTRIES_MAX }>")]
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
    let order = Order::of(request.sort_by.as_deref(), request.sort_order.as_deref())?;
    request.filters.iter().try_for_each(Filter::check)?;
    let after = match &request.next_token {
        Some(token) => Some(open(context, order, token).await?),
        None => None,
    };
    let wanted = |secret: &Secret| {
        (request.include_planned_deletion || secret.deletion.is_none())
            && request.filters.iter().all(|filter| filter.takes(secret))
    };
    let (found, more) = first(context, order, after.as_ref(), limit as usize, wanted).await?;
    let next_token = match found.last().filter(|_| more) {
        Some(last) => Some(seal(context, order, last).await?),
        None => None,
    };
    let secret_list = found.into_iter().map(|secret| describe(context, secret)).collect();
    Ok(Response { secret_list, next_token })
}

/// The first `limit` secrets behind a place, and whether there are more. The store has them in the order of their names;
/// for any other one all of them are looked at, and no more are kept than asked for.
async fn first(
    context: &Context,
    order: Order,
    after: Option<&Place>,
    limit: usize,
    wanted: impl Fn(&Secret) -> bool,
) -> Result<(Vec<Secret>, bool), Fault> {
    let changing = context.secrets.changing().await;
    let mut found = BTreeMap::new();
    let mut name = after.filter(|_| order.is_stored()).map(|after| after.name.clone());
    loop {
        let (page, next) = stored::page(context, &changing, name.as_deref(), RESULTS_MAX as usize).await?;
        for secret in page.into_iter().filter(&wanted) {
            let place = order.place(&secret);
            if after.is_none_or(|after| *after < place) {
                found.insert(place, secret);
            }
            // One more than asked for tells whether there is another page.
            if found.len() > limit + 1 {
                found.pop_last();
            }
        }
        name = next;
        if name.is_none() || order.is_stored() && found.len() > limit {
            break;
        }
    }
    let more = found.len() > limit;
    Ok((found.into_values().take(limit).collect(), more))
}

async fn seal(context: &Context, order: Order, secret: &Secret) -> Result<String, Fault> {
    let (admin, clock) = (&*context.ports.admin, &*context.clock);
    let place = order.place(secret).encode();
    context.tokens.seal(admin, clock, &order.purpose(), &place).await.map_err(fault)
}

async fn open(context: &Context, order: Order, token: &str) -> Result<Place, Fault> {
    let opened = context.tokens.open(&*context.ports.admin, &order.purpose(), token).await.map_err(fault)?;
    let place = opened.and_then(|opened| order.decode(&opened.content));
    place.ok_or_else(|| Fault::client("InvalidNextTokenException", "The NextToken value is invalid."))
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

    /// Whether the secret has what begins with one of the values; with `!` before it, what does not. Descriptions, and
    /// all that there is, are searched for words, and their case does not matter.
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
        let begins = |beginning: &str| match self.key.as_str() {
            "description" | "all" => {
                let there: Vec<String> = texts.iter().flat_map(|text| words(text)).collect();
                words(beginning).iter().all(|word| there.iter().any(|there| there.starts_with(word)))
            }
            _ => texts.iter().any(|text| text.starts_with(beginning)),
        };
        self.values.iter().any(|value| match value.strip_prefix('!') {
            Some(unwanted) => !begins(unwanted),
            None => begins(value),
        })
    }
}

/// The words of a text, in small letters.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
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
            ("name", "App", false),
            ("description", "the", true),
            ("description", "THE DATA", true),
            ("description", "database", true),
            ("description", "base", false),
            ("description", "!data", false),
            ("tag-key", "te", true),
            ("tag-value", "blue", false),
            ("all", "red", true),
            ("all", "RED", true),
            ("all", "Data app", true),
            ("all", "database blue", false),
            ("all", "!red", false),
        ] {
            let filter = Filter { key: key.into(), values: vec!["nothing".into(), value.into()] };
            assert_eq!(filter.takes(&secret), taken, "{key} {value}");
            filter.check().unwrap();
        }
        assert!(Filter { key: "owning-service".into(), values: vec!["a".into()] }.check().is_err());
        assert!(Filter { key: "name".into(), values: vec![] }.check().is_err());
    }
}
