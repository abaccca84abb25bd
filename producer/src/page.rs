//! Outcomes of many records side by side. Whoever sends a record holds its place on a page, so that neither sending nor being told
//! allocates anything for a single record, and senders are woken when all outcomes of an append are there, once.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::outcome::{Lost, Outcome, Why};

/// Outcomes on a page.
const OUTCOMES: usize = 256;

/// Room for the outcomes of some records.
#[derive(Debug, Default)]
pub(crate) struct Page {
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// Of the records that are concluded, up to the last of them; taken by whoever asks.
    outcomes: Vec<Option<Outcome>>,
    waiting: Vec<Waker>,
}

impl Page {
    /// What became of a record; it is told once.
    pub(crate) fn poll(&self, index: usize, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut told = self.told.lock();
        if let Some(outcome) = told.outcomes.get_mut(index).and_then(Option::take) {
            return Poll::Ready(outcome);
        }
        if !told.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            told.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Where the next record's outcome will stand.
#[derive(Default)]
pub(crate) struct Pages {
    page: Arc<Page>,
    used: usize,
}

impl Pages {
    /// A place that nobody else has.
    pub(crate) fn next(&mut self) -> Spot {
        if self.used == OUTCOMES {
            *self = Pages::default();
        }
        self.used += 1;
        Spot { page: self.page.clone(), index: (self.used - 1) as u32, told: false }
    }
}

/// The place of a record's outcome, in the hands of whoever tells it. Dropped without a word, nobody knows what became of the
/// record.
#[derive(Debug)]
pub(crate) struct Spot {
    page: Arc<Page>,
    index: u32,
    told: bool,
}

impl Spot {
    /// The page, and the place on it.
    pub(crate) fn place(&self) -> (Arc<Page>, usize) {
        (self.page.clone(), self.index as usize)
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        if !self.told {
            let mut told = self.page.told.lock();
            told.write(self.index, Err(Lost::Unknown(Why::Closed)));
            let waiting = std::mem::take(&mut told.waiting);
            drop(told);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

/// Tells outcomes. Those of a page that stand together are written at once, and senders are woken behind all of them.
pub(crate) fn tell(outcomes: impl IntoIterator<Item = (Spot, Outcome)>) {
    let mut outcomes = outcomes.into_iter().peekable();
    let mut wakers: Vec<Waker> = Vec::new();
    while let Some((mut first, outcome)) = outcomes.next() {
        first.told = true;
        let mut told = first.page.told.lock();
        told.write(first.index, outcome);
        while let Some((mut spot, outcome)) =
            outcomes.next_if(|(spot, _)| Arc::ptr_eq(&spot.page, &first.page))
        {
            spot.told = true;
            told.write(spot.index, outcome);
        }
        for waker in told.waiting.drain(..) {
            if !wakers.iter().any(|other| other.will_wake(&waker)) {
                wakers.push(waker);
            }
        }
    }
    wakers.into_iter().for_each(Waker::wake);
}

impl Told {
    fn write(&mut self, index: u32, outcome: Outcome) {
        let index = index as usize;
        if self.outcomes.len() <= index {
            self.outcomes.reserve_exact(OUTCOMES - self.outcomes.len());
            self.outcomes.resize_with(index + 1, || None);
        }
        self.outcomes[index] = Some(outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lost() -> Outcome {
        Err(Lost::NotStored(Why::Behind))
    }

    #[test]
    fn a_sender_is_woken_once_for_all_that_was_told() {
        let mut pages = Pages::default();
        let spots: Vec<Spot> = (0..OUTCOMES + 10).map(|_| pages.next()).collect();
        let places: Vec<_> = spots.iter().map(Spot::place).collect();
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(counting.clone());
        let mut context = Context::from_waker(&waker);
        for (page, index) in &places {
            assert_eq!(page.poll(*index, &mut context), Poll::Pending);
        }
        tell(spots.into_iter().rev().map(|spot| (spot, lost())));
        assert_eq!(counting.0.load(Ordering::Relaxed), 1, "two pages, one waker");
        for (page, index) in &places {
            assert_eq!(page.poll(*index, &mut context), Poll::Ready(lost()));
            assert_eq!(page.poll(*index, &mut context), Poll::Pending, "an outcome is told once");
        }
    }

    #[test]
    fn a_spot_that_is_dropped_says_that_nobody_knows() {
        let mut pages = Pages::default();
        let (first, second) = (pages.next(), pages.next());
        let (page, index) = second.place();
        let mut context = Context::from_waker(Waker::noop());
        tell([(first, lost())]);
        assert_eq!(page.poll(0, &mut context), Poll::Ready(lost()), "what was told stays");
        assert_eq!(page.poll(index, &mut context), Poll::Pending);
        drop(second);
        assert_eq!(page.poll(index, &mut context), Poll::Ready(Err(Lost::Unknown(Why::Closed))));
    }
}
