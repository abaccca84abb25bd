//! Moves: dead letters go back to where they came from, or to a given queue.
//!
//! A move is a row of the queue that it takes messages from. Upkeep carries it on, a few messages with each frame, which
//! also says how far the move is; so it goes on after a crash where it was.

use std::sync::Arc;

use anabranch_model::limits::{MESSAGE_BATCH_MAX, MOVES_REMEMBERED_MAX};
use anabranch_model::queue::{MoveId, MoveStatus, MoveSummary, QueueName, check_rate};
use anabranch_model::{Error, Result};

use super::catalogue::QUEUE_BYTES;
use super::frame::{Frame, done, write};
use super::held::Queue;
use super::keys;
use super::options::{MoveRow, millis};
use super::place::{Message, timestamp};
use super::stored::Body;
use crate::core::{Attempt, Core, Halt};
use crate::journal::Urgency;
use crate::journal::sequencer::Done;
use crate::rows::accept::next_number_key;

/// Frames of one move that one tick of the upkeep writes at most; the next comes soon.
const FRAMES_MAX: usize = 100;

impl Core {
    /// Starts a move. See [`QueueStore::start_move`](anabranch_model::QueueStore::start_move).
    pub async fn start_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        rate: Option<u32>,
    ) -> Result<MoveId> {
        let mut permit = Some(self.admit_rows(QUEUE_BYTES).await?);
        let id = self
            .submit(|| {
                let _changing = self.queues.changing.lock();
                let queue = self.queues.get(from)?;
                self.check_move(from, to, rate)?;
                let mut frame = Frame::new(self, &queue)?;
                if frame.held.moves.iter().any(|row| row.status == MoveStatus::Running) {
                    return Err(Error::MoveRunning(from.clone()).into());
                }
                let accepting = self.rows.accept(vec![next_number_key()]);
                let (number, counted) = accepting.next_number()?;
                let now = frame.now;
                let visible = frame.held.counts.at(now).visible;
                let row = MoveRow {
                    id: number,
                    to: to.cloned(),
                    messages_per_second: rate,
                    status: MoveStatus::Running,
                    moved: 0,
                    to_move: visible,
                    started_at: now,
                };
                frame.put(keys::moving(queue.born, number), row.encode());
                frame.moving = Some(row);
                frame.forget_moves();
                let frames = vec![frame];
                let written = write(self, accepting, frames, vec![counted], Urgency::Normal, &mut permit)?;
                Ok(((queue.born, number), written.1))
            })
            .await?;
        self.sequencer.wake_upkeep();
        move_id(id.0, id.1)
    }

    fn check_move(&self, from: &QueueName, to: Option<&QueueName>, rate: Option<u32>) -> Result<()> {
        check_rate(rate)?;
        to.map_or(Ok(()), |to| self.queues.get(to).map(drop))?;
        let kind = to.is_none_or(|to| to != from && to.is_fifo() == from.is_fifo());
        let is_source = |queue: &Arc<Queue>| {
            queue.lock().options.redrive.as_ref().is_some_and(|policy| policy.dead_letters == *from)
        };
        if kind && self.queues.all().iter().any(is_source) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "messages of `{from}` cannot be moved: it must be a dead-letter queue, and the target another queue of \
             its kind"
        )))
    }

    /// The moves out of a queue, the youngest first.
    pub fn queue_moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>> {
        let queue = self.queues.get(from)?;
        let held = queue.lock();
        held.moves.iter().rev().take(MOVES_REMEMBERED_MAX).map(|row| summary(&queue, row)).collect()
    }

    /// Stops a move.
    pub async fn cancel_move(&self, id: &MoveId) -> Result<u64> {
        let not_running = || Error::MoveNotRunning(id.clone());
        let (born, number) = parse(id).ok_or_else(not_running)?;
        let queue = self.queues.all().into_iter().find(|queue| queue.born == born).ok_or_else(not_running)?;
        let mut permit = Some(self.budget.write(QUEUE_BYTES).await);
        self.submit(|| {
            let mut frame = Frame::new(self, &queue).map_err(|_| not_running())?;
            let running = frame.running().filter(|row| row.id == number).ok_or_else(not_running)?;
            let moved = running.moved;
            frame.note(MoveRow { status: MoveStatus::Cancelled, ..running });
            let none = self.rows.accept(Vec::new());
            let (_, done) = write(self, none, vec![frame], Vec::new(), Urgency::Upkeep, &mut permit)?;
            Ok((moved, done))
        })
        .await
    }

    /// Carries every move on. `settle` waits until frames are durable.
    pub fn move_dead_letters(&self, settle: &mut dyn FnMut(Done)) {
        for queue in self.queues.all() {
            for step in 0.. {
                if step == FRAMES_MAX {
                    self.sequencer.wake_upkeep();
                    break;
                }
                match self.move_some_messages(&queue) {
                    Ok((true, done)) => settle(done),
                    Ok((false, _)) | Err(Halt::Refused(_)) | Err(Halt::Failed(Error::QueueNotFound(_))) => {
                        break;
                    }
                    Err(Halt::Failed(error)) => {
                        tracing::error!(%error, queue = %queue.name, "a move is put off");
                        break;
                    }
                }
                // A checkpoint makes room first.
                if self.rows.is_checkpoint_due() || self.sequencer.stopped().is_some() {
                    return self.sequencer.wake_upkeep();
                }
            }
        }
    }

    /// Moves a few messages. Returns false if nothing is to be done now.
    fn move_some_messages(&self, from: &Arc<Queue>) -> Attempt<bool> {
        let target = {
            let mut frame = Frame::new(self, from)?;
            let Some(row) = frame.running() else { return Ok((false, done())) };
            if row.moved < row.to_move && row.due(frame.now) <= row.moved {
                return Ok((false, done()));
            }
            let first = if row.moved < row.to_move { frame.first_visible()? } else { None };
            let end = match first {
                None => Err(MoveStatus::Completed),
                Some(first) => self.move_target(&frame, &row, &first),
            };
            match end {
                Ok(target) => target,
                Err(status) => {
                    frame.note(MoveRow { status, ..row });
                    let none = self.rows.accept(Vec::new());
                    let written = write(self, none, vec![frame], Vec::new(), Urgency::Upkeep, &mut None)?;
                    return Ok((true, written.1));
                }
            }
        };
        let (mut frame, mut to) = Frame::pair(self, from, &target)?;
        let Some(mut row) = frame.running() else { return Ok((false, done())) };
        let left = row.due(frame.now).min(row.to_move).saturating_sub(row.moved);
        let most = left.min(MESSAGE_BATCH_MAX as u64);
        if most == 0 {
            return Ok((false, done()));
        }
        row.moved += frame.move_to(&mut to, &row, most as usize)?;
        frame.note(row);
        let none = self.rows.accept(Vec::new());
        let written = write(self, none, vec![frame, to], Vec::new(), Urgency::Normal, &mut None)?;
        Ok((true, written.1))
    }

    /// Where a message goes, or why the move ends.
    fn move_target(
        &self,
        frame: &Frame<'_>,
        row: &MoveRow,
        first: &Message,
    ) -> std::result::Result<Arc<Queue>, MoveStatus> {
        let failed = |error: Error| MoveStatus::Failed(error.to_string());
        let body = frame.body(&first.place).map_err(failed)?;
        let target = row.to.clone().or(body.source).filter(|target| *target != frame.queue.name);
        let Some(target) = target else {
            let id = frame.id_of(&first.place).map_err(failed)?;
            return Err(MoveStatus::Failed(format!(
                "message `{id}` was sent to `{}` itself",
                frame.queue.name
            )));
        };
        self.queues.get(&target).map_err(failed)
    }
}

