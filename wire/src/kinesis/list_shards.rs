//! ListShards, with filters and pages.

use std::time::Duration;

use anabranch_model::{Shard, StreamName, StreamSummary, Timestamp};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid};
use super::shards::{self, Moment, ShardShape, of_moment};
use super::stream::{check_name, resolve};
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

/// Shards on a page: whoever asks for more, or says nothing, gets this many.
const RESULTS_MAX: i64 = 1_000;
/// How long a token for the next page is good.
pub(super) const TOKEN_LIFE: Duration = Duration::from_secs(300);
const PURPOSE: &str = "kinesis-list-shards";
const FILTERS: &[&str] = &[
    "AFTER_SHARD_ID",
    "AT_TRIM_HORIZON",
    "FROM_TRIM_HORIZON",
    "AT_LATEST",
    "AT_TIMESTAMP",
    "FROM_TIMESTAMP",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    next_token: Option<String>,
    exclusive_start_shard_id: Option<String>,
    max_results: Option<i64>,
    stream_creation_timestamp: Option<Time>,
    shard_filter: Option<Filter>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Filter {
    r#type: Option<String>,
    shard_id: Option<String>,
    timestamp: Option<Time>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    shards: Vec<ShardShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

/// A listing from some shard on; a token is one of these.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Listing {
    stream: String,
    /// When the stream was made, in milliseconds: a younger one of the same name is another stream.
    created_at: u64,
    moment: StoredMoment,
    after: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum StoredMoment {
    Any,
    Now,
    At(u64),
    From(u64),
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.range("maxResults", request.max_results, 1..=10_000);
    validation.length("nextToken", request.next_token.as_deref(), 1..=1_048_576);
    check_name(&mut validation, "exclusiveStartShardId", request.exclusive_start_shard_id.as_deref());
    if let Some(filter) = &request.shard_filter {
        validation.required("shardFilter.type", &filter.r#type);
        validation.one_of("shardFilter.type", filter.r#type.as_deref(), FILTERS);
        check_name(&mut validation, "shardFilter.shardId", filter.shard_id.as_deref());
    }
    check_name(&mut validation, "streamName", request.stream_name.as_deref()).done()?;
    let limit = request.max_results.unwrap_or(RESULTS_MAX).min(RESULTS_MAX) as usize;
    let listing = match &request.next_token {
        Some(token) => continued(context, &request, token).await?,
        None => begun(context, &request, &mut validation).await?,
    };
    let stream = super::stream::parse(&listing.stream)?;
    page(context, &stream, listing, limit).await
}

async fn page(
    context: &Context,
    stream: &StreamName,
    listing: Listing,
    limit: usize,
) -> Result<Response, Fault> {
    // A filter looks at the lives of parents too, so it is applied before the listing is cut.
    let listed = of_moment(shards::all(context, stream, None).await?, listing.moment.get());
    let after = listing.after.as_deref().map(shards::parse).transpose()?;
    let behind = |shard: &&Shard| after.as_ref().is_none_or(|after| shard.id > *after);
    let mut rest = listed.iter().filter(behind);
    let page: Vec<&Shard> = rest.by_ref().take(limit).collect();
    let next_token = match (rest.next(), page.last()) {
        (Some(_), Some(last)) => {
            let next = Listing { after: Some(last.id.to_string()), ..listing };
            Some(seal(context, &next).await?)
        }
        _ => None,
    };
    Ok(Response { shards: page.into_iter().map(ShardShape::from).collect(), next_token })
}

async fn begun(context: &Context, request: &Request, validation: &mut Validation) -> Result<Listing, Fault> {
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    if name.is_none() && arn.is_none() {
        return Err(invalid("Either NextToken or StreamName should be provided."));
    }
    let stream = resolve(validation, name, arn)?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    if let Some(created) = request.stream_creation_timestamp
        && created.0.as_millis() / 1_000 != summary.created_at.as_millis() / 1_000
    {
        return Err(super::errors::stream_not_found(&stream));
    }
    let (moment, filtered_after) = match &request.shard_filter {
        Some(filter) => filter.moment(context.clock.now(), &summary)?,
        None => (StoredMoment::Any, None),
    };
    let after = request.exclusive_start_shard_id.clone().or(filtered_after);
    let created_at = summary.created_at.as_millis();
    Ok(Listing { stream: stream.to_string(), created_at, moment, after })
}

async fn continued(context: &Context, request: &Request, token: &str) -> Result<Listing, Fault> {
    if request.stream_name.is_some() || request.stream_creation_timestamp.is_some() {
        return Err(invalid("NextToken and StreamName cannot be provided together."));
    }
    if request.exclusive_start_shard_id.is_some() || request.shard_filter.is_some() {
        return Err(invalid("NextToken cannot be provided with ExclusiveStartShardId or ShardFilter."));
    }
    let opened = context.tokens.open(&*context.ports.admin, PURPOSE, token).await.map_err(fault)?;
    let opened = opened.ok_or_else(|| invalid("NextToken is invalid."))?;
    if context.clock.now().since(opened.made_at) > TOKEN_LIFE {
        return Err(Fault::client("ExpiredNextTokenException", "The pagination token has expired."));
    }
    let listing: Listing =
        serde_json::from_slice(&opened.content).map_err(|_| invalid("NextToken is invalid."))?;
    let stream = super::stream::parse(&listing.stream)?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    if summary.created_at.as_millis() != listing.created_at {
        return Err(invalid("NextToken is of an earlier stream of this name."));
    }
    Ok(listing)
}

async fn seal(context: &Context, listing: &Listing) -> Result<String, Fault> {
    let bytes =
        serde_json::to_vec(listing).map_err(|error| Fault::server("InternalFailure", error.to_string()))?;
    let admin = &*context.ports.admin;
    context.tokens.seal(admin, &*context.clock, PURPOSE, &bytes).await.map_err(fault)
}

impl Filter {
    /// The moment of a filter, and the shard behind which it begins.
    fn moment(
        &self,
        now: Timestamp,
        stream: &StreamSummary,
    ) -> Result<(StoredMoment, Option<String>), Fault> {
        let kind = self.r#type.as_deref().unwrap_or_default();
        // Before the stream was made there is nothing to see.
        let since = |time: Timestamp| time.max(stream.created_at).as_millis();
        let horizon = since(now.minus(stream.retention));
        let given = || {
            let time = self
                .timestamp
                .ok_or_else(|| invalid(format!("Must specify Timestamp for ShardFilter of type {kind}.")))?;
            Ok::<_, Fault>(since(time.0).max(horizon))
        };
        Ok(match kind {
            "AT_LATEST" => (StoredMoment::Now, None),
            "AT_TRIM_HORIZON" => (StoredMoment::At(horizon), None),
            "FROM_TRIM_HORIZON" => (StoredMoment::From(horizon), None),
            "AT_TIMESTAMP" => (StoredMoment::At(given()?), None),
            "FROM_TIMESTAMP" => (StoredMoment::From(given()?), None),
            _ => match &self.shard_id {
                Some(shard) => (StoredMoment::Any, Some(shard.clone())),
                None => {
                    return Err(invalid("Must specify ShardId for ShardFilter of type AFTER_SHARD_ID."));
                }
            },
        })
    }
}

impl StoredMoment {
    fn get(&self) -> Moment {
        match self {
            StoredMoment::Any => Moment::Any,
            StoredMoment::Now => Moment::Now,
            StoredMoment::At(millis) => Moment::At(Timestamp::from_millis(*millis)),
            StoredMoment::From(millis) => Moment::From(Timestamp::from_millis(*millis)),
        }
    }
}
