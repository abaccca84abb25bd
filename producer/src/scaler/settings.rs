//! How a scaler is set up. The names of the fields are those of the configuration file, so that what is refused can be
//! found there.

use std::time::Duration;

use anabranch_model::limits::OPEN_SHARDS_MAX;
use anabranch_model::{Error, Result};
use serde::{Deserialize, Deserializer};

use crate::settings::Pace;
use crate::traffic::RING_SECONDS;

/// When shards are split and merged. Times are written in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScalerSettings {
    /// Bytes a second that a shard can take.
    pub max_capacity: f64,
    /// Records a second that a shard can take.
    pub max_records: f64,
    /// A shard that uses more of its capacity than this is split.
    pub split_usage_threshold: f64,
    /// Records refused or held back in the observation period from which on a shard counts as full.
    pub split_tp_error_threshold: u64,
    /// Two neighbours that together use no more of the capacity of one are merged.
    pub merge_usage_threshold: f64,
    /// Most records refused or held back during the lifetime of an entry by shards that are merged.
    pub merge_tp_error_threshold: u64,
    /// How long a shard must be too full.
    #[serde(deserialize_with = "seconds")]
    pub observation_period: Duration,
    /// How often traffic is told and looked at.
    #[serde(deserialize_with = "seconds")]
    pub interval_length: Duration,
    /// How long traffic is remembered; neighbours must be nearly empty all that time.
    #[serde(deserialize_with = "seconds")]
    pub entry_lifetime: Duration,
    /// The stream never has fewer shards.
    pub min_shards: usize,
    /// The stream never has more shards.
    pub max_shards: usize,
    /// A shard that is younger is not merged.
    #[serde(deserialize_with = "seconds")]
    pub merge_cooldown: Duration,
}

impl Default for ScalerSettings {
    fn default() -> Self {
        ScalerSettings {
            max_capacity: 1_000_000.0,
            max_records: 1_000.0,
            split_usage_threshold: 0.8,
            split_tp_error_threshold: 2,
            merge_usage_threshold: 0.3,
            merge_tp_error_threshold: 0,
            observation_period: Duration::from_secs(10),
            interval_length: Duration::from_secs(1),
            entry_lifetime: Duration::from_secs(60),
            min_shards: 1,
            max_shards: 200,
            merge_cooldown: Duration::from_secs(300),
        }
    }
}

impl ScalerSettings {
    /// What a shard can take.
    pub fn capacity(&self) -> Pace {
        Pace { records: self.max_records, bytes: self.max_capacity }
    }

    /// Refuses values that are impossible or contradict each other, and says which.
    pub fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::Invalid(why));
        for (name, value) in [("max_capacity", self.max_capacity), ("max_records", self.max_records)] {
            if !value.is_finite() || value <= 0.0 {
                return refuse(format!("`{name}` is {value}: it must be more than zero"));
            }
        }
        for (name, value) in [
            ("split_usage_threshold", self.split_usage_threshold),
            ("merge_usage_threshold", self.merge_usage_threshold),
        ] {
            if !(value > 0.0 && value <= 1.0) {
                return refuse(format!("`{name}` is {value}: it must be more than 0 and at most 1"));
            }
        }
        if self.merge_usage_threshold >= self.split_usage_threshold {
            return refuse(format!(
                "`merge_usage_threshold` ({}) must be less than `split_usage_threshold` ({}), or what is merged would \
                 be split again",
                self.merge_usage_threshold, self.split_usage_threshold
            ));
        }
        if self.split_tp_error_threshold == 0 {
            return refuse(
                "`split_tp_error_threshold` is 0: every shard would be split; it must be at least 1"
                    .to_owned(),
            );
        }
        if self.merge_tp_error_threshold >= self.split_tp_error_threshold {
            return refuse(format!(
                "`merge_tp_error_threshold` ({}) must be less than `split_tp_error_threshold` ({}), or a shard could \
                 be merged and split for one reason",
                self.merge_tp_error_threshold, self.split_tp_error_threshold
            ));
        }
        self.check_times()?;
        if self.min_shards == 0 || self.max_shards > OPEN_SHARDS_MAX || self.min_shards > self.max_shards {
            return refuse(format!(
                "`min_shards` ({}) and `max_shards` ({}) must be 1 to {OPEN_SHARDS_MAX}, the first not more than the \
                 second",
                self.min_shards, self.max_shards
            ));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<()> {
        let longest = Duration::from_secs(RING_SECONDS as u64 - 2);
        let order = [
            ("interval_length", self.interval_length),
            ("observation_period", self.observation_period),
            ("entry_lifetime", self.entry_lifetime),
        ];
        for pair in order.windows(2) {
            let [(short, shorter), (long, longer)] = [pair[0], pair[1]];
            if shorter > longer {
                return Err(Error::Invalid(format!(
                    "`{short}` ({} s) must not be longer than `{long}` ({} s)",
                    shorter.as_secs_f64(),
                    longer.as_secs_f64()
                )));
            }
        }
        let second = Duration::from_secs(1);
        if self.interval_length.is_zero() || self.observation_period < second || self.entry_lifetime > longest
        {
            return Err(Error::Invalid(format!(
                "`interval_length` must be more than 0, `observation_period` at least 1 s, and `entry_lifetime` at \
                 most {} s",
                longest.as_secs()
            )));
        }
        if self.merge_cooldown < self.observation_period {
            return Err(Error::Invalid(format!(
                "`merge_cooldown` ({} s) must not be shorter than `observation_period` ({} s), or shards would be \
                 merged before anything is known about them",
                self.merge_cooldown.as_secs_f64(),
                self.observation_period.as_secs_f64()
            )));
        }
        Ok(())
    }
}

/// Seconds, whole or not.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| serde::de::Error::custom("a time in seconds is not negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut ScalerSettings);

    #[test]
    fn contradictions_are_refused_and_named() {
        ScalerSettings::default().check().unwrap();
        let changes: [(Change, &str); 12] = [
            (|s| s.merge_usage_threshold = 0.8, "`merge_usage_threshold` (0.8) must be less"),
            (|s| s.split_usage_threshold = 1.5, "`split_usage_threshold` is 1.5"),
            (|s| s.split_usage_threshold = f64::NAN, "`split_usage_threshold` is NaN"),
            (|s| s.merge_usage_threshold = 0.0, "`merge_usage_threshold` is 0"),
            (|s| s.split_tp_error_threshold = 0, "`split_tp_error_threshold` is 0"),
            (|s| s.merge_tp_error_threshold = 2, "`merge_tp_error_threshold` (2)"),
            (|s| s.max_capacity = -1.0, "`max_capacity` is -1"),
            (|s| s.max_records = f64::INFINITY, "`max_records` is inf"),
            (|s| s.observation_period = Duration::from_secs(61), "`observation_period` (61 s)"),
            (|s| s.entry_lifetime = Duration::from_secs(600), "`entry_lifetime` at most"),
            (|s| s.min_shards = 300, "`min_shards` (300)"),
            (|s| s.merge_cooldown = Duration::from_secs(3), "`merge_cooldown` (3 s)"),
        ];
        for (change, expected) in changes {
            let mut settings = ScalerSettings::default();
            change(&mut settings);
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
