//! DescribeLimits.

use anabranch_model::limits::{OPEN_SHARDS_MAX, PAGE_ENTRIES_MAX, STREAMS_MAX};
use serde::{Deserialize, Serialize};

use super::errors::fault;
use super::settings;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
pub(super) struct Request {}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    shard_limit: usize,
    open_shard_count: usize,
    on_demand_stream_count: usize,
    on_demand_stream_count_limit: usize,
}

pub(super) async fn handle(context: &Context, Request {}: Request) -> Result<Response, Fault> {
    let (mut open, mut on_demand, mut after) = (0, 0, None);
    loop {
        let page = context.ports.streams.streams(after.as_ref(), PAGE_ENTRIES_MAX).await.map_err(fault)?;
        for stream in &page.entries {
            open += stream.open_shards;
            on_demand += usize::from(settings::load_listed(context, &stream.name).await?.on_demand);
        }
        after = page.entries.last().map(|stream| stream.name.clone());
        if !page.more {
            break;
        }
    }
    Ok(Response {
        shard_limit: OPEN_SHARDS_MAX,
        open_shard_count: open,
        on_demand_stream_count: on_demand,
        on_demand_stream_count_limit: STREAMS_MAX,
    })
}
