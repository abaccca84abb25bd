//! What a table is told beside what the store needs: how capacity is paid for, whether it may be deleted. It means
//! nothing here, but who sets it reads it back.

use std::collections::BTreeMap;

use anabranch_model::TableName;
use anabranch_model::admin::{Document, Owner};
use serde::{Deserialize, Serialize};

use super::errors::fault;
use super::schema::Throughput;
use crate::context::Context;
use crate::fault::Fault;

const KIND: &str = "table-settings";
const NAME: &str = "settings";

/// The settings of a table. Without any, capacity is paid for by use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    /// What was ordered, if capacity is.
    pub(super) throughput: Option<Throughput>,
    /// The same for indexes.
    pub(super) index_throughput: BTreeMap<String, Throughput>,
    /// Whether the table must not be deleted.
    pub(super) deletion_protection: bool,
    /// The class of storage.
    pub(super) table_class: Option<String>,
}

impl Settings {
    /// The settings of a table.
    pub(super) async fn load(context: &Context, table: &TableName) -> Result<Settings, Fault> {
        let owner = Owner::Table(table.clone());
        let document = context.ports.admin.document(&owner, KIND, NAME).await.map_err(fault)?;
        Ok(document.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
    }

    /// Keeps the settings of a table.
    pub(super) async fn save(&self, context: &Context, table: &TableName) -> Result<(), Fault> {
        let value = serde_json::to_vec(self).unwrap_or_default();
        let owner = Owner::Table(table.clone());
        context.ports.admin.put_documents(&owner, KIND, vec![Document::new(NAME, value)]).await.map_err(fault)
    }
}
