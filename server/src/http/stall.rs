//! A connection that gives up when the other side takes nothing for too long.
//!
//! Without it a client that stops reading holds its answer, and the memory behind it, for ever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Wraps a connection; a write or flush that makes no progress for `patience` fails with `TimedOut`.
pub(super) struct Stalling<S> {
    inner: S,
    patience: Duration,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Stalling<S> {
    pub(super) fn new(inner: S, patience: Duration) -> Self {
        Stalling { inner, patience, waiting: None }
    }

    fn limited<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = write(Pin::new(&mut self.inner), context) {
            self.waiting = None;
            return Poll::Ready(result);
        }
        let patience = self.patience;
        ready!(self.waiting.get_or_insert_with(|| Box::pin(time_limit(patience))).as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no bytes")))
    }
}

#[expect(clippy::disallowed_methods, reason = "it is the time limit of the wait for the socket")]
fn time_limit(patience: Duration) -> Sleep {
    tokio::time::sleep(patience)
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.limited(context, |inner, context| inner.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.limited(context, |inner, context| inner.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.limited(context, |inner, context| inner.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.limited(context, |inner, context| inner.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (here, _there) = tokio::io::duplex(16);
        let mut connection = Stalling::new(here, Duration::from_secs(60));
        let error = connection.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_takes_something_is_waited_for() {
        let (here, mut there) = tokio::io::duplex(16);
        let mut connection = Stalling::new(here, Duration::from_secs(3600));
        let reader = tokio::spawn(async move {
            let mut bytes = vec![0; 64];
            there.read_exact(&mut bytes).await.map(|_| bytes)
        });
        connection.write_all(&[7; 64]).await.unwrap();
        assert_eq!(reader.await.unwrap().unwrap(), vec![7; 64]);
    }
}
