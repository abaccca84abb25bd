//! Many items in one call, each on its own.
//!
//! What DynamoDB leaves undone is sent again with growing pauses until the deadline.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anabranch_model::table::{Action, Get, Got, Item, Projection, Write, check_parts};
use anabranch_model::{Error, Result, TableName, limits};
use aws_sdk_dynamodb::types::{DeleteRequest, KeysAndAttributes, PutRequest, WriteRequest};

use super::get::{Wanted, check_fresh};
use super::{Tables, action, built, strange};
use crate::attribute::tables::{attributes, item};
use crate::call::Deadline;

/// When a batch that was left undone is likely to fit: limits are counted by the second.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A batch of reads that is being answered.
struct Reads<'a> {
    gets: &'a [(TableName, Get)],
    /// One for each read; what is not read yet may stay so.
    got: Vec<Got>,
    /// The numbers of the reads that are not answered.
    open: Vec<usize>,
    bytes: usize,
}

/// Reads of one table that one request can hold: they ask for the same parts in the same way.
struct Group<'a> {
    table: &'a TableName,
    consistent: bool,
    projection: Option<&'a Projection>,
    wanted: Wanted,
    /// The numbers of the reads, by their keys.
    numbers: HashMap<&'a Item, usize>,
}

impl Tables {
    pub(super) async fn get_batch(&self, gets: &[(TableName, Get)]) -> Result<Vec<Got>> {
        check_parts("a batch of reads", gets.len(), limits::BATCH_GET_ITEMS_MAX)?;
        let mut seen = HashSet::new();
        check_fresh(gets.iter().all(|(table, get)| seen.insert((table, &get.key))))?;
        let deadline = self.soon();
        self.check_gets(gets, deadline).await?;
        let mut reads =
            Reads { gets, got: vec![Got::NotRead; gets.len()], open: (0..gets.len()).collect(), bytes: 0 };
        let mut rounds = 0;
        while !reads.open.is_empty() && !reads.is_full() {
            let before = reads.open.len();
            let all_done = self.get_some(&mut reads, deadline).await?;
            if all_done {
                continue;
            }
            rounds = if reads.open.len() < before { 1 } else { rounds + 1 };
            if !reads.is_full() && !self.caller.back_off(rounds, deadline).await {
                return reads.so_far();
            }
        }
        Ok(reads.got)
    }

    /// Makes one call. Says whether everything that it asked for was answered.
    async fn get_some(&self, reads: &mut Reads<'_>, deadline: Deadline) -> Result<bool> {
        let groups = reads.groups()?;
        let mut items = HashMap::new();
        for group in &groups {
            let keys = group.numbers.keys().map(|key| attributes(key)).collect();
            let part = KeysAndAttributes::builder()
                .set_keys(Some(keys))
                .consistent_read(group.consistent)
                .set_projection_expression(group.wanted.projection.clone())
                .set_expression_attribute_names(group.wanted.placeholders.names.clone());
            items.insert(group.table.to_string(), built(part.build())?);
        }
        let request = || self.client.batch_get_item().set_request_items(Some(items.clone())).send();
        let mut answer = match self.caller.call(&action::BATCH_GET_ITEM, deadline, request).await {
            Ok(answer) => answer,
            Err(failure) => {
                let tables = reads.gets.iter().map(|(table, _)| table);
                return Err(self.explained(failure, tables, deadline).await);
            }
        };
        let mut found = answer.responses.take().unwrap_or_default();
        let mut left = answer.unprocessed_keys.take().unwrap_or_default();
        let mut all_done = true;
        for group in groups {
            let found = found.remove(group.table.as_str()).unwrap_or_default();
            let found = found.into_iter().map(item).collect::<Result<Vec<_>>>()?;
            let left = left.remove(group.table.as_str()).map(|left| left.keys).unwrap_or_default();
            let left = left.into_iter().map(item).collect::<Result<Vec<_>>>()?;
            all_done &= left.is_empty();
            reads.take(group, found, &left)?;
        }
        Ok(all_done)
    }
}

