//! What a stream has beside its records: mode, encryption, metrics, policy, tags. One document a stream; it goes with
//! the stream.

use std::collections::BTreeMap;

use anabranch_model::{Document, Error, Owner, StreamName};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::errors::fault;
use crate::context::Context;
use crate::fault::Fault;

/// The kind of all documents of Kinesis about a stream.
const KIND: &str = "kinesis";
const NAME: &str = "settings";

/// Largest record of a stream unless someone says otherwise, in KiB.
pub(super) const RECORD_KIB_DEFAULT: i64 = 1024;

/// The settings of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    /// The service decides on the number of shards.
    pub(super) on_demand: bool,
    /// The key, while encryption is on.
    pub(super) key_id: Option<String>,
    /// Metrics of shards that are switched on.
    pub(super) metrics: Vec<String>,
    /// Who may do what, as JSON.
    pub(super) policy: Option<String>,
    /// Largest record, in KiB.
    pub(super) record_kib_max: Option<i64>,
    /// Throughput that is kept ready, in MiB a second.
    pub(super) warm_mib: Option<i64>,
    /// Tags.
    pub(super) tags: BTreeMap<String, String>,
}

impl Settings {
    /// `PROVISIONED` or `ON_DEMAND`.
    pub(super) fn mode(&self) -> &'static str {
        if self.on_demand { "ON_DEMAND" } else { "PROVISIONED" }
    }

    /// `NONE` or `KMS`.
    pub(super) fn encryption(&self) -> &'static str {
        if self.key_id.is_some() { "KMS" } else { "NONE" }
    }

    /// How they are kept.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Fault> {
        serde_json::to_vec(self).map_err(|error| Fault::server("InternalFailure", error.to_string()))
    }

    /// Keeps them.
    pub(super) async fn keep(&self, context: &Context, stream: &StreamName) -> Result<(), Fault> {
        let document = vec![Document::new(NAME, self.to_bytes()?)];
        let owner = Owner::Stream(stream.clone());
        context.ports.admin.put_documents(&owner, KIND, document).await.map_err(fault)
    }

    /// Largest record, in bytes.
    pub(super) fn record_bytes_max(&self) -> usize {
        self.record_kib_max.unwrap_or(RECORD_KIB_DEFAULT) as usize * 1024
    }
}

/// The settings of a stream. The stream must exist.
pub(super) async fn load(context: &Context, stream: &StreamName) -> Result<Settings, Fault> {
    let owner = Owner::Stream(stream.clone());
    let document = context.ports.admin.document(&owner, KIND, NAME).await.map_err(fault)?;
    decode(stream, document)
}

/// The settings of a stream of a list, which may be deleted by now.
pub(super) async fn load_listed(context: &Context, stream: &StreamName) -> Result<Settings, Fault> {
    let owner = Owner::Stream(stream.clone());
    match context.ports.admin.document(&owner, KIND, NAME).await {
        Err(Error::StreamNotFound(_)) => Ok(Settings::default()),
        document => decode(stream, document.map_err(fault)?),
    }
}

/// The settings of a stream whose records are read. Where they are lost nobody knows them, and its records can be read all
/// the same.
pub(super) async fn of_records(context: &Context, stream: &StreamName) -> Result<Settings, Fault> {
    let owner = Owner::Stream(stream.clone());
    match context.ports.admin.document(&owner, KIND, NAME).await {
        Err(Error::Corrupt(_)) => Ok(Settings::default()),
        document => decode(stream, document.map_err(fault)?),
    }
}

/// Settings as they are kept.
pub(super) fn decode(stream: &StreamName, document: Option<Bytes>) -> Result<Settings, Fault> {
    match document {
        Some(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| fault(Error::Corrupt(format!("the settings of stream `{stream}`: {error}")))),
        None => Ok(Settings::default()),
    }
}

/// Changes the settings of a stream; no other change comes in between.
pub(super) async fn change<T>(
    context: &Context,
    stream: &StreamName,
    change: impl FnOnce(&mut Settings) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let _changing = context.kinesis.changing().await;
    let mut settings = load(context, stream).await?;
    let before = settings.clone();
    let value = change(&mut settings)?;
    if settings != before {
        settings.keep(context, stream).await?;
    }
    Ok(value)
}
