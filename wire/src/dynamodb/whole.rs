//! Tables that are made or changed in several steps, as a whole.
//!
//! A server may die between the steps. So what is asked for is noted before the first one, and whoever looks at tables or
//! changes them after the next start carries it to its end:
//!
//! ```text
//!   note ─▶ make or alter ─▶ settings ─▶ tags ─▶ no note any more
//! ```
//!
//! What must hold: a step that was taken is not taken again, and nobody else changes a table while there is a note.

use anabranch_model::table::{Alteration, TableSummary};
use anabranch_model::{Error, TableName};
use serde::{Deserialize, Serialize};

use super::errors::{fault, table_fault};
use super::names::index_name;
use super::schema::{Definition, IndexBody, StreamSpecification, kinds};
use super::settings::Settings;
use super::tags::{self, Tag};
use crate::context::Context;
use crate::dynamodb_streams;
use crate::fault::Fault;
use crate::making::Notes;

/// Tables that are being made or changed.
const NOTES: Notes = Notes("table-making");

/// What is asked for beside the table itself.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// In their order.
    pub(super) steps: Vec<Step>,
    /// How the settings are afterwards.
    pub(super) settings: Settings,
    /// Tags that come to those that there are.
    pub(super) tags: Vec<Tag>,
}

/// A change that the store makes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// Adds an index. The attributes of its key are among these.
    AddIndex(Box<IndexBody>, Vec<Definition>),
    /// Removes an index.
    DropIndex(String),
    /// Writes changes down, or not any more.
    Changes(StreamSpecification),
}

impl Step {
    /// As the store is told.
    pub(super) fn alteration(&self) -> Result<Alteration, Fault> {
        Ok(match self {
            Step::AddIndex(index, definitions) => {
                Alteration::AddIndex(index.options(&kinds(definitions)?, None)?)
            }
            Step::DropIndex(name) => Alteration::DropIndex(index_name(name)?),
            Step::Changes(specification) => Alteration::Changes(specification.view()?),
        })
    }
}

/// Whether a table is as if the alteration had been made.
fn is_made(alteration: &Alteration, table: &TableSummary) -> bool {
    let options = &table.options;
    match alteration {
        Alteration::AddIndex(index) => options.index(&table.name, &index.name).is_ok(),
        Alteration::DropIndex(name) => options.index(&table.name, name).is_err(),
        Alteration::TimeToLive(attribute) => options.time_to_live == *attribute,
        Alteration::Changes(view) => options.changes == *view,
    }
}

impl Plan {
    /// Notes what is asked for.
    pub(super) async fn begin(&self, context: &Context, table: &TableName) -> Result<(), Fault> {
        let note =
            serde_json::to_vec(self).map_err(|error| Fault::server("InternalFailure", error.to_string()))?;
        NOTES.begin(context, table.as_str(), note).await.map_err(fault)
    }

    /// Takes the steps that have not been taken.
    pub(super) async fn carry_out(
        &self,
        context: &Context,
        table: &TableName,
    ) -> Result<TableSummary, Fault> {
        let tables = &context.ports.tables;
        for step in &self.steps {
            let (alteration, now) = (step.alteration()?, tables.table(table).await.map_err(table_fault)?);
            if is_made(&alteration, &now) {
                continue;
            }
            if matches!(alteration, Alteration::Changes(None)) {
                // What was written down can be read for another day, and then somebody has to know what it was.
                dynamodb_streams::remember(context, &now).await?;
            }
            tables.alter(table, alteration).await.map_err(table_fault)?;
        }
        if Settings::load(context, table).await? != self.settings {
            self.settings.save(context, table).await?;
        }
        tags::put(context, table, self.tags.clone()).await?;
        let summary = tables.table(table).await.map_err(table_fault)?;
        dynamodb_streams::remember(context, &summary).await?;
        Ok(summary)
    }
}

/// Forgets what was asked for: it is done, or refused. If that fails, it is looked at again before anything else.
pub(super) async fn forget(context: &Context, table: &TableName) {
    if let Err(error) = NOTES.end(context, table.as_str()).await {
        tracing::warn!(%table, %error, "what was asked of a table could not be crossed off");
        context.dynamodb.unsettle();
    }
}

/// Carries everything that was noted to its end.
pub(super) async fn finish(context: &Context) -> Result<(), Fault> {
    for (name, note) in NOTES.all(context).await.map_err(fault)? {
        match finish_one(context, &name, &note).await {
            Err(fault) if fault.status.is_server_error() => return Err(fault),
            Err(fault) => {
                let why = fault.message;
                tracing::error!(table = name, why, "what was asked of a table cannot be done any more");
            }
            Ok(()) => {}
        }
        NOTES.end(context, &name).await.map_err(fault)?;
    }
    Ok(())
}

async fn finish_one(context: &Context, name: &str, note: &[u8]) -> Result<(), Fault> {
    let table = TableName::new(name).map_err(fault)?;
    let plan: Plan = serde_json::from_slice(note).map_err(|error| Fault::validation(error.to_string()))?;
    match context.ports.tables.table(&table).await {
        // It was not made, and nobody was told that it was.
        Err(Error::TableNotFound(_)) => Ok(()),
        Err(error) => Err(fault(error)),
        Ok(_) => plan.carry_out(context, &table).await.map(drop),
    }
}
