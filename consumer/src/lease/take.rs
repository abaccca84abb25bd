//! Which leases this worker takes, decided from what it has seen. No clock of another machine is asked: a lease has
//! expired when its counter has stood still for the time of a lease while we looked.
//!
//! No leader is needed. Within its share a worker takes what is free at once; beyond it, a moment later, so that those
//! with fewer leases come first, but a lease never waits for a worker that does not come.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anabranch_model::ShardId;
use smol_str::SmolStr;

use super::checkpoint::Checkpoint;
use super::item::Lease;

/// The part of a lease's time after which a worker looks again for a lease that is being handed to it.
const ON_ITS_WAY: u32 = 100;

/// What has been seen of the leases so far.
#[derive(Default)]
pub(crate) struct Sightings {
    seen: HashMap<SmolStr, Sighting>,
}

struct Sighting {
    counter: u64,
    owner: Option<SmolStr>,
    /// Since when it stands like this, on the stopwatch.
    since: Duration,
    /// Who has been asked to hand it over, and since when.
    asked: Option<(SmolStr, Duration)>,
}

/// What a plan looks at.
pub(crate) struct View<'a> {
    pub(crate) leases: &'a [Lease],
    pub(crate) me: &'a str,
    /// Other workers that are known to live.
    pub(crate) others: &'a HashSet<SmolStr>,
    pub(crate) now: Duration,
    pub(crate) lease_time: Duration,
    pub(crate) modesty: Duration,
    pub(crate) leases_max: usize,
    /// Leases that this worker holds in its hand.
    pub(crate) held: &'a (dyn Fn(&str) -> bool + Sync),
    /// Leases that someone else holds who goes by the same name.
    pub(crate) contested: &'a (dyn Fn(&str) -> bool + Sync),
    /// Leases that it should leave alone.
    pub(crate) avoided: &'a (dyn Fn(&str) -> bool + Sync),
    /// Keys of leases that are not there and need not be.
    pub(crate) settled: &'a HashSet<SmolStr>,
}

/// What to do now, and when to look again.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Free or expired.
    pub(crate) take: Vec<SmolStr>,
    /// Given to this worker by somebody.
    pub(crate) adopt: Vec<SmolStr>,
    /// When the next lease expires, on the stopwatch.
    pub(crate) next: Option<Duration>,
}

impl Sightings {
    /// The workers that let a lease stand still until it expired, or nearly so and then somebody else had it. To be asked
    /// before the leases are noted. Who lives renews a lease twice in that time.
    pub(crate) fn silent(&self, leases: &[Lease], now: Duration, lease_time: Duration) -> HashSet<SmolStr> {
        let silent = |lease: &Lease| {
            let seen = self.seen.get(&lease.key)?;
            let stands = seen.counter == lease.counter || seen.owner != lease.owner;
            // One that is being handed over is read by somebody else, and one that has ended by nobody.
            let is_read = lease.checkpoint_owner.is_none() && lease.checkpoint != Checkpoint::ShardEnd;
            (is_read && stands && now >= seen.since + lease_time * 9 / 10).then(|| seen.owner.clone())?
        };
        leases.iter().filter_map(silent).collect()
    }

    /// Notes how the leases stand at a moment.
    pub(crate) fn note(&mut self, leases: &[Lease], now: Duration) {
        let mut fresh = HashMap::with_capacity(leases.len());
        for lease in leases {
            let old = self.seen.remove(&lease.key);
            let asked = lease.checkpoint_owner.clone().map(|owner| {
                let before = old.as_ref().and_then(|old| old.asked.clone());
                before.filter(|(asked, _)| *asked == owner).unwrap_or((owner, now))
            });
            let same = |old: &Sighting| old.counter == lease.counter && old.owner == lease.owner;
            let since = old.filter(same).map_or(now, |old| old.since);
            let sighting = Sighting { counter: lease.counter, owner: lease.owner.clone(), since, asked };
            fresh.insert(lease.key.clone(), sighting);
        }
        self.seen = fresh;
    }

    /// When a lease expires unless it is renewed.
    fn expires_at(&self, lease: &Lease, lease_time: Duration) -> Duration {
        self.seen.get(&lease.key).map_or(Duration::MAX, |sighting| sighting.since.saturating_add(lease_time))
    }

    fn since(&self, lease: &Lease) -> Duration {
        self.seen.get(&lease.key).map_or(Duration::MAX, |sighting| sighting.since)
    }

    /// For how long the reader of a lease has been asked to hand it over.
    pub(crate) fn asked_for(&self, lease: &Lease, now: Duration) -> Duration {
        let asked = self.seen.get(&lease.key).and_then(|sighting| sighting.asked.as_ref());
        asked.map_or(Duration::ZERO, |(_, since)| now.saturating_sub(*since))
    }

