//! `anabranch restore`: makes a data directory of a backup. No server is asked: none can hold what does not exist yet.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_engine::{SystemClock, restore_folder};
use anabranch_model::Clock;
use clap::Args;

use super::report::CopyReport;
use crate::command::DataArgs;
use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::progress::Progress;
use crate::quantity::Size;
use crate::runtime::{self, Signals};

/// Arguments of `anabranch restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Restores a backup to the data directory, which must be empty or not exist.
pub(crate) fn run(args: &RestoreArgs) -> Result<(), Failure> {
    args.data.engine.directory_only(
        "a backup is restored to a data directory, and AWS has none",
        "leave --engine aws (and ANABRANCH_ENGINE) out, and say with --data DIR where the data is to go",
    )?;
    logging::start(None, LogFormat::Text, "warn")?;
    let runtime = runtime::start()?;
    runtime.block_on(async {
        let mut signals = Signals::take_over()?;
        let over = Arc::new(AtomicBool::new(false));
        let (backup, data, watched) = (args.backup.clone(), args.data.data().to_owned(), over.clone());
        let mut restoring = tokio::task::spawn_blocking(move || {
            let clock = SystemClock::new();
            let mut bar = Progress::new(&clock, Some(0));
            let restored = restore_folder(&backup, &data, &mut |progress| {
                let (copied, total) = (progress.copied_bytes, progress.total_bytes);
                bar.show_of(copied, total, || format!("{} of {}", Size(copied), Size(total)));
                !watched.load(Ordering::Relaxed)
            });
            restored.map(|contents| CopyReport::new(&data, contents.into(), clock.elapsed()))
        });
        let restored = tokio::select! {
            restored = &mut restoring => restored,
            _ = signals.next() => {
                over.store(true, Ordering::Relaxed);
                // What is half restored goes first.
                let _ = restoring.await;
                return Err(Failure::Interrupted);
            }
        };
        match restored {
            Ok(restored) => args.data.output().print(&restored?),
            Err(error) => Err(Failure::new("io", format!("restoring broke off: {error}"), "report this")),
        }
    })
}
