//! What blobs leave behind is removed here, in steps that end: parts of dead uploads and buckets, files that no row owns
//! any more, and files that none ever did because a crash came first.

use std::ops::{Bound, ControlFlow};

use anabranch_model::{Error, Result};

use super::files::epoch_of;
use super::layout::{self, StoredPart};
use crate::core::{Core, Halt};
use crate::journal::Urgency;
use crate::journal::sequencer::Done;
use crate::rows::{Change, Order, bury};
use crate::state::io_error;

/// Parts that one frame removes.
const PARTS_MAX: usize = 64;
/// Steps of a kind in one turn of upkeep.
const STEPS_MAX: usize = 16;
/// Files that are removed in one turn: to remove a long one takes a while, and segments have to be made ready too.
const FILES_MAX: usize = 64;

/// How far the look for orphans has come. One look after an opening is enough: what this process makes, it knows.
#[derive(Default)]
pub struct Scan {
    /// Folders that are left; unknown before the first step.
    folders: Option<Vec<u8>>,
}

impl Core {
    /// Does a bounded part of what is to be done, or all of it. Folders are looked through one in a turn; whatever else
    /// is left calls for the next turn at once.
    pub fn keep_blobs(&self, all: bool, settle: &mut dyn FnMut(Done)) {
        loop {
            let outcome = self.sweep_dead(settle).and_then(|swept| Ok((swept, self.scan_folder()?)));
            let removed = self.blobs.files.remove_doomed(FILES_MAX);
            match outcome {
                Err(error) => return tracing::warn!(%error, "what blobs left behind stays for now"),
                Ok((true, true)) if removed => return,
                Ok((swept, _)) if !all => {
                    if !swept || !removed {
                        self.sequencer.wake_upkeep();
                    }
                    return;
                }
                Ok(_) => {}
            }
            if self.sequencer.stopped().is_some() {
                return;
            }
        }
    }

    /// Removes parts of dead uploads and buckets. Returns whether none are left.
    fn sweep_dead(&self, settle: &mut dyn FnMut(Done)) -> Result<bool> {
        for _ in 0..STEPS_MAX {
            let Some(dead) = self.first_dead()? else { return Ok(true) };
            let (bucket, upload) = layout::read_dead_key(&dead)
                .map_err(|_| Error::Corrupt("a dead row makes no sense".into()))?;
            let (mut changes, files, more) = self.parts_of_dead(bucket, upload)?;
            if !more {
                changes.push(Change::remove(dead));
                changes.extend(upload.is_none().then(|| bury(&layout::bucket_rows(bucket))));
            }
            let registry = self.blobs.files.clone();
            let then = Box::new(move |_| registry.doom(files));
            let accepting = self.rows.accept(Vec::new());
            match self.write_rows(accepting, changes, Urgency::Upkeep, &mut None, Some(then)) {
                Ok((_, done)) => settle(done),
                // The journal has no room ready: next time.
                Err(Halt::Refused(_)) => return Ok(true),
                Err(Halt::Failed(error)) => return Err(error),
            }
        }
        Ok(false)
    }

    fn first_dead(&self) -> Result<Option<Vec<u8>>> {
        let (from, mut first) = (layout::dead(), None);
        let to = layout::behind(from.clone());
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        self.rows.snapshot()?.range(bounds, Order::Forward, |key, _| {
            first = Some(key.to_vec());
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// The changes that remove some parts, their files, and whether there are more.
    fn parts_of_dead(&self, bucket: u64, upload: Option<u64>) -> Result<(Vec<Change>, Vec<u64>, bool)> {
        let (from, mut more) = (layout::parts(bucket, upload), false);
        let to = match upload {
            None => layout::behind(from.clone()),
            Some(_) => [&from[..], &u16::MAX.to_be_bytes()].concat(),
        };
        let (mut changes, mut files) = (Vec::new(), Vec::new());
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        self.rows.snapshot()?.range(bounds, Order::Forward, |key, value| {
            if changes.len() >= PARTS_MAX {
                more = true;
                return Ok(ControlFlow::Break(()));
            }
            let part = layout::read_part_key(key).and_then(|number| StoredPart::decode(number, value));
            let part = part.map_err(|_| Error::Corrupt("the row of a dead part makes no sense".into()))?;
            changes.push(Change::remove(key.to_vec()));
            for file in part.body.files() {
                changes.push(Change::remove(layout::file_key(file.id)));
                files.push(file.id);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((changes, files, more))
    }

    /// Dooms the files of the next folder that no row owns. Returns whether all folders were looked at.
    fn scan_folder(&self) -> Result<bool> {
        let mut scan = self.blobs.scan.lock();
        let folders = match &mut scan.folders {
            Some(folders) => folders,
            unknown => unknown.insert(self.blobs.files.folders().map_err(io_error)?),
        };
        let Some(folder) = folders.last().copied() else { return Ok(true) };
        let ids = self.blobs.files.in_folder(folder).map_err(io_error)?;
        let mut orphans = 0;
        // Files of this epoch may be on their way to an owner.
        for id in ids.into_iter().filter(|id| epoch_of(*id) != u64::from(self.epoch)) {
            if self.rows.get(&layout::file_key(id))?.is_none() {
                self.blobs.files.doom([id]);
                orphans += 1;
            }
        }
        if orphans > 0 {
            metrics::counter!("anabranch_blob_orphans_found_total").increment(orphans);
            tracing::info!(folder, orphans, "files of bodies that no blob owns are removed");
        }
        folders.pop();
        Ok(folders.is_empty())
    }
}
