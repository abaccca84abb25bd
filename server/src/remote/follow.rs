//! The lines of a follow become batches.

use anabranch_model::{Batch, Error, Next, Result};
use bytes::{Buf, Bytes, BytesMut};
use futures_core::Stream;
use futures_util::stream;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::api::wire::FollowLine;
use crate::limits::{FOLLOW_SILENCE_MAX, LINE_BYTES_MAX};

/// Batches as the server sends them; the last item is an error or says that the shard has ended.
pub(super) fn batches(body: Incoming) -> impl Stream<Item = Result<Batch>> + Send {
    stream::unfold(Some(Lines::new(body)), |lines| async move {
        let mut lines = lines?;
        let item = lines.next_batch().await;
        let goes_on = matches!(&item, Ok(batch) if matches!(batch.next, Next::At(_)));
        Some((item, goes_on.then_some(lines)))
    })
}

/// A body, cut at its line feeds.
pub(super) struct Lines {
    body: Incoming,
    /// What came behind the last line feed.
    rest: BytesMut,
    /// How much of `rest` was searched for a line feed, so that a long line is searched once.
    searched: usize,
}

impl Lines {
    pub(super) fn new(body: Incoming) -> Self {
        Lines { body, rest: BytesMut::new(), searched: 0 }
    }

    async fn next_batch(&mut self) -> Result<Batch> {
        self.next::<FollowLine>().await?.into_batch()
    }

    /// What the next line says.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<T> {
        loop {
            let line = self.next_line().await?;
            // An empty line says that the server is alive.
            if !line.is_empty() {
                return serde_json::from_slice(&line)
                    .map_err(|error| Error::Unavailable(format!("the server sent a wrong line: {error}")));
            }
        }
    }

    async fn next_line(&mut self) -> Result<Bytes> {
        loop {
            if let Some(length) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(self.searched + length).freeze();
                self.rest.advance(1);
                self.searched = 0;
                // Between two lines there is mostly nothing, and the room for the longest line of a shard would stay for as
                // long as it is followed.
                if self.rest.is_empty() {
                    self.rest = BytesMut::new();
                }
                return Ok(line);
            }
            self.searched = self.rest.len();
            if self.searched > LINE_BYTES_MAX {
                return Err(Error::Unavailable("the server sent a line that is too long".to_owned()));
            }
            let piece = self.next_piece().await?;
            self.rest.extend_from_slice(&piece);
        }
    }

    async fn next_piece(&mut self) -> Result<Bytes> {
        // The server breaks its silence in time, so a longer one means that it is gone.
        let frame = tokio::time::timeout(2 * FOLLOW_SILENCE_MAX, self.body.frame()).await;
        match frame {
            Ok(Some(Ok(frame))) => Ok(frame.into_data().unwrap_or_default()),
            Ok(Some(Err(error))) => Err(Error::Unavailable(format!("the connection broke: {error}"))),
            Ok(None) => Err(Error::Unavailable("the server ended the connection".to_owned())),
            Err(_) => Err(Error::Unavailable("the server has fallen silent".to_owned())),
        }
    }
}
