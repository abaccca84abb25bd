//! The port of tables.

use async_trait::async_trait;

use super::options::{Alteration, TableOptions, TableSummary};
use super::read::{Get, Got, ItemPage, Query, Scan};
use super::value::Item;
use super::write::{Action, Write};
use crate::error::{Error, Result};
use crate::limits;
use crate::name::{StreamName, TableName};
use crate::stream::{Page, ShardSource};

/// What a store of tables can do beyond the laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableCapabilities {
    /// [`TableSummary`] counts items and bytes exactly and at once.
    pub exact_counts: bool,
    /// Global indexes show a write once it is acknowledged, and reads that need not be consistent do as well.
    pub immediate: bool,
}

/// A token that makes a transaction happen once however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(String);

impl Token {
    /// Checks a token: 1 to 36 characters.
    pub fn new(token: impl Into<String>) -> Result<Self> {
        let token = token.into();
        let (chars, limit) = (token.chars().count(), limits::TRANSACTION_TOKEN_CHARS_MAX);
        if chars == 0 || chars > limit {
            return Err(Error::Invalid(format!(
                "the token of a transaction has {chars} characters: 1 to {limit} are allowed"
            )));
        }
        Ok(Token(token))
    }

    /// The token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Tables of items that are found by their keys.
///
/// Laws (the suite `laws::table` checks them against every implementation):
///
/// 1. **Durable before acknowledged.** What a write reports as done is there after any crash, in the table, in its
///    indexes and in the stream of its changes.
/// 2. **Visible once acknowledged.** A consistent read that starts after the acknowledgement of a write sees it.
/// 3. **One after another.** Writes to one item happen one after another: a condition sees everything that happened
///    before its write, and nothing happens between the condition and the write.
/// 4. **Values come back.** An item is read as it was written, number for number and byte for byte.
/// 5. **Order.** A query gives the items of one hash value in the order of their range values, or in the reverse.
///    Texts and binaries are ordered by their bytes, numbers by their values.
/// 6. **Pages.** Pages that start where the one before ended join to everything that was there from the first to the
///    last, each item once. A page looks at no more items than its limit, and at none behind the one with which it
///    reaches 1 MiB, and returns those that fulfil the filter; it counts both.
/// 7. **Segments.** The segments of a scan hold every item once.
/// 8. **Indexes.** An index holds the items that have all attributes of its key, and shows of each what its projection
///    says. A global one may lag behind, but ends up so; a local one does not lag.
/// 9. **All or nothing.** A transaction happens as a whole or not at all, and nobody sees a part of it who reads in a
///    transaction. Sent again with its token within ten minutes it changes nothing and succeeds.
/// 10. **Changes.** Where changes are written down, each write that makes a difference has one record, in the order in
///     which an item changed, with the images that the view asks for; what makes no difference has none. A record is
///     kept for a day and goes some time later, as does a stream that has ended, and until then the stream is listed under
///     the name of its table; whoever follows a stream gets each record once.
/// 11. **Expiry.** An item whose time has come is removed some time later, with a change that says so; before its time
///     it is not.
/// 12. **Refusals change nothing.** A call that returns an error of [`NextMove::FixCall`](crate::NextMove) had no
///     effect.
#[async_trait]
pub trait TableStore: Send + Sync {
    /// What this store can do.
    fn capabilities(&self) -> TableCapabilities;

    /// Makes a table. When it returns, the table is active.
    async fn create_table(&self, table: &TableName, options: TableOptions) -> Result<()>;

    /// Removes a table with its items and indexes. When it returns, the name is free.
    async fn delete_table(&self, table: &TableName) -> Result<()>;

    /// Names of tables in their order, those behind `after` only, whether or not `after` exists. The limit is cut to
    /// [`limits::PAGE_ENTRIES_MAX`]; zero counts as one.
    async fn tables(&self, after: Option<&TableName>, limit: usize) -> Result<Page<TableName>>;

    /// One table.
    async fn table(&self, table: &TableName) -> Result<TableSummary>;

    /// Changes a living table. When it returns, the change is accepted; an index that was added is ready when the
    /// summary says so, and until then it cannot be read.
    async fn alter(&self, table: &TableName, alteration: Alteration) -> Result<()>;

    /// Reads an item, or as much of it as is wanted.
    async fn get(&self, table: &TableName, get: Get) -> Result<Option<Item>>;

    /// Writes an item, and returns what was asked for. [`Action::Check`] is refused.
    async fn write(&self, table: &TableName, write: Write) -> Result<Option<Item>>;

    /// Reads up to 100 items; the results are in the order of `gets`. The same key twice is refused. When 16 MiB are
    /// found, the rest is [`Got::NotRead`]; at least one item is read.
    async fn batch_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Got>>;

    /// Puts and deletes up to 25 items, each on its own and in any order. Updates, checks and the same key twice are
    /// refused. Returns those that were not done for want of room; send them again.
    async fn batch_write(&self, writes: Vec<(TableName, Action)>) -> Result<Vec<(TableName, Action)>>;

    /// Reads up to 100 items at one moment. The same key twice is refused.
    async fn transact_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Option<Item>>>;

    /// Writes up to 100 items, all or none. The same key twice is refused. Whatever a write asks for, nothing is returned.
    async fn transact_write(&self, writes: Vec<(TableName, Write)>, token: Option<Token>) -> Result<()>;

    /// Reads items of one hash value.
    async fn query(&self, table: &TableName, query: Query) -> Result<ItemPage>;

    /// Reads items of all hash values.
    async fn scan(&self, table: &TableName, scan: Scan) -> Result<ItemPage>;

    /// The streams of changes, by the name in [`TableSummary::changes`]. Each record holds an encoded
    /// [`Change`](super::change::Change); its partition key is the text of the hash value
    /// ([`KeyValue::text`](super::key::KeyValue::text)). When changes are turned off, the shards of the stream end.
    fn changes(&self) -> &dyn ShardSource;

    /// The streams of the changes of a table, the oldest first: the one that is written now, and those that have ended and
    /// can still be read, whatever became of the table since. A younger table of the same name has those of the older one
    /// before its own; a name that no table had has none.
    async fn change_streams(&self, table: &TableName) -> Result<Vec<StreamName>>;
}

/// Whether a call may have this many parts.
pub fn check_parts(what: &str, count: usize, count_max: usize) -> Result<()> {
    if (1..=count_max).contains(&count) {
        return Ok(());
    }
    Err(Error::Invalid(format!("{what} of {count} parts is not allowed: it must have 1 to {count_max}")))
}