impl<'a> Reads<'a> {
    /// What the next request asks for: of each table the reads that go together with its first one.
    fn groups(&self) -> Result<Vec<Group<'a>>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for number in &self.open {
            let (table, get) = &self.gets[*number];
            let Some(group) = groups.iter_mut().find(|group| group.table == table) else {
                groups.push(Group {
                    table,
                    consistent: get.consistent,
                    projection: get.projection.as_ref(),
                    wanted: Wanted::of(get.projection.as_ref(), &get.key)?,
                    numbers: HashMap::from([(&get.key, *number)]),
                });
                continue;
            };
            if group.consistent == get.consistent && group.projection == get.projection.as_ref() {
                group.numbers.insert(&get.key, *number);
            }
        }
        Ok(groups)
    }

    /// Notes the answers to a group: what was found, and what was left. What is neither does not exist.
    fn take(&mut self, mut group: Group<'a>, found: Vec<Item>, left: &[Item]) -> Result<()> {
        for key in left {
            group.numbers.remove(key);
        }
        for item in found {
            let Some((key, number)) = group.numbers.iter().find(|(key, _)| has_key(&item, key)) else {
                return Err(strange("an item that nobody asked for"));
            };
            let (key, number, size) = (*key, *number, item.size());
            if self.bytes > 0 && self.bytes + size > limits::BATCH_GET_BYTES_MAX {
                self.bytes = limits::BATCH_GET_BYTES_MAX;
                group.numbers.remove(key);
                continue;
            }
            self.bytes += size;
            self.got[number] = Got::Item(group.wanted.show(item));
            self.open.retain(|open| *open != number);
            group.numbers.remove(key);
        }
        for number in group.numbers.into_values() {
            self.got[number] = Got::Missing;
            self.open.retain(|open| *open != number);
        }
        Ok(())
    }

    /// Whether another item might not fit.
    fn is_full(&self) -> bool {
        self.bytes + limits::ITEM_BYTES_MAX > limits::BATCH_GET_BYTES_MAX
    }

    /// What was read until the time was over; nothing at all is an error.
    fn so_far(self) -> Result<Vec<Got>> {
        if self.open.len() < self.gets.len() {
            return Ok(self.got);
        }
        Err(Error::SlowDown {
            what: "DynamoDB leaves a batch of reads undone".to_string(),
            retry_after: RETRY_AFTER,
        })
    }
}

fn has_key(item: &Item, key: &Item) -> bool {
    key.iter().all(|(name, value)| item.get(name) == Some(value))
}

impl Tables {
    pub(super) async fn write_batch(
        &self,
        writes: Vec<(TableName, Action)>,
    ) -> Result<Vec<(TableName, Action)>> {
        check_parts("a batch of writes", writes.len(), limits::BATCH_WRITE_ITEMS_MAX)?;
        let deadline = self.soon();
        let mut items: HashMap<String, Vec<WriteRequest>> = HashMap::new();
        for (table, action) in &writes {
            items.entry(table.to_string()).or_default().push(write_request(action)?);
        }
        let writes: Vec<_> = writes.into_iter().map(|(table, action)| (table, Write::from(action))).collect();
        self.check_writes(&writes, deadline).await?;
        let tables: Vec<_> = writes.into_iter().map(|(table, _)| table).collect();
        let mut rounds = 0;
        loop {
            let request = || self.client.batch_write_item().set_request_items(Some(items.clone())).send();
            let answer = match self.caller.call(&action::BATCH_WRITE_ITEM, deadline, request).await {
                Ok(answer) => answer,
                // A part may be done by now, and what is left is known.
                Err(failure) if rounds > 0 && failure.may_repeat() => return undone(items),
                Err(failure) => return Err(self.explained(failure, &tables, deadline).await),
            };
            let before: usize = items.values().map(Vec::len).sum();
            items = answer.unprocessed_items.unwrap_or_default();
            let left: usize = items.values().map(Vec::len).sum();
            if left == 0 {
                return Ok(Vec::new());
            }
            rounds = if left < before { 1 } else { rounds + 1 };
            if !self.caller.back_off(rounds, deadline).await {
                return undone(items);
            }
        }
    }
}

fn write_request(action: &Action) -> Result<WriteRequest> {
    let request = WriteRequest::builder();
    Ok(match action {
        Action::Put(item) => {
            let put = PutRequest::builder().set_item(Some(attributes(item))).build();
            request.put_request(built(put)?).build()
        }
        Action::Delete(key) => {
            let delete = DeleteRequest::builder().set_key(Some(attributes(key))).build();
            request.delete_request(built(delete)?).build()
        }
        Action::Update(..) | Action::Check(_) => {
            return Err(Error::Invalid("a batch of writes has puts and deletes only".to_string()));
        }
    })
}

/// Writes that were not done, as they were given.
fn undone(items: HashMap<String, Vec<WriteRequest>>) -> Result<Vec<(TableName, Action)>> {
    let mut undone = Vec::new();
    for (table, requests) in items {
        let table = TableName::new(&table).map_err(|_| strange("a table without a proper name"))?;
        for request in requests {
            let action = match (request.put_request, request.delete_request) {
                (Some(put), None) => Action::Put(item(put.item)?),
                (None, Some(delete)) => Action::Delete(item(delete.key)?),
                _ => return Err(strange("a write that is neither put nor delete")),
            };
            undone.push((table.clone(), action));
        }
    }
    Ok(undone)
}
