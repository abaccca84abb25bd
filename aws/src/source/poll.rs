//! Following by polling: a read after the other, with pauses while nothing comes.
//!
//! A shard answers five reads a second for all who read it, so a follower that has caught up asks once a second at most.

use std::future::Future;
use std::time::Duration;

use anabranch_model::{Batch, Follow, Next, Result};
use futures_util::stream;

use crate::backoff::pause;

/// The first pause of a follower that has caught up; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What one read gave, and where the next one starts, in the words of whoever reads; nowhere behind the end.
pub(crate) struct Polled<C> {
    pub(crate) batch: Batch,
    pub(crate) next: Option<C>,
}

/// One follower.
struct Poll<C, R> {
    read: R,
    /// Where the next read starts; none behind the end or an error.
    next: Option<C>,
    /// The batch that was read when following began.
    first: Option<Batch>,
    pause: Duration,
}

/// Batches from the first one on, each read from where the one before ended.
pub(crate) fn poll<C, R, F>(first: Polled<C>, read: R) -> Follow
where
    C: Send + 'static,
    R: FnMut(C) -> F + Send + 'static,
    F: Future<Output = Result<Polled<C>>> + Send + 'static,
{
    let poll = Poll { read, next: first.next, first: Some(first.batch), pause: PAUSE_FIRST };
    Box::pin(stream::unfold(poll, |mut poll| async move {
        let item = poll.next().await?;
        Some((item, poll))
    }))
}

impl<C, R, F> Poll<C, R>
where
    R: FnMut(C) -> F,
    F: Future<Output = Result<Polled<C>>>,
{
    async fn next(&mut self) -> Option<Result<Batch>> {
        if let Some(first) = self.first.take()
            && is_worth_showing(&first)
        {
            return Some(Ok(first));
        }
        loop {
            let Polled { batch, next } = match (self.read)(self.next.take()?).await {
                Ok(polled) => polled,
                Err(error) => return Some(Err(error)),
            };
            self.next = next;
            if is_worth_showing(&batch) {
                self.pause = PAUSE_FIRST;
                return Some(Ok(batch));
            }
            if batch.behind.is_zero() {
                pause(self.pause).await;
                self.pause = (self.pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

fn is_worth_showing(batch: &Batch) -> bool {
    !batch.records.is_empty() || matches!(batch.next, Next::Ended(_))
}
