//! Power is lost after every operation of a scripted run of queues: what was acknowledged is there, nothing is half done,
//! nobody gets a message that another one has, and groups keep their order.
//!
//! What a crash leaves must be what the simple queues of the laws show after some call between the last that was answered
//! and the last that was asked for.

mod queue_twin;

use std::time::Duration;

use anabranch_model::Timestamp;
use anabranch_model::laws::reference::SimpleQueuesState;
use anabranch_model::queue::{NewMessage, QueueOptions, RedrivePolicy};
use anabranch_sim::{CrashPoint, SimClock, SimDisk};
use queue_twin::{Call, Twin, expected, name, open, shown_by};

const SECOND: Duration = Duration::from_secs(1);
/// Seeds per moment; the first two lose everything that was not synced, and nothing.
const SEEDS: u64 = 4;

/// A call of the script, in the operations of the disk.
struct Step {
    asked: usize,
    answered: usize,
    at: Timestamp,
    what: String,
    after: SimpleQueuesState,
}

struct Script {
    twin: Twin,
    steps: Vec<Step>,
}

impl Script {
    fn new() -> Script {
        let mut script = Script { twin: Twin::start(), steps: Vec::new() };
        script.note(0, "open".into());
        script
    }

    fn note(&mut self, asked: usize, what: String) {
        let (answered, at, after) = (self.twin.disk.operations(), self.twin.now(), self.twin.model.state());
        self.steps.push(Step { asked, answered, at, what, after });
    }

    fn call(&mut self, call: Call) {
        let asked = self.twin.disk.operations();
        let what = format!("{call:?}");
        self.twin.call(call);
        self.note(asked, what);
    }

    /// Calls that share a sync. A crash may come behind each of them.
    fn together(&mut self, calls: Vec<Call>) {
        let asked = self.twin.disk.operations();
        let before = self.twin.model.state();
        self.twin.together(&calls);
        let after = self.twin.model.state();
        self.twin.model.set_state(before);
        for call in calls {
            self.twin.ask_model(&call);
            self.note(asked, format!("{call:?}"));
        }
        self.twin.model.set_state(after);
    }

    /// Lets time pass, and what happens by itself with it.
    fn rest(&mut self, time: Duration) {
        self.twin.advance(time);
        let asked = self.twin.disk.operations();
        self.note(asked, "time passes".into());
        self.twin.engine().upkeep();
        self.note(asked, "upkeep".into());
    }

    fn reopen(&mut self) {
        let asked = self.twin.disk.operations();
        self.twin.reopen();
        self.note(asked, "open again".into());
    }
}

fn bodies(label: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("{label} {number}")).collect()
}

fn messages(label: &str, numbers: std::ops::Range<usize>) -> Vec<NewMessage> {
    bodies(label, numbers).into_iter().map(NewMessage::new).collect()
}

fn grouped(label: &str, numbers: std::ops::Range<usize>) -> Vec<NewMessage> {
    let dress = |(number, message): (usize, NewMessage)| {
        message.in_group(["a", "b"][number % 2]).known_as(&format!("{label}{number}"))
    };
    messages(label, numbers).into_iter().enumerate().map(dress).collect()
}

/// Sends, receives, changed visibilities, deletes, dead letters, moves, purges and deleted queues.
fn standard() -> Script {
    let mut script = Script::new();
    let redrive = Some(RedrivePolicy { dead_letters: name("zz-dead"), receives_max: 2 });
    script.call(Call::Create("zz-dead", QueueOptions::default()));
    script.call(Call::Create("work", QueueOptions { redrive, ..QueueOptions::default() }));
    script.call(Call::Send("work", messages("m", 0..6)));
    script.call(Call::Send("work", vec![NewMessage::new("late").after(40 * SECOND)]));
    script.call(Call::Receive("work", 30 * SECOND));
    script.together(vec![
        Call::Delete("work", bodies("m", 0..2)),
        Call::Send("work", messages("k", 0..3)),
        Call::Hide("work", bodies("m", 4..5), 60 * SECOND),
        Call::Receive("work", 90 * SECOND),
    ]);
    script.call(Call::Hide("work", bodies("m", 2..3), 100 * SECOND));
    script.call(Call::Hide("work", bodies("m", 3..4), Duration::ZERO));
    script.rest(30 * SECOND);
    script.call(Call::Receive("work", 20 * SECOND));
    script.rest(20 * SECOND);
    script.call(Call::Receive("work", 20 * SECOND));
    script.reopen();
    script.call(Call::Move("zz-dead", None));
    // The simple queues move at once, an engine when it tidies up.
    script.rest(Duration::ZERO);
    script.call(Call::Receive("work", 5 * SECOND));
    script.call(Call::Options("work", QueueOptions { retention: 60 * SECOND, ..QueueOptions::default() }));
    script.rest(61 * SECOND);
    script.call(Call::Send("work", messages("n", 0..4)));
    script.call(Call::Purge("work"));
    script.call(Call::Send("work", messages("o", 0..2)));
    script.call(Call::DeleteQueue("zz-dead"));
    script.rest(SECOND);
    script.call(Call::DeleteQueue("work"));
    script.call(Call::Create("work", QueueOptions::default()));
    script.call(Call::Send("work", messages("p", 0..2)));
    script
}