impl Frame<'_> {
    fn running(&self) -> Option<MoveRow> {
        self.held.moves.iter().find(|row| row.status == MoveStatus::Running).cloned()
    }

    fn note(&mut self, row: MoveRow) {
        self.put(keys::moving(self.queue.born, row.id), row.encode());
        self.moving = Some(row);
    }

    /// Makes room for another move among those that are remembered.
    fn forget_moves(&mut self) {
        let over = (self.held.moves.len() + 1).saturating_sub(MOVES_REMEMBERED_MAX);
        let old: Vec<u64> = self.held.moves.iter().take(over).map(|row| row.id).collect();
        old.into_iter().for_each(|id| self.remove(keys::moving(self.queue.born, id)));
    }

    fn visible(&mut self, limit: usize) -> Result<Vec<Message>> {
        let end = keys::waiting_prefix(self.held.number, self.now + 1).into();
        let rows = self.next_waiting(&end, limit)?;
        rows.into_iter().map(|(key, row)| self.waiting(&key, &row)).collect()
    }

    fn first_visible(&mut self) -> Result<Option<Message>> {
        Ok(self.visible(1)?.pop())
    }

    /// Moves messages that go to one queue, and returns how many. Of each group only the first goes with one frame.
    fn move_to(&mut self, to: &mut Frame<'_>, row: &MoveRow, most: usize) -> Result<u64> {
        let mut moved = 0;
        for message in self.visible(most)? {
            if to.is_large() {
                break;
            }
            if self.is_old(&message.place) {
                self.take_out(&message)?;
                continue;
            }
            let body = match self.body(&message.place) {
                // Those before it go. Once it is the first, the move ends and says why.
                Err(Error::Corrupt(_)) if moved > 0 => break,
                body => body?,
            };
            if row.to.as_ref().or(body.source.as_ref()) != Some(&to.queue.name) {
                break;
            }
            let due = to.now.saturating_add(millis(to.held.options.delay));
            let fresh = Body { due, id: None, receives_before: 0, source: None, ..body };
            to.add(&fresh, to.now)?;
            to.wakes += 1;
            self.take_out(&message)?;
            moved += 1;
        }
        Ok(moved)
    }
}

impl MoveRow {
    /// How many messages may be moved by now.
    fn due(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.started_at);
        self.messages_per_second.map_or(u64::MAX, |rate| passed.saturating_mul(rate.into()) / 1_000)
    }
}

fn summary(queue: &Queue, row: &MoveRow) -> Result<MoveSummary> {
    Ok(MoveSummary {
        id: move_id(queue.born, row.id)?,
        from: queue.name.clone(),
        to: row.to.clone(),
        messages_per_second: row.messages_per_second,
        status: row.status.clone(),
        moved: row.moved,
        to_move: row.to_move,
        started_at: timestamp(row.started_at),
    })
}

fn move_id(born: u64, id: u64) -> Result<MoveId> {
    MoveId::new(&format!("{born:x}.{id:x}"))
}

fn parse(id: &MoveId) -> Option<(u64, u64)> {
    let (born, number) = id.as_str().split_once('.')?;
    Some((u64::from_str_radix(born, 16).ok()?, u64::from_str_radix(number, 16).ok()?))
}
