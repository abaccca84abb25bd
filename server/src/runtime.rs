//! The runtime that commands and the server share, and the signals that end them.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Most threads for calls that block. They are made when needed and end when idle.
const BLOCKING_THREADS_MAX: usize = 32;

/// A signal this soon after the first is the first again: `timeout` and terminals signal a process and its group.
const ECHO_MAX: Duration = Duration::from_millis(500);

/// One worker a core and at least two, so that a worker that waits for a slow terminal does not hold up the rest.
pub(crate) fn start() -> Result<Runtime, Failure> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Builder::new_multi_thread()
        .worker_threads(cores.max(2))
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_name("anabranch")
        .enable_all()
        .build()
        .map_err(|error| no_system(&error))
}

/// Ctrl-C and SIGTERM.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Whether one came, so that its echo may come too.
    came: bool,
}

impl Signals {
    /// From now on the signals do not end the process by themselves.
    pub(crate) fn take_over() -> Result<Self, Failure> {
        let take_over = |kind| signal(kind).map_err(|error| no_system(&error));
        Ok(Signals {
            interrupt: take_over(SignalKind::interrupt())?,
            terminate: take_over(SignalKind::terminate())?,
            came: false,
        })
    }

    /// Waits for the next signal and returns its name. May be cancelled.
    pub(crate) async fn next(&mut self) -> &'static str {
        if self.came {
            let echoes = async { while !self.any().await.is_empty() {} };
            let _ = tokio::time::timeout(ECHO_MAX, echoes).await;
        }
        let signal = self.any().await;
        self.came = true;
        signal
    }

    async fn any(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

fn no_system(error: &io::Error) -> Failure {
    Failure::new(
        "system",
        format!("the system gives no threads or signals: {error}"),
        "see whether its limits on processes and open files are too low",
    )
}

/// Lets time pass between two attempts.
#[expect(clippy::disallowed_methods, reason = "the server that is waited for sends no event when it is back")]
pub(crate) async fn pause(duration: std::time::Duration) {
    tokio::time::sleep(duration).await;
}
