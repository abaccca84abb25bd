//! How many messages of a queue are visible, in flight and delayed, without looking at them.

use std::collections::BTreeMap;

use anabranch_model::queue::QueueCounts;

/// What of a message counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// From when on it is visible, in milliseconds.
    pub due: u64,
    /// Whether it was received before.
    pub received: bool,
}

/// The counts of a queue at a time that only moves forward.
#[derive(Debug, Default)]
pub struct Counts {
    counts: QueueCounts,
    /// What is hidden at `now`, by the time at which it becomes visible: in flight, and delayed.
    hidden: BTreeMap<u64, [u64; 2]>,
    now: u64,
}

impl Counts {
    /// The counts at this time, or at the latest that was asked for.
    pub fn at(&mut self, now: u64) -> QueueCounts {
        self.now = self.now.max(now);
        while let Some(entry) = self.hidden.first_entry().filter(|entry| *entry.key() <= self.now) {
            let [in_flight, delayed] = entry.remove();
            self.counts.in_flight -= in_flight;
            self.counts.delayed -= delayed;
            self.counts.visible += in_flight + delayed;
        }
        self.counts
    }

    /// How many were in flight at the latest time that was asked for.
    pub fn in_flight(&self) -> u64 {
        self.counts.in_flight
    }

    /// When the next hidden message is visible.
    pub fn next(&self) -> Option<u64> {
        self.hidden.keys().next().copied()
    }

    /// Counts a message.
    pub fn add(&mut self, shown: Shown) {
        if shown.due <= self.now {
            self.counts.visible += 1;
            return;
        }
        self.hidden.entry(shown.due).or_default()[usize::from(!shown.received)] += 1;
        *self.kind(shown) += 1;
    }

    /// Counts a message no longer.
    pub fn remove(&mut self, shown: Shown) {
        if shown.due <= self.now {
            self.counts.visible = self.counts.visible.saturating_sub(1);
            return;
        }
        if let Some(hidden) = self.hidden.get_mut(&shown.due) {
            hidden[usize::from(!shown.received)] -= 1;
            if *hidden == [0, 0] {
                self.hidden.remove(&shown.due);
            }
            *self.kind(shown) -= 1;
        }
    }

    fn kind(&mut self, shown: Shown) -> &mut u64 {
        if shown.received { &mut self.counts.in_flight } else { &mut self.counts.delayed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_shows_what_is_hidden() {
        let mut counts = Counts::default();
        let (delayed, given) = (Shown { due: 20, received: false }, Shown { due: 30, received: true });
        counts.at(10);
        [delayed, given, Shown { due: 5, received: false }].into_iter().for_each(|shown| counts.add(shown));
        assert_eq!(counts.at(10), QueueCounts { visible: 1, in_flight: 1, delayed: 1 });
        assert_eq!(counts.at(20), QueueCounts { visible: 2, in_flight: 1, delayed: 0 });
        assert_eq!(counts.at(12), QueueCounts { visible: 2, in_flight: 1, delayed: 0 });
        counts.remove(given);
        counts.remove(delayed);
        assert_eq!(counts.at(40), QueueCounts { visible: 1, in_flight: 0, delayed: 0 });
    }
}
