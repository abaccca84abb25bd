//! Waiting until DynamoDB has done what it agreed to do.

use std::time::Duration;

use anabranch_model::{Error, Result, TableName};
use aws_sdk_dynamodb::types::{TableDescription, TableStatus};

use super::Tables;
use crate::call::Deadline;

/// How long a table may be invisible after DynamoDB has agreed to make it.
const UNSEEN_MAX: Duration = Duration::from_secs(20);

impl Tables {
    /// Waits until a table that was asked for is active. It need not be visible at once.
    pub(super) async fn until_made(&self, table: &TableName, deadline: Deadline) -> Result<()> {
        let seen_by = self.caller.deadline(UNSEEN_MAX).min(deadline);
        let mut rounds = 0;
        loop {
            let active = self.until_active(table, deadline).await;
            if !matches!(active, Err(Error::TableNotFound(_))) {
                return active.map(drop);
            }
            rounds += 1;
            if !self.caller.back_off(rounds, seen_by).await {
                return active.map(drop);
            }
        }
    }

    /// Waits until a table is active, and returns it as it is then.
    pub(super) async fn until_active(
        &self,
        table: &TableName,
        deadline: Deadline,
    ) -> Result<TableDescription> {
        let mut rounds = 0;
        loop {
            let described = self.describe(table, deadline).await?;
            match described.table_status {
                Some(TableStatus::Active) => return Ok(described),
                Some(TableStatus::Deleting) => return Err(Error::TableNotFound(table.clone())),
                _ => {}
            }
            rounds += 1;
            if !self.caller.back_off(rounds, deadline).await {
                return Err(Error::TableBusy(table.clone()));
            }
        }
    }

    /// Waits until a table is gone.
    pub(super) async fn until_gone(&self, table: &TableName, deadline: Deadline) -> Result<()> {
        let mut rounds = 0;
        loop {
            match self.describe(table, deadline).await {
                Err(Error::TableNotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            rounds += 1;
            if !self.caller.back_off(rounds, deadline).await {
                return Err(Error::TableBusy(table.clone()));
            }
        }
    }
}
