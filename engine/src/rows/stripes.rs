//! Rows that were accepted and are not visible yet, by key. A stripe is held from the check of a condition until the
//! write has its place in the journal, so that the next condition on that row sees it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

const STRIPES: usize = 256;

/// One part of the keys.
pub type Stripe = HashMap<Bytes, Pending>;

/// The youngest accepted value of a row.
pub struct Pending {
    /// The frame that holds it.
    pub position: u64,
    /// What the row is then.
    pub value: Option<Bytes>,
}

/// All pending rows.
pub struct Stripes {
    stripes: Vec<Mutex<Stripe>>,
    hasher: RandomState,
}

impl Default for Stripes {
    fn default() -> Self {
        Stripes { stripes: (0..STRIPES).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }
}

impl Stripes {
    /// Which stripe a key belongs to.
    pub fn of(&self, key: &[u8]) -> usize {
        (self.hasher.hash_one(key) % STRIPES as u64) as usize
    }

    /// Holds stripes. Whoever holds several has asked in ascending order.
    pub fn hold(&self, stripe: usize) -> MutexGuard<'_, Stripe> {
        self.stripes[stripe].lock()
    }

    /// Forgets rows that a frame has made visible, unless a younger frame holds them too.
    pub fn settle(&self, position: u64, keys: &[Bytes]) {
        for key in keys {
            let mut stripe = self.hold(self.of(key));
            if stripe.get(key).is_some_and(|pending| pending.position == position) {
                stripe.remove(key);
            }
        }
    }
}
