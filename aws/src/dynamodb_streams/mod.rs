//! The changes of DynamoDB's tables.
//!
//! `feed` makes the calls, `translate` makes records of the model from what comes back; how they are put together to
//! reading and following is in `source::feed`.

pub(crate) mod action;

mod feed;
mod translate;

use anabranch_model::{Result, StreamName, TableName};
use aws_sdk_dynamodbstreams::Client;

use self::feed::Calls;
use crate::config::Aws;
use crate::source::{Source, shard_source};

/// The streams of changes of DynamoDB's tables, those of today and those that were turned off in the last day. Cheap to
/// clone: the clones share connections and limits.
///
/// A stream is called after its table and the moment at which it was turned on, for instance
/// `clicks-at-2026-11-15T20_51_10.252`. Each record holds an encoded [`Change`](anabranch_model::table::Change).
#[derive(Clone, Debug)]
pub struct TableChanges(Source<Calls>);

impl TableChanges {
    /// The streams of the account and region that `aws` is connected to.
    pub fn new(aws: &Aws) -> Self {
        let calls = Calls { client: Client::new(&aws.config), caller: aws.caller.clone() };
        TableChanges(Source::new(calls, aws.caller.clone()))
    }

    /// The streams of a table, the oldest first.
    pub async fn of_table(&self, table: &TableName) -> Result<Vec<StreamName>> {
        self.0.feed.of_table(table).await
    }
}

shard_source!(TableChanges);
