//! The calls of one connection that carries several: whether there are any, and whether their answers are taken.
//!
//! HTTP/2 lets a client hold back each answer by itself while it reads the rest of the connection, and whoever waits for
//! it to go on polls nothing meanwhile. So the answers are looked at from outside, once in each tick of the connection:
//! one that nobody takes is dropped, with everything behind it, and its stream ends.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use anabranch_wire::BoxError;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// Largest piece of an answer that is given away at once: a frame of HTTP/2. What was given away is not got back when
/// the answer is dropped, so it is small, and a copy, which keeps nothing else in memory.
const PIECE_BYTES: usize = 16 << 10;

/// The calls of one connection.
#[derive(Default)]
pub(super) struct Calls(Mutex<Open>);

#[derive(Default)]
struct Open {
    next: u64,
    answers: BTreeMap<u64, Arc<Mutex<Answer>>>,
    /// Ticks in a row in which no call was open.
    ticks_quiet: u32,
}

/// The answer of a call, which both the one that sends it and the timer can reach.
#[derive(Default)]
struct Answer {
    /// Nothing before it is there, and after it was dropped.
    body: Option<Body>,
    /// The part of the last frame that was not given away yet.
    rest: Bytes,
    /// Ticks since the last piece was given away and no other was asked for. Nothing while there is none to give.
    ticks_untaken: Option<u32>,
}

impl Calls {
    /// A call begins. It is open until it or its answer is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Call {
        let answer = Arc::new(Mutex::new(Answer::default()));
        let mut open = locked(&self.0);
        let number = open.next;
        open.next += 1;
        open.ticks_quiet = 0;
        open.answers.insert(number, answer.clone());
        Call { calls: self.clone(), number, answer }
    }

    /// Some time has passed. Drops the answers that nobody took for `ticks_untaken_max` ticks, and returns for how many
    /// ticks no call was open.
    pub(super) fn tick(&self, ticks_untaken_max: u32) -> u32 {
        let mut dropped = Vec::new();
        let mut open = locked(&self.0);
        open.answers.retain(|_, answer| match locked(answer).tick(ticks_untaken_max) {
            Some(body) => {
                dropped.push(body);
                false
            }
            None => true,
        });
        open.ticks_quiet = if open.answers.is_empty() { open.ticks_quiet.saturating_add(1) } else { 0 };
        open.ticks_quiet
    }

    /// Counts the quiet ticks from here.
    pub(super) fn stir(&self) {
        locked(&self.0).ticks_quiet = 0;
    }
}

impl Answer {
    /// Some time has passed. Returns what is to be dropped.
    fn tick(&mut self, ticks_untaken_max: u32) -> Option<(Body, Bytes)> {
        let ticks = self.ticks_untaken.as_mut()?;
        *ticks += 1;
        if *ticks <= ticks_untaken_max {
            return None;
        }
        Some((self.body.take()?, std::mem::take(&mut self.rest)))
    }

    /// The next piece of the last frame.
    fn piece(&mut self) -> Bytes {
        if self.rest.len() <= PIECE_BYTES {
            return std::mem::take(&mut self.rest);
        }
        Bytes::copy_from_slice(&self.rest.split_to(PIECE_BYTES))
    }
}

/// A call, or its answer once that is there.
pub(super) struct Call {
    calls: Arc<Calls>,
    number: u64,
    answer: Arc<Mutex<Answer>>,
}

impl Call {
    /// The answer of the call.
    pub(super) fn answered(self, body: Body) -> Self {
        {
            let mut answer = locked(&self.answer);
            answer.body = Some(body);
            answer.ticks_untaken = Some(0);
        }
        self
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        locked(&self.calls.0).answers.remove(&self.number);
    }
}

impl hyper::body::Body for Call {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut answer = locked(&self.answer);
        if answer.rest.is_empty() {
            let Some(body) = answer.body.as_mut() else {
                return Poll::Ready(Some(Err("the client took nothing of the answer for too long".into())));
            };
            let polled = Pin::new(body).poll_frame(context);
            answer.ticks_untaken = polled.is_ready().then_some(0);
            match ready!(polled).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => answer.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            }
        }
        answer.ticks_untaken = Some(0);
        Poll::Ready(Some(Ok(Frame::data(answer.piece()))))
    }

    fn is_end_stream(&self) -> bool {
        let answer = locked(&self.answer);
        answer.rest.is_empty() && answer.body.as_ref().is_some_and(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let answer = locked(&self.answer);
        let rest = answer.rest.len() as u64;
        let inner = answer.body.as_ref().map(|body| body.size_hint()).unwrap_or_default();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// Nobody panics while he holds one of these, and a poisoned count is still a count.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn an_answer_comes_in_small_pieces_and_whole() {
        let calls = Arc::new(Calls::default());
        let whole: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let mut call = calls.begin().answered(whole.clone().into());
        assert_eq!(hyper::body::Body::size_hint(&call).exact(), Some(100_000));
        let mut got = Vec::new();
        while !hyper::body::Body::is_end_stream(&call) {
            let piece = call.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            got.extend_from_slice(&piece);
            assert_eq!(hyper::body::Body::size_hint(&call).exact(), Some(100_000 - got.len() as u64));
        }
        assert_eq!(got, whole);
        assert!(call.frame().await.is_none());
    }

    #[tokio::test]
    async fn only_an_answer_that_waits_to_be_taken_is_dropped() {
        let calls = Arc::new(Calls::default());
        let computing = calls.begin();
        let mut quiet = calls
            .begin()
            .answered(Body::from_stream(futures_util::stream::pending::<Result<Bytes, BoxError>>()));
        assert!(quiet.frame().now_or_never().is_none());
        let mut untaken = calls.begin().answered(vec![0u8; 3 * PIECE_BYTES].into());
        for _ in 0..3 {
            assert_eq!((calls.tick(3), calls.tick(3)), (0, 0));
            assert!(untaken.frame().await.unwrap().is_ok(), "one that is slow is waited for");
        }
        for _ in 0..4 {
            assert_eq!(calls.tick(3), 0);
        }
        assert!(untaken.frame().await.unwrap().is_err());
        assert!(quiet.frame().now_or_never().is_none(), "there was nothing to take");
        drop((computing, quiet));
        assert_eq!((calls.tick(3), calls.tick(3)), (1, 2), "what was dropped is not open");
        drop(calls.begin());
        assert_eq!(calls.tick(3), 1);
    }
}
