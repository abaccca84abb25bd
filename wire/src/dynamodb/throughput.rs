//! What tables and indexes are told about throughput beside what is ordered: most that is let through on demand, and what
//! is kept ready. It means nothing here, where nothing is bought, but who sets it reads it back.

use serde::{Deserialize, Serialize};

use super::schema::invalid;
use crate::fault::Fault;

/// Takes a limit away.
const NO_LIMIT: i64 = -1;

/// Most that is let through on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "OnDemandThroughput", rename_all = "PascalCase", default)]
pub(super) struct OnDemand {
    max_read_request_units: Option<i64>,
    max_write_request_units: Option<i64>,
}

impl OnDemand {
    /// Whether these can be limits of a table, which must be paid for by use.
    pub(super) fn check_for(&self, on_demand: bool) -> Result<(), Fault> {
        match on_demand {
            true => self.check(),
            false => {
                Err(invalid("OnDemandThroughput can be given only where BillingMode is PAY_PER_REQUEST"))
            }
        }
    }

    fn check(&self) -> Result<(), Fault> {
        let units = [
            ("MaxReadRequestUnits", self.max_read_request_units),
            ("MaxWriteRequestUnits", self.max_write_request_units),
        ];
        if units.iter().all(|(_, units)| units.is_none()) {
            return Err(invalid(
                "OnDemandThroughput must have MaxReadRequestUnits, MaxWriteRequestUnits, or both",
            ));
        }
        match units.iter().find_map(|(name, units)| Some((name, units.filter(|units| !is_limit(*units))?))) {
            Some((name, units)) => Err(invalid(format_args!("{name} must be -1 or at least 1, not {units}"))),
            None => Ok(()),
        }
    }

    /// These limits where there were others. None if none is left.
    pub(super) fn over(self, before: Option<OnDemand>) -> Option<OnDemand> {
        let before = before.unwrap_or_default();
        let limit = |new: Option<i64>, old: Option<i64>| Some(new.or(old).unwrap_or(NO_LIMIT));
        let limits = OnDemand {
            max_read_request_units: limit(self.max_read_request_units, before.max_read_request_units),
            max_write_request_units: limit(self.max_write_request_units, before.max_write_request_units),
        };
        let none = limits.max_read_request_units == Some(NO_LIMIT)
            && limits.max_write_request_units == Some(NO_LIMIT);
        (!none).then_some(limits)
    }
}

fn is_limit(units: i64) -> bool {
    units == NO_LIMIT || units >= 1
}

/// What is kept ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "WarmThroughput", rename_all = "PascalCase", default)]
pub(super) struct Warm {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_units_per_second: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_units_per_second: Option<i64>,
}

/// The same as answers show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct WarmDescription {
    #[serde(flatten)]
    warm: Warm,
    status: &'static str,
}

impl Warm {
    /// Whether so much can be kept ready.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let units = [self.read_units_per_second, self.write_units_per_second];
        if units.iter().all(Option::is_none) || units.iter().flatten().any(|units| *units < 1) {
            return Err(invalid(
                "WarmThroughput must have ReadUnitsPerSecond, WriteUnitsPerSecond, or both, and each is at least 1",
            ));
        }
        Ok(())
    }

    /// This where something else was kept ready.
    pub(super) fn over(self, before: Option<Warm>) -> Warm {
        let before = before.unwrap_or_default();
        Warm {
            read_units_per_second: self.read_units_per_second.or(before.read_units_per_second),
            write_units_per_second: self.write_units_per_second.or(before.write_units_per_second),
        }
    }

    /// As answers show it.
    pub(super) fn described(self) -> WarmDescription {
        WarmDescription { warm: self, status: "ACTIVE" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(read: Option<i64>, write: Option<i64>) -> OnDemand {
        OnDemand { max_read_request_units: read, max_write_request_units: write }
    }

    #[test]
    fn limits_are_set_one_by_one_and_taken_away() {
        let one = limits(Some(5), None).over(None);
        assert_eq!(one, Some(limits(Some(5), Some(-1))));
        let both = limits(None, Some(7)).over(one);
        assert_eq!(both, Some(limits(Some(5), Some(7))));
        assert_eq!(limits(Some(-1), None).over(both), Some(limits(Some(-1), Some(7))));
        assert_eq!(limits(Some(-1), Some(-1)).over(both), None);
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for wrong in [limits(None, None), limits(Some(0), None), limits(Some(5), Some(-2))] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        assert!(limits(Some(-1), Some(1)).check().is_ok());
        let warm = |read| Warm { read_units_per_second: read, write_units_per_second: None };
        assert!(
            warm(None).check().is_err() && warm(Some(0)).check().is_err() && warm(Some(1)).check().is_ok()
        );
    }
}
