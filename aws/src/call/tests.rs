//! Calls on a clock that jumps to the next moment at which something happens.

use std::future::{pending, ready};
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_model::Timestamp;
use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::*;
use crate::action::{Resource, Use};

const WRITE: Action = Action::new(Service::Kinesis, "Write", Use::Write, Resource::Stream);
const READ: Action = WRITE.repeatable();
const RECEIVE: Action = WRITE.waiting();
const CHANGE: Action = WRITE.control(5);

/// The stopwatch of the runtime, which stands still while anything can run.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH.plus(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn caller() -> Caller {
    Caller::new(Arc::new(RuntimeClock(Instant::now())), 1, Duration::MAX)
}

/// What a service says in these tests.
#[derive(Clone, Copy)]
struct Said(Kind, Outcome, Option<Duration>);

const AWAY: Said = Said(Kind::Away, Outcome::Unknown, None);
const UNREACHED: Said = Said(Kind::Away, Outcome::Refused, None);
const THROTTLED: Said = Said(Kind::Throttled, Outcome::Refused, None);

impl IntoFailure for Said {
    type Detail = ();

    fn into_failure(self, action: &Action, _: Timestamp) -> Failure {
        Failure { retry_after: self.2, ..Failure::new(action, self.0, self.1, "said so") }
    }
}

/// The failure of a call that is always answered with `said`, the attempts that it made, and the time that it took.
async fn refused(action: &Action, patience: Duration, said: Said) -> (Failure, u32, Duration) {
    let caller = caller();
    let mut attempts = 0;
    let request = || {
        attempts += 1;
        ready(Err::<(), _>(said))
    };
    let failure = caller.call(action, caller.deadline(patience), request).await.unwrap_err();
    (failure, attempts, caller.clock().elapsed())
}

/// Begins a call that is never answered, and waits until its request is under way.
async fn hold(caller: &Caller, action: &'static Action) -> tokio::task::JoinHandle<()> {
    let begun = Arc::new(Notify::new());
    let (caller, signal) = (caller.clone(), begun.clone());
    let call = tokio::spawn(async move {
        let deadline = caller.deadline(Duration::from_secs(10));
        let request = || {
            signal.notify_one();
            pending::<Result<(), Said>>()
        };
        let _ = caller.call(action, deadline, request).await;
    });
    begun.notified().await;
    call
}

/// Whether a call is answered without any time passing.
async fn is_served(caller: &Caller, action: &Action) -> bool {
    let answer = caller.call(action, caller.deadline(Duration::from_millis(1)), || ready(Ok::<_, Said>(7)));
    answer.await.is_ok_and(|answer| answer == 7)
}

