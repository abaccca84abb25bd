//! Bots that run.

use std::time::Duration;

use anabranch_bus::flow::{Flow, Ports};
use anabranch_bus::{Bot, Handle};
use anabranch_model::Result;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::warn;

use crate::runtime::pause;

/// How long a server waits before it looks again for what a bot needs.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Bots, each in a task of its own.
pub(crate) struct Bots {
    tasks: JoinSet<Result<()>>,
    stop: watch::Sender<bool>,
}

impl Bots {
    /// Starts bots that are put together.
    pub(crate) fn start(bots: Vec<Bot>) -> Self {
        let mut running = Bots { tasks: JoinSet::new(), stop: watch::Sender::new(false) };
        for bot in bots {
            let stop = running.stop.subscribe();
            running.tasks.spawn(run(bot, stop));
        }
        running
    }

    /// Starts the bots of a server. What they need may come later: a server must not stay away for want of a table that only
    /// a server can be asked to make.
    pub(crate) fn patiently(flows: &[Flow], ports: &Ports) -> Self {
        let mut running = Bots { tasks: JoinSet::new(), stop: watch::Sender::new(false) };
        for flow in flows {
            for place in 0..flow.bots.len() {
                let (flow, ports, stop) = (flow.clone(), ports.clone(), running.stop.subscribe());
                running.tasks.spawn(async move { run_when_possible(&flow, place, &ports, stop).await });
            }
        }
        running
    }

    /// Waits until one of them ends by itself, which it does only if it could not begin.
    pub(crate) async fn first_end(&mut self) -> Result<()> {
        match self.tasks.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(error)) => Err(anabranch_model::Error::Unavailable(format!("a bot broke off: {error}"))),
            None => Ok(()),
        }
    }

    /// Lets them finish what is under way.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn run(bot: Bot, mut stop: watch::Receiver<bool>) -> Result<()> {
    let handle: Handle = bot.handle();
    let running = bot.run();
    tokio::pin!(running);
    tokio::select! {
        biased;
        ended = &mut running => return ended,
        _ = stop.wait_for(|stop| *stop) => handle.stop(),
    }
    running.await
}

async fn run_when_possible(
    flow: &Flow,
    place: usize,
    ports: &Ports,
    mut stop: watch::Receiver<bool>,
) -> Result<()> {
    let Some(spec) = flow.bots.get(place) else { return Ok(()) };
    let mut told = String::new();
    loop {
        let why = match flow.assemble(spec, ports).await {
            Ok(bot) => match run(bot, stop.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        if why != told {
            warn!(bot = %spec.name.get_ref(), why, "a bot cannot begin yet; it is tried again");
            told = why;
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
            () = pause(LOOK_AGAIN) => {}
        }
    }
}
