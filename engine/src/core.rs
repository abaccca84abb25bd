//! What every part of the engine shares. `Core` owns no thread: `engine` decides who calls what.

use std::sync::Arc;

use anabranch_model::{Clock, Disk, Error, Result};
use parking_lot::Mutex;

use crate::blob::Blobs;
use crate::budget::Budget;
use crate::journal::{Refusal, Segments, Sequencer, Urgency, sequencer::Turn};
use crate::queue::Queues;
use crate::rows::Rows;
use crate::state::State;
use crate::stream::catalogue::{Catalogue, Effect};
use crate::table::Tables;

/// The shared parts.
pub struct Core {
    /// The directory.
    pub disk: Arc<dyn Disk>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The files of the journal.
    pub segments: Arc<Segments>,
    /// The order of the journal.
    pub sequencer: Arc<Sequencer<Effect>>,
    /// The materialised state.
    pub state: Arc<State>,
    /// What queues, tables and blobs keep.
    pub rows: Rows,
    /// Streams and shards.
    pub catalogue: Catalogue,
    /// Tables.
    pub tables: Tables,
    /// Queues.
    pub queues: Queues,
    /// Buckets, and the files of blobs.
    pub blobs: Blobs,
    /// The byte budget.
    pub budget: Arc<Budget>,
    /// How far the visible side goes. Held while frames are published, so that a checkpoint sees whole frames.
    pub published: Mutex<Published>,
    /// Whether the limits of Kinesis apply.
    pub shard_limits: bool,
    /// Which opening of the directory this is.
    pub epoch: u32,
    /// Why nothing can be written, if damaged state was found at the opening.
    pub read_only: Option<String>,
    /// Why queues, tables, blobs and documents cannot even be read.
    pub rows_lost: Option<String>,
}

/// How far the visible side goes.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Everything before this position is visible.
    pub position: u64,
    /// The last frame before it that changed state.
    pub last_state: u64,
    /// The last frame of this opening that changed the catalogue, or 0.
    pub last_catalogue: u64,
    /// Entries that were published and not collected by a checkpoint.
    pub uncollected: usize,
}

impl Core {
    /// Runs `accept` in a turn of the journal once there is room, and waits until its frames are durable and visible.
    ///
    /// `attempt` is called with no lock held; it takes the locks it needs, asks for a turn, and gives up what it holds
    /// when the turn is refused. It may be called several times.
    pub async fn submit<T>(&self, mut attempt: impl FnMut() -> Attempt<T>) -> Result<T> {
        let mut prepared = None;
        loop {
            match attempt() {
                Ok((value, done)) => {
                    let outcome =
                        done.await.unwrap_or_else(|_| Err(Error::Stopped("it is shutting down".into())));
                    return outcome.map(|()| value);
                }
                Err(Halt::Refused(Refusal::NotReady)) => match prepared.take() {
                    Some(prepared) => prepared.await,
                    // Listening begins before the last attempt, so that nothing is missed in between.
                    None => {
                        let mut listening = Box::pin(self.sequencer.prepared.notified());
                        listening.as_mut().enable();
                        prepared = Some(listening);
                    }
                },
                Err(Halt::Refused(Refusal::Full)) => return Err(Error::DiskFull),
                Err(Halt::Refused(Refusal::Stopped(reason))) => return Err(Error::Stopped(reason)),
                Err(Halt::Failed(error)) => return Err(error),
            }
        }
    }

    /// Refuses where rows are lost: none that is found, and none that is missing, could be trusted.
    pub fn check_rows(&self) -> Result<()> {
        self.rows_lost.as_ref().map_or(Ok(()), |reason| Err(Error::Corrupt(reason.clone())))
    }

    /// Refuses where the directory is open for reading only, before anything is written beside the journal.
    pub fn check_writable(&self) -> Result<()> {
        self.read_only.as_ref().map_or(Ok(()), |reason| Err(Error::Stopped(reason.clone())))
    }

    /// Asks for a turn; the read-only engine gives none.
    pub fn turn(
        &self,
        sizes: impl Iterator<Item = u64>,
        urgency: Urgency,
    ) -> std::result::Result<Turn<'_, Effect>, Halt> {
        self.check_writable()?;
        self.sequencer.turn(sizes, urgency).map_err(Halt::Refused)
    }

    /// The time of day in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.clock.now().as_millis()
    }
}

/// The outcome of one attempt to get frames into the journal: a value, and who tells when they are durable.
pub type Attempt<T> = std::result::Result<(T, crate::journal::sequencer::Done), Halt>;

/// Why an attempt came to nothing.
pub enum Halt {
    /// The journal gave no turn.
    Refused(Refusal),
    /// The operation itself is not possible.
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Failed(error)
    }
}
