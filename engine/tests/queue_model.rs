//! Queues beside the simple queues of the laws, in lock-step, whatever is called in whatever order: each answer and
//! everything that can be seen at the end must be the same.

mod queue_twin;

use std::collections::HashSet;
use std::task::{Context, Waker};
use std::time::Duration;

use anabranch_model::queue::{NewMessage, QueueOptions, QueueStore, ReceiveOptions, RedrivePolicy};
use proptest::prelude::*;
use queue_twin::{Call, Twin, drive, expected, name, shown_by};

const QUEUES: [&str; 4] = ["a-work", "b-other", "z-dead", "c-late"];
const FIFOS: [&str; 2] = ["a-work.fifo", "z-dead.fifo"];
/// Messages of a queue that keeps an order, which with three probes make one receive: which of more it gives is left open.
const FIFO_MESSAGES_MAX: u64 = 7;

#[derive(Clone, Debug)]
enum Step {
    Send { queue: usize, count: usize, delay: u64 },
    SendFifo { count: usize, group: usize, known: Option<u8> },
    Receive { queue: usize, seconds: u64 },
    Delete { queue: usize, pick: usize },
    Hide { queue: usize, pick: usize, seconds: u64 },
    SendAndReceive { queue: usize, seconds: u64 },
    Advance { seconds: u64 },
    Purge { queue: usize },
    Delay { seconds: u64 },
    Move,
    Upkeep,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let queue = 0..QUEUES.len() + FIFOS.len();
    prop_oneof![
        6 => (0..QUEUES.len(), 1usize..10, 0u64..20)
            .prop_map(|(queue, count, delay)| Step::Send { queue, count, delay }),
        6 => (1usize..4, 0usize..3, proptest::option::of(0u8..3))
            .prop_map(|(count, group, known)| Step::SendFifo { count, group, known }),
        9 => (queue.clone(), 1u64..60).prop_map(|(queue, seconds)| Step::Receive { queue, seconds }),
        4 => (queue.clone(), any::<usize>()).prop_map(|(queue, pick)| Step::Delete { queue, pick }),
        4 => (queue.clone(), any::<usize>(), 0u64..40)
            .prop_map(|(queue, pick, seconds)| Step::Hide { queue, pick, seconds }),
        3 => (0..QUEUES.len(), 1u64..60).prop_map(|(queue, seconds)| Step::SendAndReceive { queue, seconds }),
        5 => (1u64..100).prop_map(|seconds| Step::Advance { seconds }),
        1 => queue.prop_map(|queue| Step::Purge { queue }),
        1 => (0u64..30).prop_map(|seconds| Step::Delay { seconds }),
        1 => Just(Step::Move),
        2 => Just(Step::Upkeep),
        2 => Just(Step::Reopen),
    ]
}

/// Every second body is long enough to stay in the journal.
fn body(number: usize) -> String {
    format!("message {number}{}", ".".repeat(number % 2 * 600))
}

struct Walk {
    twin: Twin,
    sent: usize,
}

fn queue(index: usize) -> &'static str {
    QUEUES.iter().chain(&FIFOS).nth(index).expect("a queue")
}

impl Walk {
    fn new() -> Walk {
        let mut twin = Twin::start();
        let redrive = |dead: &str| Some(RedrivePolicy { dead_letters: name(dead), receives_max: 2 });
        let plain = QueueOptions { retention: Duration::from_secs(300), ..QueueOptions::default() };
        twin.call(Call::Create("z-dead", QueueOptions::default()));
        twin.call(Call::Create("a-work", QueueOptions { redrive: redrive("z-dead"), ..plain.clone() }));
        twin.call(Call::Create("b-other", plain.clone()));
        twin.call(Call::Create("c-late", QueueOptions { delay: Duration::from_secs(15), ..plain }));
        twin.call(Call::Create("z-dead.fifo", QueueOptions::fifo()));
        let retention = Duration::from_secs(300);
        let fifo = QueueOptions { redrive: redrive("z-dead.fifo"), retention, ..QueueOptions::fifo() };
        twin.call(Call::Create("a-work.fifo", fifo));
        Walk { twin, sent: 0 }
    }

    fn message(&mut self) -> NewMessage {
        self.sent += 1;
        NewMessage::new(body(self.sent))
    }

