//! Drives the cursors of `stream tail`.
//!
//! ```text
//!   readable ─▶ waiting ─▶ running: pushed (few) │ read once │ polled in rounds ─▶ printed
//!                  ▲                                              │
//!                  └──────────────────────────────────────────────┘
//! ```
//!
//! Push holds a connection for each shard, so only so many shards are pushed. The others of a larger stream are
//! polled in rounds, with a pause after a round that found nothing.

use std::collections::VecDeque;

use anabranch_model::{Batch, Error, Next, ShardId, StreamName};
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;

use super::cursor::{Cursor, Pace};
use super::plan::Plan;
use super::printer::Printer;
use crate::failure::Failure;
use crate::limits::{POLL_WAIT, PUSHED_SHARDS_MAX, READS_MAX};
use crate::output::note;
use crate::runtime::pause;
use crate::stream::Session;
use crate::stream::listing::all_shards;

/// One run of the command.
pub(super) struct Run<'a> {
    session: &'a Session<'a>,
    stream: &'a StreamName,
    plan: Plan,
    printer: Printer,
    /// Whether to go on at the end of what is there.
    follows: bool,
    /// Cursors that nobody drives at the moment.
    waiting: VecDeque<Cursor<'a>>,
    /// What a cursor brings, or nothing when a pause is over.
    running: FuturesUnordered<LocalBoxFuture<'a, Option<Arrived<'a>>>>,
    /// Running cursors that the store pushes to.
    pushed: usize,
    /// Running cursors that read.
    reading: usize,
    round: Round,
}

/// What a cursor brought.
struct Arrived<'a> {
    cursor: Cursor<'a>,
    pace: Pace,
    batch: anabranch_model::Result<Batch>,
}

/// A round of polling: each polled shard once.
#[derive(Default)]
struct Round {
    polled: usize,
    found: bool,
    pausing: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        session: &'a Session<'a>,
        stream: &'a StreamName,
        plan: Plan,
        printer: Printer,
        follows: bool,
    ) -> Self {
        Run {
            session,
            stream,
            plan,
            printer,
            follows,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
            pushed: 0,
            reading: 0,
            round: Round::default(),
        }
    }

    /// Runs until nothing is left to read. Returns whether the limit of records ended it before.
    pub(super) async fn finish(mut self) -> Result<bool, Failure> {
        self.add_readable();
        while !self.printer.is_full() {
            self.start_waiting();
            match self.running.next().await {
                None => return Ok(false),
                Some(None) => self.round = Round::default(),
                Some(Some(arrived)) => self.take(arrived).await?,
            }
        }
        Ok(true)
    }

    fn add_readable(&mut self) {
        for (shard, position) in self.plan.start_readable() {
            self.waiting.push_back(Cursor::new(self.session, self.stream, shard, position));
        }
    }

    fn start_waiting(&mut self) {
        while !self.waiting.is_empty() {
            let pace = match self.follows {
                true if self.pushed < PUSHED_SHARDS_MAX => Pace::Push,
                true if self.reading < READS_MAX && !self.round.pausing => Pace::Poll,
                false if self.reading == 0 => Pace::Once,
                _ => return,
            };
            if let Some(cursor) = self.waiting.pop_front() {
                self.start(cursor, pace);
            }
        }
    }

    fn start(&mut self, mut cursor: Cursor<'a>, pace: Pace) {
        match pace {
            Pace::Push => self.pushed += 1,
            Pace::Once | Pace::Poll => self.reading += 1,
        }
        self.running.push(Box::pin(async move {
            let batch = cursor.next(pace).await;
            Some(Arrived { cursor, pace, batch })
        }));
    }

    /// Prints what a cursor brought and decides how it goes on.
    async fn take(&mut self, Arrived { cursor, pace, batch }: Arrived<'a>) -> Result<(), Failure> {
        match pace {
            Pace::Push => self.pushed -= 1,
            Pace::Once | Pace::Poll => self.reading -= 1,
        }
        let found = !matches!(&batch, Ok(batch) if batch.records.is_empty());
        if let Some(cursor) = self.print(cursor, batch).await? {
            match pace {
                // It keeps its place: another shard would have to open a follow first.
                Pace::Push => self.start(cursor, Pace::Push),
                Pace::Poll => self.waiting.push_back(cursor),
                // One shard after the other, so that the same records are printed the same way each time.
                Pace::Once => self.waiting.push_front(cursor),
            }
        }
        if pace == Pace::Poll {
            self.count_poll(found);
        }
        Ok(())
    }

    fn count_poll(&mut self, found: bool) {
        self.round.polled += 1;
        self.round.found |= found;
        if self.round.pausing || self.round.polled < self.waiting.len() + self.reading {
            return;
        }
        let pausing = !self.round.found;
        self.round = Round { pausing, ..Round::default() };
        if pausing {
            self.running.push(Box::pin(async {
                pause(POLL_WAIT).await;
                None
            }));
        }
    }

    /// Prints a batch. Returns the cursor if there is more to come.
    async fn print(
        &mut self,
        cursor: Cursor<'a>,
        batch: anabranch_model::Result<Batch>,
    ) -> Result<Option<Cursor<'a>>, Failure> {
        let shard = cursor.shard().clone();
        let batch = match batch {
            Ok(batch) => batch,
            Err(Error::Damaged { from, resume_at, .. }) => {
                note(format_args!(
                    "records of shard {shard} from {from} on are damaged: going on at {resume_at}"
                ));
                return Ok(Some(cursor.resumed_at(resume_at)));
            }
            Err(Error::ShardNotFound(..)) => {
                note(format_args!("shard {shard} is gone: retention has removed it"));
                self.end(&shard, &[]).await?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        self.printer.print(&shard, &batch.records)?;
        match &batch.next {
            Next::Ended(children) => {
                self.end(&shard, children).await?;
                Ok(None)
            }
            Next::At(_) if !self.follows && batch.behind.is_zero() => Ok(None),
            Next::At(_) => Ok(Some(cursor)),
        }
    }

    /// A shard has ended: its children may be read, once their other parents have ended too.
    async fn end(&mut self, shard: &ShardId, children: &[ShardId]) -> Result<(), Failure> {
        if self.plan.is_bounded() {
            let children: Vec<&str> = children.iter().map(ShardId::as_str).collect();
            note(format_args!("shard {shard} has ended; its records continue in {}", children.join(" and ")));
        } else if !self.plan.knows(children) {
            self.plan.update(all_shards(self.session.store, self.stream).await?);
        }
        self.plan.end(shard);
        self.add_readable();
        Ok(())
    }
}
