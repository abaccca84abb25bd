//! Memory for requests: a request is let in when the bytes it will hold fit beside those of the others.

use std::sync::Arc;

use anabranch_model::{Error, Result};
use anabranch_wire::{Memory, Reservation};
use async_trait::async_trait;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::MEMORY_WAIT_MAX;

/// Bytes are counted in units of this size, because a semaphore counts in 32 bits.
const UNIT_BYTES: u64 = 1 << 10;

/// Bytes that requests share.
#[derive(Clone)]
pub(crate) struct Budget {
    units: Arc<Semaphore>,
    bytes: u64,
}

/// The right to hold some bytes, until it is dropped.
pub(crate) struct Admission {
    _units: OwnedSemaphorePermit,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        let units =
            usize::try_from(bytes / UNIT_BYTES).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        Budget { units: Arc::new(Semaphore::new(units)), bytes }
    }

    /// Waits until `bytes` are free. What is larger than three quarters of the budget waits for these, so that no request is
    /// impossible: the last quarter is for the small ones that wait for a message and hold their bytes meanwhile.
    pub(crate) async fn admit(&self, bytes: u64) -> Result<Admission> {
        let most = (self.bytes / UNIT_BYTES / 4 * 3).max(1);
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES).clamp(1, most)).unwrap_or(u32::MAX);
        let waiting = self.units.clone().acquire_many_owned(units);
        match tokio::time::timeout(MEMORY_WAIT_MAX, waiting).await {
            Ok(Ok(units)) => Ok(Admission { _units: units }),
            Ok(Err(_)) | Err(_) => Err(Error::Busy { budget_bytes: self.bytes }),
        }
    }
}

#[async_trait]
impl Memory for Budget {
    async fn reserve(&self, bytes: u64) -> Result<Reservation> {
        self.admit(bytes).await.map(|admission| Box::new(admission) as Reservation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_share_the_budget() {
        let budget = Budget::new(10 * UNIT_BYTES);
        let first = budget.admit(6 * UNIT_BYTES).await.unwrap();
        assert!(matches!(budget.admit(5 * UNIT_BYTES).await, Err(Error::Busy { budget_bytes: 10_240 })));
        let second = budget.admit(4 * UNIT_BYTES).await.unwrap();
        drop((first, second));
        let waiting = budget.admit(0).await.unwrap();
        let large = budget.admit(u64::MAX).await.unwrap();
        let others =
            [budget.admit(0).await.unwrap(), budget.admit(0).await.unwrap(), budget.admit(0).await.unwrap()];
        assert!(budget.admit(0).await.is_err());
        drop((waiting, large, others));
        assert!(budget.admit(0).await.is_ok());
    }
}
