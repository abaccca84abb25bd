//! Bodies of messages stay in the journal: they are written once, found again wherever they stand, and what is gone or
//! moved gives its segment back.

mod queue_twin;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::queue::{
    Message, MoveStatus, NewMessage, QueueName, QueueOptions, QueueStore, ReceiveOptions, RedrivePolicy,
};
use anabranch_model::{Disk, Error};
use anabranch_sim::{SimClock, SimDisk};
use queue_twin::{START, drive, name, open, options};

const BODY_BYTES: usize = 1_000;
/// More than the state takes at its smallest.
const COUNT: usize = 8_000;
/// What the options of these tests allow.
const IN_FLIGHT_MAX: usize = 1_000;
const HOUR: Duration = Duration::from_secs(3600);

/// An engine with a queue, driven by hand.
struct Run {
    disk: SimDisk,
    clock: SimClock,
    engine: Engine,
    queue: QueueName,
}

impl Run {
    fn start() -> Run {
        let (disk, clock, queue) = (SimDisk::new(), SimClock::new(START), name("work"));
        let engine = open(&disk, &clock);
        let options = QueueOptions { visibility: 12 * HOUR, ..QueueOptions::default() };
        drive(&engine, engine.create_queue(&queue, options)).expect("create");
        Run { disk, clock, engine, queue }
    }

    fn send(&self, numbers: std::ops::Range<usize>) {
        for first in numbers.clone().step_by(10) {
            let batch = first..numbers.end.min(first + 10);
            let messages = batch.map(|number| NewMessage::new(body(number))).collect();
            for sent in drive(&self.engine, self.engine.send(&self.queue, messages)).expect("a send") {
                sent.expect("a message is sent");
            }
        }
    }

    /// What is visible, by its number, as far as it may be in flight.
    fn receive(&self) -> BTreeMap<usize, Message> {
        let mut all = BTreeMap::new();
        loop {
            let receive = self.engine.receive(&self.queue, ReceiveOptions::all());
            let messages = drive(&self.engine, receive).expect("a receive");
            let over = messages.is_empty();
            all.extend(messages.into_iter().map(|message| (number(&message), message)));
            if over || all.len() >= IN_FLIGHT_MAX {
                return all;
            }
        }
    }

    fn delete(&self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            let deleted = drive(&self.engine, self.engine.delete(&self.queue, vec![message.receipt]));
            assert_eq!(deleted, Ok(vec![Ok(())]));
        }
    }

    fn upkeep(&self, times: usize) {
        (0..times).for_each(|_| self.engine.upkeep());
    }

    fn reopen(self) -> Run {
        let Run { disk, clock, engine, queue } = self;
        drop(engine);
        let engine = open(&disk, &clock);
        Run { disk, clock, engine, queue }
    }

    /// What lies in segments that are in use.
    fn live_bytes(&self) -> u64 {
        self.engine.status().live_bytes
    }
}

/// A body that says which it is, and has no two bytes in common places with another.
fn body(number: usize) -> String {
    let mut text = format!("{number}:");
    while text.len() < BODY_BYTES {
        text += &format!("{:x}.", (number + 1) * (text.len() + 7));
    }
    text
}

/// The number of a message, whose body must be whole.
fn number(message: &Message) -> usize {
    let text = std::str::from_utf8(&message.body).expect("a text");
    let number = text.split_once(':').and_then(|(number, _)| number.parse().ok()).expect("a number");
    assert_eq!(text, body(number));
    number
}

fn file_bytes(disk: &SimDisk, wanted: &str) -> u64 {
    let paths = disk.paths().into_iter().filter(|path| path.starts_with(wanted));
    paths.map(|path| disk.file_len(&path).expect("it is there")).sum()
}

#[test]
fn a_body_is_in_the_journal_and_nowhere_else() {
    let run = Run::start();
    for first in (0..COUNT).step_by(1_000) {
        run.send(first..first + 1_000);
        run.upkeep(1);
    }
    let (bytes, state) = ((COUNT * BODY_BYTES) as u64, file_bytes(&run.disk, "state.redb"));
    assert!(state < bytes / 2, "the state has {state} bytes for {bytes} bytes of bodies");
    assert!(run.live_bytes() >= bytes, "{} bytes are live", run.live_bytes());
    let run = run.reopen();
    assert!(run.live_bytes() >= bytes, "{} bytes are live after an opening", run.live_bytes());
    let mut seen = Vec::new();
    for _ in 0..COUNT / IN_FLIGHT_MAX {
        let messages = run.receive();
        seen.extend(messages.keys().copied());
        run.delete(messages.into_values());
    }
    assert!(seen.into_iter().eq(0..COUNT));
}

