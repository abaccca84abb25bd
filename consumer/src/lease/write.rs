//! Every conditional write to a lease. The conditions are those of the Kinesis Client Library; changing one here breaks
//! the fence between its workers and ours.

use anabranch_model::table::expression::{exists, missing};
use anabranch_model::table::{Item, Returning, Update, Write, path};
use anabranch_model::{ShardId, Timestamp};

use super::checkpoint::Checkpoint;
use super::item::{
    CHECKPOINT, CHECKPOINT_OWNER, CHILDREN, COUNTER, LATEST_SINCE, LEASE_KEY, Lease, OWNER, OWNER_SWITCHES,
    PENDING, PENDING_STATE, PENDING_SUB_SEQUENCE, SUB_SEQUENCE, THROUGHPUT, shard_set, throughput,
};
use super::layout::Layout;

/// The key of a lease's item.
pub(crate) fn key(lease: &str) -> Item {
    Item::new().with(LEASE_KEY, lease)
}

/// Makes a lease, unless it is there.
pub(crate) fn create(lease: &Lease, layout: Layout) -> Write {
    Write::put(lease.item(layout)).when(missing(LEASE_KEY))
}

/// Says that the owner lives, and how far the shard is processed if there is anything new. Someone who wants to hand the
/// lease over makes it fail, unless that is known already.
pub(crate) fn renew(
    lease: &str,
    counter: u64,
    progress: Option<&Progress>,
    kbps: f64,
    handing_over: bool,
) -> Write {
    let update = match progress {
        Some(progress) => progress.update(counter).set(OWNER_SWITCHES, 0),
        None => Update::new().set(COUNTER, counter + 1),
    };
    let update = update.set(THROUGHPUT, throughput(kbps));
    let mut condition = path(COUNTER).equals(counter);
    if !handing_over {
        condition = condition.and(missing(CHECKPOINT_OWNER));
    }
    Write::update(key(lease), update).when(condition).showing_item()
}

/// Takes a lease whose owner has not renewed it, or that has none.
pub(crate) fn take(lease: &str, counter: u64, worker: &str) -> Write {
    let update = Update::new()
        .set(OWNER, worker)
        .set(COUNTER, counter + 1)
        .remove(CHECKPOINT_OWNER)
        .add(OWNER_SWITCHES, 1);
    Write::update(key(lease), update).when(path(COUNTER).equals(counter)).returning(Returning::New)
}

/// Asks the owner to hand a lease over. The counter stays, so that the owner can go on until it is done.
pub(crate) fn ask_for_handoff(lease: &str, owner: &str, next: &str) -> Write {
    let update = Update::new().set(OWNER, next).set(CHECKPOINT_OWNER, owner);
    let condition = exists(LEASE_KEY).and(path(OWNER).equals(owner)).and(missing(CHECKPOINT_OWNER));
    Write::update(key(lease), update).when(condition)
}

/// Gives a lease to the one that was to have it, because its reader has been asked for long and does not let go.
pub(crate) fn assign(lease: &str, owner: &str, reader: &str) -> Write {
    let update = Update::new().remove(CHECKPOINT_OWNER).add(COUNTER, 1).add(OWNER_SWITCHES, 1);
    let condition =
        exists(LEASE_KEY).and(path(OWNER).equals(owner)).and(path(CHECKPOINT_OWNER).equals(reader));
    Write::update(key(lease), update).when(condition)
}

/// The last checkpoint of an owner that goes, and nobody owns the lease from then on.
pub(crate) fn release(lease: &str, counter: u64, worker: &str, progress: &Progress) -> Write {
    let update = progress.update(counter).set(OWNER_SWITCHES, 0).remove(OWNER);
    let condition = path(COUNTER).equals(counter).and(path(OWNER).equals(worker));
    Write::update(key(lease), update).when(condition).showing_item()
}

/// The last checkpoint of an owner that was asked to hand over; the next owner begins.
pub(crate) fn hand_over(lease: &str, counter: u64, worker: &str, progress: &Progress) -> Write {
    let update = progress.update(counter).set(OWNER_SWITCHES, 1).remove(CHECKPOINT_OWNER);
    let condition = path(COUNTER).equals(counter).and(path(CHECKPOINT_OWNER).equals(worker));
    Write::update(key(lease), update).when(condition).showing_item()
}

/// Sets a checkpoint from outside, in either direction. The owner loses the lease, and whoever takes it begins there.
pub(crate) fn rewind(lease: &Lease, to: Checkpoint) -> Write {
    let update = Progress::to(to)
        .update(lease.counter)
        .set(OWNER_SWITCHES, 0)
        .remove(OWNER)
        .remove(CHECKPOINT_OWNER)
        .remove(CHILDREN);
    // The end of the shard is looked for anew.
    let update = if to == Checkpoint::Latest { update.remove(LATEST_SINCE) } else { update };
    Write::update(key(&lease.key), update).when(path(COUNTER).equals(lease.counter))
}

/// Removes a lease that nobody has touched since it was read.
pub(crate) fn remove(lease: &Lease) -> Write {
    Write::delete(key(&lease.key)).when(path(COUNTER).equals(lease.counter))
}

/// How far a shard is processed, and at its end what continues it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) children: Vec<ShardId>,
    /// The moment that `LATEST` stands for, if this write says so.
    pub(crate) since: Option<Timestamp>,
}

impl Progress {
    /// A shard that is processed up to here and goes on.
    pub(crate) fn to(checkpoint: Checkpoint) -> Self {
        Progress { checkpoint, children: Vec::new(), since: None }
    }

    /// More than this is written down already.
    pub(crate) fn raise(&mut self, checkpoint: Checkpoint) {
        // What stands for no record yet says nothing about progress.
        if checkpoint > self.checkpoint && checkpoint > Checkpoint::Latest {
            (self.checkpoint, self.since) = (checkpoint, None);
        }
    }

    /// Whether a lease says so already.
    pub(crate) fn is_in(&self, lease: &Lease) -> bool {
        self.checkpoint == lease.checkpoint && (self.since.is_none() || self.since == lease.latest_since)
    }

    fn update(&self, counter: u64) -> Update {
        let update = Update::new()
            .set(COUNTER, counter + 1)
            .set(CHECKPOINT, self.checkpoint.text())
            .set(SUB_SEQUENCE, self.checkpoint.sub_sequence())
            .remove(PENDING)
            .remove(PENDING_SUB_SEQUENCE)
            .remove(PENDING_STATE);
        let update = match (self.since, self.checkpoint) {
            (Some(moment), _) => update.set(LATEST_SINCE, moment.as_millis()),
            (None, Checkpoint::Latest) => update,
            (None, _) => update.remove(LATEST_SINCE),
        };
        match shard_set(&self.children) {
            Some(children) => update.set(CHILDREN, children),
            None => update,
        }
    }
}
