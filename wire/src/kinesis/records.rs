//! Records as requests bring them and as answers show them.

use std::fmt;

use anabranch_model::limits::{PARTITION_KEY_CHARS_MAX, RECORD_BYTES_MAX};
use anabranch_model::{HashKey, NewRecord, Record};
use serde::Serialize;

use super::errors::invalid;
use crate::binary::Binary;
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::{Pattern, Validation};

/// What a hash key looks like. Whether it is small enough is looked at later.
pub(super) const HASH_KEY: Pattern = Pattern {
    text: "0|([1-9]\\d{0,38})",
    matches: |text| {
        let digits = (1..=39).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits && (text == "0" || !text.starts_with('0'))
    },
};

/// A record as answers show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RecordShape {
    sequence_number: String,
    approximate_arrival_timestamp: Time,
    data: Binary,
    partition_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    encryption_type: Option<&'static str>,
}

impl RecordShape {
    /// How a record is shown.
    pub(super) fn of(record: Record, encryption: Option<&'static str>) -> Self {
        RecordShape {
            sequence_number: record.sequence.to_string(),
            approximate_arrival_timestamp: Time(record.arrival),
            data: Binary(record.data),
            partition_key: String::from_utf8_lossy(&record.partition_key).into_owned(),
            encryption_type: encryption,
        }
    }
}

/// A record that a request brings.
pub(super) struct Incoming {
    pub(super) data: Option<Binary>,
    pub(super) partition_key: Option<String>,
    pub(super) explicit_hash_key: Option<String>,
}

impl Incoming {
    /// Adds the checks of a record, whatever its stream. `at` is where it stands in the request, empty or with a dot at
    /// its end.
    pub(super) fn check(&self, validation: &mut Validation, at: impl fmt::Display) {
        // Almost always nothing is wrong, so the names of the fields are not made before they are needed.
        let size = self.size();
        let key = self.partition_key.as_deref();
        let key_is_good = key.is_some_and(|key| {
            !key.is_empty()
                && (key.len() <= PARTITION_KEY_CHARS_MAX || key.chars().count() <= PARTITION_KEY_CHARS_MAX)
        });
        if self.data.is_some() && size <= RECORD_BYTES_MAX && key_is_good && self.explicit_hash_key.is_none()
        {
            return;
        }
        let field = |name: &str| format!("{at}{name}");
        validation
            .required(&field("data"), &self.data)
            .size(&field("data"), format_args!("({size} bytes)"), size, 0..=RECORD_BYTES_MAX)
            .required(&field("partitionKey"), &self.partition_key)
            .length(&field("partitionKey"), key, 1..=PARTITION_KEY_CHARS_MAX)
            .pattern(&field("explicitHashKey"), self.explicit_hash_key.as_deref(), HASH_KEY);
    }

    fn size(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.0.len())
    }

    /// Adds the check of the size that its stream allows, which the partition key counts towards.
    pub(super) fn check_size(&self, validation: &mut Validation, at: impl fmt::Display, bytes_max: usize) {
        let size = self.size() + self.partition_key.as_ref().map_or(0, String::len);
        if size > bytes_max {
            validation.size(&format!("{at}data"), format_args!("({size} bytes)"), size, 0..=bytes_max);
        }
    }

    /// A checked record.
    pub(super) fn into_record(self) -> Result<NewRecord, Fault> {
        let explicit = match self.explicit_hash_key {
            Some(text) => Some(text.parse::<HashKey>().map_err(|_| {
                invalid(format!(
                    "Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. Specified value was \
                     {text}"
                ))
            })?),
            None => None,
        };
        Ok(NewRecord {
            partition_key: self.partition_key.unwrap_or_default().into(),
            explicit_hash_key: explicit,
            data: self.data.unwrap_or_default().0,
        })
    }
}
