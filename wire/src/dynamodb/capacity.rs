//! What a call would cost where capacity is sold. Nothing is sold here; clients that ask get an estimate by the sizes
//! of what was read and written, as the service would count them.

use std::collections::BTreeMap;

use anabranch_model::TableName;
use anabranch_model::table::{IndexScope, Item, TableOptions};
use serde::Serialize;

use crate::validation::Validation;

const READ_UNIT_BYTES: usize = 4 << 10;
const WRITE_UNIT_BYTES: usize = 1 << 10;
const LEVELS: [&str; 3] = ["INDEXES", "TOTAL", "NONE"];
/// A scan of a table looks into each of its partitions, and a table has at least so many. None costs nothing.
const PARTITIONS_MIN: f64 = 4.0;

/// How much a caller wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    Nothing,
    Total,
    Indexes,
}

/// What a call costs, in units: of the table, and of its indexes by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cost {
    table: f64,
    global: BTreeMap<String, f64>,
    local: BTreeMap<String, f64>,
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

impl Cost {
    /// So many units of the table.
    pub(super) fn of_table(units: f64) -> Cost {
        Cost { table: units, ..Cost::default() }
    }

    /// A scan of the table that looked at so many bytes.
    pub(super) fn of_scan(bytes: usize, consistent: bool) -> Cost {
        let least = if consistent { PARTITIONS_MIN } else { PARTITIONS_MIN / 2.0 };
        Cost::of_table(read_units(bytes, consistent).max(least))
    }

    /// So many units of one index.
    pub(super) fn of_index(name: &str, scope: IndexScope, units: f64) -> Cost {
        let mut cost = Cost::default();
        cost.add_index(name, scope, units);
        cost
    }

    /// A write that makes an item another one: the larger of the two counts, and so does every entry that changes.
    pub(super) fn of_write(options: &TableOptions, old: Option<&Item>, new: Option<&Item>) -> Cost {
        let size = |item: Option<&Item>| item.map_or(0, Item::size);
        let mut cost = Cost::of_table(write_units(size(old).max(size(new))));
        for index in &options.indexes {
            let shown = |item: Option<&Item>| item.and_then(|item| options.shown(index, item));
            let (before, after) = (shown(old), shown(new));
            if before == after {
                continue;
            }
            let place = |item: &Item| options.place(Some(index), item).ok();
            let units = match (&before, &after) {
                // An entry that moves is removed in one place and written in the other.
                (Some(before), Some(after)) if place(before) != place(after) => {
                    write_units(before.size()) + write_units(after.size())
                }
                (before, after) => write_units(size(before.as_ref()).max(size(after.as_ref()))),
            };
            cost.add_index(index.name.as_str(), index.scope, units);
        }
        cost
    }

    fn add_index(&mut self, name: &str, scope: IndexScope, units: f64) {
        let indexes = if scope == IndexScope::Global { &mut self.global } else { &mut self.local };
        *indexes.entry(name.to_owned()).or_default() += units;
    }

    /// The same as part of a transaction, which does everything twice.
    pub(super) fn twice(mut self) -> Cost {
        self.table *= 2.0;
        self.global.values_mut().chain(self.local.values_mut()).for_each(|units| *units *= 2.0);
        self
    }

    /// Another cost beside this one.
    pub(super) fn add(&mut self, other: Cost) {
        self.table += other.table;
        for (name, units) in other.global {
            self.add_index(&name, IndexScope::Global, units);
        }
        for (name, units) in other.local {
            self.add_index(&name, IndexScope::Local, units);
        }
    }

    fn total(&self) -> f64 {
        self.table + self.global.values().chain(self.local.values()).sum::<f64>()
    }
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

    /// Whether a caller asked at all.
    pub(super) fn is_asked(self) -> bool {
        self != Detail::Nothing
    }

    /// The cost of a call, if it was asked for.
    pub(super) fn consumed(self, table: &TableName, cost: &Cost) -> Option<Consumed> {
        let total = Consumed {
            table_name: table.to_string(),
            capacity_units: cost.total(),
            table: None,
            global_secondary_indexes: None,
            local_secondary_indexes: None,
            read_capacity_units: None,
            write_capacity_units: None,
        };
        let by_name = |indexes: &BTreeMap<String, f64>| {
            let units = indexes.iter().map(|(name, units)| (name.clone(), Units { capacity_units: *units }));
            Some(units.collect::<BTreeMap<_, _>>()).filter(|indexes| !indexes.is_empty())
        };
        match self {
            Detail::Nothing => None,
            Detail::Total => Some(total),
            Detail::Indexes => Some(Consumed {
                table: Some(Units { capacity_units: cost.table }),
                global_secondary_indexes: by_name(&cost.global),
                local_secondary_indexes: by_name(&cost.local),
                ..total
            }),
        }
    }

    /// The costs of a call to several tables, if they were asked for.
    pub(super) fn consumed_by(self, costs: &BTreeMap<TableName, Cost>) -> Option<Vec<Consumed>> {
        let costs = || costs.iter().map(|(table, cost)| self.consumed(table, cost)).collect();
        self.is_asked().then(costs).flatten()
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
fn write_units(bytes: usize) -> f64 {
    bytes.div_ceil(WRITE_UNIT_BYTES).max(1) as f64
}

#[cfg(test)]
mod tests {
    use anabranch_model::IndexName;
    use anabranch_model::table::{IndexOptions, IndexProjection, KeyKind, KeySchema};

    use super::*;

    fn options() -> TableOptions {
        let name = |name: &str| IndexName::new(name).unwrap();
        let key = KeySchema::hash("p", KeyKind::Text);
        let by_x = KeySchema::hash("x", KeyKind::Text);
        TableOptions::new(key)
            .with_index(IndexOptions::global(name("whole"), by_x.clone()))
            .with_index(IndexOptions::global(name("keys"), by_x).showing(IndexProjection::Keys))
    }

    fn item(x: &str, bytes: usize) -> Item {
        Item::new().with("p", "a").with("x", x).with("data", "y".repeat(bytes))
    }

    #[test]
    fn a_write_costs_the_larger_item_and_every_entry_that_changes() {
        let (small, large) = (item("1", 10), item("1", 3_000));
        let cost = |old: Option<&Item>, new: Option<&Item>| {
            let cost = Cost::of_write(&options(), old, new);
            (cost.table, cost.global.get("whole").copied(), cost.global.get("keys").copied())
        };
        assert_eq!(cost(None, Some(&small)), (1.0, Some(1.0), Some(1.0)));
        assert_eq!(cost(Some(&large), Some(&small)), (3.0, Some(3.0), None));
        assert_eq!(cost(Some(&small), Some(&large)), (3.0, Some(3.0), None));
        assert_eq!(cost(Some(&large), None), (3.0, Some(3.0), Some(1.0)));
        assert_eq!(cost(Some(&large), Some(&large)), (3.0, None, None));
        assert_eq!(cost(Some(&large), Some(&item("2", 3_000))), (3.0, Some(6.0), Some(2.0)));
        assert_eq!(cost(None, None), (1.0, None, None));
    }

    #[test]
    fn costs_add_up() {
        let mut cost = Cost::of_table(1.5);
        cost.add(Cost::of_index("a", IndexScope::Local, 2.0));
        cost.add(Cost::of_index("a", IndexScope::Local, 1.0).twice());
        assert_eq!((cost.total(), cost.local["a"]), (5.5, 4.0));
        assert_eq!(Cost::of_scan(1, true).total(), 4.0);
        assert_eq!(Cost::of_scan(100 << 10, false).total(), 12.5);
    }
}
