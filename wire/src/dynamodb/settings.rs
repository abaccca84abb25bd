//! What a table is told beside what the store needs: how capacity is paid for, whether it may be deleted. It means
//! nothing here, but who sets it reads it back.

use std::collections::BTreeMap;

use anabranch_model::TableName;
use anabranch_model::admin::{Document, Owner};
use serde::{Deserialize, Serialize};

use super::errors::fault;
use super::schema::{IndexBody, Throughput};
use super::throughput::{OnDemand, Warm};
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
    /// Most that is let through, if capacity is paid for by use.
    pub(super) on_demand: Option<OnDemand>,
    /// The same for indexes.
    pub(super) index_on_demand: BTreeMap<String, OnDemand>,
    /// What is kept ready.
    pub(super) warm: Option<Warm>,
    /// The same for indexes.
    pub(super) index_warm: BTreeMap<String, Warm>,
    /// The key that the table is said to be encrypted with.
    pub(super) key: Option<String>,
    /// Whether the table must not be deleted.
    pub(super) deletion_protection: bool,
    /// The class of storage.
    pub(super) table_class: Option<String>,
}

impl Settings {
    /// Takes what an index that is asked for brings.
    pub(super) fn add_index(&mut self, index: &IndexBody) {
        let name = index.name();
        self.index_throughput.extend(index.throughput());
        self.index_on_demand
            .extend(index.on_demand().and_then(|asked| Some((name.to_owned(), asked.over(None)?))));
        self.index_warm.extend(index.warm().map(|asked| (name.to_owned(), asked.over(None))));
    }

    /// Forgets an index.
    pub(super) fn drop_index(&mut self, name: &str) {
        self.index_throughput.remove(name);
        self.index_on_demand.remove(name);
        self.index_warm.remove(name);
    }

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
