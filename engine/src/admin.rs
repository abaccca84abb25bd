//! Documents that only a server keeps, in rows: the port [`Admin`].
//!
//! A key begins with the number of the owner, and numbers are given once, so a younger owner of the same name finds
//! nothing of the older one.

use std::ops::{Bound, ControlFlow};

use anabranch_model::admin::{check_documents, check_names};
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{Admin, Document, Error, Owner, Page, Result};
use async_trait::async_trait;
use bytes::Bytes;

use crate::core::Core;
use crate::engine::Engine;
use crate::journal::Urgency;
use crate::rows::{Change, Order, Space, bury};

/// What a row takes beside its name and value, about.
const ROW_BYTES: usize = 128;

/// What the documents of an owner begin with.
fn prefix(owner: u8, id: u64) -> Vec<u8> {
    [&[Space::Documents as u8, owner][..], &id.to_be_bytes()].concat()
}

fn of_stream(id: u64) -> Vec<u8> {
    prefix(1, id)
}

/// What the documents of a queue begin with.
pub fn of_queue(born: u64) -> Vec<u8> {
    prefix(2, born)
}

/// What the documents of a table begin with.
pub fn of_table(number: u64) -> Vec<u8> {
    prefix(3, number)
}

/// What documents of one kind begin with. No kind has a zero byte.
fn of_kind(mut owner: Vec<u8>, kind: &str) -> Vec<u8> {
    owner.extend_from_slice(kind.as_bytes());
    owner.push(0);
    owner
}

fn key(kind: &[u8], name: &str) -> Bytes {
    [kind, name.as_bytes()].concat().into()
}

impl Core {
    /// What the documents of an owner begin with, as the journal has it. It may change until the owner's lock is held.
    fn documents_of(&self, owner: &Owner) -> Result<Vec<u8>> {
        Ok(match owner {
            Owner::Store => prefix(0, 0),
            Owner::Stream(name) => of_stream(self.catalogue.stream(name)?.id),
            Owner::Queue(name) => of_queue(self.queues.get(name)?.born),
            Owner::Table(name) => of_table(self.tables.table(name)?.number),
        })
    }

    /// Writes changes that `decide` makes of the rows that it names, under keys of one owner and kind.
    async fn write_documents(
        &self,
        owner: &Owner,
        kind: &str,
        names: Vec<String>,
        bytes: usize,
        decide: impl Fn(&[Option<Bytes>], &[Bytes]) -> (bool, Vec<Change>),
    ) -> Result<bool> {
        let mut permit = Some(self.admit_rows(bytes + ROW_BYTES * names.len()).await?);
        self.submit(|| {
            let kind = of_kind(self.documents_of(owner)?, kind);
            let keys: Vec<Bytes> = names.iter().map(|name| key(&kind, name)).collect();
            let accepting = self.rows.accept(keys.clone());
            let found: Vec<_> = keys.iter().map(|key| accepting.get(key)).collect::<Result<_>>()?;
            let (done, changes) = decide(&found, &keys);
            self.write_rows(accepting, changes, Urgency::Normal, &mut permit, None)
                .map(|(_, durable)| (done, durable))
        })
        .await
    }

    /// Lets checkpoints remove the documents of a stream that is deleted. If it fails they are only in the way: no other
    /// stream gets this number. Without documents nothing is written: a directory of streams alone stays one.
    pub async fn bury_documents_of_stream(&self, id: u64) {
        if !self.has_documents(&of_stream(id)) {
            return;
        }
        let mut permit = Some(self.budget.write(ROW_BYTES).await);
        let buried = self.submit(|| {
            let none = self.rows.accept(Vec::new());
            self.write_rows(none, vec![bury(&of_stream(id))], Urgency::Upkeep, &mut permit, None)
        });
        if let Err(error) = buried.await {
            tracing::warn!(%error, "the documents of a deleted stream are left behind");
        }
    }

