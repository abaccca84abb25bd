//! Waiting. Tests run it with time that jumps to the next event.

use std::time::Duration;

/// Lets time pass.
#[expect(
    clippy::disallowed_methods,
    reason = "pacing and pauses are about time, and a stream sends no event"
)]
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}
