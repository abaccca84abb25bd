//! The disk fills up with messages: sends are refused, receives and deletes go on, and sending resumes by itself.

mod queue_twin;

use std::collections::BTreeSet;
use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_model::Error;
use anabranch_model::queue::{NewMessage, QueueName, QueueOptions, QueueStore, Receipt, ReceiveOptions};
use anabranch_sim::{SimClock, SimDisk};
use queue_twin::{START, drive, name, open};

const SEGMENT_BYTES: u64 = 16 << 10;

/// Bytes of all files.
fn used(disk: &SimDisk) -> u64 {
    disk.paths().iter().map(|path| disk.file_len(path).expect("it is there")).sum()
}

/// An engine with a queue, on a disk with room for some segments more.
struct Run {
    disk: SimDisk,
    clock: SimClock,
    engine: Engine,
    queue: QueueName,
    sent: usize,
}

impl Run {
    fn start(segments: u64) -> Run {
        let (disk, clock, queue) = (SimDisk::new(), SimClock::new(START), name("work"));
        let engine = open(&disk, &clock);
        let options = QueueOptions { visibility: Duration::from_secs(3600), ..QueueOptions::default() };
        drive(&engine, engine.create_queue(&queue, options)).expect("create");
        engine.upkeep();
        disk.set_capacity(Some(used(&disk) + segments * SEGMENT_BYTES));
        Run { disk, clock, engine, queue, sent: 0 }
    }

    fn body(number: usize, bytes: usize) -> String {
        format!("{number}:{}", "x".repeat(bytes))
    }

    fn send(&mut self, bytes: usize) -> Result<usize, Error> {
        let number = self.sent;
        let messages = vec![NewMessage::new(Run::body(number, bytes))];
        let mut sent = drive(&self.engine, self.engine.send(&self.queue, messages))?;
        self.sent += 1;
        sent.pop().expect("one answer").map(|_| number)
    }

    /// Sends until not even a short message fits.
    fn fill(&mut self) -> BTreeSet<usize> {
        let mut filled = BTreeSet::new();
        for bytes in [2_000, 300, 10] {
            loop {
                match self.send(bytes) {
                    Ok(number) => drop(filled.insert(number)),
                    Err(Error::DiskFull) => break,
                    Err(error) => panic!("a send on a full disk: {error}"),
                }
                assert!(filled.len() < 5_000, "the disk is never full");
            }
        }
        filled
    }

    /// A call that a full disk may put off until the upkeep has been, and no longer.
    fn patiently<T>(&self, call: impl AsyncFn() -> Result<T, Error>) -> T {
        match drive(&self.engine, call()) {
            Err(Error::DiskFull) => {
                (0..2).for_each(|_| self.engine.upkeep());
                drive(&self.engine, call())
            }
            answer => answer,
        }
        .expect("it gives room back")
    }

    /// Receives up to ten messages, and returns their numbers and receipts.
    fn receive(&self) -> Vec<(usize, Receipt)> {
        let messages = self.patiently(|| self.engine.receive(&self.queue, ReceiveOptions::all()));
        let number = |body: &[u8]| {
            let text = std::str::from_utf8(body).expect("a text");
            text.split_once(':').and_then(|(number, _)| number.parse().ok()).expect("a number")
        };
        messages.into_iter().map(|message| (number(&message.body), message.receipt)).collect()
    }

    fn delete(&self, receipts: Vec<Receipt>) {
        for deleted in self.patiently(|| self.engine.delete(&self.queue, receipts.clone())) {
            deleted.expect("it is deleted");
        }
    }

    /// Receives and deletes everything.
    fn empty(&self) -> BTreeSet<usize> {
        let mut taken = BTreeSet::new();
        loop {
            let (numbers, receipts): (Vec<_>, Vec<_>) = self.receive().into_iter().unzip();
            if numbers.is_empty() {
                return taken;
            }
            assert!(numbers.into_iter().all(|number| taken.insert(number)), "a message came twice");
            self.delete(receipts);
            self.engine.upkeep();
        }
    }
}

#[test]
fn a_full_disk_refuses_sends_and_nothing_that_gives_room_back() {
    let mut run = Run::start(12);
    for cycle in 0..8 {
        let filled = run.fill();
        assert!(filled.len() > 40, "cycle {cycle}: room for {} messages only", filled.len());
        assert!(run.engine.status().disk_full);
        assert_eq!(run.empty(), filled, "cycle {cycle}");
        assert!(run.send(2_000).is_ok(), "cycle {cycle}: sending resumes");
        assert!(!run.engine.status().disk_full, "cycle {cycle}");
        assert_eq!(run.empty().len(), 1);
    }
}

#[test]
fn purging_on_a_full_disk_gives_its_room_back() {
    let mut run = Run::start(12);
    for cycle in 0..4 {
        run.fill();
        drive(&run.engine, run.engine.purge(&run.queue)).expect("a purge on a full disk");
        (0..4).for_each(|_| run.engine.upkeep());
        assert!(run.send(2_000).is_ok(), "cycle {cycle}: sending resumes");
        assert_eq!(run.empty().len(), 1);
    }
}

#[test]
fn a_full_disk_of_messages_can_be_opened_again() {
    let mut run = Run::start(12);
    let filled = run.fill();
    let taken: Vec<_> = run.receive();
    let (gone, receipts): (BTreeSet<_>, Vec<_>) = taken.into_iter().unzip();
    run.delete(receipts);
    let Run { disk, clock, engine, queue, sent } = run;
    drop(engine);
    let engine = open(&disk, &clock);
    let run = Run { disk, clock, engine, queue, sent };
    assert_eq!(run.empty(), &filled - &gone);
    assert_eq!(run.engine.status().live_bytes, 0);
    drop(run.clock);
}

#[test]
fn receiving_without_end_on_a_full_disk_leaves_room_for_those_who_give_it_back() {
    let mut run = Run::start(12);
    run.fill();
    let (_, receipts): (Vec<usize>, Vec<_>) = run.receive().into_iter().unzip();
    let mut refused = 0;
    for _ in 0..500 {
        let options = ReceiveOptions { visibility: Some(Duration::ZERO), ..ReceiveOptions::all() };
        match drive(&run.engine, run.engine.receive(&run.queue, options)) {
            Ok(messages) => assert!(!messages.is_empty()),
            Err(Error::DiskFull) => refused += 1,
            Err(error) => panic!("a receive on a full disk: {error}"),
        }
        if refused % 50 == 49 {
            run.engine.upkeep();
        }
    }
    run.delete(receipts);
    drive(&run.engine, run.engine.purge(&run.queue)).expect("a purge");
    (0..4).for_each(|_| run.engine.upkeep());
    assert!(run.send(2_000).is_ok(), "sending resumes");
}
