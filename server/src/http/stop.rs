//! The signal to stop, as everyone who must hear it holds it.

use tokio::sync::watch;

/// Gives the signal. Dropping it gives the signal too, so that nobody waits for a stopper that is gone.
pub(crate) struct Stopper(watch::Sender<bool>);

/// Hears the signal.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stopper {
    pub(crate) fn new() -> (Stopper, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Stop(receiver))
    }

    /// Asks everyone to stop.
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns once the signal was given, at once if that was before.
    pub(crate) async fn requested(&mut self) {
        // The error says that the stopper is gone, which is a signal as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    /// The signal for those who do not know this type.
    pub(crate) fn watched(&self) -> watch::Receiver<bool> {
        self.0.clone()
    }
}