    /// Whether something begins like this. What cannot be read counts as if it did.
    fn has_documents(&self, prefix: &[u8]) -> bool {
        let mut found = false;
        let bounds = (Bound::Included(prefix), Bound::Unbounded);
        let looked = self.rows.snapshot().and_then(|rows| {
            rows.range(bounds, Order::Forward, |key, _| {
                found = key.starts_with(prefix);
                Ok(ControlFlow::Break(()))
            })
        });
        found || looked.is_err()
    }

    fn list_documents(
        &self,
        owner: &Owner,
        kind: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Document>> {
        let prefix = of_kind(self.documents_of(owner)?, kind);
        let from = key(&prefix, after.unwrap_or(""));
        // The zero byte behind the kind is the last of the prefix.
        let to = [&prefix[..prefix.len() - 1], &[1]].concat();
        let from = if after.is_some() { Bound::Excluded(&from[..]) } else { Bound::Included(&from[..]) };
        let (mut entries, mut more) = (Vec::new(), false);
        self.rows.snapshot()?.range((from, Bound::Excluded(&to[..])), Order::Forward, |key, value| {
            if entries.len() == limit {
                more = true;
                return Ok(ControlFlow::Break(()));
            }
            let name = std::str::from_utf8(&key[prefix.len()..])
                .map_err(|_| Error::Corrupt("the name of a document is no text".into()))?;
            entries.push(Document::new(name, Bytes::copy_from_slice(value)));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Page { entries, more })
    }
}

#[async_trait]
impl Admin for Engine {
    async fn put_documents(&self, owner: &Owner, kind: &str, documents: Vec<Document>) -> Result<()> {
        check_documents(kind, &documents)?;
        if documents.is_empty() {
            return self.writing_core()?.documents_of(owner).map(drop);
        }
        let bytes = documents.iter().map(|document| document.name.len() + document.value.len()).sum();
        let names = documents.iter().map(|document| document.name.clone()).collect();
        let put = |_: &[Option<Bytes>], keys: &[Bytes]| {
            let changes = keys.iter().zip(&documents);
            (true, changes.map(|(key, document)| Change::put(key.clone(), document.value.clone())).collect())
        };
        self.writing_core()?.write_documents(owner, kind, names, bytes, put).await.map(drop)
    }

    async fn put_document_if_absent(&self, owner: &Owner, kind: &str, document: Document) -> Result<bool> {
        check_documents(kind, std::slice::from_ref(&document))?;
        let bytes = document.name.len() + document.value.len();
        let put = |found: &[Option<Bytes>], keys: &[Bytes]| {
            // What is there may not be durable yet; the answer rests on it, so it is written once more behind it.
            let present = found.first().cloned().flatten();
            let value = present.clone().unwrap_or_else(|| document.value.clone());
            (present.is_none(), keys.iter().map(|key| Change::put(key.clone(), value.clone())).collect())
        };
        self.writing_core()?.write_documents(owner, kind, vec![document.name.clone()], bytes, put).await
    }

    async fn document(&self, owner: &Owner, kind: &str, name: &str) -> Result<Option<Bytes>> {
        check_names(kind, std::iter::once(name))?;
        let core = self.rows_core()?;
        core.rows.get(&key(&of_kind(core.documents_of(owner)?, kind), name))
    }

    async fn documents(
        &self,
        owner: &Owner,
        kind: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Document>> {
        check_names(kind, std::iter::empty())?;
        self.rows_core()?.list_documents(owner, kind, after, limit.clamp(1, PAGE_ENTRIES_MAX))
    }

    async fn delete_documents(&self, owner: &Owner, kind: &str, names: Vec<String>) -> Result<()> {
        check_names(kind, names.iter().map(String::as_str))?;
        if names.is_empty() {
            return self.writing_core()?.documents_of(owner).map(drop);
        }
        let bytes = names.iter().map(String::len).sum();
        let remove = |_: &[Option<Bytes>], keys: &[Bytes]| {
            (true, keys.iter().map(|key| Change::remove(key.clone())).collect())
        };
        self.writing_core()?.write_documents(owner, kind, names, bytes, remove).await.map(drop)
    }
}