#[tokio::test(start_paused = true)]
async fn a_throttled_call_is_made_again_until_it_fits() {
    let caller = caller();
    let mut answers = [Err(THROTTLED), Err(UNREACHED), Ok("done")].into_iter();
    let request = || ready(answers.next().expect("no attempt behind the answer"));
    let answer = caller.call(&WRITE, caller.deadline(Duration::from_secs(30)), request).await;
    assert_eq!(answer.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_behind_the_deadline() {
    for patience in [1, 40, 900, 12_345].map(Duration::from_millis) {
        let (failure, attempts, taken) = refused(&WRITE, patience, THROTTLED).await;
        assert_eq!(failure.kind, Kind::Throttled);
        assert!(taken < patience, "{attempts} attempts took {taken:?} of {patience:?}");
    }
    let (_, attempts, _) = refused(&WRITE, Duration::from_secs(60), THROTTLED).await;
    // Pauses of at most 3 s leave room for 20, and those of at least 3/4 s for no more than 80 and the first short ones.
    assert!((20..=88).contains(&attempts), "{attempts}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_ends_with_the_deadline() {
    let caller = caller();
    let patience = Duration::from_secs(4);
    let failure =
        caller.call(&WRITE, caller.deadline(patience), pending::<Result<(), Said>>).await.unwrap_err();
    assert_eq!((failure.kind, failure.outcome), (Kind::Away, Outcome::Unknown));
    // The timer of the runtime counts whole milliseconds, and rounds up.
    assert_eq!(caller.clock().elapsed().as_secs(), patience.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_gone_is_given_up_before_a_long_deadline() {
    let (failure, attempts, taken) = refused(&READ, Duration::from_secs(600), AWAY).await;
    assert_eq!(failure.kind, Kind::Away);
    assert!(attempts > 3 && taken >= ABSENCE_MAX && taken < ABSENCE_MAX * 2, "{attempts} in {taken:?}");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_done_again() {
    let patience = Duration::from_secs(30);
    let (failure, attempts, taken) = refused(&WRITE, patience, AWAY).await;
    assert_eq!((failure.outcome, attempts, taken), (Outcome::Unknown, 1, Duration::ZERO));
    assert!(refused(&READ, patience, AWAY).await.1 > 1, "the row says that it may be repeated");
    assert!(refused(&WRITE, patience, UNREACHED).await.1 > 1, "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_an_answer_is_not_made_again_either() {
    let caller = caller();
    for (action, again) in [(&WRITE, false), (&READ, true)] {
        let attempts = AtomicU32::new(0);
        let request = || {
            attempts.fetch_add(1, Ordering::Relaxed);
            pending::<Result<(), Said>>()
        };
        let _ = caller.call(action, caller.deadline(Duration::from_secs(40)), request).await;
        assert_eq!(attempts.into_inner() > 1, again, "{}", action.repeatable);
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_early_attempt_may_have_done_is_not_forgotten() {
    for (last, first, outcome) in [
        (THROTTLED, AWAY, Outcome::Unknown),
        (UNREACHED, AWAY, Outcome::Unknown),
        (Said(Kind::Denied, Outcome::Refused, None), AWAY, Outcome::Unknown),
        (THROTTLED, UNREACHED, Outcome::Refused),
    ] {
        let caller = caller();
        let mut answers = std::iter::once(first).chain(std::iter::repeat(last));
        let request = || ready(Err::<(), _>(answers.next().expect("answers without end")));
        let failure =
            caller.call(&READ, caller.deadline(Duration::from_secs(30)), request).await.unwrap_err();
        assert_eq!((failure.kind, failure.outcome), (last.0, outcome));
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_may_be_given_less_time_than_its_action() {
    let second = Duration::from_secs(1);
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    let caller = Caller::new(Arc::new(RuntimeClock(Instant::now())), 1, second);
    let deadline = caller.deadline(Duration::from_secs(30));
    let failure = caller.call(&WRITE, deadline, pending::<Result<(), Said>>).await.unwrap_err();
    assert_eq!((failure.kind, failure.outcome), (Kind::Away, Outcome::Unknown));
    assert_eq!(caller.clock().elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_what_passes_by_itself_is_tried_again() {
    for kind in [
        Kind::InUse,
        Kind::NotFound,
        Kind::Invalid,
        Kind::Limit,
        Kind::Denied,
        Kind::Credentials,
        Kind::Clock,
        Kind::Place,
        Kind::Stranger,
        Kind::Unsupported,
    ] {
        let said = Said(kind, Outcome::Refused, None);
        let (failure, attempts, _) = refused(&READ, Duration::from_secs(30), said).await;
        assert_eq!((failure.kind, attempts), (kind, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_is_left_alone_for_as_long_as_it_asks() {
    let asked = Duration::from_secs(7);
    let said = Said(Kind::Throttled, Outcome::Refused, Some(asked));
    let (_, attempts, taken) = refused(&WRITE, Duration::from_secs(20), said).await;
    assert_eq!((attempts, taken.as_secs()), (3, 14));
    let (_, attempts, taken) = refused(&WRITE, Duration::from_secs(5), said).await;
    assert_eq!((attempts, taken), (1, Duration::ZERO), "a wait beyond the deadline helps nobody");
}

#[tokio::test(start_paused = true)]
async fn rounds_are_paused_within_their_bounds_and_their_deadline() {
    let caller = caller();
    for (rounds, longest) in [(1, 50), (2, 100), (3, 200), (6, 1_600), (7, 3_000), (60, 3_000)] {
        let started = caller.clock().elapsed();
        assert!(caller.back_off(rounds, caller.deadline(Duration::from_secs(60))).await);
        let paused = (caller.clock().elapsed() - started).as_millis();
        // The timer of the runtime rounds up to a millisecond.
        assert!((longest / 4..=longest + 1).contains(&paused), "{rounds}: {paused} ms");
    }
    let started = caller.clock().elapsed();
    assert!(!caller.back_off(60, caller.deadline(Duration::from_millis(700))).await);
    assert_eq!(caller.clock().elapsed(), started, "a pause that does not fit was begun");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_gives_its_permit_back() {
    for (action, permits) in [(&WRITE, CALLS_MAX), (&RECEIVE, WAITING_CALLS_MAX)] {
        let caller = caller();
        let mut held = Vec::new();
        for _ in 0..permits {
            held.push(hold(&caller, action).await);
        }
        assert!(!is_served(&caller, action).await, "a call more than there are permits");
        let last = held.pop().expect("a call");
        last.abort();
        assert!(last.await.unwrap_err().is_cancelled());
        assert!(is_served(&caller, action).await, "the permit was not given back");
        assert!(is_served(&caller, action).await, "the permit of an answered call was not given back");
        held.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_leaves_the_queue() {
    let caller = caller();
    let mut held = Vec::new();
    for _ in 0..CALLS_MAX {
        held.push(hold(&caller, &WRITE).await);
    }
    let deadline = caller.deadline(Duration::from_secs(10));
    let waiting = caller.call(&WRITE, deadline, || ready(Ok::<_, Said>(())));
    assert!(waiting.now_or_never().is_none(), "a call more than there are permits");
    let last = held.pop().expect("a call");
    last.abort();
    assert!(last.await.unwrap_err().is_cancelled());
    assert!(is_served(&caller, &WRITE).await, "the permit went to a call that nobody waits for");
}

#[tokio::test(start_paused = true)]
async fn lanes_do_not_wait_for_each_other() {
    let caller = caller();
    for _ in 0..CALLS_MAX {
        hold(&caller, &WRITE).await;
    }
    assert!(!is_served(&caller, &READ).await, "reads and writes of records share their permits");
    assert!(is_served(&caller, &RECEIVE).await && is_served(&caller, &CHANGE).await);
    const ELSEWHERE: Action = Action::new(Service::Sqs, "Write", Use::Write, Resource::Queue);
    assert!(is_served(&caller, &ELSEWHERE).await, "a slow service holds up another");
}

#[tokio::test(start_paused = true)]
async fn a_quota_without_room_before_the_deadline_refuses_without_a_request() {
    let caller = caller();
    for _ in 0..5 {
        assert!(is_served(&caller, &CHANGE).await);
    }
    let mut attempts = 0;
    let request = || {
        attempts += 1;
        ready(Ok::<(), Said>(()))
    };
    let failure =
        caller.call(&CHANGE, caller.deadline(Duration::from_millis(100)), request).await.unwrap_err();
    assert_eq!((failure.kind, failure.outcome, attempts), (Kind::Throttled, Outcome::Refused, 0));
}

#[tokio::test(start_paused = true)]
async fn a_large_request_has_the_time_to_go_out() {
    let caller = caller();
    for (bytes, seconds) in [(0, 15), (100_000, 15), (10 << 20, 95)] {
        let deadline = caller.deadline_moving(Duration::from_secs(30), bytes);
        let before = caller.clock().elapsed();
        let unanswered = caller.call(&WRITE, deadline, pending::<Result<(), Said>>).await.unwrap_err();
        let taken = caller.clock().elapsed() - before;
        assert_eq!((unanswered.kind, taken.as_secs()), (Kind::Away, seconds), "{bytes}");
    }
}
