//! What a call would cost where capacity is sold. Nothing is sold here; clients that ask get an estimate by the sizes
//! that are known, as the service would count them.

use std::collections::BTreeMap;

use anabranch_model::TableName;
use serde::Serialize;

use crate::validation::Validation;

const READ_UNIT_BYTES: usize = 4 << 10;
const WRITE_UNIT_BYTES: usize = 1 << 10;
const LEVELS: [&str; 3] = ["INDEXES", "TOTAL", "NONE"];

/// How much a caller wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    Nothing,
    Total,
    Indexes,
}

/// The cost of a call to one table.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Consumed {
    table_name: String,
    capacity_units: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<Units>,
    #[serde(skip_serializing_if = "Option::is_none")]
    global_secondary_indexes: Option<BTreeMap<String, Units>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_secondary_indexes: Option<BTreeMap<String, Units>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_capacity_units: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_capacity_units: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Units {
    capacity_units: f64,
}

impl Detail {
    /// What a caller asked for.
    pub(super) fn read(validation: &mut Validation, asked: Option<&str>) -> Detail {
        validation.one_of("returnConsumedCapacity", asked, &LEVELS);
        match asked {
            Some("INDEXES") => Detail::Indexes,
            Some("TOTAL") => Detail::Total,
            _ => Detail::Nothing,
        }
    }

    /// The cost of a call, if it was asked for.
    pub(super) fn consumed(self, table: &TableName, units: f64) -> Option<Consumed> {
        let total = Consumed {
            table_name: table.to_string(),
            capacity_units: units,
            table: None,
            global_secondary_indexes: None,
            local_secondary_indexes: None,
            read_capacity_units: None,
            write_capacity_units: None,
        };
        match self {
            Detail::Nothing => None,
            Detail::Total => Some(total),
            Detail::Indexes => Some(Consumed { table: Some(Units { capacity_units: units }), ..total }),
        }
    }

    /// The cost of a read of an index, if it was asked for.
    pub(super) fn consumed_by_index(
        self,
        table: &TableName,
        index: &str,
        global: bool,
        units: f64,
    ) -> Option<Consumed> {
        let consumed = self.consumed(table, units)?;
        if self != Detail::Indexes {
            return Some(consumed);
        }
        let by_index = BTreeMap::from([(index.to_owned(), Units { capacity_units: units })]);
        let (global, local) = if global { (Some(by_index), None) } else { (None, Some(by_index)) };
        Some(Consumed {
            table: Some(Units { capacity_units: 0.0 }),
            global_secondary_indexes: global,
            local_secondary_indexes: local,
            ..consumed
        })
    }

    /// The costs of a call to several tables, if they were asked for.
    pub(super) fn consumed_by(self, units: &BTreeMap<TableName, f64>) -> Option<Vec<Consumed>> {
        units.iter().map(|(table, units)| self.consumed(table, *units)).collect()
    }
}

/// A call in a transaction says apart what was read and what was written.
pub(super) fn of_transaction(consumed: Option<Vec<Consumed>>, writes: bool) -> Option<Vec<Consumed>> {
    let split = |consumed: Consumed| {
        let units = Some(consumed.capacity_units);
        let (read, write) = if writes { (None, units) } else { (units, None) };
        Consumed { read_capacity_units: read, write_capacity_units: write, ..consumed }
    };
    consumed.map(|all| all.into_iter().map(split).collect())
}

/// Units for reading so many bytes at once; nothing to read costs as much as a little.
pub(super) fn read_units(bytes: usize, consistent: bool) -> f64 {
    let units = bytes.div_ceil(READ_UNIT_BYTES).max(1) as f64;
    if consistent { units } else { units / 2.0 }
}

/// Units for writing so many bytes.
pub(super) fn write_units(bytes: usize) -> f64 {
    bytes.div_ceil(WRITE_UNIT_BYTES).max(1) as f64
}
