//! A body on its way in: taken whole if it is small, or passed on while it comes.
//!
//! What must hold: the last bytes of a body are not sent before all of it was compared with what was declared, so that a
//! body that is wrong is never stored.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use anabranch_model::blob::{Body, BodyDigest, BodyDigester, BodyOptions};
use anabranch_model::{Error, Result};
use aws_smithy_runtime_api::client::result::{ConnectorError, SdkError};
use aws_smithy_runtime_api::http::Headers;
use aws_smithy_types::body::SdkBody;
use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use futures_util::{StreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::mpsc;

use super::Blobs;
use super::explain::Failed;
use super::request::Request;
use crate::action::Action;

/// Largest body that is taken whole before it is sent.
pub(super) const WHOLE_BYTES_MAX: usize = 8 << 20;
/// Largest body that goes like any other request.
const QUICK_BYTES_MAX: u64 = 256 << 10;
/// Pieces that wait to be sent.
const PIECES_MAX: usize = 4;
/// How long the service may take for the next piece, and for its answer behind the last.
const STALL_MAX: Duration = Duration::from_secs(60);
/// How long a body may be on its way: a day moves the largest one at half the speed of a telephone line.
const TRANSFER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The action of a request with so many bytes: more than a few take as long as the line needs.
pub(super) fn carrying(action: Action, bytes: u64) -> Action {
    if bytes > QUICK_BYTES_MAX { action.moving() } else { action }
}

/// What became of the beginning of a body.
pub(super) enum Intake {
    /// It was all.
    Whole(Bytes, BodyDigest),
    /// There is more.
    Flowing(Flow),
}

/// A body of which a part has come.
pub(super) struct Flow {
    come: BytesMut,
    digester: BodyDigester,
    rest: Body,
}

/// Takes a body until it ends, or until it has more than `whole_max` bytes. S3 compares the MD5 of what is sent whole, and
/// gives it back as the tag.
pub(super) async fn take(body: Body, options: BodyOptions, whole_max: usize) -> Result<Intake> {
    let options = BodyOptions { md5_tag: true, ..options };
    Flow { come: BytesMut::new(), digester: BodyDigester::new(options)?, rest: body }.fill(whole_max).await
}

impl Flow {
    /// Takes more of the body.
    pub(super) async fn fill(mut self, whole_max: usize) -> Result<Intake> {
        while self.come.len() <= whole_max {
            let Some(piece) = self.rest.next().await.transpose()? else {
                return Ok(Intake::Whole(self.come.freeze(), self.digester.finish()?));
            };
            self.digester.update(&piece)?;
            self.come.extend_from_slice(&piece);
        }
        Ok(Intake::Flowing(self))
    }

    /// The next `size` bytes; fewer only at the end of the body, and none behind it.
    pub(super) async fn next_chunk(&mut self, size: usize) -> Result<Bytes> {
        while self.come.len() < size {
            let Some(piece) = self.rest.next().await.transpose()? else { break };
            self.digester.update(&piece)?;
            self.come.extend_from_slice(&piece);
        }
        let size = size.min(self.come.len());
        Ok(self.come.split_to(size).freeze())
    }

    /// What the whole body was, compared with what was declared.
    pub(super) fn finish(self) -> Result<BodyDigest> {
        self.digester.finish()
    }

    /// Sends the pieces as they come. None if nobody takes them any more.
    async fn pump(mut self, sender: mpsc::Sender<Bytes>) -> Result<Option<BodyDigest>> {
        let mut held = self.come.split().freeze();
        while let Some(piece) = self.rest.next().await.transpose()? {
            self.digester.update(&piece)?;
            if piece.is_empty() {
                continue;
            }
            if !send(&sender, std::mem::replace(&mut held, piece)).await? {
                return Ok(None);
            }
        }
        let digest = self.digester.finish()?;
        Ok(send(&sender, held).await?.then_some(digest))
    }
}

async fn send(sender: &mpsc::Sender<Bytes>, piece: Bytes) -> Result<bool> {
    match tokio::time::timeout(STALL_MAX, sender.send(piece)).await {
        Ok(sent) => Ok(sent.is_ok()),
        Err(_) => Err(stalled("takes no more of the body")),
    }
}

fn stalled(what: &str) -> Error {
    Error::Unavailable(format!(
        "S3 {what} for {} seconds; whether it was stored is not known",
        STALL_MAX.as_secs()
    ))
}

impl Blobs {
    /// Sends a request whose body is `size` bytes that are still to come. It is sent once: the bytes are gone then.
    pub(super) async fn send_flowing(
        &self,
        action: &Action,
        request: &Request,
        flow: Flow,
        size: u64,
        explain: impl Fn(Failed) -> Error,
    ) -> Result<(Headers, BodyDigest)> {
        let request = request.clone().header("content-length", size.to_string());
        let (sender, mut receiver) = mpsc::channel(PIECES_MAX);
        let pieces = stream::poll_fn(move |context| receiver.poll_recv(context));
        let frames = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        let mut body = Some(SdkBody::from_body_1_x(StreamBody::new(frames)));
        let begin = || {
            let (body, request) = (body.take(), &request);
            async move {
                let used_up = || ConnectorError::io("the body cannot be sent again".into());
                let body = body.ok_or_else(|| SdkError::dispatch_failure(used_up()))?;
                self.client.open_flowing(request, body, self.caller.clock().now()).await
            }
        };
        let action = Action { repeatable: false, ..*action }.moving();
        let call = pin!(self.caller.call(&action, self.caller.deadline(TRANSFER_MAX), begin));
        let (answer, digest) = match select(pin!(flow.pump(sender)), call).await {
            Either::Left((digest, call)) => {
                let digest = digest?;
                let answer = tokio::time::timeout(STALL_MAX, call).await;
                (answer.map_err(|_| stalled("does not answer"))?, digest)
            }
            Either::Right((answer, _)) => (answer, None),
        };
        let answer = answer.map_err(explain)?;
        let digest = digest.ok_or_else(|| super::strange("a success before the body has come"))?;
        Ok((answer.headers().clone(), digest))
    }
}
