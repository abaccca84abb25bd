//! An engine beside the simple queues of the laws: both get the same calls, and must show the same.
//!
//! A receive asks for all there is, as the laws leave open which of several messages a receive gives. Messages are known
//! by their bodies, which differ; identifiers and receipts are each store's own.
#![allow(dead_code, reason = "each test file uses its own share")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::laws::reference::{SimpleQueues, SimpleQueuesState};
use anabranch_model::queue::{
    Message, MoveStatus, NewMessage, QueueName, QueueOptions, QueueStore, Receipt, ReceiveOptions,
};
use anabranch_model::{Clock, Error, Result, Timestamp};
use anabranch_sim::{SimClock, SimDisk};

/// What the clock of the simple queues shows at first.
pub const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// How the engines of these tests are opened: with small segments, and driven by hand.
pub fn options() -> Options {
    Options { segment_bytes: 16 << 10, drive: Drive::Caller, in_flight_max: 1_000, ..Options::default() }
}

/// A name that is known to be good.
pub fn name(text: &str) -> QueueName {
    QueueName::new(text).expect("a good name")
}

/// Polls a call of an engine and commits until it is answered.
pub fn drive<T>(engine: &Engine, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    for _ in 0..10_000 {
        if let Poll::Ready(answer) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return answer;
        }
        engine.prepare();
        engine.commit();
    }
    panic!("a call is not answered although nothing is left to commit")
}

