//! Outcomes of many records side by side. Whoever sends a record holds its place on a page, so that neither sending nor being told
//! allocates anything for a single record, and senders are woken when all outcomes of an append are there, once.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::outcome::{Lost, Outcome, Why};

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

/// The places of a page, in the hands of whoever tells all of its outcomes. Dropped without a word, nobody knows what became
/// of the records.
#[derive(Debug, Default)]
pub(crate) struct Places {
    page: Arc<Page>,
    count: usize,
}

impl Places {
    /// One more: the page, and the place on it.
    pub(crate) fn next(&mut self) -> (Arc<Page>, usize) {
        self.count += 1;
        (self.page.clone(), self.count - 1)
    }

    /// Each by itself, in their order.
    pub(crate) fn each(mut self) -> Vec<Spot> {
        let count = std::mem::take(&mut self.count);
        (0..count as u32).map(|index| Spot { page: self.page.clone(), index, told: false }).collect()
    }

    /// Tells all outcomes, which are in the order of the places.
    pub(crate) fn tell(mut self, outcomes: Vec<Option<Outcome>>) {
        debug_assert_eq!(outcomes.len(), self.count, "every place has its outcome");
        self.write(outcomes);
    }

    fn write(&mut self, outcomes: Vec<Option<Outcome>>) {
        self.count = 0;
        let mut told = self.page.told.lock();
        told.outcomes = outcomes;
        let waiting = std::mem::take(&mut told.waiting);
        drop(told);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        if self.count > 0 {
            let unknown = || Some(Err(Lost::Unknown(Why::Closed)));
            self.write(std::iter::repeat_with(unknown).take(self.count).collect());
        }
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

    /// The places of so many records, and where each of them stands.
    fn places(count: usize) -> (Places, Vec<(Arc<Page>, usize)>) {
        let mut places = Places::default();
        let each = (0..count).map(|_| places.next()).collect();
        (places, each)
    }

    #[test]
    fn a_sender_is_woken_once_for_all_that_was_told() {
        let (one, mut all) = places(300);
        let (other, more) = places(10);
        all.extend(more);
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(counting.clone());
        let mut context = Context::from_waker(&waker);
        for (page, index) in &all {
            assert_eq!(page.poll(*index, &mut context), Poll::Pending);
        }
        let spots: Vec<Spot> = one.each().into_iter().chain(other.each()).collect();
        tell(spots.into_iter().rev().map(|spot| (spot, lost())));
        assert_eq!(counting.0.load(Ordering::Relaxed), 1, "two pages, one waker");
        for (page, index) in &all {
            assert_eq!(page.poll(*index, &mut context), Poll::Ready(lost()));
            assert_eq!(page.poll(*index, &mut context), Poll::Pending, "an outcome is told once");
        }
    }

    #[test]
    fn a_page_is_told_as_a_whole() {
        let (places, all) = places(3);
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(counting.clone());
        let mut context = Context::from_waker(&waker);
        for (page, index) in &all {
            assert_eq!(page.poll(*index, &mut context), Poll::Pending);
        }
        places.tell((0..3).map(|_| Some(lost())).collect());
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        for (page, index) in &all {
            assert_eq!(page.poll(*index, &mut context), Poll::Ready(lost()));
            assert_eq!(page.poll(*index, &mut context), Poll::Pending, "an outcome is told once");
        }
    }

    #[test]
    fn what_is_dropped_says_that_nobody_knows() {
        let unknown = || Poll::Ready(Err(Lost::Unknown(Why::Closed)));
        let mut context = Context::from_waker(Waker::noop());
        let (whole, all) = places(2);
        let (page, _) = &all[0];
        assert_eq!(page.poll(1, &mut context), Poll::Pending);
        drop(whole);
        assert_eq!((page.poll(0, &mut context), page.poll(1, &mut context)), (unknown(), unknown()));

        let (split, all) = places(2);
        let (page, _) = &all[0];
        let mut spots = split.each().into_iter();
        let (first, second) = (spots.next().unwrap(), spots.next().unwrap());
        tell([(first, lost())]);
        assert_eq!(page.poll(0, &mut context), Poll::Ready(lost()), "what was told stays");
        assert_eq!(page.poll(1, &mut context), Poll::Pending);
        drop(second);
        assert_eq!(page.poll(1, &mut context), unknown());
    }
}
