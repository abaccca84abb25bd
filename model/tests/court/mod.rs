//! Laws before stores that have one fault: each fault has to be noticed, and each law has to notice one.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use anabranch_model::laws::{Fixture, Law};

/// Which laws notice a fault. Others may notice it as well.
pub type Noticed<F> = &'static [(F, &'static [&'static str])];

/// What a law says about a store.
pub async fn verdict<S: ?Sized>(law: &'static Law<S>, fixture: Fixture<S>) -> Result<(), String> {
    let task = tokio::spawn(law.check(fixture));
    let ended = tokio::time::timeout(Duration::from_secs(30), task).await;
    match ended.unwrap_or_else(|_| panic!("law `{}` is undecided", law.name)) {
        Ok(()) => Ok(()),
        Err(error) => {
            let panic = error.into_panic();
            Err(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "no message".to_string()))
        }
    }
}

/// Every fault is noticed by the laws that are named with it, and they say so themselves.
pub async fn faults_are_noticed<S: ?Sized, F: Copy + Debug>(
    noticed: Noticed<F>,
    named: fn(&str) -> &'static Law<S>,
    broken: fn(F) -> Fixture<S>,
) {
    let mut missed = Vec::new();
    for (fault, names) in noticed {
        for name in *names {
            match verdict(named(name), broken(*fault)).await {
                Ok(()) => missed.push(format!("law `{name}` does not notice {fault:?}")),
                Err(message) if message.starts_with(&format!("law `{name}`: ")) => {}
                Err(message) => missed.push(format!("law `{name}` says this about {fault:?}: {message}")),
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// There is no law that no fault was found for.
pub fn laws_notice_faults<S: ?Sized, F>(noticed: Noticed<F>, laws: &'static [Law<S>]) {
    let noticing: BTreeSet<_> = noticed.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    assert_eq!(noticing, laws.iter().map(|law| law.name).collect());
}
