//! What is known of tables, so that a call is refused by the rules of the model and not by what a server makes of them.
//!
//! A table is described once and remembered. Others may change it meanwhile: a call that fits what is remembered is
//! DynamoDB's to judge, and one that does not is refused only after the table was described anew. Who may not describe
//! a table leaves everything to DynamoDB.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_model::table::TableOptions;
use anabranch_model::{Error, Result, TableName};

use super::Tables;
use crate::call::Deadline;

/// Most tables that are remembered: as many as an account has by its first quota.
const TABLES_MAX: usize = 2_500;

/// The tables that were described so far.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<TableName, Arc<TableOptions>>>);

/// The tables of one call, as far as they could be described.
pub(super) struct Known(HashMap<TableName, Arc<TableOptions>>);

impl Memory {
    fn get(&self, table: &TableName) -> Option<Arc<TableOptions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(table).cloned()
    }

    fn keep(&self, table: &TableName, options: Arc<TableOptions>) {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.len() >= TABLES_MAX {
            tables.clear();
        }
        tables.insert(table.clone(), options);
    }

    /// Forgets a table that was changed or removed.
    pub(super) fn forget(&self, table: &TableName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(table);
    }
}

impl Known {
    /// Whether a table may be asked for something; yes if nothing is known about it.
    pub(super) fn check<T>(
        &self,
        table: &TableName,
        check: impl FnOnce(&TableOptions) -> Result<T>,
    ) -> Result<Option<T>> {
        self.0.get(table).map(|options| check(options)).transpose()
    }
}

impl Tables {
    /// Checks a call about these tables. What is refused is checked again with fresh descriptions.
    pub(super) async fn check<'a>(
        &self,
        tables: impl IntoIterator<Item = &'a TableName>,
        deadline: Deadline,
        check: impl Fn(&Known) -> Result<()>,
    ) -> Result<()> {
        let tables: BTreeSet<_> = tables.into_iter().collect();
        let mut known = HashMap::new();
        for table in &tables {
            match self.memory.get(table) {
                Some(options) => drop(known.insert((*table).clone(), options)),
                None => self.learn(table, &mut known, deadline).await?,
            }
        }
        if check(&Known(known)).is_ok() {
            return Ok(());
        }
        let mut known = HashMap::new();
        for table in &tables {
            self.learn(table, &mut known, deadline).await?;
        }
        check(&Known(known))
    }

    async fn learn(
        &self,
        table: &TableName,
        known: &mut HashMap<TableName, Arc<TableOptions>>,
        deadline: Deadline,
    ) -> Result<()> {
        match self.options(table, deadline).await {
            Ok(options) => {
                let options = Arc::new(options);
                self.memory.keep(table, options.clone());
                known.insert(table.clone(), options);
                Ok(())
            }
            Err(Error::Denied { .. }) => Ok(()),
            Err(error) => {
                self.memory.forget(table);
                Err(error)
            }
        }
    }
}
