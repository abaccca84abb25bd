//! The changes of Keyspaces's tables.
//!
//! `feed` makes the calls, `translate` makes records of the model from what comes back, and `cell` knows the values of
//! CQL; how they are put together to reading and following is in `source::feed`.

pub(crate) mod action;

mod cell;
mod feed;
mod translate;

use anabranch_model::{Result, StreamName};
use aws_sdk_keyspacesstreams::Client;

use self::feed::Calls;
use crate::config::Aws;
use crate::source::{Source, shard_source};

/// The streams of changes of Keyspaces's tables. Cheap to clone: the clones share connections and limits.
///
/// A stream is called after its keyspace, its table and the moment at which it was turned on, for instance
/// `shop.orders-at-2026-11-15T20_51_10.252`. Each record holds an encoded [`Change`](anabranch_model::table::Change):
///
/// * The images are whole rows, the columns of the key included. Write times and times to live of single cells are not
///   part of them.
/// * Keyspaces does not say what happened to a row. It is told from the images; where the view leaves it open, the
///   row was modified.
/// * The partition key of a record is the text of the partition columns, in the order of their names.
#[derive(Clone, Debug)]
pub struct KeyspaceChanges(Source<Calls>);

impl KeyspaceChanges {
    /// The streams of the account and region that `aws` is connected to.
    pub fn new(aws: &Aws) -> Self {
        let calls = Calls { client: Client::new(&aws.config), caller: aws.caller.clone() };
        KeyspaceChanges(Source::new(calls, aws.caller.clone()))
    }

    /// The streams of a table of a keyspace, the oldest first.
    pub async fn of_table(&self, keyspace: &str, table: &str) -> Result<Vec<StreamName>> {
        self.0.feed.of_table(keyspace, table).await
    }
}

shard_source!(KeyspaceChanges);
