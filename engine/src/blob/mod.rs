//! Blobs: a catalogue in rows, and a file for every body that is too long for a row.
//!
//! A put's way through it: `write` brings the body to the disk, under a name that no key has a part in, and makes it
//! durable; `put` decides the condition and gives the row its place in the journal; when that frame is durable the blob is
//! there, and the files of the one that it replaced are doomed. `read` hands bodies out, `upkeep` removes files.
//!
//! What must hold: a row refers to a file only when the file is durable, so an acknowledged blob is whole after any
//! crash. A file has one owner, and the row that says so ([`layout::file_key`]) comes and goes with it in one frame. A file
//! without an owner is an orphan, wherever it came from, so nothing has to be renamed and nothing undone.
//!
//! Buckets and uploads have gates. Whoever changes something in them goes in as one of many and is out when the change
//! is visible; whoever ends them goes in alone and so sees all there is.

pub mod layout;

mod block;
pub mod files;

mod bucket;
mod listing;
mod put;
mod read;
mod upkeep;
mod upload;
mod write;

mod port;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use anabranch_model::blob::{BlobKey, BucketName, BucketSummary};
use anabranch_model::{Disk, Error, Result, Timestamp};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard};

use crate::rows::{Order, Rows};
use files::Files;
use layout::StoredBucket;
use upkeep::Scan;

/// Gates of uploads. Uploads share them by chance, which costs them a wait and nothing else.
const UPLOAD_GATES: u64 = 64;

type Gate = Arc<tokio::sync::RwLock<()>>;

/// What the engine knows about blobs beside their rows.
pub struct Blobs {
    /// The files of bodies.
    pub files: Arc<Files>,
    /// Buckets that are visible.
    buckets: Arc<RwLock<BTreeMap<BucketName, Arc<Bucket>>>>,
    uploads: Vec<Gate>,
    scan: Mutex<Scan>,
}

/// A bucket.
pub struct Bucket {
    /// Owns its rows.
    pub number: u64,
    created_at: Timestamp,
    gate: Gate,
}

/// A bucket that is not deleted as long as this is held.
#[derive(Clone)]
pub struct Entered {
    /// The bucket.
    pub number: u64,
    _guard: Arc<OwnedRwLockReadGuard<()>>,
}

impl Blobs {
    /// Blobs on a disk, before their buckets are known.
    pub fn new(disk: Arc<dyn Disk>) -> Blobs {
        Blobs {
            files: Arc::new(Files::new(disk)),
            buckets: Arc::default(),
            uploads: (0..UPLOAD_GATES).map(|_| Gate::default()).collect(),
            scan: Mutex::default(),
        }
    }

    /// Learns which buckets there are.
    pub fn load(&self, rows: &Rows) -> Result<()> {
        let (from, mut buckets) = (layout::buckets(), self.buckets.write());
        let to = layout::behind(from.clone());
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        rows.snapshot()?.range(bounds, Order::Forward, |key, value| {
            let name =
                std::str::from_utf8(&key[from.len()..]).ok().and_then(|name| BucketName::new(name).ok());
            let (Some(name), Ok(stored)) = (name, StoredBucket::decode(value)) else {
                return Err(Error::Corrupt("the row of a bucket makes no sense".into()));
            };
            buckets.insert(name, Arc::new(Bucket::new(stored)));
            Ok(ControlFlow::Continue(()))
        })
    }

    /// How many buckets are visible.
    pub fn bucket_count(&self) -> usize {
        self.buckets.read().len()
    }

    /// A bucket that is visible.
    pub fn bucket(&self, name: &BucketName) -> Result<Arc<Bucket>> {
        self.buckets.read().get(name).cloned().ok_or_else(|| Error::BucketNotFound(name.clone()))
    }

    /// Goes into a bucket as one of many.
    pub async fn enter(&self, name: &BucketName) -> Result<Entered> {
        loop {
            let bucket = self.bucket(name)?;
            let guard = Arc::new(bucket.gate.clone().read_owned().await);
            if self.bucket(name)?.number == bucket.number {
                return Ok(Entered { number: bucket.number, _guard: guard });
            }
        }
    }

    /// Goes into a bucket alone.
    async fn enter_alone(&self, name: &BucketName) -> Result<(u64, Arc<OwnedRwLockWriteGuard<()>>)> {
        loop {
            let bucket = self.bucket(name)?;
            let guard = Arc::new(bucket.gate.clone().write_owned().await);
            if self.bucket(name)?.number == bucket.number {
                return Ok((bucket.number, guard));
            }
        }
    }

    fn upload_gate(&self, upload: u64) -> Gate {
        // Numbers are positions, and these are multiples of eight.
        self.uploads[(upload / 8 % UPLOAD_GATES) as usize].clone()
    }
}

impl Bucket {
    fn new(stored: StoredBucket) -> Bucket {
        let created_at = Timestamp::from_millis(stored.created_ms);
        Bucket { number: stored.number, created_at, gate: Gate::default() }
    }

    fn summary(&self, name: &BucketName) -> BucketSummary {
        BucketSummary { name: name.clone(), created_at: self.created_at }
    }
}

fn malformed(bucket: &BucketName, key: &BlobKey) -> Error {
    Error::Corrupt(format!("the row of blob `{key}` in bucket `{bucket}` makes no sense"))
}