    /// The workers that have a lease which has not expired.
    pub(crate) fn readers(&self, leases: &[Lease], now: Duration, lease_time: Duration) -> HashSet<SmolStr> {
        let alive = leases.iter().filter(|lease| now < self.expires_at(lease, lease_time));
        alive.filter_map(|lease| lease.reader().cloned()).collect()
    }

    /// What this worker takes.
    pub(crate) fn plan(&self, view: &View<'_>) -> Plan {
        let mut plan = Plan::default();
        let mut mine = 0;
        let (mut free, mut open) = (Vec::new(), 0usize);
        let ready = Ready::new(view.leases, view.settled);
        for lease in view.leases.iter().filter(|lease| lease.checkpoint != Checkpoint::ShardEnd) {
            open += 1;
            if (view.held)(&lease.key) {
                mine += 1;
                continue;
            }
            let expires = self.expires_at(lease, view.lease_time);
            let given = lease.owner.as_deref() == Some(view.me)
                && lease.checkpoint_owner.is_none()
                && !(view.contested)(&lease.key);
            if given && !(view.avoided)(&lease.key) {
                plan.adopt.push(lease.key.clone());
                mine += 1;
            } else if lease.owner.is_some() && view.now < expires {
                // One that is on its way here comes soon.
                let due = match lease.owner.as_deref() == Some(view.me) && lease.checkpoint_owner.is_some() {
                    true => expires.min(view.now + view.lease_time / ON_ITS_WAY),
                    false => expires,
                };
                plan.next = Some(plan.next.map_or(due, |next| next.min(due)));
            } else if !(view.avoided)(&lease.key) && ready.is_ready(lease) {
                let since = if lease.owner.is_some() { expires } else { self.since(lease) };
                free.push((since, lease));
            }
        }
        let share = open.div_ceil(view.others.len() + 1);
        free.sort_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| spread(view.me, &a.1.key).cmp(&spread(view.me, &b.1.key)))
        });
        for (since, lease) in free {
            let due = since.saturating_add(view.modesty);
            if mine >= view.leases_max {
                break;
            }
            if mine < share || view.now >= due {
                plan.take.push(lease.key.clone());
                mine += 1;
            } else {
                plan.next = Some(plan.next.map_or(due, |next| next.min(due)));
            }
        }
        plan
    }
}

/// Which leases can be read, as far as their parents are concerned.
pub(crate) struct Ready<'a> {
    /// Every lease, and whether its shard is read to its end.
    ended: HashMap<&'a str, bool>,
    settled: &'a HashSet<SmolStr>,
}

impl<'a> Ready<'a> {
    /// `settled` are the keys of leases that are not there and need not be.
    pub(crate) fn new(leases: &'a [Lease], settled: &'a HashSet<SmolStr>) -> Self {
        let ended = |lease: &'a Lease| (lease.key.as_str(), lease.checkpoint == Checkpoint::ShardEnd);
        Ready { ended: leases.iter().map(ended).collect(), settled }
    }

    /// Whether the parents of a lease are read to their end. One without a lease was read long ago, unless the child is
    /// untouched: then somebody deleted the lease, or the shard is gone, and a look at the shards tells.
    pub(crate) fn is_ready(&self, lease: &Lease) -> bool {
        lease.parents.iter().all(|parent| {
            let key = lease.key_beside(parent);
            let known = self.ended.get(key.as_str()).copied();
            known.unwrap_or_else(|| !lease.is_untouched() || self.settled.contains(&key))
        })
    }

    /// Whether a look at the shards is needed to tell.
    pub(crate) fn is_in_doubt(&self, lease: &Lease) -> bool {
        let in_doubt = |parent: &ShardId| {
            let key = lease.key_beside(parent);
            !self.ended.contains_key(key.as_str()) && !self.settled.contains(&key)
        };
        lease.is_untouched() && lease.parents.iter().any(in_doubt)
    }
}