    /// One of the messages that were sent so far.
    fn some(&self, pick: usize) -> Vec<String> {
        (0..3).map(|more| body(pick.wrapping_add(more) % self.sent.max(1) + 1)).collect()
    }

    fn take(&mut self, step: Step) {
        let seconds = Duration::from_secs;
        match step {
            Step::Send { queue, count, delay } => {
                let after =
                    |message: NewMessage| if delay > 10 { message.after(seconds(delay)) } else { message };
                let messages = (0..count).map(|_| after(self.message())).collect();
                self.twin.call(Call::Send(QUEUES[queue], messages));
            }
            Step::SendFifo { count, group, known } => {
                if FIFOS.iter().map(|queue| self.twin.messages(queue)).sum::<u64>() + count as u64
                    > FIFO_MESSAGES_MAX
                {
                    return;
                }
                let messages = (0..count).map(|_| {
                    let message = self.message().in_group(["x", "y", "z"][group]);
                    let id = known.map_or_else(|| format!("own-{}", self.sent), |known| known.to_string());
                    message.known_as(&id)
                });
                let messages = messages.collect();
                self.twin.call(Call::Send("a-work.fifo", messages));
            }
            Step::Receive { queue: index, seconds: time } => {
                self.twin.call(Call::Receive(queue(index), seconds(time)));
            }
            Step::Delete { queue: index, pick } => {
                self.twin.call(Call::Delete(queue(index), self.some(pick)));
            }
            Step::Hide { queue: index, pick, seconds: time } => {
                self.twin.call(Call::Hide(queue(index), self.some(pick), seconds(time)));
            }
            Step::SendAndReceive { queue, seconds: time } => {
                let sends =
                    [self.message(), self.message()].map(|message| Call::Send(QUEUES[queue], vec![message]));
                let [one, other] = sends;
                self.twin.together(&[one, other, Call::Receive(QUEUES[queue], seconds(time))]);
            }
            Step::Advance { seconds: time } => {
                self.twin.advance(seconds(time));
                self.twin.engine().upkeep();
            }
            Step::Purge { queue: index } => self.twin.call(Call::Purge(queue(index))),
            Step::Delay { seconds: time } => {
                let options = QueueOptions { delay: seconds(time), ..QueueOptions::default() };
                self.twin.call(Call::Options("c-late", options));
            }
            Step::Move => {
                // To one queue: without it a move ends at a message that was never a dead letter, wherever that stands.
                self.twin.call(Call::Move("z-dead", Some("b-other")));
                self.twin.engine().upkeep();
            }
            Step::Upkeep => self.twin.engine().upkeep(),
            Step::Reopen => self.twin.reopen(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn queues_do_what_the_simple_queues_do(steps in proptest::collection::vec(step(), 1..80)) {
        let mut walk = Walk::new();
        steps.into_iter().for_each(|step| walk.take(step));
        let expected = expected(&walk.twin.model.state(), walk.twin.now());
        let seen = shown_by(walk.twin.engine(), &walk.twin.clock);
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn calls_on_one_queue_share_a_sync() {
    let mut twin = Twin::start();
    twin.call(Call::Create("shared", QueueOptions::default()));
    let messages = |label: &str| (0..10).map(|n| NewMessage::new(format!("{label}-{n}"))).collect::<Vec<_>>();
    for round in 0..4 {
        twin.call(Call::Send("shared", messages(&format!("{round}"))));
    }
    let (engine, queue) = (twin.engine().clone(), name("shared"));
    let mut receives: Vec<_> = (0..4).map(|_| engine.receive(&queue, ReceiveOptions::all())).collect();
    for receive in &mut receives {
        let polled = receive.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "nothing is given before it is durable");
    }
    assert_eq!(engine.status().frames_waiting, 4, "no receiver waits for another one's disk");
    let syncs = twin.disk.syncs().len();
    assert!(engine.commit());
    assert_eq!(twin.disk.syncs().len(), syncs + 1);
    let mut ids = HashSet::new();
    for receive in receives {
        ids.extend(drive(&engine, receive).expect("a receive").into_iter().map(|message| message.id));
    }
    assert_eq!(ids.len(), 40, "nobody gets what another one has");
}
