//! Tells the other processes what a producer sees.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::Clock;

use super::table::ScalerTable;
use crate::pause::pause;
use crate::producer::Producer;

/// Writes the traffic of a producer to the table at every interval, until `stop` is done.
pub async fn report(
    producer: Producer,
    table: ScalerTable,
    process: String,
    interval: Duration,
    clock: Arc<dyn Clock>,
    stop: impl Future<Output = ()>,
) {
    tokio::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = pause(interval) => {}
        }
        let traffic = producer.traffic();
        if let Err(error) = table.tell(producer.stream(), &process, &traffic, clock.now()).await {
            tracing::warn!(stream = %producer.stream(), %error, "traffic cannot be told");
        }
    }
}
