//! Long walks at random, watched by a model that knows what a queue may answer at each step.
//!
//! The model does not predict which of several messages a receive gives, as the laws leave that open; it checks that each
//! may be given, and that nothing is withheld when a receive comes back empty.

use std::collections::BTreeMap;
use std::time::Duration;

use super::trial::Trial;
use crate::laws::dice::Dice;
use crate::queue::{Message, NewMessage, QueueName, Receipt, ReceiveOptions};

const STEPS: usize = 600;
const SECOND: Duration = Duration::from_secs(1);

/// What the model knows of a message, by the number in its body.
struct Known {
    group: Option<String>,
    /// From when on it is visible, in the time of the walk.
    due: Duration,
    receives: u32,
    receipt: Option<Receipt>,
}

#[derive(Default)]
struct Walk {
    /// What times are multiples of. A clock that runs by itself must not reach the first of them.
    unit: Duration,
    now: Duration,
    sent: usize,
    messages: BTreeMap<usize, Known>,
}

impl Walk {
    /// Whether the message may be given: it is visible, and nothing of its group before it is hidden or left out.
    fn may_give(&self, number: usize, fifo: bool) -> bool {
        let Some(known) = self.messages.get(&number) else { return false };
        let earlier = self.messages.range(..number).filter(|(_, other)| other.group == known.group);
        known.due <= self.now && (!fifo || earlier.count() == 0)
    }

    /// The first message of each group that a receive may give.
    fn available(&self, fifo: bool) -> usize {
        self.messages.keys().filter(|number| self.may_give(**number, fifo)).count()
    }

    fn given(&mut self, trial: &Trial, message: &Message, visibility: Duration) {
        let text = String::from_utf8_lossy(&message.body);
        let known = text.parse().ok().and_then(|number: usize| self.messages.get_mut(&number));
        let known = known.unwrap_or_else(|| trial.fail(format!("`{text}` was deleted or never sent")));
        known.receives += 1;
        known.due = self.now + visibility;
        known.receipt = Some(message.receipt.clone());
        trial.same(format!("receives of {text}"), message.receive_count, known.receives);
    }
}

/// A standard queue gives what the model allows, and withholds nothing.
pub async fn a_standard_queue_does_what_the_model_does(trial: Trial) {
    let queue = trial.queue().await;
    walk(&trial, &queue, false).await;
}

/// A FIFO queue gives what the model allows, and withholds nothing.
pub async fn a_fifo_queue_does_what_the_model_does(trial: Trial) {
    let queue = trial.fifo().await;
    walk(&trial, &queue, true).await;
}

async fn walk(trial: &Trial, queue: &QueueName, fifo: bool) {
    let unit = if trial.can_advance() { SECOND } else { 90 * SECOND };
    let (mut walk, mut dice) = (Walk { unit, ..Walk::default() }, Dice(7));
    for _ in 0..STEPS {
        match dice.below(10) {
            0..=2 => send(trial, queue, fifo, &mut walk, &mut dice).await,
            3..=5 => receive(trial, queue, fifo, &mut walk, &mut dice).await,
            6 | 7 => delete(trial, queue, &mut walk, &mut dice).await,
            8 => hide(trial, queue, &mut walk, &mut dice).await,
            _ if trial.can_advance() => {
                let by = SECOND * (1 + dice.below(15) as u32);
                walk.now += by;
                trial.advance(by).await;
            }
            _ => {}
        }
        let counts = trial.counts(queue).await;
        trial.same("messages in all", counts.iter().sum::<u64>(), walk.messages.len() as u64);
        let visible = walk.messages.values().filter(|known| known.due <= walk.now).count();
        trial.same("visible messages", counts[0], visible as u64);
    }
}

async fn send(trial: &Trial, queue: &QueueName, fifo: bool, walk: &mut Walk, dice: &mut Dice) {
    let mut messages = Vec::new();
    for _ in 0..=dice.below(3) {
        let number = walk.sent;
        walk.sent += 1;
        let delay = if fifo { 0 } else { dice.below(3) as u32 * 5 };
        let group = fifo.then(|| format!("g{}", dice.below(3)));
        let message = NewMessage { group: group.clone(), ..NewMessage::new(number.to_string()) };
        messages.push(if fifo { message } else { message.after(delay * walk.unit) });
        let due = walk.now + delay * walk.unit;
        walk.messages.insert(number, Known { group, due, receives: 0, receipt: None });
    }
    trial.send(queue, messages).await;
}

async fn receive(trial: &Trial, queue: &QueueName, fifo: bool, walk: &mut Walk, dice: &mut Dice) {
    let visibility = walk.unit * (1 + dice.below(30) as u32);
    // One at a time where groups are held up: what one receive gives of a group is left open.
    let messages_max = if fifo { 1 } else { 1 + dice.below(10) };
    let options = ReceiveOptions { messages_max, visibility: Some(visibility), ..ReceiveOptions::all() };
    let available = walk.available(fifo);
    let messages = trial.receive_with(queue, options).await;
    trial.holds(!messages.is_empty() || available == 0, format!("{available} messages are withheld"));
    for message in &messages {
        let number = String::from_utf8_lossy(&message.body).parse().unwrap_or(usize::MAX);
        trial.holds(walk.may_give(number, fifo), format!("message {number} may not be given now"));
        walk.given(trial, message, visibility);
    }
}

/// The number of a message in flight and its receipt.
fn in_flight(walk: &Walk, dice: &mut Dice) -> Option<(usize, Receipt)> {
    let hidden = walk.messages.iter().filter(|(_, known)| known.due > walk.now);
    let hidden: Vec<_> =
        hidden.filter_map(|(number, known)| Some((*number, known.receipt.clone()?))).collect();
    (!hidden.is_empty()).then(|| hidden[dice.below(hidden.len())].clone())
}

async fn delete(trial: &Trial, queue: &QueueName, walk: &mut Walk, dice: &mut Dice) {
    let Some((number, receipt)) = in_flight(walk, dice) else { return };
    trial.ok("deleting", trial.delete(queue, &receipt).await);
    walk.messages.remove(&number);
}

async fn hide(trial: &Trial, queue: &QueueName, walk: &mut Walk, dice: &mut Dice) {
    let Some((number, receipt)) = in_flight(walk, dice) else { return };
    let time = walk.unit * dice.below(20) as u32;
    trial.ok("changing visibility", trial.hide(queue, &receipt, time).await);
    if let Some(known) = walk.messages.get_mut(&number) {
        known.due = walk.now + time;
    }
}
