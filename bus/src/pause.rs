//! Waiting. The tests run it with time that jumps to the next event.

use std::time::Duration;

use tokio::sync::watch;

/// Lets time pass.
#[expect(clippy::disallowed_methods, reason = "a store that is down sends no event when it is back")]
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Waits until a bot is asked to stop, or nobody is left to ask it.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