/// A call to both.
#[derive(Clone, Debug)]
pub enum Call {
    Create(&'static str, QueueOptions),
    Options(&'static str, QueueOptions),
    DeleteQueue(&'static str),
    Purge(&'static str),
    Send(&'static str, Vec<NewMessage>),
    /// All there is, hidden for so long.
    Receive(&'static str, Duration),
    /// Deletes the messages with these bodies by their latest receipts.
    Delete(&'static str, Vec<String>),
    Hide(&'static str, Vec<String>, Duration),
    Move(&'static str, Option<&'static str>),
}

/// What a store answers, in words that do not depend on identifiers.
pub type Answer = std::result::Result<Vec<String>, String>;

/// The latest receipts by queue and body.
pub type Receipts = BTreeMap<(String, String), Receipt>;

/// Which kind of error it is.
fn kind(error: Error) -> String {
    let text = format!("{error:?}");
    text.split(['(', '{', ' ']).next().unwrap_or_default().to_owned()
}

/// A message in words.
fn shown(message: &Message) -> String {
    let body = String::from_utf8_lossy(&message.body);
    let source = message.dead_letter_source.as_ref().map_or("", |name| name.as_str());
    format!(
        "{body} received {} sent {:?} first {:?} of {} group {:?}",
        message.receive_count, message.sent_at, message.first_received_at, source, message.group
    )
}

/// One call to one store.
pub async fn call(store: &dyn QueueStore, call: &Call, receipts: &mut Receipts) -> Answer {
    let each = |results: Vec<Result<()>>| {
        results.into_iter().map(|result| result.map_or_else(kind, |()| "done".to_owned())).collect()
    };
    let done = |result: Result<()>| result.map(|()| Vec::new()).map_err(kind);
    let of = |receipts: &Receipts, queue: &str, bodies: &[String]| -> Vec<Receipt> {
        let receipt = |body: &String| receipts.get(&(queue.to_owned(), body.clone())).cloned();
        bodies.iter().filter_map(receipt).collect()
    };
    match call {
        Call::Create(queue, options) => done(store.create_queue(&name(queue), options.clone()).await),
        Call::Options(queue, options) => done(store.set_options(&name(queue), options.clone()).await),
        Call::DeleteQueue(queue) => done(store.delete_queue(&name(queue)).await),
        Call::Purge(queue) => done(store.purge(&name(queue)).await),
        Call::Send(queue, messages) => {
            let results = store.send(&name(queue), messages.clone()).await.map_err(kind)?;
            Ok(results.into_iter().map(|sent| sent.map_or_else(kind, |_| "sent".to_owned())).collect())
        }
        Call::Receive(queue, visibility) => {
            let mut all = Vec::new();
            let mut groups: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
            loop {
                let options = ReceiveOptions { visibility: Some(*visibility), ..ReceiveOptions::all() };
                let messages = store.receive(&name(queue), options).await.map_err(kind)?;
                for message in &messages {
                    let body = String::from_utf8_lossy(&message.body).into_owned();
                    receipts.insert(((*queue).to_owned(), body.clone()), message.receipt.clone());
                    let group = message.group.clone().filter(|_| message.sequence.is_some());
                    groups.entry(group).or_default().push(body);
                    all.push(shown(message));
                }
                if messages.is_empty() || visibility.is_zero() {
                    break;
                }
            }
            all.sort();
            // The order counts within groups only.
            groups.remove(&None);
            all.extend(groups.into_iter().map(|(group, bodies)| format!("{group:?} {bodies:?}")));
            Ok(all)
        }
        Call::Delete(queue, bodies) => {
            let receipts = of(receipts, queue, bodies);
            if receipts.is_empty() {
                return Ok(Vec::new());
            }
            store.delete(&name(queue), receipts).await.map(each).map_err(kind)
        }
        Call::Hide(queue, bodies, time) => {
            let changes: Vec<_> =
                of(receipts, queue, bodies).into_iter().map(|receipt| (receipt, *time)).collect();
            if changes.is_empty() {
                return Ok(Vec::new());
            }
            store.change_visibility(&name(queue), changes).await.map(each).map_err(kind)
        }
        Call::Move(from, to) => {
            let to = to.map(name);
            done(store.start_move(&name(from), to.as_ref(), None).await.map(drop))
        }
    }
}

/// Everything that can be seen of a store; looking changes it. `later` lets thirteen hours pass.
pub async fn look(store: &dyn QueueStore, later: impl AsyncFn()) -> Vec<String> {
    let mut seen = Vec::new();
    let page = store.queues(None, 100, "").await.expect("queues are listed");
    let names: Vec<QueueName> = page.entries.iter().map(|summary| summary.name.clone()).collect();
    for summary in page.entries {
        seen.push(format!("{summary:?}"));
        for moving in store.moves(&summary.name).await.expect("moves are listed") {
            let status = matches!(moving.status, MoveStatus::Failed(_));
            seen.push(format!("move {:?} {} failed {status}", moving.to, moving.moved));
        }
    }
    for known in 0..3 {
        // Recognised if it was sent lately, and a message otherwise.
        for queue in names.iter().filter(|queue| queue.is_fifo()) {
            let probe =
                NewMessage::new(format!("probe {known}")).in_group("probe").known_as(&known.to_string());
            store.send(queue, vec![probe]).await.expect("a probe is sent");
        }
    }
    for when in ["now", "later"] {
        for queue in &names {
            let fifo = queue.is_fifo();
            let second = Duration::from_secs(1);
            let mut messages = Vec::new();
            loop {
                let options = ReceiveOptions { visibility: Some(second), ..ReceiveOptions::all() };
                let more = store.receive(queue, options).await.expect("messages are received");
                if more.is_empty() {
                    break;
                }
                messages.extend(more);
            }
            let by_group = |message: &Message| message.group.clone().filter(|_| fifo);
            let mut lines: Vec<_> =
                messages.iter().map(|message| (by_group(message), shown(message))).collect();
            // Stable, so the order of each group stays.
            if fifo {
                lines.sort_by(|a, b| a.0.cmp(&b.0));
            } else {
                lines.sort();
            }
            seen.extend(lines.into_iter().map(|(_, line)| format!("{queue} {when}: {line}")));
        }
        later().await;
    }
    seen
}

/// Everything that the simple queues show in a state at a time.
pub fn expected(state: &SimpleQueuesState, at: Timestamp) -> Vec<String> {
    let model = SimpleQueues::new();
    model.set_state(state.clone());
    model.advance(at.since(START));
    block_on(look(&model, async || model.advance(LATER)))
}

/// Everything that an engine shows.
pub fn shown_by(engine: &Engine, clock: &SimClock) -> Vec<String> {
    engine.upkeep();
    drive(
        engine,
        look(engine, async || {
            clock.advance(LATER);
            engine.upkeep();
        }),
    )
}

const LATER: Duration = Duration::from_secs(13 * 3600);

/// The simple queues answer at once.
pub fn block_on<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the simple queues wait"),
    }
}

/// Both.
pub struct Twin {
    pub disk: SimDisk,
    pub clock: SimClock,
    pub engine: Option<Engine>,
    pub model: SimpleQueues,
    receipts: [Receipts; 2],
}

impl Twin {
    pub fn start() -> Twin {
        let (disk, clock) = (SimDisk::new(), SimClock::new(START));
        let engine = open(&disk, &clock);
        let model = SimpleQueues::new();
        Twin { disk, clock, engine: Some(engine), model, receipts: Default::default() }
    }

    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("an engine is open")
    }

    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.model.advance(by);
    }

    /// Drops the engine without a word and opens the directory again.
    pub fn reopen(&mut self) {
        self.engine = None;
        self.engine = Some(open(&self.disk, &self.clock));
    }

    /// One call to both; the answers must be the same.
    pub fn call(&mut self, asked: Call) {
        let engine = self.engine().clone();
        let [ours, theirs] = &mut self.receipts;
        let answer = drive(&engine, call(&engine, &asked, ours));
        let expected = block_on(call(&self.model, &asked, theirs));
        assert_eq!(answer, expected, "{asked:?}");
    }

    /// Calls that are accepted in this order before anything is committed.
    pub fn together(&mut self, asked: &[Call]) {
        let engine = self.engine().clone();
        let mut receipts = vec![self.receipts[0].clone(); asked.len()];
        let mut answers: Vec<Option<Answer>> = vec![None; asked.len()];
        let calls = asked.iter().zip(&mut receipts);
        let mut calls: Vec<_> =
            calls.map(|(asked, receipts)| Box::pin(call(&engine, asked, receipts))).collect();
        while answers.iter().any(Option::is_none) {
            for (answer, call) in answers.iter_mut().zip(&mut calls).filter(|(answer, _)| answer.is_none()) {
                if let Poll::Ready(ready) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    *answer = Some(ready);
                }
            }
            engine.prepare();
            engine.commit();
        }
        drop(calls);
        for (asked, (answer, learned)) in asked.iter().zip(answers.into_iter().zip(receipts)) {
            let expected = block_on(call(&self.model, asked, &mut self.receipts[1]));
            assert_eq!(answer.as_ref(), Some(&expected), "{asked:?}");
            self.receipts[0].extend(learned);
        }
    }

    /// One call to the simple queues alone.
    pub fn ask_model(&mut self, asked: &Call) {
        let _ = block_on(call(&self.model, asked, &mut self.receipts[1]));
    }

    /// How many messages there are.
    pub fn messages(&self, queue: &str) -> u64 {
        let counts = block_on(self.model.queue(&name(queue))).map(|summary| summary.counts);
        counts.map_or(0, |counts| counts.visible + counts.in_flight + counts.delayed)
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

pub fn open(disk: &SimDisk, clock: &SimClock) -> Engine {
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options()).expect("the directory opens")
}
