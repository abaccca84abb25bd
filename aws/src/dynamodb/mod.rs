//! Tables on DynamoDB.
//!
//! Each file is one step: what a table is (`describe`), how it is made, changed and removed (`manage`, `alter`, with
//! `wait`), how an item is read and written (`get`, `write`), many of them (`batch`, `transact`), and how they are found
//! (`read`). Conditions, projections and updates become text in `expression`; what a failure means is said in `explain`.
//!
//! Calls are checked here by the rules of the model before DynamoDB judges them (`known`).

pub(crate) mod action;

mod alter;
mod batch;
mod describe;
mod explain;
mod expression;
mod get;
mod known;
mod manage;
mod read;
mod transact;
mod wait;
mod write;

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::table::{
    Action, Alteration, Get, Got, Item, ItemPage, Query, Scan, TableCapabilities, TableOptions, TableSummary,
    Token, Write,
};
use anabranch_model::{Error, Page, Result, ShardSource, StreamName, TableName, TableStore};
use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;

use self::known::Memory;
use crate::action::Service;
use crate::call::{Caller, Deadline};
use crate::config::Aws;
use crate::dynamodb_streams::TableChanges;
use crate::failure;

/// How long a call about items may take, with its attempts.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a change of a table may take: DynamoDB needs up to a minute for some.
const CHANGE_PATIENCE: Duration = Duration::from_secs(180);

/// Tables on DynamoDB. Those that it makes are charged by the request, unless it [reserves](Tables::reserving). Cheap to clone: the clones share connections and limits.
///
/// A write whose outcome nobody knows, because the answer was lost, is sent again only if that changes nothing: puts and
/// deletes without a condition that return nothing, updates that give the same result twice, and transactions, which
/// carry a token. Any other is an error that says so. Two who make the same table at the same moment may both succeed, if
/// the answer to one of them is lost.
#[derive(Clone, Debug)]
pub struct Tables {
    client: Client,
    caller: Caller,
    changes: TableChanges,
    memory: Arc<Memory>,
    /// What is reserved for tables that are made, and for each of their indexes.
    capacity: Option<Capacity>,
}

/// How much a table may be used, in DynamoDB's units a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capacity {
    reads: i64,
    writes: i64,
}

impl Tables {
    /// The tables of the account and region that `aws` is connected to.
    pub fn new(aws: &Aws) -> Self {
        Tables {
            client: Client::new(&aws.config),
            caller: aws.caller.clone(),
            changes: TableChanges::new(aws),
            memory: Arc::default(),
            capacity: None,
        }
    }

    /// Reserves so many units a second for each table and index that is made from now on, which is then charged for
    /// whether it is used or not. Tables that are there stay as they are.
    pub fn reserving(self, reads: u32, writes: u32) -> Result<Self> {
        if reads == 0 || writes == 0 {
            return Err(Error::Invalid("a capacity of zero lets nothing through".to_owned()));
        }
        Ok(Tables { capacity: Some(Capacity { reads: reads.into(), writes: writes.into() }), ..self })
    }

    fn soon(&self) -> Deadline {
        self.caller.deadline(PATIENCE)
    }
}

#[async_trait]
impl TableStore for Tables {
    fn capabilities(&self) -> TableCapabilities {
        TableCapabilities { exact_counts: false, immediate: false }
    }

    async fn create_table(&self, table: &TableName, options: TableOptions) -> Result<()> {
        self.make(table, &options).await
    }

    async fn delete_table(&self, table: &TableName) -> Result<()> {
        self.memory.forget(table);
        self.remove(table).await
    }

    async fn tables(&self, after: Option<&TableName>, limit: usize) -> Result<Page<TableName>> {
        self.page(after, limit).await
    }

    async fn table(&self, table: &TableName) -> Result<TableSummary> {
        self.summary(table, self.soon()).await
    }

    async fn alter(&self, table: &TableName, alteration: Alteration) -> Result<()> {
        let changed = self.change(table, alteration).await;
        self.memory.forget(table);
        changed
    }

    async fn get(&self, table: &TableName, get: Get) -> Result<Option<Item>> {
        self.get_item(table, &get).await
    }

    async fn write(&self, table: &TableName, write: Write) -> Result<Option<Item>> {
        self.write_item(table, &write).await
    }

    async fn batch_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Got>> {
        self.get_batch(&gets).await
    }

    async fn batch_write(&self, writes: Vec<(TableName, Action)>) -> Result<Vec<(TableName, Action)>> {
        self.write_batch(writes).await
    }

    async fn transact_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Option<Item>>> {
        self.get_at_once(&gets).await
    }

    async fn transact_write(&self, writes: Vec<(TableName, Write)>, token: Option<Token>) -> Result<()> {
        self.write_at_once(&writes, token).await
    }

    async fn query(&self, table: &TableName, query: Query) -> Result<ItemPage> {
        self.read_query(table, &query).await
    }

    async fn scan(&self, table: &TableName, scan: Scan) -> Result<ItemPage> {
        self.read_scan(table, &scan).await
    }

    fn changes(&self) -> &dyn ShardSource {
        &self.changes
    }

    async fn change_streams(&self, table: &TableName) -> Result<Vec<StreamName>> {
        self.changes.of_table(table).await
    }
}

/// What the answer of DynamoDB cannot be.
fn strange(what: &str) -> Error {
    failure::strange(Service::Dynamodb, what)
}

/// A part of a request. What it lacks is a fault of the caller's.
fn built<T>(part: std::result::Result<T, BuildError>) -> Result<T> {
    part.map_err(|error| Error::Invalid(error.to_string()))
}
