//! What a connection speaks: what opens with the preface of HTTP/2 is that, with the first byte of a handshake TLS, anything
//! else HTTP/1.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// What HTTP/2 opens with. No request of HTTP/1 does. All of it is waited for here, because nobody else limits how long a
/// client may take to send it.
const HTTP2: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What TLS opens with. No text begins like this.
const TLS: u8 = 0x16;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Http1,
    Http2,
    Tls,
}

/// A connection whose first bytes were looked at, and are read again.
pub(super) struct Opened<S> {
    inner: S,
    /// What was looked at and not read again.
    first: Vec<u8>,
}

/// Waits for the first bytes. The caller limits how long.
pub(super) async fn open<S: AsyncRead + Unpin>(mut connection: S) -> io::Result<(Language, Opened<S>)> {
    let mut first = Vec::with_capacity(HTTP2.len());
    while first.len() < HTTP2.len() && HTTP2.starts_with(&first) {
        let mut rest = [0; HTTP2.len()];
        let room = HTTP2.len() - first.len();
        match connection.read(&mut rest[..room]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => first.extend_from_slice(&rest[..read]),
        }
    }
    let language = match first[..] {
        [TLS, ..] => Language::Tls,
        _ if first == HTTP2 => Language::Http2,
        _ => Language::Http1,
    };
    Ok((language, Opened { inner: connection, first }))
}

impl<S: AsyncRead + Unpin> AsyncRead for Opened<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        let taken = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..taken]);
        self.first.drain(..taken);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opened<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn the_first_bytes_tell_and_are_read_again() {
        for (sent, language) in [
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Language::Http2),
            ("POST / HTTP/1.1\r\n\r\n", Language::Http1),
            ("PRIM / HTTP/1.1\r\n\r\n", Language::Http1),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", Language::Http1),
            ("\0", Language::Http1),
            ("\x16\x03\x01", Language::Tls),
        ] {
            let (mut there, here) = tokio::io::duplex(64);
            // One byte at a time, as a slow client would.
            let sending = tokio::spawn(async move {
                for byte in sent.bytes() {
                    there.write_all(&[byte]).await.unwrap();
                    tokio::task::yield_now().await;
                }
                there
            });
            let opened = open(here).await;
            drop(sending.await.unwrap());
            let (found, mut opened) = opened.unwrap();
            assert_eq!(found, language, "{sent:?}");
            let mut read = String::new();
            opened.read_to_string(&mut read).await.unwrap();
            assert_eq!(read, sent);
        }
    }

    #[tokio::test]
    async fn a_connection_that_closes_first_is_none() {
        for sent in ["", "PR", "PRI * HTTP/2.0\r\n\r\n"] {
            let (mut there, here) = tokio::io::duplex(64);
            there.write_all(sent.as_bytes()).await.unwrap();
            drop(there);
            assert!(open(here).await.is_err());
        }
    }
}