/// Groups, duplicates and dead letters of queues that keep an order.
fn fifo() -> Script {
    let mut script = Script::new();
    let redrive = Some(RedrivePolicy { dead_letters: name("zz-dead.fifo"), receives_max: 2 });
    script.call(Call::Create("zz-dead.fifo", QueueOptions::fifo()));
    script.call(Call::Create("work.fifo", QueueOptions { redrive, ..QueueOptions::fifo() }));
    script.call(Call::Send("work.fifo", grouped("m", 0..5)));
    script.call(Call::Send("work.fifo", grouped("m", 3..6)));
    let known = |id: &str| NewMessage::new(format!("known {id}")).in_group("c").known_as(id);
    script.call(Call::Send("work.fifo", vec![known("0"), known("1")]));
    script.call(Call::Receive("work.fifo", 30 * SECOND));
    script.together(vec![
        Call::Delete("work.fifo", bodies("m", 0..1)),
        Call::Send("work.fifo", grouped("l", 0..2)),
        Call::Send("work.fifo", vec![known("new")]),
        Call::Receive("work.fifo", 90 * SECOND),
    ]);
    script.call(Call::Hide("work.fifo", bodies("m", 1..2), Duration::ZERO));
    script.rest(30 * SECOND);
    script.call(Call::Receive("work.fifo", 20 * SECOND));
    script.call(Call::Delete("work.fifo", bodies("m", 1..3)));
    script.reopen();
    script.rest(20 * SECOND);
    script.call(Call::Receive("work.fifo", 20 * SECOND));
    script.call(Call::Move("zz-dead.fifo", None));
    // The simple queues move at once, an engine when it tidies up.
    script.rest(Duration::ZERO);
    script.call(Call::Receive("work.fifo", 20 * SECOND));
    script.call(Call::Purge("work.fifo"));
    script.call(Call::Send("work.fifo", grouped("n", 0..3)));
    script.rest(400 * SECOND);
    script.call(Call::Send("work.fifo", grouped("n", 0..3)));
    script
}

fn long(label: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    bodies(label, numbers).into_iter().map(|body| body + &".".repeat(1_400)).collect()
}

/// Bodies that stay in the journal, and are moved there.
fn moved() -> Script {
    let mut script = Script::new();
    script.call(Call::Create("work", QueueOptions::default()));
    let labels = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for label in labels {
        let messages = long(label, 0..10).into_iter().map(NewMessage::new).collect();
        script.call(Call::Send("work", messages));
        script.call(Call::Receive("work", 60 * SECOND));
        script.call(Call::Delete("work", long(label, 1..10)));
    }
    let oldest = |script: &Script| script.twin.engine().status().oldest_segment;
    script.rest(SECOND);
    let before = oldest(&script);
    for _ in 0..4 {
        script.rest(SECOND);
    }
    assert!(oldest(&script) > before, "one message of ten keeps no segment");
    script.call(Call::Delete("work", long("a", 0..1)));
    script.reopen();
    script.rest(60 * SECOND);
    script.call(Call::Receive("work", 5 * SECOND));
    script.call(Call::Delete("work", long("b", 0..1)));
    script.rest(SECOND);
    script.call(Call::Purge("work"));
    script.rest(SECOND);
    script
}

fn lose_power(script: Script) {
    let Script { twin, steps } = script;
    let (mut crashes, disk) = (0, &twin.disk);
    for point in disk.crash_points() {
        for seed in 0..SEEDS {
            let operation = point.operation();
            if let Err(text) = survive(&steps, &point, seed) {
                panic!("after operation {operation} ({}), seed {seed}: {text}", last(disk, operation));
            }
            crashes += 1;
        }
    }
    println!("{crashes} crashes at {} operations of {} steps", disk.operations(), steps.len());
    assert!(crashes > 400, "{crashes}");
}

fn last(disk: &SimDisk, operation: usize) -> String {
    disk.describe(operation.saturating_sub(1))
}

fn survive(steps: &[Step], point: &CrashPoint, seed: u64) -> Result<(), String> {
    let image = match seed {
        0 => point.image_without_unsynced(),
        1 => point.image_with_unsynced(),
        seed => point.image(seed),
    };
    let operation = point.operation();
    let answered = steps.iter().rposition(|step| step.answered <= operation).unwrap_or(0);
    let asked = steps.iter().rposition(|step| step.asked < operation).unwrap_or(0).max(answered);
    let at = steps[asked].at;
    let clock = SimClock::new(at);
    let engine = open(&image, &clock);
    let seen = shown_by(&engine, &clock);
    let mut text = String::new();
    for step in &steps[answered..=asked] {
        let expected = expected(&step.after, at);
        if seen == expected {
            return Ok(());
        }
        let line = seen.iter().zip(&expected).find(|(seen, expected)| seen != expected);
        text += &format!("\n  after {}: {} lines, not {}: {line:#?}", step.what, seen.len(), expected.len());
    }
    Err(text)
}

#[test]
fn standard_queues_survive_power_loss() {
    lose_power(standard());
}

#[test]
fn messages_that_the_cleaner_moves_survive_power_loss() {
    lose_power(moved());
}

#[test]
fn fifo_queues_survive_power_loss() {
    lose_power(fifo());
}
