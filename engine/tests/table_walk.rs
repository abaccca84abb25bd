//! Tables beside the reference of the laws, in lock-step, whatever is asked in whatever order: each answer and everything
//! that can be seen must be the same. The engine meanwhile does its upkeep, is killed, and loses its power in the middle
//! of calls.

mod table_steps;
mod table_world;

use std::pin::pin;
use std::task::{Context, Waker};

use anabranch_engine::Engine;
use anabranch_model::laws::reference::ReferenceTables;
use anabranch_model::table::{TableState, TableStore};
use anabranch_model::{Clock, Error, NextMove, Result, StreamName};
use anabranch_sim::{SimClock, SimDisk};
use proptest::prelude::*;
use table_steps::{Step, ask, step};
use table_world::{START, follows, look, open, run, story};

/// Steps between two looks at everything.
const LOOK_EVERY: usize = 8;

struct Walk {
    disk: SimDisk,
    clock: SimClock,
    engine: Option<Engine>,
    reference: ReferenceTables,
    /// All streams of changes that there ever were: the engine's, and that of the reference.
    streams: Vec<(StreamName, StreamName)>,
}

impl Walk {
    fn start() -> Walk {
        let (disk, clock, reference) = (SimDisk::new(), SimClock::new(START), ReferenceTables::new());
        assert_eq!(clock.now(), reference.now());
        Walk { engine: Some(open(&disk, &clock)), disk, clock, reference, streams: Vec::new() }
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("an engine is open")
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Advance(passed) => {
                self.clock.advance(*passed);
                self.reference.advance(*passed);
                self.upkeep();
            }
            Step::Upkeep => self.upkeep(),
            Step::Reopen => {
                self.engine = None;
                self.engine = Some(open(&self.disk, &self.clock));
                self.compare();
            }
            Step::LosePower(during, polls, seed) => self.lose_power(during, *polls, *seed),
            step => self.ask_both(step),
        }
        self.pair_streams();
    }

    fn upkeep(&mut self) {
        self.engine().upkeep();
        self.reference.tidy();
    }

    fn ask_both(&mut self, step: &Step) {
        let answer = self.ask_engine(step);
        if let Err(Error::TableBusy(table)) = &answer {
            let summary = run(self.engine().table(table), || ()).expect("a table that is busy");
            assert_eq!(summary.state, TableState::Updating, "a table that is not busy says so");
            return;
        }
        let expected = run(ask(&self.reference, step), || ());
        assert_eq!(comparable(step, answer), comparable(step, expected));
    }

    fn ask_engine(&self, step: &Step) -> Result<String> {
        let engine = self.engine();
        run(ask(engine, step), || {
            engine.prepare();
            engine.commit();
        })
    }

    /// Asks the engine, and loses the power before it has answered. The step happened, or it did not.
    fn lose_power(&mut self, during: &Step, polls: usize, seed: u64) {
        let engine = self.engine.take().expect("an engine is open");
        {
            let mut call = pin!(ask(&engine, during));
            for _ in 0..polls {
                if call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    break;
                }
                engine.prepare();
                engine.commit();
            }
        }
        let left = self.disk.crash_at(self.disk.operations(), seed);
        self.disk.halt();
        drop(engine);
        self.disk = left;
        self.engine = Some(open(&self.disk, &self.clock));
        let found = run(look(self.engine()), || ());
        if !follows(&found, &run(look(&self.reference), || ())) {
            // What it answered nobody has heard.
            let _ = run(ask(&self.reference, during), || ());
        }
        self.pair_streams();
        self.compare();
    }

    /// Remembers the streams of changes of tables that are there now.
    fn pair_streams(&mut self) {
        let reference = &self.reference;
        for table in run(reference.tables(None, 100), || ()).expect("a listing").entries {
            let of =
                |store: &dyn TableStore| run(store.table(&table), || ()).ok().and_then(|found| found.changes);
            if let Some(pair) = of(self.engine()).zip(of(reference))
                && !self.streams.contains(&pair)
            {
                self.streams.push(pair);
            }
        }
    }

    fn compare(&self) {
        let (found, expected) = (run(look(self.engine()), || ()), run(look(&self.reference), || ()));
        assert!(follows(&found, &expected), "found {found:#?}\nexpected {expected:#?}");
        for (ours, theirs) in &self.streams {
            let gone = |error: Error| assert!(matches!(error, Error::StreamNotFound(_)), "{error:?}");
            let found = run(story(self.engine(), ours), || ()).map_err(gone);
            let expected = run(story(&self.reference, theirs), || ()).map_err(gone);
            assert_eq!(found, expected, "the changes in {ours}");
        }
    }
}

/// Which part of a call is named, if several are wrong, is left open.
fn comparable(step: &Step, answer: Result<String>) -> Result<String> {
    let parts =
        matches!(step, Step::Batch(_) | Step::Transact(..) | Step::BatchGet(_) | Step::TransactGet(_));
    answer.map_err(|error| match error {
        Error::TransactionCancelled { .. } | Error::TokenReused => error,
        error if parts && error.next_move() == NextMove::FixCall => {
            Error::Invalid("a part is wrong".to_string())
        }
        error => error,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 400, ..ProptestConfig::default() })]

    /// A failure prints the steps; each is its own number, so that they can be left out one by one.
    #[test]
    fn tables_do_what_the_reference_does(
        steps in proptest::collection::vec(any::<u64>().prop_map(step).no_shrink(), 1..160),
    ) {
        let mut walk = Walk::start();
        for (number, step) in steps.iter().enumerate() {
            walk.take(step);
            if number % LOOK_EVERY == 0 {
                walk.compare();
            }
        }
        walk.upkeep();
        walk.compare();
    }
}
