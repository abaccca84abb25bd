//! GetRecords.

use std::time::Duration;

use anabranch_model::limits::READ_RECORDS_MAX;
use anabranch_model::{Batch, Error, Next, Position, ReadLimit, Record, ShardId, StreamName};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::errors::{THROTTLED, fault, invalid, of_shard};
use super::iterator::Place;
use super::pieces::{Language, Pieces};
use super::settings;
use super::shard_numbers::ShardNumbers;
use super::shards::{self, ChildShard};
use super::stream::of_arn;
use crate::answer::Answer;
use crate::context::Context;
use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::receive::Body;
use crate::validation::Validation;

/// Damaged places that one call passes over.
const DAMAGES_MAX: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    shard_iterator: Option<String>,
    limit: Option<i64>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
}

/// A batch and what comes after it.
pub(super) struct Response {
    records: Vec<Record>,
    encryption: Option<&'static str>,
    rest: Rest,
}

/// What an answer has behind its records.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Rest {
    /// Absent when the shard is read to its end; then the shards that continue it are there, and only then.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_shard_iterator: Option<String>,
    millis_behind_latest: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    child_shards: Option<Vec<ChildShard>>,
}

impl Answer for Response {
    fn render(self, protocol: Protocol) -> Result<http::Response<Body>, Fault> {
        let Response { records, encryption, rest } = self;
        let language = match protocol {
            Protocol::Cbor | Protocol::RpcCbor => Language::Cbor,
            Protocol::Json10 | Protocol::Json11 | Protocol::Query | Protocol::Xml => Language::Json,
        };
        let ending = protocol.encode(&rest)?;
        let mut pieces = Pieces::new(language, records, encryption, ending);
        let first = pieces.next().unwrap_or_default();
        if pieces.is_done() {
            return Ok(protocol.response(StatusCode::OK, first));
        }
        let all = std::iter::once(first).chain(pieces);
        Ok(protocol.streamed(stream::iter(all.map(Bytes::from))))
    }
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation
        .required("shardIterator", &request.shard_iterator)
        .length("shardIterator", request.shard_iterator.as_deref(), 1..=512)
        .range("limit", request.limit, 1..=READ_RECORDS_MAX as i64)
        .done()?;
    let place = Place::open(context, &request.shard_iterator.unwrap_or_default()).await?;
    check_arn(&place.stream, request.stream_arn.as_deref())?;
    let records = request.limit.map_or(READ_RECORDS_MAX, |limit| limit as usize);
    let limit = ReadLimit { records, ..ReadLimit::default() };
    let read = read(context, &place.stream, &place.shard, place.position, limit).await;
    if read.as_ref().is_err_and(|fault| fault.code == THROTTLED) {
        let settings = settings::of_records(context, &place.stream).await?;
        ShardNumbers::of(&place.stream, &settings).have_refused_read(&place.shard);
    }
    let batch = read.map_err(|fault| of_shard(fault, &place.stream, &place.shard))?;
    let settings = settings::of_records(context, &place.stream).await?;
    ShardNumbers::of(&place.stream, &settings).have_read(&place.shard, &batch);
    let encryption = settings.key_id.is_some().then_some("KMS");
    let (next_shard_iterator, child_shards) = match batch.next {
        Next::At(position) => (Some(Place { position, ..place }.seal(context).await?), None),
        Next::Ended(ids) => (None, Some(shards::children(context, &place.stream, &place.shard, &ids).await?)),
    };
    let millis_behind_latest = u64::try_from(batch.behind.as_millis()).unwrap_or(u64::MAX);
    let rest = Rest { next_shard_iterator, millis_behind_latest, child_shards };
    Ok(Response { records: batch.records, encryption, rest })
}

/// Reads from a position. Behind damaged records it goes on, because no other answer would ever let a reader pass them.
async fn read(
    context: &Context,
    stream: &StreamName,
    shard: &ShardId,
    mut position: Position,
    limit: ReadLimit,
) -> Result<Batch, Fault> {
    for _ in 0..DAMAGES_MAX {
        match context.ports.streams.read(stream, shard, position, limit).await {
            Err(Error::Damaged { from, resume_at, .. }) => {
                tracing::error!(%stream, %shard, %from, %resume_at, "damaged records are passed over");
                position = Position::At(resume_at);
            }
            read => return read.map_err(fault),
        }
    }
    // The next call goes on from here.
    Ok(Batch { records: Vec::new(), next: Next::At(position), behind: Duration::ZERO })
}

fn check_arn(stream: &StreamName, arn: Option<&str>) -> Result<(), Fault> {
    match arn.map(of_arn).transpose()? {
        Some(other) if other != *stream => {
            Err(invalid(format!("The ShardIterator is of stream {stream}, the StreamARN of {other}.")))
        }
        _ => Ok(()),
    }
}
