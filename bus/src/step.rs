//! What happens to an event between its source and its sink.

use async_trait::async_trait;

use crate::event::Event;

/// Why a step cannot let an event pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It may succeed another time.
    Failed(String),
    /// It never will.
    Never(String),
}

/// Makes other events of an event, one at a time and knowing nothing of the others.
///
/// A call that panics has failed. What a step does must bear being done again: an event comes again after a crash, and
/// whenever something behind the step fails.
#[async_trait]
pub trait Step: Send + Sync + 'static {
    /// What it is called in logs and metrics.
    fn name(&self) -> &str;

    /// The events that take the place of this one, in order; none if it ends here, and is done with.
    async fn apply(&self, event: Event) -> Result<Vec<Event>, Refusal>;
}
