//! Many receivers at once.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;

use super::trial::{Trial, bodies, grouped, some};
use crate::laws::trial::give_way;
use crate::queue::{Message, QueueName, ReceiveOptions};

const RECEIVERS: usize = 16;

/// What receivers saw, in the order in which they saw it.
type Seen = Arc<Mutex<Vec<Message>>>;

/// Sixteen receivers, while messages are sent: nobody gets a message that another one has, and all are received.
pub async fn receivers_share_without_doubles(trial: Trial) {
    let trial = Arc::new(trial);
    let queue = trial.queue().await;
    let seen = Seen::default();
    let mut tasks: Vec<_> = (0..RECEIVERS)
        .map(|_| trial.spawn(receive_until(trial.clone(), queue.clone(), 200, false, seen.clone())))
        .collect();
    let (sender, to) = (trial.clone(), queue.clone());
    tasks.push(trial.spawn(async move {
        for round in 0..20 {
            sender.send(&to, some(&format!("{round}"), 10)).await;
            give_way().await;
        }
    }));
    join_all(tasks).await;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let distinct: HashSet<_> = bodies(&seen).into_iter().collect();
    trial.same("messages and distinct messages", (seen.len(), distinct.len()), (200, 200));
}

/// Sixteen receivers that delete what they get: each group is received in order.
pub async fn receivers_keep_the_order_of_groups(trial: Trial) {
    let trial = Arc::new(trial);
    let queue = trial.fifo().await;
    let groups = ["a", "b", "c", "d"];
    for group in groups {
        for round in 0..3 {
            trial.send(&queue, grouped(group, some(&format!("{group}-{round}"), 10))).await;
        }
    }
    let seen = Seen::default();
    let tasks = (0..RECEIVERS)
        .map(|_| trial.spawn(receive_until(trial.clone(), queue.clone(), 120, true, seen.clone())));
    join_all(tasks.collect::<Vec<_>>()).await;
    let mut orders: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for message in seen.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        orders.entry(message.group.clone()).or_default().push(message.sequence);
    }
    for (group, order) in orders {
        trial.same(format!("messages of {group:?}"), order.len(), 30);
        trial.holds(order.is_sorted(), format!("{group:?} was received out of order: {order:?}"));
    }
}

/// Receives until all receivers together have seen `enough`, and deletes where that is wanted.
async fn receive_until(trial: Arc<Trial>, queue: QueueName, enough: usize, deletes: bool, seen: Seen) {
    for step in 0.. {
        if seen.lock().unwrap_or_else(PoisonError::into_inner).len() >= enough {
            return;
        }
        trial.holds(step < 1_000_000, "messages are missing");
        let options = ReceiveOptions {
            messages_max: 1 + step % 4,
            visibility: Some(Duration::from_secs(3600)),
            ..ReceiveOptions::all()
        };
        let messages = trial.receive_with(&queue, options).await;
        // Noted before they are deleted: nobody can have what comes behind them until then.
        seen.lock().unwrap_or_else(PoisonError::into_inner).extend(messages.iter().cloned());
        for message in messages.iter().filter(|_| deletes) {
            trial.ok("deleting", trial.delete(&queue, &message.receipt).await);
        }
        give_way().await;
    }
}