/// An order of the leases that differs between workers, so that they do not all reach for the same one first.
fn spread(worker: &str, lease: &str) -> u64 {
    let bytes = worker.bytes().chain([0]).chain(lease.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_TIME: Duration = Duration::from_secs(10);

    fn lease(number: u64, owner: Option<&str>, counter: u64) -> Lease {
        let key = format!("shardId-{number:012}");
        Lease { owner: owner.map(SmolStr::from), counter, ..Lease::new(key, Checkpoint::TrimHorizon) }
    }

    fn plan(sightings: &Sightings, leases: &[Lease], others: &[&str], now_ms: u64, held: &[&str]) -> Plan {
        let others = others.iter().map(|name| SmolStr::from(*name)).collect();
        sightings.plan(&View {
            leases,
            me: "me",
            others: &others,
            now: Duration::from_millis(now_ms),
            lease_time: LEASE_TIME,
            modesty: LEASE_TIME / 40,
            leases_max: usize::MAX,
            held: &|key| held.contains(&key),
            contested: &|_| false,
            avoided: &|_| false,
            settled: &HashSet::from(["shardId-000000000006".into()]),
        })
    }

    #[test]
    fn a_lease_is_left_to_an_owner_that_renews_it() {
        let mut sightings = Sightings::default();
        for counter in 0..100 {
            let leases = [lease(0, Some("other"), counter)];
            sightings.note(&leases, Duration::from_secs(3 * counter));
            assert_eq!(plan(&sightings, &leases, &["other"], 3_000 * counter + 2_999, &[]).take, [""; 0]);
        }
        // It stops: ten seconds after the last change was seen the lease is free, and that moment is known before.
        let leases = [lease(0, Some("other"), 99)];
        let stopped = 3_000 * 99;
        assert_eq!(
            plan(&sightings, &leases, &["other"], stopped + 9_999, &[]).next,
            Some(Duration::from_millis(stopped + 10_000))
        );
        assert_eq!(plan(&sightings, &leases, &[], stopped + 10_000, &[]).take.len(), 1);
    }

    #[test]
    fn more_than_a_share_is_taken_a_moment_later() {
        let mut sightings = Sightings::default();
        let leases: Vec<_> = (0..4).map(|number| lease(number, None, 0)).collect();
        sightings.note(&leases, Duration::ZERO);
        let at_once = plan(&sightings, &leases, &["other"], 0, &[]);
        assert_eq!(at_once.take.len(), 2);
        assert_eq!(at_once.next, Some(LEASE_TIME / 40));
        assert_eq!(plan(&sightings, &leases, &["other"], 250, &[]).take.len(), 4);
        assert_eq!(plan(&sightings, &leases, &[], 0, &[]).take.len(), 4, "alone, everything is its share");
    }

    #[test]
    fn what_was_given_is_adopted_unless_it_is_on_its_way() {
        let mut sightings = Sightings::default();
        let mut leases = [lease(0, Some("me"), 3), lease(1, Some("me"), 3)];
        leases[1].checkpoint_owner = Some("other".into());
        sightings.note(&leases, Duration::ZERO);
        let plan = plan(&sightings, &leases, &["other"], 100, &[]);
        assert_eq!((plan.adopt.len(), plan.take.len()), (1, 0));
        assert_eq!(plan.adopt[0], leases[0].key);
        assert_eq!(plan.next, Some(Duration::from_millis(200)), "what is on its way is looked for soon");
    }

    #[test]
    fn how_long_a_handoff_is_waited_for_is_known() {
        let mut sightings = Sightings::default();
        let at = |counter| Lease { checkpoint_owner: Some("other".into()), ..lease(0, Some("me"), counter) };
        for counter in 0..5 {
            // It is renewed all the while.
            sightings.note(&[at(counter)], Duration::from_secs(counter));
        }
        assert_eq!(sightings.asked_for(&at(4), Duration::from_secs(7)), Duration::from_secs(7));
        let again = Lease { checkpoint_owner: Some("third".into()), ..at(4) };
        sightings.note(std::slice::from_ref(&again), Duration::from_secs(8));
        assert_eq!(
            sightings.asked_for(&again, Duration::from_secs(9)),
            Duration::from_secs(1),
            "somebody else"
        );
        assert_eq!(sightings.asked_for(&lease(1, None, 0), Duration::from_secs(9)), Duration::ZERO);
    }

    #[test]
    fn children_wait_and_finished_leases_are_nobodys() {
        let mut sightings = Sightings::default();
        let mut leases = [lease(0, None, 0), lease(1, None, 0)];
        leases[1].parents = vec![ShardId::numbered(0)];
        sightings.note(&leases, Duration::ZERO);
        assert_eq!(plan(&sightings, &leases, &[], 1_000, &[]).take, [leases[0].key.clone()]);
        leases[0].checkpoint = Checkpoint::ShardEnd;
        assert_eq!(plan(&sightings, &leases, &[], 1_000, &[]).take, [leases[1].key.clone()]);
        assert_eq!(plan(&sightings, &leases, &[], 1_000, &["shardId-000000000001"]).take, [""; 0]);
        // A parent without a lease: somebody deleted it, unless the child has begun or the parent is known to be gone.
        let orphan = |number: u64, parent: u64| {
            let parents = vec![ShardId::numbered(parent)];
            Lease { parents, ..lease(number, None, 0) }
        };
        let begun = Lease {
            checkpoint: Checkpoint::behind(anabranch_model::SequenceNumber::from_u128(1)),
            ..orphan(8, 7)
        };
        let leases = [orphan(2, 7), begun, orphan(9, 6)];
        sightings.note(&leases, Duration::ZERO);
        let mut taken = plan(&sightings, &leases, &[], 1_000, &[]).take;
        taken.sort();
        assert_eq!(taken, ["shardId-000000000008", "shardId-000000000009"]);
    }
}
