//! What a delivery stream is: where its records go, and when.

use anabranch_model::{BucketName, Document, Error, Owner};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid, not_found};
use crate::context::{Context, Ports};
use crate::fault::Fault;

/// The kind of the documents, named like the delivery streams.
const KIND: &str = "firehose";
/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 64;

/// A delivery stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) bucket: String,
    pub(super) prefix: String,
    pub(super) error_prefix: Option<String>,
    /// What the keys of objects end with, if not with what follows from the compression.
    pub(super) extension: Option<String>,
    pub(super) role: String,
    /// Bytes that are enough for an object.
    pub(super) size_mib: u64,
    /// How long a record waits at most.
    pub(super) interval_seconds: u64,
    pub(super) gzip: bool,
    /// Milliseconds since 1970.
    pub(super) created_at: u64,
}

impl Definition {
    /// The bucket.
    pub(super) fn bucket(&self) -> Result<BucketName, Error> {
        BucketName::new(&self.bucket)
    }
}

/// Checks the name of a delivery stream.
pub(super) fn check_name(name: Option<String>) -> Result<String, Fault> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    name.filter(|name| (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed)).ok_or_else(
        || {
            invalid(format!(
                "DeliveryStreamName must have 1 to {NAME_CHARS_MAX} of a-z, A-Z, 0-9, `_`, `.` and `-`."
            ))
        },
    )
}

/// The delivery stream that a caller names.
pub(super) async fn find(context: &Context, name: Option<String>) -> Result<Definition, Fault> {
    let name = check_name(name)?;
    get(&context.ports, &name).await.map_err(fault)?.ok_or_else(|| not_found(&name))
}

/// The delivery stream of this name, if there is one.
pub(super) async fn get(ports: &Ports, name: &str) -> Result<Option<Definition>, Error> {
    let document = ports.admin.document(&Owner::Store, KIND, name).await?;
    document.map(|text| read(&text)).transpose()
}

/// Keeps a new delivery stream; false if there is one of its name.
pub(super) async fn keep(context: &Context, definition: &Definition) -> Result<bool, Fault> {
    let text = serde_json::to_vec(definition)
        .map_err(|error| Fault::server("InternalFailure", error.to_string()))?;
    let document = Document::new(definition.name.clone(), text);
    context.ports.admin.put_document_if_absent(&Owner::Store, KIND, document).await.map_err(fault)
}

/// Forgets a delivery stream.
pub(super) async fn forget(context: &Context, name: &str) -> Result<(), Fault> {
    let names = vec![name.to_owned()];
    context.ports.admin.delete_documents(&Owner::Store, KIND, names).await.map_err(fault)
}

/// Delivery streams in the order of their names, and whether there are more.
pub(super) async fn page(
    ports: &Ports,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Definition>, bool), Error> {
    let page = ports.admin.documents(&Owner::Store, KIND, after, limit).await?;
    let definitions = page.entries.iter().map(|document| read(&document.value)).collect::<Result<_, _>>()?;
    Ok((definitions, page.more))
}

fn read(text: &[u8]) -> Result<Definition, Error> {
    serde_json::from_slice(text).map_err(|error| Error::Corrupt(format!("a delivery stream: {error}")))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A delivery stream as most are.
    pub(in super::super) fn definition(name: &str) -> Definition {
        Definition {
            name: name.into(),
            bucket: "lake".into(),
            prefix: String::new(),
            error_prefix: None,
            extension: None,
            role: String::new(),
            size_mib: 1,
            interval_seconds: 60,
            gzip: false,
            created_at: 0,
        }
    }

    #[test]
    fn names_have_few_characters() {
        assert_eq!(check_name(Some("a_B.c-9".into())).unwrap(), "a_B.c-9");
        for name in [None, Some(""), Some("a b"), Some("ä"), Some("a/b"), Some(&*"x".repeat(65))] {
            assert!(check_name(name.map(str::to_owned)).is_err(), "{name:?}");
        }
    }
}