#[test]
fn what_is_deleted_counts_no_longer() {
    let run = Run::start();
    run.send(0..300);
    run.upkeep(1);
    let messages = run.receive();
    let (gone, left): (Vec<_>, Vec<_>) = messages.into_values().partition(|message| number(message) < 299);
    run.delete(gone);
    run.upkeep(1);
    let one = run.live_bytes();
    assert!(
        (BODY_BYTES as u64..2 * BODY_BYTES as u64).contains(&one),
        "{one} bytes are live for one message"
    );
    run.delete(left);
    run.upkeep(1);
    assert_eq!(run.live_bytes(), 0);
    assert!(run.engine.status().segments <= 4, "{:?}", run.engine.status());
}

#[test]
fn purged_and_deleted_queues_give_the_room_of_bodies_back() {
    let run = Run::start();
    run.send(0..300);
    run.upkeep(1);
    drive(&run.engine, run.engine.purge(&run.queue)).expect("a purge");
    run.upkeep(1);
    assert_eq!(run.live_bytes(), 0);
    run.send(300..600);
    run.upkeep(1);
    assert!(run.live_bytes() >= 300 * BODY_BYTES as u64);
    drive(&run.engine, run.engine.delete_queue(&run.queue)).expect("a deletion");
    run.upkeep(1);
    assert_eq!(run.live_bytes(), 0);
}

#[test]
fn old_messages_keep_no_segment() {
    let run = Run::start();
    let mut kept = BTreeSet::new();
    for round in 0..40 {
        run.send(round * 30..(round + 1) * 30);
        let messages = run.receive();
        let (old, gone): (Vec<_>, Vec<_>) =
            messages.into_values().partition(|message| number(message).is_multiple_of(15));
        kept.extend(old.iter().map(number));
        run.delete(gone);
        run.upkeep(2);
    }
    run.upkeep(40);
    assert_eq!(kept.len(), 80);
    // 80 messages of 1,000 bytes fill five segments of 16 KiB; as much may be dead, and eight segments more. There were
    // more than a hundred.
    let status = run.engine.status();
    assert!(status.segments <= 22, "{} segments for {} live bytes", status.segments, status.live_bytes);
    let run = run.reopen();
    run.clock.advance(13 * HOUR);
    assert!(run.receive().into_keys().eq(kept), "the messages are as they were sent");
}

#[test]
fn a_queue_that_empties_from_the_front_moves_nothing() {
    let run = Run::start();
    run.send(0..200);
    run.upkeep(1);
    let operations = run.disk.operations();
    let mut waiting: Vec<Message> = run.receive().into_values().rev().collect();
    while let Some(message) = waiting.pop() {
        run.delete([message]);
        run.upkeep(1);
    }
    let written: u64 = (operations..run.disk.operations())
        .map(|operation| run.disk.describe(operation))
        .filter(|operation| operation.starts_with("write journal/"))
        .count() as u64;
    // One write for each receive and delete, and none for the bodies.
    assert!(written <= 230, "{written} writes to the journal");
    assert_eq!(run.live_bytes(), 0);
}

/// However many segments it fills.
#[test]
fn a_move_comes_to_its_end_in_one_go() {
    const MOVED: usize = 120;
    let run = Run::start();
    let redrive = RedrivePolicy { dead_letters: run.queue.clone(), receives_max: 1 };
    for queue in ["source", "target"] {
        let options = QueueOptions { redrive: Some(redrive.clone()), ..QueueOptions::default() };
        drive(&run.engine, run.engine.create_queue(&name(queue), options)).expect("create");
    }
    run.send(0..MOVED);
    let target = name("target");
    drive(&run.engine, run.engine.start_move(&run.queue, Some(&target), None)).expect("a move");
    run.upkeep(1);
    let moves = drive(&run.engine, run.engine.moves(&run.queue)).expect("moves");
    assert_eq!((moves[0].moved, &moves[0].status), (MOVED as u64, &MoveStatus::Completed));
    let run = Run { queue: target, ..run };
    assert!(run.receive().into_keys().eq(0..MOVED));
}

