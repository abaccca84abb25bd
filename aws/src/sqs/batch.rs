//! Batches: each entry has its own result, and what SQS could not do is asked for again.
//!
//! ```text
//!   pending ─▶ as many as one call takes ─▶ results
//!      ▲                                      │
//!      └──── pause ◀── refused, may pass ◀────┘
//! ```
//!
//! What must hold: an entry that was done is not asked for again, and in a group nothing is put behind what came later.

use std::future::Future;
use std::sync::Arc;

use anabranch_model::{Error, QueueName, Result, limits};
use aws_sdk_sqs::types::BatchResultErrorEntry;

use super::Queues;
use super::address::Address;
use super::refusal::Refusal;
use crate::call::Deadline;
use crate::failure::{Failure, Kind};

/// One entry that is not done yet.
pub(super) struct Entry<R> {
    /// Where it stands in the call, which is also its name in the request.
    pub(super) place: usize,
    /// What it counts against the size of a call.
    pub(super) bytes: usize,
    /// The group that it must not be put behind others of.
    pub(super) group: Option<String>,
    pub(super) request: R,
}

/// What became of the entries of one call, by their names.
pub(super) struct Verdicts<T> {
    pub(super) done: Vec<(String, T)>,
    pub(super) failed: Vec<BatchResultErrorEntry>,
}

/// The queue that is asked.
pub(super) struct Target<'a> {
    pub(super) queue: &'a QueueName,
    pub(super) address: &'a Arc<Address>,
    pub(super) deadline: Deadline,
}

/// The results of a call, by place; none where there is no result yet.
pub(super) type Results<T> = Vec<Option<Result<T>>>;

impl Queues {
    /// Has all entries done, in as many calls as it takes. `refusal` is the error of a failed entry, and whether it may
    /// be asked for again. What already has a result keeps it.
    pub(super) async fn in_batches<R, T, F>(
        &self,
        target: Target<'_>,
        mut pending: Vec<Entry<R>>,
        mut results: Results<T>,
        ask: impl Fn(Vec<R>) -> F,
        refusal: impl Fn(usize, &Refusal) -> (Error, bool),
    ) -> Result<Vec<Result<T>>>
    where
        R: Clone,
        F: Future<Output = std::result::Result<Verdicts<T>, Failure>>,
    {
        let groups: Vec<_> = pending.iter().map(|entry| (entry.place, entry.group.clone())).collect();
        let mut entries_max = limits::MESSAGE_BATCH_MAX;
        let mut rounds = 0;
        while !pending.is_empty() {
            let later = pending.split_off(fitting(&pending, entries_max));
            let requests = pending.iter().map(|entry| entry.request.clone()).collect();
            let mut again = Vec::new();
            match ask(requests).await {
                Ok(verdicts) => {
                    again = settle(&mut results, pending, verdicts, &refusal);
                    again.retain(|entry| !is_overtaken(entry, &groups, &results));
                }
                // One bad entry can be held against all of them. Alone each has its own answer.
                Err(failure) if failure.kind == Kind::Invalid && pending.len() > 1 => {
                    entries_max = 1;
                    pending.extend(later);
                    continue;
                }
                Err(failure) if failure.kind == Kind::Invalid => {
                    let failed = Refusal::of_call(&failure);
                    for entry in pending {
                        let (error, _) = refusal(entry.place, &failed);
                        results[entry.place] = Some(Err(error));
                    }
                }
                Err(failure) => {
                    let error = self.refused(target.queue, Some(target.address), failure);
                    // As long as nothing was done it is an error of the whole call.
                    if !results.iter().any(|result| matches!(result, Some(Ok(_)))) {
                        return Err(error);
                    }
                    for entry in pending.iter().chain(&later) {
                        results[entry.place] = Some(Err(error.clone()));
                    }
                    break;
                }
            }
            let refused = !again.is_empty();
            pending = again;
            pending.extend(later);
            rounds += 1;
            if refused && !self.caller.back_off(rounds, target.deadline).await {
                break;
            }
        }
        Ok(results.into_iter().map(|result| result.unwrap_or_else(|| Err(no_result()))).collect())
    }
}

/// How many of the first entries fit into one call: at least one.
fn fitting<R>(pending: &[Entry<R>], entries_max: usize) -> usize {
    let mut bytes = 0;
    let fits = |entry: &&Entry<R>| {
        bytes += entry.bytes;
        bytes <= limits::MESSAGE_BYTES_MAX
    };
    pending.iter().take(entries_max).take_while(fits).count().max(1)
}

/// Writes down what became of each entry, and returns those that were refused for a reason that passes.
fn settle<R, T>(
    results: &mut Results<T>,
    pending: Vec<Entry<R>>,
    mut verdicts: Verdicts<T>,
    refusal: impl Fn(usize, &Refusal) -> (Error, bool),
) -> Vec<Entry<R>> {
    let mut again = Vec::new();
    for entry in pending {
        let name = entry.place.to_string();
        let done = verdicts.done.iter().position(|(id, _)| *id == name);
        if let Some(index) = done {
            results[entry.place] = Some(Ok(verdicts.done.swap_remove(index).1));
        } else if let Some(failed) = verdicts.failed.iter().find(|failed| failed.id == name) {
            let (error, passes) = refusal(entry.place, &Refusal::of_entry(failed));
            results[entry.place] = Some(Err(error));
            if passes {
                again.push(entry);
            }
        }
    }
    again
}

/// Whether something of the same group that comes behind the entry was done already.
fn is_overtaken<R, T>(entry: &Entry<R>, groups: &[(usize, Option<String>)], results: &Results<T>) -> bool {
    let done = |place: usize| matches!(results[place], Some(Ok(_)));
    let behind = groups.iter().filter(|(place, group)| *place > entry.place && *group == entry.group);
    entry.group.is_some() && behind.into_iter().any(|(place, _)| done(*place))
}

fn no_result() -> Error {
    Error::Unavailable("SQS said nothing about this entry, or there was no time left to ask".to_string())
}
