//! Tells the other processes what a producer sees.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::Clock;

use super::backlog::{Backlog, Trend, Waiting};
use super::table::ScalerTable;
use crate::pause::pause;
use crate::producer::Producer;

/// Writes the traffic of a producer, and what waits in front of it if anybody can say, to the table at every interval, until
/// `stop` is done.
pub async fn report(
    producer: Producer,
    table: ScalerTable,
    process: String,
    interval: Duration,
    waiting: Option<Waiting>,
    clock: Arc<dyn Clock>,
    stop: impl Future<Output = ()>,
) {
    let mut trend = Trend::default();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = pause(interval) => {}
        }
        let backlog = match &waiting {
            Some(waiting) => look(waiting, &mut trend, &*clock).await,
            None => None,
        };
        let traffic = producer.traffic();
        let told = table.tell(producer.stream(), &process, &traffic, backlog.as_ref(), clock.now()).await;
        if let Err(error) = told {
            tracing::warn!(stream = %producer.stream(), %error, "traffic cannot be told");
        }
    }
}

async fn look(waiting: &Waiting, trend: &mut Trend, clock: &dyn Clock) -> Option<Backlog> {
    match (waiting.look)().await {
        Ok(depth) => trend.add(waiting, depth, clock.elapsed()),
        Err(error) => {
            tracing::debug!(place = waiting.place, %error, "what waits cannot be counted");
            None
        }
    }
}
