//! `blob rm`: one blob, all below a prefix, or a bucket.

use std::fmt;

use anabranch_model::blob::{BlobKey, BucketName, ListOptions};
use clap::Args;
use serde::Serialize;

use super::Session;
use super::place::{Place, written};
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::shown;
use crate::progress::Progress;
use crate::quantity::counted;

/// Arguments of `blob rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// A blob, or with --recursive what keys begin with; a bucket alone is removed itself
    #[arg(value_name = "BUCKET[/KEY]")]
    place: String,
    /// Remove all blobs whose keys begin like this; of a bucket alone all blobs, and then the bucket
    #[arg(long, short)]
    recursive: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn rm(session: &Session<'_>, args: &RmArgs) -> Result<(), Failure> {
    let place = Place::parse(&args.place)?;
    // Asked before the person is, so that nobody confirms the removal of nothing.
    session.store.bucket(&place.bucket).await?;
    let is_bucket = place.rest.is_empty();
    let report = if args.recursive {
        if !args.yes {
            let what = format!("{}/{}", place.bucket, shown(place.rest.as_bytes(), true));
            let question = format!("Remove every blob whose place begins with {what}?");
            confirm(&format!("removing all of `{what}`"), &question).await?;
        }
        let blobs = remove_all(session, &place).await?;
        if is_bucket {
            session.store.delete_bucket(&place.bucket).await?;
        }
        Removed { removed: args.place.clone(), blobs, bucket: is_bucket, one: None, of: place.bucket }
    } else if is_bucket {
        session.store.delete_bucket(&place.bucket).await?;
        Removed { removed: args.place.clone(), blobs: 0, bucket: true, one: None, of: place.bucket }
    } else {
        let key = place.key()?;
        remove_one(session, &place.bucket, &key).await?;
        let one = Some(written(&place.bucket, &key));
        Removed { removed: args.place.clone(), blobs: 1, bucket: false, one, of: place.bucket }
    };
    session.output.print(&report)
}

async fn remove_one(session: &Session<'_>, bucket: &BucketName, key: &BlobKey) -> Result<(), Failure> {
    // A store removes what is not there without a word; a person has mistyped.
    session.store.head(bucket, key).await?;
    Ok(session.store.delete(bucket, key, None).await?)
}

async fn remove_all(session: &Session<'_>, place: &Place) -> Result<u64, Failure> {
    let mut progress = Progress::new(session.clock, None);
    let mut options = ListOptions { prefix: place.rest.clone(), ..ListOptions::default() };
    let mut removed = 0;
    loop {
        let page = session.store.list(&place.bucket, options.clone()).await?;
        let keys: Vec<BlobKey> = page.entries.into_iter().map(|blob| blob.key).collect();
        if !keys.is_empty() {
            for result in session.store.delete_many(&place.bucket, &keys).await? {
                result?;
                removed += 1;
            }
        }
        progress.show(removed, || format!("{} removed", counted(removed, "blob")));
        match page.next {
            Some(next) => options.after = Some(next),
            None => return Ok(removed),
        }
    }
}

#[derive(Serialize)]
struct Removed {
    removed: String,
    blobs: u64,
    /// Whether the bucket is gone too.
    bucket: bool,
    /// The blob, if the command was about one.
    #[serde(skip)]
    one: Option<String>,
    #[serde(skip)]
    of: BucketName,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blobs = counted(self.blobs, "blob");
        match &self.one {
            Some(blob) => write!(f, "removed {blob}"),
            None if self.bucket && self.blobs == 0 => write!(f, "removed bucket {}", self.of),
            None if self.bucket => write!(f, "removed bucket {} with {blobs}", self.of),
            None => write!(f, "removed {blobs} of bucket {}", self.of),
        }
    }
}
