//! What a list of secrets is sorted by.

use std::cmp::Ordering;

use super::errors::invalid;
use super::secret::Secret;
use crate::fault::Fault;

/// An order of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    by: By,
    descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Name,
    Created,
    Changed,
}

/// Where a secret stands in an order. Places of different orders are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Zero where only the name counts.
    moment: u64,
    /// The name, which tells those of one moment apart.
    pub(super) name: String,
    descending: bool,
}

impl Order {
    /// The order that a caller wants: that of their making, unless he says otherwise.
    pub(super) fn of(by: Option<&str>, order: Option<&str>) -> Result<Order, Fault> {
        let by = match by {
            None | Some("created-date") => By::Created,
            Some("last-changed-date") => By::Changed,
            Some("name") => By::Name,
            Some("last-accessed-date") => {
                return Err(invalid("SortBy cannot be last-accessed-date: nobody takes note of it here."));
            }
            Some(_) => return Err(invalid("SortBy must be created-date, last-changed-date or name.")),
        };
        let descending = match order {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(_) => return Err(invalid("SortOrder must be asc or desc.")),
        };
        Ok(Order { by, descending })
    }

    /// Whether the store has secrets in this order.
    pub(super) fn is_stored(self) -> bool {
        self.by == By::Name && !self.descending
    }

    /// Where a secret stands.
    pub(super) fn place(self, secret: &Secret) -> Place {
        let moment = match self.by {
            By::Name => 0,
            By::Created => secret.created_at,
            By::Changed => secret.changed_at,
        };
        Place { moment, name: secret.name.clone(), descending: self.descending }
    }

    /// The place that was [encoded](Place::encode).
    pub(super) fn decode(self, bytes: &[u8]) -> Option<Place> {
        let (moment, name) = bytes.split_first_chunk()?;
        let name = String::from_utf8(name.to_vec()).ok()?;
        Some(Place { moment: u64::from_be_bytes(*moment), name, descending: self.descending })
    }

    /// Tokens of one order lead nowhere in another.
    pub(super) fn purpose(self) -> String {
        let way = if self.descending { "down" } else { "up" };
        format!("secrets-list {:?} {way}", self.by)
    }
}

impl Place {
    /// As it stands in a token.
    pub(super) fn encode(&self) -> Vec<u8> {
        [&self.moment.to_be_bytes(), self.name.as_bytes()].concat()
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let upwards = (self.moment, &self.name).cmp(&(other.moment, &other.name));
        if self.descending { upwards.reverse() } else { upwards }
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, created_at: u64, changed_at: u64) -> Secret {
        Secret { name: name.into(), created_at, changed_at, ..Secret::default() }
    }

    #[test]
    fn secrets_are_sorted_in_six_ways() {
        let secrets = [secret("b", 1, 9), secret("a", 2, 8), secret("c", 2, 7)];
        for (by, order, expected) in [
            (None, None, "bac"),
            (Some("created-date"), Some("desc"), "cab"),
            (Some("last-changed-date"), Some("asc"), "cab"),
            (Some("last-changed-date"), Some("desc"), "bac"),
            (Some("name"), None, "abc"),
            (Some("name"), Some("desc"), "cba"),
        ] {
            let order = Order::of(by, order).unwrap();
            let mut places: Vec<Place> = secrets.iter().map(|secret| order.place(secret)).collect();
            places.sort();
            assert_eq!(
                places.iter().map(|place| place.name.as_str()).collect::<String>(),
                expected,
                "{order:?}"
            );
            assert_eq!(order.decode(&places[0].encode()).as_ref(), Some(&places[0]));
        }
        for (by, order) in [(Some("colour"), None), (Some("last-accessed-date"), None), (None, Some("up"))] {
            assert!(Order::of(by, order).is_err(), "{by:?} {order:?}");
        }
    }
}
