//! Making and deleting buckets.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use anabranch_model::blob::{BucketName, BucketSummary};
use anabranch_model::limits::{BUCKETS_MAX, PAGE_ENTRIES_MAX};
use anabranch_model::{Error, Page, Result};
use bytes::Bytes;

use super::layout::{self, StoredBucket};
use super::{Blobs, Bucket};
use crate::core::Core;
use crate::journal::Urgency;
use crate::rows::accept::next_number_key;
use crate::rows::{Change, Order};

/// About what the frame of a bucket takes.
const FRAME_BYTES: usize = 256;

impl Blobs {
    /// Buckets behind a name.
    pub fn page(&self, after: Option<&BucketName>, limit: usize) -> Page<BucketSummary> {
        let buckets = self.buckets.read();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = buckets.range::<BucketName, _>((from, Bound::Unbounded));
        let limit = limit.clamp(1, PAGE_ENTRIES_MAX);
        let entries = behind.by_ref().take(limit).map(|(name, bucket)| bucket.summary(name)).collect();
        Page { entries, more: behind.next().is_some() }
    }

    /// One bucket as a listing shows it.
    pub fn summary(&self, name: &BucketName) -> Result<BucketSummary> {
        self.bucket(name).map(|bucket| bucket.summary(name))
    }
}

impl Core {
    /// Makes a bucket.
    pub async fn create_bucket(&self, name: &BucketName) -> Result<()> {
        let key = Bytes::from(layout::bucket_key(name));
        let mut permit = Some(self.admit_rows(FRAME_BYTES).await?);
        self.submit(|| {
            let accepting = self.rows.accept(vec![key.clone(), next_number_key()]);
            if accepting.get(&key)?.is_some() {
                return Err(Error::BucketExists(name.clone()).into());
            }
            if self.blobs.buckets.read().len() >= BUCKETS_MAX {
                return Err(Error::LimitExceeded(format!("there are {BUCKETS_MAX} buckets already")).into());
            }
            let (number, counted) = accepting.next_number()?;
            let stored = StoredBucket { number, created_ms: self.now_ms() };
            let changes = vec![Change::put(key.clone(), stored.encode()), counted];
            let (buckets, name) = (self.blobs.buckets.clone(), name.clone());
            let then = Box::new(move |_| {
                buckets.write().insert(name, Arc::new(Bucket::new(stored)));
            });
            self.write_rows(accepting, changes, Urgency::Normal, &mut permit, Some(then))
        })
        .await
        .map(|_| ())
    }

    /// Deletes a bucket without blobs. Its open uploads are dead with it; upkeep removes their parts.
    pub async fn delete_bucket(&self, name: &BucketName) -> Result<()> {
        let (number, alone) = self.blobs.enter_alone(name).await?;
        if self.has_blobs(number)? {
            return Err(Error::BucketNotEmpty(name.clone()));
        }
        let key = Bytes::from(layout::bucket_key(name));
        let mut permit = Some(self.budget.write(FRAME_BYTES).await);
        self.submit(|| {
            let accepting = self.rows.accept(vec![key.clone()]);
            let dead = Change::put(layout::dead_key(number, None), Vec::new());
            let changes = vec![Change::remove(key.clone()), dead];
            let (buckets, name, alone) = (self.blobs.buckets.clone(), name.clone(), alone.clone());
            let then = Box::new(move |_| {
                let mut buckets = buckets.write();
                if buckets.get(&name).is_some_and(|bucket| bucket.number == number) {
                    buckets.remove(&name);
                }
                drop(alone);
            });
            self.write_rows(accepting, changes, Urgency::Upkeep, &mut permit, Some(then))
        })
        .await
        .map(|_| ())
    }

    fn has_blobs(&self, bucket: u64) -> Result<bool> {
        let (from, mut any) = (layout::blobs(bucket), false);
        let to = layout::behind(from.clone());
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        self.rows.snapshot()?.range(bounds, Order::Forward, |_, _| {
            any = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(any)
    }
}
