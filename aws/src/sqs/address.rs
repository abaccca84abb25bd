//! Where queues are: SQS knows a queue by its address, which it tells once for each name.
//!
//! What must hold: an address is forgotten as soon as anyone learns that its queue is gone, and whoever waits there
//! learns it too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_model::{QueueName, Result, limits};
use tokio::sync::watch;

use super::{Queues, action, strange};
use crate::call::Deadline;

/// Addresses that are remembered. When there are more they are all asked for anew, which costs a call each.
const REMEMBERED_MAX: usize = limits::QUEUES_MAX;

/// The address of a queue for as long as the queue is there.
#[derive(Debug)]
pub(super) struct Address {
    url: String,
    gone: watch::Sender<bool>,
}

impl Address {
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Returns when the queue is gone, as far as this process has learned.
    pub(super) async fn gone(&self) {
        // The sender lives as long as the address does, so there is no other end than this.
        let _ = self.gone.subscribe().wait_for(|gone| *gone).await;
    }
}

/// The addresses that are known.
#[derive(Debug, Default)]
pub(super) struct Addresses(Mutex<HashMap<QueueName, Arc<Address>>>);

impl Addresses {
    fn get(&self, queue: &QueueName) -> Option<Arc<Address>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(queue).cloned()
    }

    /// Remembers an address. Of several who asked at the same time all get the same.
    pub(super) fn remember(&self, queue: &QueueName, url: String) -> Arc<Address> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = known.get(queue).filter(|address| address.url == url) {
            return address.clone();
        }
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        let address = Arc::new(Address { url, gone: watch::Sender::new(false) });
        known.insert(queue.clone(), address.clone());
        address
    }

    /// Forgets the address of a queue that is gone, and tells whoever waits there. A queue that was made since under the
    /// same name is not meant.
    pub(super) fn forget(&self, queue: &QueueName, address: &Arc<Address>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(queue).is_some_and(|known| Arc::ptr_eq(known, address)) {
            known.remove(queue);
        }
        address.gone.send_replace(true);
    }
}

impl Queues {
    /// Where a queue is, or was when someone asked.
    pub(super) async fn address(&self, queue: &QueueName, deadline: Deadline) -> Result<Arc<Address>> {
        match self.addresses.get(queue) {
            Some(address) => Ok(address),
            None => self.look_up(queue, deadline).await,
        }
    }

    /// Where a queue is now.
    pub(super) async fn look_up(&self, queue: &QueueName, deadline: Deadline) -> Result<Arc<Address>> {
        let request = || self.client.get_queue_url().queue_name(queue.as_str()).send();
        let answer = self.caller.call(&action::GET_QUEUE_URL, deadline, request).await;
        let answer = answer.map_err(|failure| {
            let known = self.addresses.get(queue);
            self.refused(queue, known.as_ref(), failure)
        })?;
        let url = answer.queue_url.ok_or_else(|| strange("a queue without an address"))?;
        Ok(self.addresses.remember(queue, url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    #[tokio::test]
    async fn whoever_waits_learns_that_the_queue_is_gone() {
        let addresses = Addresses::default();
        let first = addresses.remember(&name("q"), "u".into());
        assert!(
            Arc::ptr_eq(&first, &addresses.remember(&name("q"), "u".into())),
            "two addresses of one queue"
        );
        addresses.forget(&name("q"), &first);
        first.gone().await;
        assert!(addresses.get(&name("q")).is_none());
    }

    #[tokio::test]
    async fn the_end_of_a_queue_is_not_that_of_its_successor() {
        let addresses = Addresses::default();
        let old = addresses.remember(&name("q"), "u".into());
        addresses.forget(&name("q"), &old);
        let new = addresses.remember(&name("q"), "u".into());
        // Someone who used the old address learns only now that it is gone.
        addresses.forget(&name("q"), &old);
        assert!(Arc::ptr_eq(&new, &addresses.get(&name("q")).unwrap()));
        assert!(old.is_gone() && !new.is_gone());
    }

    #[test]
    fn what_is_remembered_is_limited() {
        let addresses = Addresses::default();
        for number in 0..=REMEMBERED_MAX {
            addresses.remember(&name(&format!("q{number}")), "u".into());
            assert!(addresses.0.lock().unwrap().len() <= REMEMBERED_MAX);
        }
        assert!(addresses.get(&name(&format!("q{REMEMBERED_MAX}"))).is_some());
    }
}
