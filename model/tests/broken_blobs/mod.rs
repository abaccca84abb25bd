//! A store of blobs with one fault. What it wraps is right, so whatever a law notices is the fault.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_model::blob::{
    BlobKey, BlobMeta, BlobStore, Body, BodyOptions, BucketName, Checksums, ETag, GetOptions, ListOptions,
    ListPage, Properties, PutOptions, Range, WriteCondition,
};
use anabranch_model::laws::blob::BlobFixture;
use anabranch_model::laws::reference::{BlobState, ReferenceBlobs};
use anabranch_model::{Error, Result, Timestamp, limits};
use bytes::Bytes;
use futures_util::{StreamExt, future, stream};

pub use fault::Fault;

mod fault;
mod port;

#[derive(Clone)]
pub struct BrokenBlobs {
    inner: ReferenceBlobs,
    fault: Fault,
    /// The state before the last change.
    before: Arc<Mutex<BlobState>>,
    /// Keys of puts whose body has not ended, for [`Fault::ShowsHalfPuts`] and [`Fault::KeepsHalfPutsInACrash`].
    under_way: Arc<Mutex<Vec<(BucketName, BlobKey)>>>,
    /// The last time that [`Fault::TimesAreOfTheFirstPut`] saw.
    first: Arc<Mutex<Option<Timestamp>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn body_of(bytes: impl Into<Bytes>) -> Body {
    Box::pin(stream::iter([Ok(bytes.into())]))
}

/// The bytes of a body, with what went wrong at its end.
async fn drain(mut body: Body) -> (Bytes, Result<()>) {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(error) => return (bytes.into(), Err(error)),
        }
    }
    (bytes.into(), Ok(()))
}

impl BrokenBlobs {
    pub fn fixture(fault: Fault) -> BlobFixture {
        let inner = ReferenceBlobs::new();
        let store = BrokenBlobs {
            inner: inner.clone(),
            fault,
            before: Arc::default(),
            under_way: Arc::default(),
            first: Arc::default(),
        };
        let survivor = store.clone();
        BlobFixture::new(Arc::new(store)).with_advance(move |by| inner.advance(by)).with_crash(move || {
            let survivor = survivor.clone();
            async move {
                if survivor.has(Fault::LosesLastChange) {
                    *survivor.inner.state() = lock(&survivor.before).clone();
                }
                if survivor.has(Fault::KeepsHalfPutsInACrash) {
                    let half = std::mem::take(&mut *lock(&survivor.under_way));
                    for (bucket, key) in half {
                        let put = survivor.inner.put(&bucket, &key, body_of("half"), PutOptions::default());
                        put.await.expect("the bucket is there");
                    }
                }
                Arc::new(survivor) as Arc<dyn BlobStore>
            }
        })
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn before_change(&self) {
        if self.has(Fault::LosesLastChange) {
            *lock(&self.before) = self.inner.state().clone();
        }
    }

    /// The key that this store takes a key for.
    fn key(&self, key: &BlobKey) -> BlobKey {
        let text = match self.fault {
            Fault::NormalisesKeys => key.as_str().trim_start_matches('/').replace("../", ""),
            Fault::IgnoresCase => key.as_str().to_lowercase(),
            Fault::CutsKeys => key.as_str().chars().take(limits::BLOB_KEY_BYTES_MAX - 1).collect(),
            Fault::SlashIsAFolder => key.as_str().trim_end_matches('/').to_string(),
            _ => return key.clone(),
        };
        BlobKey::new(&text).unwrap_or_else(|_| key.clone())
    }

    fn spoil_meta(&self, mut meta: BlobMeta) -> BlobMeta {
        match self.fault {
            Fault::ForgetsProperties => meta.properties = Properties::default(),
            Fault::ForgetsChecksums => meta.checksums = Checksums::default(),
            Fault::TagsCountPuts => meta.etag = ETag::of_md5([meta.size as u8; 16]),
            Fault::TimesAreOfTheFirstPut => {
                meta.modified_at = *lock(&self.first).get_or_insert(meta.modified_at);
            }
            _ => {}
        }
        meta
    }

    fn spoil_condition(&self, condition: WriteCondition) -> WriteCondition {
        if self.has(Fault::IgnoresWriteConditions) { WriteCondition::None } else { condition }
    }

    /// A body as this store takes it.
    async fn spoil_body(&self, body: Body, options: &mut BodyOptions) -> Body {
        match self.fault {
            Fault::TakesDamagedBodies => {
                let computed = options.computed.clone();
                *options = BodyOptions { computed, ..BodyOptions::default() };
                body
            }
            Fault::TakesBrokenBodies => body_of(drain(body).await.0),
            Fault::CutsBodies => {
                let (bytes, ended) = drain(body).await;
                let cut = bytes.slice(..bytes.len().min(65_535));
                Box::pin(body_of(cut).chain(stream::iter(ended.err().map(Err))))
            }
            Fault::TakesLargeBodies => {
                options.size = None;
                body
            }
            Fault::TakesFirstPieceOnly => {
                let pieces: Vec<_> = body.take(1).collect().await;
                Box::pin(stream::iter(pieces))
            }
            _ => body,
        }
    }
}

/// Faults of listings and readers.
impl BrokenBlobs {
    fn spoil_listing(&self, mut options: ListOptions) -> ListOptions {
        match self.fault {
            Fault::IgnoresDelimiters => options.delimiter = None,
            Fault::IgnoresLimits => options.limit = usize::MAX,
            _ => {}
        }
        options
    }

    async fn find_anywhere(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta> {
        for other in self.inner.buckets(None, 1_000).await?.entries {
            if let Ok(meta) = self.inner.head(&other.name, key).await {
                return Ok(meta);
            }
        }
        Err(Error::BlobNotFound(bucket.clone(), key.clone()))
    }

    fn spoil_page(&self, page: &mut ListPage, asked: &ListOptions) {
        match self.fault {
            Fault::ListsByUtf16 => {
                page.entries.sort_by_key(|entry| entry.key.as_str().encode_utf16().collect::<Vec<_>>());
            }
            Fault::PagesSkip if asked.after.is_some() && !page.entries.is_empty() => {
                page.entries.remove(0);
            }
            Fault::ListsWrongSizes => page.entries.iter_mut().for_each(|entry| entry.size += 1),
            Fault::FirstPageIsLast => page.next = None,
            _ => {}
        }
    }

    /// A body whose bytes behind the first piece are those of the blob that is there when they are read.
    fn late_body(&self, bucket: &BucketName, key: &BlobKey, range: std::ops::Range<u64>, body: Body) -> Body {
        let (inner, bucket, key) = (self.inner.clone(), bucket.clone(), key.clone());
        let start = range.start;
        let pieces = body.scan(start, |at, piece| {
            let piece = piece.map(|piece| (*at, piece));
            *at += piece.as_ref().map_or(0, |(_, piece)| piece.len() as u64);
            future::ready(Some(piece))
        });
        Box::pin(pieces.then(move |piece| {
            let (inner, bucket, key) = (inner.clone(), bucket.clone(), key.clone());
            async move {
                let (at, piece) = piece?;
                let range = Some(Range::FromTo(at, at + piece.len() as u64 - 1));
                let now = inner.get(&bucket, &key, GetOptions { range, ..GetOptions::default() }).await?;
                Ok(drain(now.body).await.0)
            }
        }))
    }
}
