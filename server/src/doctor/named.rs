//! What somebody is going to use: it must be there, and be seen with these credentials.

use anabranch_model::blob::ListOptions;
use anabranch_model::{BucketName, Position, QueueName, ReadLimit, Result, StreamName, TableName};

use super::NamedArgs;
use super::check::Check;
use crate::quantity::counted;
use crate::stores::Stores;

pub(super) async fn examine(stores: &Stores, wanted: &NamedArgs) -> Vec<Check> {
    let mut checks = Vec::new();
    for name in &wanted.streams {
        checks.push(Check::of(format!("stream {name}"), stream(stores, name).await));
    }
    for name in &wanted.queues {
        checks.push(Check::of(format!("queue {name}"), queue(stores, name).await));
    }
    for name in &wanted.tables {
        checks.push(Check::of(format!("table {name}"), table(stores, name).await));
    }
    for name in &wanted.buckets {
        checks.push(Check::of(format!("bucket {name}"), bucket(stores, name).await));
    }
    checks
}

/// Reads one record of one shard: that takes nothing away.
async fn stream(stores: &Stores, name: &str) -> Result<String> {
    let (store, name) = (stores.streams()?, StreamName::new(name)?);
    let summary = store.stream(&name).await?;
    if let Some(shard) = store.shards(&name, None, 1).await?.entries.first() {
        let one = ReadLimit { records: 1, ..ReadLimit::default() };
        store.read(&name, &shard.id, Position::TrimHorizon, one).await?;
    }
    Ok(format!("readable, with {}", counted(summary.open_shards as u64, "open shard")))
}

/// A receive would count, so the queue is only looked at.
async fn queue(stores: &Stores, name: &str) -> Result<String> {
    let summary = stores.queues()?.queue(&QueueName::new(name)?).await?;
    Ok(format!("there, with {}", counted(summary.counts.visible, "message")))
}

async fn table(stores: &Stores, name: &str) -> Result<String> {
    stores.tables()?.table(&TableName::new(name)?).await?;
    Ok("there".to_owned())
}

async fn bucket(stores: &Stores, name: &str) -> Result<String> {
    let (store, name) = (stores.blobs()?, BucketName::new(name)?);
    store.list(&name, ListOptions { limit: 1, ..ListOptions::default() }).await?;
    Ok("there, and can be listed".to_owned())
}
