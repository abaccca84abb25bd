//! Pauses between attempts: they grow, and chance keeps callers from coming back all at once.

use std::time::Duration;

use anabranch_model::Dice;

/// The longest first pause; each further one may be twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// The pause before the attempt behind `attempts` failed ones.
pub(crate) fn after(attempts: u32, dice: &Dice) -> Duration {
    dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)
}

/// Lets time pass between two attempts.
#[expect(clippy::disallowed_methods, reason = "the service that is waited for sends no event")]
pub(crate) async fn pause(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}
