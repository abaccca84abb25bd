//! What DynamoDB remembers between calls: who is changing a table.

use tokio::sync::{Mutex, MutexGuard};

/// What is remembered. Nothing of it outlives the server.
#[derive(Default)]
pub(crate) struct State {
    /// Held by whoever makes, changes or deletes a table, since what is kept beside it is read before it is written.
    changing: Mutex<()>,
}

impl State {
    /// Keeps others from making, changing and deleting tables.
    pub(super) async fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }
}
