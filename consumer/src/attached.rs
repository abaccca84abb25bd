//! Tasks that end with whoever started them.

use tokio::task::JoinHandle;

/// A task that is aborted when this is dropped.
pub(crate) struct Attached(JoinHandle<()>);

impl Attached {
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Attached(tokio::spawn(task))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.abort();
    }
}
