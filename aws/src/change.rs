//! Changes that are made once: asked for until the answer is certain.
//!
//! A call whose outcome nobody knows is followed by a look: whether the thing is there, or gone, says what happened. That
//! holds only if it was not so before, which whoever begins a change has to find out first.

use std::future::Future;

use anabranch_model::Result;

use crate::call::{Caller, Deadline};
use crate::failure::{Failure, Kind, Outcome};

/// What is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Something is made that was not there.
    Making,
    /// Something is removed that was there. Whoever makes, changes or removes it at the same time is waited for.
    Removing,
}

impl Change {
    /// Whether a refusal says that it is so already.
    fn is_made<D>(self, failure: &Failure<D>) -> bool {
        match self {
            // S3 has no code for all services' word.
            Change::Making => failure.kind == Kind::InUse || failure.is("BucketAlreadyOwnedByYou"),
            Change::Removing => failure.kind == Kind::NotFound,
        }
    }
}

impl Caller {
    /// Asks for a change until the answer is certain. `look` says whether it has been made by now.
    pub(crate) async fn until_certain<D, A, L>(
        &self,
        change: Change,
        deadline: Deadline,
        ask: impl Fn() -> A,
        look: impl Fn() -> L,
    ) -> std::result::Result<(), Failure<D>>
    where
        A: Future<Output = std::result::Result<(), Failure<D>>>,
        L: Future<Output = Result<bool>>,
    {
        let mut in_doubt = false;
        let mut patience = deadline;
        for rounds in 1.. {
            let Err(failure) = ask().await else { return Ok(()) };
            match failure.kind {
                _ if change.is_made(&failure) && in_doubt => return Ok(()),
                Kind::InUse if change == Change::Removing => {}
                Kind::Away if failure.outcome == Outcome::Unknown => {
                    in_doubt = true;
                    patience = patience.min(self.absence());
                    match look().await {
                        Ok(true) => return Ok(()),
                        Ok(false) => {}
                        // Whoever cannot even look has waited long enough.
                        Err(_) => return Err(failure),
                    }
                }
                _ => return Err(failure),
            }
            if !self.back_off(rounds, patience).await {
                return Err(failure);
            }
        }
        Ok(())
    }
}
