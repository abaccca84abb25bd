//! Where a group of records goes that only has to stay together: one hash key inside a chosen shard. It stays the same when
//! the shard is split or merged, so the group goes on behind its own records.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Dice, HashKey, HashRange, ShardId};

use crate::map::ShardMap;
use crate::settings::Pace;
use crate::traffic::ShardTraffic;

/// One place in the hash-key space. The shard counts one group more as long as it is held.
pub struct Place {
    hash_key: HashKey,
    traffic: Arc<ShardTraffic>,
}

impl Place {
    /// A place in the less loaded of two random shards.
    pub(crate) fn choose(map: &ShardMap, dice: &Dice, now: Duration, capacity: Pace) -> Self {
        let shards = map.shards();
        let pick = || &shards[(dice.roll() % shards.len() as u64) as usize];
        let (one, other) = (pick(), pick());
        let better = if other.load(now, capacity) < one.load(now, capacity) { other } else { one };
        Place::within(better.clone(), dice)
    }

    pub(crate) fn within(traffic: Arc<ShardTraffic>, dice: &Dice) -> Self {
        traffic.group_begins();
        Place { hash_key: random_key(traffic.range, dice), traffic }
    }

    /// The same place, for whoever needs one of his own.
    pub(crate) fn same(&self) -> Self {
        self.traffic.group_begins();
        Place { hash_key: self.hash_key, traffic: self.traffic.clone() }
    }

    /// The place.
    pub fn hash_key(&self) -> HashKey {
        self.hash_key
    }

    /// The shard that was chosen.
    pub fn shard(&self) -> &ShardId {
        &self.traffic.shard
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.traffic.group_ends();
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.hash_key, self.traffic.shard)
    }
}

fn random_key(range: HashRange, dice: &Dice) -> HashKey {
    let number = u128::from(dice.roll()) << 64 | u128::from(dice.roll());
    let distance = range.last().get() - range.first().get();
    let offset = distance.checked_add(1).map_or(number, |keys| number % keys);
    HashKey::new(range.first().get() + offset)
}
