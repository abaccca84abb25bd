//! What DynamoDB remembers between calls: who is changing a table.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_model::TableName;
use anabranch_model::table::TableSummary;
use tokio::sync::{Mutex, MutexGuard};

use super::errors::{in_use, not_found};
use super::whole;
use crate::context::{Context, Shared};
use crate::fault::Fault;

/// What is remembered. Nothing of it outlives the server.
#[derive(Default)]
pub(crate) struct State {
    /// Held by whoever makes, changes or deletes a table, since what is kept beside it is read before it is written.
    changing: Mutex<()>,
    /// Whether nothing is left that was begun and not carried to its end. After a start nobody knows.
    settled: AtomicBool,
}

impl State {
    /// Something was begun and could not be carried to its end.
    pub(super) fn unsettle(&self) {
        self.settled.store(false, Ordering::Release);
    }
}

/// Keeps others from making, changing and deleting tables. What was begun before is carried to its end.
pub(super) async fn changing(context: &Context) -> Result<MutexGuard<'_, ()>, Fault> {
    let state = &context.dynamodb;
    let changing = state.changing.lock().await;
    if !state.settled.load(Ordering::Acquire) {
        whole::finish(context).await?;
        state.settled.store(true, Ordering::Release);
    }
    Ok(changing)
}

/// Waits until tables are whole, for those who show how they are made.
pub(super) async fn settle(context: &Context) -> Result<(), Fault> {
    match context.dynamodb.settled.load(Ordering::Acquire) {
        true => Ok(()),
        false => changing(context).await.map(drop),
    }
}

/// Carries to its end what was begun before the server started. What fails is tried again before the next change.
pub(crate) async fn settle_at_start(shared: Arc<Shared>) {
    if let Err(fault) = settle(&Context::of_server(shared)).await {
        tracing::warn!(why = fault.message, "tables that were being made or changed are not whole yet");
    }
}

/// Whether a table says that it is not ready yet.
pub(super) fn is_new(context: &Context, table: &TableSummary) -> bool {
    !context.transition.is_zero() && context.clock.now().since(table.created_at) < context.transition
}

/// Refuses calls about the items of a table that is not ready yet: to them it is not there.
pub(super) async fn check_ready(context: &Context, table: &TableName) -> Result<(), Fault> {
    if context.transition.is_zero() {
        return Ok(());
    }
    match context.ports.tables.table(table).await {
        Ok(summary) if is_new(context, &summary) => Err(not_found("Requested resource not found")),
        _ => Ok(()),
    }
}

/// Refuses calls about the items of several tables of which one is not ready yet.
pub(super) async fn check_all_ready<'a>(
    context: &Context,
    tables: impl Iterator<Item = &'a TableName>,
) -> Result<(), Fault> {
    for table in tables.collect::<BTreeSet<_>>() {
        check_ready(context, table).await?;
    }
    Ok(())
}

/// Refuses changes to a table that is not ready yet.
pub(super) fn check_made(context: &Context, table: &TableSummary) -> Result<(), Fault> {
    match is_new(context, table) {
        true => Err(in_use(format!(
            "Attempt to change a resource which is still in use: Table is being created: {}",
            table.name
        ))),
        false => Ok(()),
    }
}