#[test]
fn a_damaged_body_is_told_and_the_others_are_received() {
    let run = Run::start();
    run.send(0..3);
    run.upkeep(1);
    let (place, at) = find(&run.disk, body(1).as_bytes());
    run.disk.flip_bit(&place, at + 500, 3).expect("it is there");
    let run = run.reopen();
    let one = |run: &Run| {
        let options = ReceiveOptions { messages_max: 1, ..ReceiveOptions::all() };
        drive(&run.engine, run.engine.receive(&run.queue, options))
    };
    let mut seen = Vec::new();
    let mut damaged = 0;
    for _ in 0..3 {
        match one(&run) {
            Ok(messages) => seen.extend(messages.iter().map(number)),
            Err(Error::Corrupt(text)) => {
                assert!(text.contains("journal"), "{text}");
                damaged += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    seen.sort_unstable();
    assert_eq!((seen, damaged), (vec![0, 2], 1));
}

/// The file of the journal that has these bytes, and where.
fn find(disk: &SimDisk, bytes: &[u8]) -> (String, u64) {
    for path in disk.paths().into_iter().filter(|path| path.starts_with("journal/")) {
        let contents = disk.contents(&path).expect("it is there");
        if let Some(at) = contents.windows(bytes.len()).position(|window| window == bytes) {
            return (path, at as u64);
        }
    }
    panic!("no segment has them")
}

#[test]
fn a_backup_has_the_bodies() {
    let run = Run::start();
    run.send(0..100);
    run.upkeep(1);
    let (kept, gone): (Vec<_>, Vec<_>) =
        run.receive().into_values().partition(|message| number(message).is_multiple_of(7));
    run.delete(gone);
    let target = SimDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(target.clone());
    run.engine.backup(&disk, &mut |_| true).expect("a backup");
    let numbers: Vec<usize> = kept.iter().map(number).collect();
    run.delete(kept);
    run.upkeep(4);
    assert_eq!(run.live_bytes(), 0);

    let engine = open(&target, &run.clock);
    let restored = Run { disk: target, clock: run.clock.clone(), engine, queue: run.queue.clone() };
    restored.clock.advance(13 * HOUR);
    assert!(restored.receive().into_keys().eq(numbers));
}

/// What each task does at least, and at most if the cleaner gets no time.
const STEPS_MIN: usize = 150;
const STEPS_MAX: usize = 1_000;

/// Whether the cleaner has emptied segments: messages stay behind in each of them.
fn has_retired(engine: &Engine) -> bool {
    let status = engine.status();
    status.journal_position / status.segment_bytes > status.segments as u64 + 16
}

/// Messages come and go while segments below them are cleaned and recycled, and each is received as it was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn receivers_and_the_cleaner_do_not_meet() {
    let disk = SimDisk::new();
    let options = Options { drive: Drive::Threads, ..options() };
    let clock = SimClock::new(START);
    let engine = Engine::open(Arc::new(disk), Arc::new(clock.clone()), options).expect("it opens");
    let queue = name("work");
    engine.create_queue(&queue, QueueOptions::default()).await.expect("create");
    let stop = Arc::new(AtomicBool::new(false));
    let cleaning = tokio::task::spawn_blocking({
        let (engine, stop) = (engine.clone(), stop.clone());
        move || {
            while !stop.load(Ordering::Acquire) {
                engine.upkeep();
            }
        }
    });
    let mut tasks = Vec::new();
    for task in 0..4usize {
        let (engine, queue) = (engine.clone(), queue.clone());
        tasks.push(tokio::spawn(async move {
            let mut sent = BTreeSet::new();
            let mut received = BTreeSet::new();
            for step in 0..STEPS_MAX {
                if step >= STEPS_MIN && has_retired(&engine) {
                    break;
                }
                let numbers = (0..4).map(|more| (task * 1_000 + step) * 10 + more);
                sent.extend(numbers.clone());
                let messages = numbers.map(|number| NewMessage::new(body(number))).collect();
                engine.send(&queue, messages).await.expect("a send");
                let options = ReceiveOptions { messages_max: 4, ..ReceiveOptions::all() };
                let mut messages = engine.receive(&queue, options).await.expect("a receive");
                // One of them stays behind, so that segments have something to be moved.
                messages.pop();
                if messages.is_empty() {
                    continue;
                }
                received.extend(messages.iter().map(number));
                let receipts = messages.into_iter().map(|message| message.receipt).collect();
                for deleted in engine.delete(&queue, receipts).await.expect("a delete") {
                    deleted.expect("it is deleted");
                }
            }
            (sent, received)
        }));
    }
    let (mut sent, mut received) = (BTreeSet::new(), BTreeSet::new());
    for task in tasks {
        let (more, taken) = task.await.expect("a task");
        sent.extend(more);
        assert!(taken.iter().all(|number| received.insert(*number)), "a message came twice");
    }
    stop.store(true, Ordering::Release);
    cleaning.await.expect("the cleaner");
    assert!(has_retired(&engine), "the cleaner has moved nothing: {:?}", engine.status());
    clock.advance(HOUR);
    loop {
        let messages = engine.receive(&queue, ReceiveOptions::all()).await.expect("a receive");
        if messages.is_empty() {
            break;
        }
        assert!(messages.iter().all(|message| received.insert(number(message))), "a message came twice");
    }
    assert_eq!(received, sent);
    engine.close().await.expect("it closes");
}

#[test]
fn a_damaged_body_takes_no_neighbour_with_it() {
    let run = Run::start();
    let (dead, few) = (name("dead"), Duration::from_secs(30));
    drive(&run.engine, run.engine.create_queue(&dead, QueueOptions::default())).expect("create");
    let redrive = RedrivePolicy { dead_letters: dead.clone(), receives_max: 2 };
    let policy = QueueOptions { visibility: few, redrive: Some(redrive), ..QueueOptions::default() };
    drive(&run.engine, run.engine.set_options(&run.queue, policy)).expect("a policy");
    run.send(0..20);
    run.upkeep(1);
    damage(&run.disk, &body(7));

    let whole: Vec<usize> = (0..20).filter(|number| *number != 7).collect();
    for _ in 0..2 {
        assert!(run.receive().into_keys().eq(whole.iter().copied()), "its neighbours are received");
        run.clock.advance(few + Duration::from_secs(1));
    }
    // All were received as often as they may be: those that can be read go to the dead letters, and it stays.
    let receive = |queue: &QueueName| {
        let (mut all, mut errors) = (BTreeSet::new(), Vec::new());
        loop {
            match drive(&run.engine, run.engine.receive(queue, ReceiveOptions::all())) {
                Ok(messages) if messages.is_empty() => return (all, errors),
                Ok(messages) => all.extend(messages.iter().map(number)),
                Err(error) => errors.push(error),
            }
        }
    };
    let (given, errors) = receive(&run.queue);
    assert!(given.is_empty() && matches!(errors[..], [Error::Corrupt(_)]), "{given:?} {errors:?}");
    assert_eq!(receive(&dead), (whole.into_iter().collect(), Vec::new()));
    run.send(20..21);
    assert!(run.receive().into_keys().eq([20]), "the queue goes on");
}

/// Turns a bit in the middle of a text, wherever it stands in the journal.
fn damage(disk: &SimDisk, text: &str) {
    let mut turned = 0;
    for path in disk.paths().into_iter().filter(|path| path.starts_with("journal/")) {
        let contents = disk.contents(&path).expect("it is there");
        let places =
            contents.windows(text.len()).enumerate().filter(|(_, window)| *window == text.as_bytes());
        for (place, _) in places {
            disk.flip_bit(&path, (place + text.len() / 2) as u64, 3).expect("turned");
            turned += 1;
        }
    }
    assert!(turned > 0, "the text is not in the journal");
}

/// A receive that finds no memory for all it picked gives what it can, and the rest was never received.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_given_for_want_of_memory_is_visible_again() {
    // A quarter of the least memory there is.
    const LENT_MAX: usize = 12;
    let options =
        Options { drive: Drive::Threads, memory_bytes: 4 * (LENT_MAX << 20) as u64, ..Options::default() };
    let clock = SimClock::new(START);
    let engine = Engine::open(Arc::new(SimDisk::new()), Arc::new(clock.clone()), options).expect("it opens");
    let queue = name("large");
    let hour = QueueOptions { visibility: HOUR, ..QueueOptions::default() };
    engine.create_queue(&queue, hour).await.expect("create");
    for _ in 0..2 * LENT_MAX {
        engine.send(&queue, vec![NewMessage::new(vec![b'x'; 1_000_000])]).await.expect("a send");
    }
    let mut held = Vec::new();
    while held.len() < LENT_MAX - 2 {
        let one = ReceiveOptions { messages_max: 1, ..ReceiveOptions::all() };
        held.extend(engine.receive(&queue, one).await.expect("a receive"));
    }
    let receive = || engine.receive(&queue, ReceiveOptions::all());
    held.extend(receive().await.expect("a receive"));
    assert_eq!(held.len(), LENT_MAX, "there was memory for two");
    assert!(matches!(receive().await, Err(Error::Busy { .. })), "there was memory for one more");
    // The clock stands: only what was put back is visible.
    let receipts: Vec<_> = held.iter().map(|message| message.receipt.clone()).collect();
    drop(held);
    let mut rest = Vec::new();
    while rest.len() < LENT_MAX {
        let messages = receive().await.expect("a receive");
        assert!(!messages.is_empty(), "{} are missing", LENT_MAX - rest.len());
        rest.extend(messages.into_iter().map(|message| (message.receive_count, message.receipt)));
    }
    assert!(rest.iter().all(|(count, _)| *count == 1), "what was put back was not received: {rest:?}");
    for receipts in [receipts, rest.into_iter().map(|(_, receipt)| receipt).collect()] {
        for receipts in receipts.chunks(10) {
            let deleted = engine.delete(&queue, receipts.to_vec()).await.expect("a deletion");
            assert!(deleted.iter().all(Result::is_ok), "{deleted:?}");
        }
    }
    assert!(receive().await.expect("a receive").is_empty());
}
