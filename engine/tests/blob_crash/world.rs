//! Everything that a store of blobs holds, as its readers see it.

use std::collections::BTreeMap;

use anabranch_model::blob::{
    BlobKey, BlobMeta, BlobStore, Body, BodyDigester, BodyOptions, BucketName, BucketSummary, ETag,
    GetOptions, ListOptions, Part, UploadListOptions,
};
use anabranch_model::{Result, Timestamp};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

pub fn bucket(name: &str) -> BucketName {
    BucketName::new(&format!("bucket-{name}")).expect("a good name")
}

pub fn key(key: &str) -> BlobKey {
    BlobKey::new(key).expect("a good key")
}

pub fn body(bytes: &Bytes) -> Body {
    let mut rest = bytes.clone();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        pieces.push(Ok(rest.split_to(rest.len().min(30_000))));
    }
    Box::pin(stream::iter(pieces))
}

/// Bytes that differ from those of another seed.
pub fn some_bytes(seed: u64, length: usize) -> Bytes {
    (0..length as u64).map(|at| ((at + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

/// A bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketState {
    summary: BucketSummary,
    /// With the tag of the body that was read: bodies are too long to be kept for every step.
    blobs: BTreeMap<BlobKey, (BlobMeta, ETag)>,
    /// By their keys and in their order: every store has names of its own for them.
    uploads: Vec<(BlobKey, Timestamp, Vec<Part>)>,
}

/// All buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct World {
    pub buckets: BTreeMap<BucketName, BucketState>,
}

impl World {
    /// Reads everything, every byte of it.
    pub async fn read(store: &dyn BlobStore) -> Result<World> {
        let mut world = World::default();
        for summary in store.buckets(None, 1_000).await?.entries {
            let name = summary.name.clone();
            let mut state = BucketState { summary, blobs: BTreeMap::new(), uploads: Vec::new() };
            for entry in store.list(&name, ListOptions::default()).await?.entries {
                let blob = store.get(&name, &entry.key, GetOptions::default()).await?;
                let read = read(blob.body).await?;
                let mut digester =
                    BodyDigester::new(BodyOptions { size: Some(entry.size), ..Default::default() })?;
                digester.update(&read)?;
                let tag = digester.finish()?.etag;
                state.blobs.insert(entry.key, (blob.meta, tag));
            }
            for upload in store.uploads(&name, UploadListOptions::default()).await?.entries {
                let parts = store.parts(&upload.upload, None, 1_000).await?.entries;
                state.uploads.push((upload.upload.key, upload.begun_at, parts));
            }
            world.buckets.insert(name, state);
        }
        Ok(world)
    }

    /// How many files these bodies have. Those of tests are clearly short or clearly long.
    pub fn files(&self) -> usize {
        let buckets = || self.buckets.values();
        let blobs = buckets().flat_map(|bucket| bucket.blobs.values());
        let files = |meta: &BlobMeta| meta.parts.map_or(usize::from(meta.size > 32 << 10), usize::from);
        let blobs: usize = blobs.map(|(meta, _)| files(meta)).sum();
        let parts = buckets().flat_map(|bucket| &bucket.uploads).map(|(.., parts)| parts.len());
        blobs + parts.sum::<usize>()
    }

    /// The world for a message.
    pub fn brief(&self) -> String {
        let bucket = |(name, bucket): (&BucketName, &BucketState)| {
            let sizes: Vec<_> =
                bucket.blobs.iter().map(|(key, (meta, _))| (key.clone(), meta.size)).collect();
            let parts: Vec<_> = bucket.uploads.iter().map(|(.., parts)| parts.len()).collect();
            format!("{name} with {sizes:?} and uploads of {parts:?} parts")
        };
        self.buckets.iter().map(bucket).collect::<Vec<_>>().join("; ")
    }
}

/// All bytes of a body.
pub async fn read(mut body: Body) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(bytes)
}
