//! `blob get`: a blob becomes a file, or goes to standard output.
//!
//! When the server is gone for a while, reading goes on where it was, as long as the blob is the same.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anabranch_model::Error;
use anabranch_model::blob::{BlobKey, BlobMeta, BucketName, ETagMatch, GetOptions, Range, ReadConditions};
use bytes::Bytes;
use clap::Args;
use futures_util::StreamExt;
use serde::Serialize;

use super::Session;
use super::place::{Place, written};
use crate::failure::Failure;
use crate::output::write_out;
use crate::patience::Patience;
use crate::progress::Progress;
use crate::quantity::Size;

/// Arguments of `blob get`.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// The blob
    #[arg(value_name = "BUCKET/KEY")]
    place: String,
    /// The file; `-` for standard output
    file: PathBuf,
}

pub(super) async fn get(session: &Session<'_>, args: &GetArgs) -> Result<(), Failure> {
    let place = Place::parse(&args.place)?;
    let key = place.key()?;
    let meta = session.store.head(&place.bucket, &key).await?;
    let mut target = Target::open(&args.file)?;
    let mut progress = Progress::new(session.clock, Some(meta.size));
    let copied = copy(session, &place.bucket, &key, &meta, &mut target, &mut progress).await;
    progress.finish();
    if let Err(failure) = copied {
        target.discard();
        return Err(failure);
    }
    let to_file = target.finish()?;
    if !to_file {
        // Standard output holds the blob and nothing else.
        return Ok(());
    }
    session.output.print(&GetReport {
        bucket: place.bucket.to_string(),
        key: key.as_str().to_owned(),
        shown: written(&place.bucket, &key),
        size: meta.size,
        file: args.file.display().to_string(),
    })
}

/// Copies all bytes of the blob that `meta` describes.
async fn copy(
    session: &Session<'_>,
    bucket: &BucketName,
    key: &BlobKey,
    meta: &BlobMeta,
    target: &mut Target,
    progress: &mut Progress<'_>,
) -> Result<(), Failure> {
    let mut copied = 0;
    let mut patience = Patience::new(session.clock);
    while copied < meta.size {
        let mut body = match session.store.get(bucket, key, rest_of(meta, copied)).await {
            Ok(blob) => blob.body,
            Err(Error::PreconditionFailed(_)) => return Err(changed(bucket, key)),
            Err(error) => {
                patience.wait(error).await?;
                continue;
            }
        };
        while let Some(piece) = body.next().await {
            let bytes: Bytes = match piece {
                Ok(bytes) => bytes,
                Err(error) => {
                    patience.wait(error).await?;
                    break;
                }
            };
            copied += bytes.len() as u64;
            tokio::task::block_in_place(|| target.write(&bytes))?;
            patience.restore();
            progress.show(copied, || format!("{} read", Size(copied)));
        }
    }
    Ok(())
}

/// What is left of a blob, as long as it is the same one.
fn rest_of(meta: &BlobMeta, copied: u64) -> GetOptions {
    let same = ReadConditions {
        if_match: Some(ETagMatch::OneOf(vec![meta.etag.clone()])),
        ..ReadConditions::default()
    };
    GetOptions { range: (copied > 0).then_some(Range::From(copied)), conditions: same }
}

fn changed(bucket: &BucketName, key: &BlobKey) -> Failure {
    Failure::new(
        "blob_changed",
        format!("{} was replaced while it was being read", written(bucket, key)),
        "run the command again to read the new one",
    )
}

/// Where the bytes go.
enum Target {
    Stdout,
    /// A file beside the one that is wanted, which takes its place in the end.
    File {
        file: File,
        beside: PathBuf,
        path: PathBuf,
    },
}

impl Target {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Target::Stdout);
        }
        let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(Failure::usage(
                format!("{} is a folder", path.display()),
                "name the file: a key may have characters that no file name has",
            ));
        };
        let mut beside = name.to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = path.with_file_name(beside);
        let file = File::create_new(&beside).map_err(|error| Failure::io("write", &beside, &error))?;
        Ok(Target::File { file, beside, path: path.to_owned() })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Target::Stdout => write_out(bytes),
            Target::File { file, path, .. } => {
                file.write_all(bytes).map_err(|error| Failure::io("write", path, &error))
            }
        }
    }

    /// Puts the file into its place. Returns whether there is one.
    fn finish(self) -> Result<bool, Failure> {
        match self {
            Target::Stdout => Ok(false),
            Target::File { file, beside, path } => {
                let placed: io::Result<()> = file.sync_all().and_then(|()| std::fs::rename(&beside, &path));
                placed.map(|()| true).map_err(|error| {
                    let _ = std::fs::remove_file(&beside);
                    Failure::io("write", &path, &error)
                })
            }
        }
    }

    /// Leaves what was there before.
    fn discard(self) {
        if let Target::File { beside, .. } = self {
            let _ = std::fs::remove_file(beside);
        }
    }
}

#[derive(Serialize)]
struct GetReport {
    bucket: String,
    key: String,
    #[serde(skip)]
    shown: String,
    size: u64,
    file: String,
}

impl fmt::Display for GetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrote {} ({}) to {}", self.shown, Size(self.size), self.file)
    }
}
