//! An upload that is our own: a body of unknown length goes through it, and nobody else knows of it.
//!
//! What must hold: it is completed or aborted, also when whoever waits for it goes away, at whatever moment.

use std::panic::resume_unwind;

use anabranch_model::blob::{Checksum, Upload, UploadOptions};
use anabranch_model::{BlobKey, BucketName, Error, Result};
use tracing::Instrument;

use super::Blobs;

/// How often an upload is aborted: parts that are under way may arrive behind the first time.
const ROUNDS_MAX: u32 = 5;

/// An upload that is aborted when it is dropped, unless it is finished before.
pub(super) struct Unfinished {
    blobs: Blobs,
    upload: Option<Upload>,
}

impl Unfinished {
    /// Begins an upload. A task of its own waits for the answer: when the caller is gone by then, it still names an upload
    /// to abort.
    pub(super) async fn begin(
        blobs: &Blobs,
        (bucket, key): (&BucketName, &BlobKey),
        options: UploadOptions,
        further: Vec<Checksum>,
    ) -> Result<(Unfinished, Upload)> {
        let (blobs, bucket, key) = (blobs.clone(), bucket.clone(), key.clone());
        let begun = async move {
            let upload = blobs.begin(&bucket, &key, &options, &further).await?;
            Ok((Unfinished { blobs, upload: Some(upload.clone()) }, upload))
        };
        match tokio::spawn(begun.in_current_span()).await {
            Ok(begun) => begun,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => Err(Error::Unavailable("the process ends while an upload is begun".to_string())),
        }
    }

    /// There is nothing left to abort.
    pub(super) fn finished(mut self) {
        self.upload = None;
    }

    /// Aborts now. What went wrong before is what the caller is told.
    pub(super) async fn abort(mut self) {
        if let Some(upload) = self.upload.take() {
            give_up(&self.blobs, &upload).await;
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(upload) = self.upload.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let blobs = self.blobs.clone();
                runtime.spawn(async move { give_up(&blobs, &upload).await });
            }
            Err(_) => left_behind(&upload),
        }
    }
}

/// Aborts until there is nothing left.
async fn give_up(blobs: &Blobs, upload: &Upload) {
    let deadline = blobs.soon();
    for rounds in 1..=ROUNDS_MAX {
        let aborted = blobs.abort(upload, deadline).await;
        match (aborted, blobs.part_page(upload, None, 1, deadline).await) {
            (_, Err(Error::UploadNotFound(_))) | (Err(Error::UploadNotFound(_)), _) => return,
            // Whoever may abort need not be allowed to look.
            (Ok(()), Err(_)) => return,
            (aborted, _) => tracing::debug!(key = %upload.key, ?aborted, "an upload is still there"),
        }
        if !blobs.caller.back_off(rounds, deadline).await {
            break;
        }
    }
    left_behind(upload);
}

fn left_behind(upload: &Upload) {
    let Upload { bucket, key, id } = upload;
    tracing::warn!(%bucket, %key, %id, "an upload is left behind: abort it");
}
