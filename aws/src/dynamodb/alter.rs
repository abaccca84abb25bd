//! Changing a living table, one thing at a time.
//!
//! A call whose outcome nobody knows is followed by a look: whether the table is as it should be says what happened.

use anabranch_model::table::{Alteration, IndexOptions, TableOptions};
use anabranch_model::{Error, Result, TableName};
use aws_sdk_dynamodb::operation::update_table::builders::UpdateTableFluentBuilder;
use aws_sdk_dynamodb::types::{
    CreateGlobalSecondaryIndexAction, DeleteGlobalSecondaryIndexAction, GlobalSecondaryIndexUpdate,
    TableDescription, TimeToLiveSpecification,
};

use super::manage::{busy, definitions, key_schema, projection, provisioned, stream_specification};
use super::{CHANGE_PATIENCE, Capacity, Tables, action, built};
use crate::call::Deadline;
use crate::failure::{Kind, Outcome};

impl Tables {
    pub(super) async fn change(&self, table: &TableName, alteration: Alteration) -> Result<()> {
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        let current = self.summary(table, deadline).await?.options;
        let wanted = current.altered(table, &alteration)?;
        let request = self.client.update_table().table_name(table.as_str());
        let request = match alteration {
            Alteration::TimeToLive(wanted) => {
                return self.change_expiry(table, current.time_to_live, wanted, deadline).await;
            }
            Alteration::Changes(view) if view == current.changes => return Ok(()),
            Alteration::Changes(view) => request.stream_specification(stream_specification(view)?),
            Alteration::AddIndex(index) => {
                let described = self.describe(table, deadline).await?;
                let create = create_index(&index, &described)?;
                request.set_attribute_definitions(Some(definitions(&wanted)?)).global_secondary_index_updates(
                    GlobalSecondaryIndexUpdate::builder().create(create).build(),
                )
            }
            Alteration::DropIndex(name) => {
                let delete = DeleteGlobalSecondaryIndexAction::builder().index_name(name.as_str()).build();
                request.global_secondary_index_updates(
                    GlobalSecondaryIndexUpdate::builder().delete(built(delete)?).build(),
                )
            }
        };
        self.update(table, request, &wanted, deadline).await?;
        if wanted.changes != current.changes {
            // Until the table is active again, its stream is not there, or still there.
            self.until_active(table, deadline).await?;
        }
        Ok(())
    }

    /// Asks for a change until the answer is certain.
    async fn update(
        &self,
        table: &TableName,
        request: UpdateTableFluentBuilder,
        wanted: &TableOptions,
        deadline: Deadline,
    ) -> Result<()> {
        let mut in_doubt = false;
        let mut patience = deadline;
        let mut rounds = 0;
        loop {
            let send = || request.clone().send();
            let failure = match self.caller.call(&action::UPDATE_TABLE, deadline, send).await {
                Ok(_) => return Ok(()),
                Err(failure) => failure,
            };
            match failure.kind {
                Kind::NotFound => return Err(Error::TableNotFound(table.clone())),
                // One thing at a time: something else is being changed.
                Kind::InUse => {}
                Kind::Away if failure.outcome == Outcome::Unknown => {
                    in_doubt = true;
                    patience = patience.min(self.caller.absence());
                }
                Kind::Invalid if in_doubt => {}
                _ => return Err(failure.into()),
            }
            if in_doubt && self.is_like(table, wanted, deadline).await? {
                return Ok(());
            }
            rounds += 1;
            if failure.kind == Kind::Invalid || !self.caller.back_off(rounds, patience).await {
                return Err(busy(table, failure));
            }
        }
    }

    /// Whether a table has the indexes and the changes that it should have.
    async fn is_like(&self, table: &TableName, wanted: &TableOptions, deadline: Deadline) -> Result<bool> {
        let seen = self.summary(table, deadline).await?.options;
        let names = |options: &TableOptions| {
            let mut names: Vec<_> = options.indexes.iter().map(|index| index.name.clone()).collect();
            names.sort();
            names
        };
        Ok(names(&seen) == names(wanted) && seen.changes == wanted.changes)
    }

    async fn change_expiry(
        &self,
        table: &TableName,
        current: Option<String>,
        wanted: Option<String>,
        deadline: Deadline,
    ) -> Result<()> {
        if current == wanted {
            return Ok(());
        }
        match (current, wanted) {
            (None, None) => Ok(()),
            (None, Some(attribute)) => self.expire_by(table, &attribute, true, deadline).await,
            (Some(attribute), None) => self.expire_by(table, &attribute, false, deadline).await,
            // Half of it would be done and the rest refused: DynamoDB takes one such change an hour.
            (Some(current), _) => Err(Error::Invalid(format!(
                "the items of table `{table}` expire by `{current}`: turn that off first, and wait an hour"
            ))),
        }
    }

    /// Turns expiry by an attribute on or off.
    pub(super) async fn expire_by(
        &self,
        table: &TableName,
        attribute: &str,
        enabled: bool,
        deadline: Deadline,
    ) -> Result<()> {
        let specification =
            built(TimeToLiveSpecification::builder().attribute_name(attribute).enabled(enabled).build())?;
        let wanted = enabled.then_some(attribute);
        let mut patience = deadline;
        let mut rounds = 0;
        loop {
            let request = || {
                let request = self.client.update_time_to_live().table_name(table.as_str());
                request.time_to_live_specification(specification.clone()).send()
            };
            let failure = match self.caller.call(&action::UPDATE_TIME_TO_LIVE, deadline, request).await {
                Ok(_) => return Ok(()),
                Err(failure) => failure,
            };
            let unknown = failure.kind == Kind::Away && failure.outcome == Outcome::Unknown;
            match failure.kind {
                Kind::NotFound => return Err(Error::TableNotFound(table.clone())),
                Kind::InUse => {}
                // It is refused if it is so already, and so is what a lost answer was about.
                _ if (unknown || failure.kind == Kind::Invalid)
                    && self.time_to_live(table, deadline).await?.as_deref() == wanted =>
                {
                    return Ok(());
                }
                _ if unknown => patience = patience.min(self.caller.absence()),
                _ => return Err(failure.into()),
            }
            rounds += 1;
            if !self.caller.back_off(rounds, patience).await {
                return Err(busy(table, failure));
            }
        }
    }
}

/// An index as it is asked for. Where a table pays for what it reserves, its index reserves as much.
fn create_index(
    index: &IndexOptions,
    described: &TableDescription,
) -> Result<CreateGlobalSecondaryIndexAction> {
    let reserved = described.provisioned_throughput.as_ref();
    let reserved = reserved.and_then(|reserved| {
        let (reads, writes) = (reserved.read_capacity_units?, reserved.write_capacity_units?);
        (reads > 0 && writes > 0).then_some(Capacity { reads, writes })
    });
    let reserved = reserved.map(provisioned);
    let builder = CreateGlobalSecondaryIndexAction::builder()
        .index_name(index.name.as_str())
        .set_key_schema(Some(key_schema(&index.key)?))
        .projection(projection(&index.projection))
        .set_provisioned_throughput(reserved.transpose()?);
    built(builder.build())
}
