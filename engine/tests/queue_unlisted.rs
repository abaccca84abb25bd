//! Queues that are longer than what of them is in memory: messages without a row in the order of visibility are found,
//! each once, whatever came between: receives, delays, checkpoints, openings, and a clock that was set back.

mod queue_twin;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options};
use anabranch_model::Clock;
use anabranch_model::queue::{NewMessage, QueueCounts, QueueOptions, QueueStore, Receipt, ReceiveOptions};
use anabranch_sim::{SimClock, SimDisk};
use proptest::prelude::*;
use queue_twin::{START, drive, name};

/// Any number of messages may be in flight.
fn options() -> Options {
    Options { in_flight_max: usize::MAX, ..queue_twin::options() }
}

const HIDDEN: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
enum Step {
    /// Visible at once.
    Send(usize),
    Delayed(usize),
    Receive(usize),
    Delete(usize),
    Pass(u64),
    Upkeep,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1usize..40).prop_map(Step::Send),
        1 => (1usize..10).prop_map(Step::Delayed),
        5 => (1usize..40).prop_map(Step::Receive),
        3 => (1usize..200).prop_map(Step::Delete),
        2 => (1u64..40).prop_map(Step::Pass),
        2 => Just(Step::Upkeep),
        2 => Just(Step::Reopen),
    ]
}

/// A queue, and what must be in it.
struct World {
    disk: Arc<SimDisk>,
    clock: SimClock,
    engine: Engine,
    sent: usize,
    /// Messages that nobody has received, with the time of the stopwatch from which on they are visible.
    unread: BTreeMap<String, Duration>,
    /// Messages in somebody's hands, with the end of that.
    held: BTreeMap<String, (Receipt, Duration)>,
}

impl World {
    fn new() -> World {
        let (disk, clock) = (Arc::new(SimDisk::new()), SimClock::new(START));
        let engine = Engine::open(disk.clone(), Arc::new(clock.clone()), options()).expect("it opens");
        drive(&engine, engine.create_queue(&name("long"), QueueOptions::default())).expect("it is made");
        World { disk, clock, engine, sent: 0, unread: BTreeMap::new(), held: BTreeMap::new() }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Send(batches) => (0..*batches).for_each(|_| self.send(Duration::ZERO)),
            Step::Delayed(batches) => (0..*batches).for_each(|_| self.send(Duration::from_secs(30))),
            Step::Receive(calls) => (0..*calls).for_each(|_| self.receive()),
            Step::Delete(count) => self.delete(*count),
            Step::Pass(seconds) => self.clock.advance(Duration::from_secs(*seconds)),
            Step::Upkeep => self.engine.upkeep(),
            Step::Reopen => self.reopen(),
        }
    }

    fn reopen(&mut self) {
        self.engine =
            Engine::open(self.disk.clone(), Arc::new(self.clock.clone()), options()).expect("it opens");
    }

    /// Every second body is long enough to stay in the journal.
    fn send(&mut self, delay: Duration) {
        let body = |number: usize| format!("{number:06}{}", ".".repeat(number % 2 * 300));
        let bodies: Vec<String> = (self.sent..self.sent + 10).map(body).collect();
        self.sent += 10;
        let messages =
            bodies.iter().map(|body| NewMessage { delay: Some(delay), ..NewMessage::new(body.clone()) });
        let messages = messages.collect();
        for sent in drive(&self.engine, self.engine.send(&name("long"), messages)).expect("a send") {
            sent.expect("a message is sent");
        }
        let due = self.clock.elapsed() + delay;
        self.unread.extend(bodies.into_iter().map(|body| (body, due)));
    }

    fn receive(&mut self) {
        let options = ReceiveOptions { visibility: Some(HIDDEN), ..ReceiveOptions::all() };
        let now = self.clock.elapsed();
        let received = drive(&self.engine, self.engine.receive(&name("long"), options)).expect("a receive");
        let visible = self.visible();
        assert_eq!(received.len(), visible.len().min(10), "{} are visible", visible.len());
        for message in received {
            let body = String::from_utf8(message.body.to_vec()).expect("text");
            assert!(visible.contains(&body), "{body} is not visible");
            self.unread.remove(&body);
            self.held.insert(body, (message.receipt, now + HIDDEN));
        }
    }

    fn visible(&self) -> BTreeSet<String> {
        let now = self.clock.elapsed();
        let unread = self.unread.iter().filter(|(_, due)| **due <= now).map(|(body, _)| body);
        let back = self.held.iter().filter(|(_, (_, end))| *end <= now).map(|(body, _)| body);
        unread.chain(back).cloned().collect()
    }

    fn delete(&mut self, count: usize) {
        let gone: Vec<String> = self.held.keys().step_by(2).take(count).cloned().collect();
        for bodies in gone.chunks(10) {
            let receipts =
                bodies.iter().filter_map(|body| self.held.remove(body)).map(|(receipt, _)| receipt);
            let receipts = receipts.collect();
            for deleted in drive(&self.engine, self.engine.delete(&name("long"), receipts)).expect("a delete")
            {
                deleted.expect("a message is deleted");
            }
        }
    }

    fn check(&self) {
        let now = self.clock.elapsed();
        let visible = self.visible().len() as u64;
        let in_flight = self.held.values().filter(|(_, end)| *end > now).count() as u64;
        let delayed = self.unread.values().filter(|due| **due > now).count() as u64;
        let counts = drive(&self.engine, self.engine.queue(&name("long"))).expect("it is there").counts;
        assert_eq!(counts, QueueCounts { visible, in_flight, delayed });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_long_queue_gives_every_message(steps in proptest::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
            world.check();
        }
        // Whoever holds messages lets go of them, and all that is left comes.
        world.clock.advance(2 * HIDDEN);
        while !world.visible().is_empty() {
            world.receive();
        }
        prop_assert!(world.unread.is_empty());
        world.check();
    }
}

/// Messages that were sent by a clock that was wrong lie behind those of the right one, and are found all the same.
#[test]
fn messages_of_a_clock_that_went_wrong_are_found() {
    let mut world = World::new();
    (0..30).for_each(|_| world.send(Duration::ZERO));
    (0..20).for_each(|_| world.receive());
    world.delete(50);
    let now = world.clock.now();
    world.clock.jump_to(now.minus(Duration::from_secs(3_600)));
    world.reopen();
    (0..30).for_each(|_| world.send(Duration::ZERO));
    let options = ReceiveOptions { visibility: Some(HIDDEN), ..ReceiveOptions::all() };
    let mut bodies = BTreeSet::new();
    while let received @ [_, ..] =
        &*drive(&world.engine, world.engine.receive(&name("long"), options.clone())).expect("a receive")
    {
        for message in received {
            let body = String::from_utf8(message.body.to_vec()).expect("text");
            assert!(world.unread.contains_key(&body) && bodies.insert(body.clone()), "{body}");
        }
    }
    // Those of the time before are due in an hour.
    assert_eq!(bodies.len(), 300);
    world.clock.advance(Duration::from_secs(3_600));
    world.clock.advance(2 * HIDDEN);
    let mut left = 0;
    while let received @ [_, ..] =
        &*drive(&world.engine, world.engine.receive(&name("long"), options.clone())).expect("a receive")
    {
        left += received.len();
    }
    assert_eq!(left, 300 + 300 - 50);
}
