//! Where leases, the leader and the workers are kept.

use anabranch_model::{Error, TableName};

/// How many tables an application has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One for leases, one for the leader, one for workers. What new applications get.
    Three,
    /// One for everything; `entityType` tells the items apart. It is joined where it is found.
    One,
}

/// The names of an application's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableNames {
    /// Leases, and in [`Layout::One`] everything.
    pub leases: TableName,
    /// The leader.
    pub coordinator: TableName,
    /// The workers.
    pub workers: TableName,
}

impl TableNames {
    /// The names from a template for the table of leases, in which `{app}` stands for the application.
    pub fn new(template: &str, application: &str) -> Result<Self, Error> {
        let base = template.replace("{app}", application);
        Ok(TableNames {
            leases: TableName::new(&base)?,
            coordinator: TableName::new(&format!("{base}-CoordinatorState"))?,
            workers: TableName::new(&format!("{base}-WorkerMetricStats"))?,
        })
    }
}
