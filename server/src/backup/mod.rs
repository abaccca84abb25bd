//! Backups: `anabranch backup` of a running server or of a directory that nobody holds, and `anabranch restore`.

mod make;
mod report;
mod restore;

use std::path::{Path, PathBuf};

use anabranch_engine::{Engine, backup_folder};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, channel};

use crate::api::wire::BackupLine;

pub(crate) use make::{BackupArgs, INSTEAD, NOT_OF_AWS, run as make};
pub(crate) use restore::{RestoreArgs, run as restore};

/// Backs up the data directory of an engine that runs in this process.
#[derive(Clone)]
pub(crate) struct Backups {
    engine: Engine,
    data: PathBuf,
}

impl Backups {
    pub(crate) fn new(engine: &Engine, data: &Path) -> Self {
        Backups { engine: engine.clone(), data: data.to_owned() }
    }

    /// Starts a backup on a thread of its own. It ends early when nobody takes its lines any more.
    pub(crate) fn start(&self, target: &Path) -> Receiver<BackupLine> {
        let (sender, receiver) = channel(1);
        let (backups, target) = (self.clone(), target.to_owned());
        tokio::task::spawn_blocking(move || {
            // A line that finds the last one not taken is left out: another follows.
            let mut watch = |progress| {
                !matches!(sender.try_send(BackupLine::from(progress)), Err(TrySendError::Closed(_)))
            };
            let outcome = backup_folder(&backups.engine, &backups.data, &target, &mut watch);
            let _ = sender.blocking_send(BackupLine::last(outcome));
        });
        receiver
    }
}
