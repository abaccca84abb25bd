//! The way of events through the steps to the sink, whatever they come from and whoever acknowledges them.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_model::{Clock, Dice};
use futures_util::FutureExt;

use crate::event::Event;
use crate::metrics::{Meter, Stage};
use crate::pause::pause;
use crate::sink::{Outcome, Sink};
use crate::step::{Refusal, Step};

/// How long one call to a sink may take before it counts as unavailable.
const SINK_CALL_MAX: Duration = Duration::from_secs(120);
/// Pauses while a sink is unavailable: the longest first one, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The steps and the sink of a bot.
pub(crate) struct Line {
    pub(crate) bot: String,
    pub(crate) steps: Vec<Arc<dyn Step>>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dice: Dice,
    pub(crate) meter: Meter,
    /// Whether the last call to the sink found it there: what is logged is the change.
    available: AtomicBool,
}

impl Line {
    pub(crate) fn new(
        bot: &str,
        steps: Vec<Arc<dyn Step>>,
        sink: Arc<dyn Sink>,
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> Self {
        let (meter, dice) = (Meter::new(bot), Dice::new(seed));
        Line { bot: bot.to_owned(), steps, sink, clock, dice, meter, available: AtomicBool::new(true) }
    }

    /// Sends events all the way, and says of each what became of it. An event whose parts fare differently fares as the worst.
    pub(crate) async fn process(&self, events: Vec<Event>) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::Done; events.len()];
        let (mut ready, mut owners) = (Vec::with_capacity(events.len()), Vec::with_capacity(events.len()));
        let taken_at: Vec<_> = events.iter().map(|event| event.at).collect();
        for (owner, event) in events.into_iter().enumerate() {
            match self.prepare(event).await {
                Ok(made) => {
                    owners.extend(std::iter::repeat_n(owner, made.len()));
                    ready.extend(made);
                }
                Err(outcome) => outcomes[owner] = outcome,
            }
        }
        for (owner, outcome) in owners.into_iter().zip(self.write(ready).await) {
            if severity(&outcome) > severity(&outcomes[owner]) {
                outcomes[owner] = outcome;
            }
        }
        for (outcome, at) in outcomes.iter().zip(taken_at) {
            self.ended(outcome, at);
        }
        outcomes
    }

    /// Sends an event through the steps.
    pub(crate) async fn prepare(&self, event: Event) -> Result<Vec<Event>, Outcome> {
        self.meter.stage(Stage::Source, self.clock.now().since(event.at));
        if self.steps.is_empty() {
            return Ok(vec![event]);
        }
        let begun = self.clock.elapsed();
        let mut events = vec![event];
        for step in &self.steps {
            events = match <[Event; 1]>::try_from(events) {
                Ok([event]) => apply(&**step, event).await?,
                Err(events) => {
                    let mut made = Vec::with_capacity(events.len());
                    for event in events {
                        made.extend(apply(&**step, event).await?);
                    }
                    made
                }
            };
        }
        self.meter.stage(Stage::Steps, self.clock.elapsed().saturating_sub(begun));
        Ok(events)
    }

    /// Writes events, those that the sink does not take at the moment again and again. No outcome is
    /// [`Outcome::Unavailable`].
    pub(crate) async fn write(&self, mut events: Vec<Event>) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::Done; events.len()];
        let mut places: Vec<usize> = (0..events.len()).collect();
        let mut attempts = 0;
        while !events.is_empty() {
            let begun = self.clock.elapsed();
            let written = self.call(&events).await;
            let mut unavailable = None;
            let mut waiting = (Vec::new(), Vec::new());
            for (number, outcome) in written.into_iter().enumerate() {
                match outcome {
                    Outcome::Unavailable(why) => {
                        unavailable = Some(why);
                        waiting.0.push(places[number]);
                        waiting.1.push(events[number].clone());
                    }
                    outcome => outcomes[places[number]] = outcome,
                }
            }
            (places, events) = waiting;
            match unavailable {
                None => {
                    self.meter.stage(Stage::Sink, self.clock.elapsed().saturating_sub(begun));
                    self.note_available(true, "");
                }
                Some(why) => {
                    attempts += 1;
                    self.note_available(false, &why);
                    pause(self.dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)).await;
                }
            }
        }
        outcomes
    }

    async fn call(&self, events: &[Event]) -> Vec<Outcome> {
        let call = AssertUnwindSafe(self.sink.write(events)).catch_unwind();
        let outcomes = match tokio::time::timeout(SINK_CALL_MAX, call).await {
            Ok(Ok(outcomes)) => outcomes,
            Ok(Err(panic)) => {
                let why = format!("the sink {}", panicked(&*panic));
                return vec![Outcome::Failed(why); events.len()];
            }
            Err(_) => {
                let why = format!("the sink took longer than {} seconds", SINK_CALL_MAX.as_secs());
                return vec![Outcome::Unavailable(why); events.len()];
            }
        };
        if outcomes.len() != events.len() {
            let why = format!("the sink gave {} outcomes for {} events", outcomes.len(), events.len());
            return vec![Outcome::Failed(why); events.len()];
        }
        outcomes
    }

    /// An event has come to an end, this time.
    pub(crate) fn ended(&self, outcome: &Outcome, at: anabranch_model::Timestamp) {
        self.meter.ended(outcome);
        if *outcome == Outcome::Done {
            self.meter.stage(Stage::Whole, self.clock.now().since(at));
        }
    }

    /// Logs the sink's going and coming back, each once.
    pub(crate) fn note_available(&self, available: bool, why: &str) {
        if self.available.swap(available, Ordering::Relaxed) == available {
            return;
        }
        self.meter.available(available);
        match available {
            true => tracing::info!(bot = %self.bot, "the sink takes events again"),
            false => tracing::warn!(bot = %self.bot, why, "the sink takes no events; trying on"),
        }
    }
}

/// Sends an event through a step.
async fn apply(step: &dyn Step, event: Event) -> Result<Vec<Event>, Outcome> {
    let told = |why: String| format!("step {}: {why}", step.name());
    match AssertUnwindSafe(step.apply(event)).catch_unwind().await {
        Ok(Ok(events)) => Ok(events),
        Ok(Err(Refusal::Failed(why))) => Err(Outcome::Failed(told(why))),
        Ok(Err(Refusal::Never(why))) => Err(Outcome::Refused(told(why))),
        Err(panic) => Err(Outcome::Failed(told(panicked(&*panic)))),
    }
}

/// What a panic said. Nothing but the event that it met suffers from it.
fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a text"))
}

/// Which outcome counts for an event of several parts.
fn severity(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Unavailable(_) => 1,
        Outcome::Failed(_) => 2,
        Outcome::Refused(_) => 3,
    }
}
