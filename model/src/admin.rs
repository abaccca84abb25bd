//! The port of small documents that only a server keeps: tags, modes, registered consumers, definitions, secrets.

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::limits::{
    DOCUMENT_BYTES_MAX, DOCUMENT_KIND_CHARS_MAX, DOCUMENT_NAME_BYTES_MAX, DOCUMENTS_WRITTEN_MAX,
};
use crate::name::{StreamName, TableName, excerpt};
use crate::queue::QueueName;
use crate::stream::Page;

/// Whom a document belongs to. It goes when its owner goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The store itself.
    Store,
    /// A stream.
    Stream(StreamName),
    /// A queue.
    Queue(QueueName),
    /// A table.
    Table(TableName),
}

/// A document with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Unique among the documents of one kind that one owner has.
    pub name: String,
    /// What it says. The store does not look at it.
    pub value: Bytes,
}

impl Document {
    /// A document.
    pub fn new(name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        Document { name: name.into(), value: value.into() }
    }
}

/// Documents by owner, kind and name. A kind is a short word that is fixed in the program, a name may be any text.
///
/// Laws:
///
/// 1. **Durable before acknowledged.** What a call has done is there after any crash, as a whole or not at all.
/// 2. **Visible once durable.** A read that starts after the acknowledgement sees the documents.
/// 3. **Once.** Of several calls of `put_if_absent` for one name, one puts; so does the next one after a delete.
/// 4. **Owners.** Documents go with their owner: a younger one of the same name has none of them. An owner that does
///    not exist is an error of the call.
/// 5. **Listing.** Names come in the order of their bytes, in pages of any size.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Puts documents of one kind, all of them or none. What was there under a name is replaced.
    async fn put_documents(&self, owner: &Owner, kind: &str, documents: Vec<Document>) -> Result<()>;

    /// Puts a document if there is none of its name, and says whether it did.
    async fn put_document_if_absent(&self, owner: &Owner, kind: &str, document: Document) -> Result<bool>;

    /// A document.
    async fn document(&self, owner: &Owner, kind: &str, name: &str) -> Result<Option<Bytes>>;

    /// Documents of one kind in the order of their names, those behind `after` only, whether or not `after` exists. The
    /// limit is cut to [`limits::PAGE_ENTRIES_MAX`](crate::limits::PAGE_ENTRIES_MAX); zero counts as one.
    async fn documents(
        &self,
        owner: &Owner,
        kind: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Document>>;

    /// Removes documents of one kind, all of them or none. Those that do not exist are not missed.
    async fn delete_documents(&self, owner: &Owner, kind: &str, names: Vec<String>) -> Result<()>;
}

/// Whether documents may be written like this.
pub fn check_documents(kind: &str, documents: &[Document]) -> Result<()> {
    check_names(kind, documents.iter().map(|document| document.name.as_str()))?;
    match documents.iter().find(|document| document.value.len() > DOCUMENT_BYTES_MAX) {
        Some(document) => Err(Error::Invalid(format!(
            "document {} has {} bytes: at most {DOCUMENT_BYTES_MAX} are allowed",
            excerpt(&document.name),
            document.value.len()
        ))),
        None => Ok(()),
    }
}

/// Whether documents may have these names.
pub fn check_names<'a>(kind: &str, names: impl ExactSizeIterator<Item = &'a str>) -> Result<()> {
    let word = kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if kind.is_empty() || kind.len() > DOCUMENT_KIND_CHARS_MAX || !word {
        return Err(Error::Invalid(format!("{} is no kind of documents", excerpt(kind))));
    }
    if names.len() > DOCUMENTS_WRITTEN_MAX {
        return Err(Error::Invalid(format!(
            "{} documents are too many for one call: at most {DOCUMENTS_WRITTEN_MAX} are allowed",
            names.len()
        )));
    }
    for name in names {
        if name.is_empty() || name.len() > DOCUMENT_NAME_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "the name {} of a document has {} bytes: 1 to {DOCUMENT_NAME_BYTES_MAX} are allowed",
                excerpt(name),
                name.len()
            )));
        }
    }
    Ok(())
}
