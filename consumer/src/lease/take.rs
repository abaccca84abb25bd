//! Which leases this worker takes, decided from what it has seen. No clock of another machine is asked: a lease has
//! expired when its counter has stood still for the time of a lease while we looked.
//!
//! No leader is needed. Within its share a worker takes what is free at once; beyond it, a moment later, so that those
//! with fewer leases come first, but a lease never waits for a worker that does not come.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use smol_str::SmolStr;

use super::checkpoint::Checkpoint;
use super::item::Lease;

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
            let same = |old: &Sighting| old.counter == lease.counter && old.owner == lease.owner;
            let sighting = old.filter(same).unwrap_or_else(|| Sighting {
                counter: lease.counter,
                owner: lease.owner.clone(),
                since: now,
            });
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
        let unfinished = unfinished(view.leases);
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
                plan.next = Some(plan.next.map_or(expires, |next| next.min(expires)));
            } else if !(view.avoided)(&lease.key) && is_ready(lease, &unfinished) {
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

/// The shards that are read to their end or have no lease do not hold their children up.
pub(crate) fn is_ready(lease: &Lease, unfinished: &HashSet<SmolStr>) -> bool {
    let prefix = lease.stream.as_ref().map(|stream| format!("{stream}:")).unwrap_or_default();
    !lease.parents.iter().any(|parent| unfinished.contains(format!("{prefix}{parent}").as_str()))
}

/// The keys of leases whose shards are not read to their end.
pub(crate) fn unfinished(leases: &[Lease]) -> HashSet<SmolStr> {
    let open = leases.iter().filter(|lease| lease.checkpoint != Checkpoint::ShardEnd);
    open.map(|lease| lease.key.clone()).collect()
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
    }

    #[test]
    fn children_wait_and_finished_leases_are_nobodys() {
        let mut sightings = Sightings::default();
        let mut leases = [lease(0, None, 0), lease(1, None, 0)];
        leases[1].parents = vec![anabranch_model::ShardId::numbered(0)];
        sightings.note(&leases, Duration::ZERO);
        assert_eq!(plan(&sightings, &leases, &[], 1_000, &[]).take, [leases[0].key.clone()]);
        leases[0].checkpoint = Checkpoint::ShardEnd;
        assert_eq!(plan(&sightings, &leases, &[], 1_000, &[]).take, [leases[1].key.clone()]);
        assert_eq!(plan(&sightings, &leases, &[], 1_000, &["shardId-000000000001"]).take, [""; 0]);
    }
}
