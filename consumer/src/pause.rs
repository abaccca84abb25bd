//! Waiting. The simulation runs it with time that jumps to the next event.

use std::time::Duration;

/// Lets time pass.
#[expect(clippy::disallowed_methods, reason = "leases are about time, and a table sends no event")]
pub(crate) async fn pause(duration: Duration) {
    if duration.is_zero() {
        tokio::task::yield_now().await;
    } else {
        tokio::time::sleep(duration).await;
    }
}

/// Lets time pass until something happens.
pub(crate) async fn pause_until_any(duration: Duration, event: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = pause(duration) => {}
        () = event => {}
    }
}
