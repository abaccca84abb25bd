//! The operation that backs the data directory up, on the server's side. It ends with its client.

use std::path::Path;
use std::sync::Arc;

use anabranch_model::Error;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream;
use tokio::sync::mpsc::Receiver;

use super::receive::{Refusal, receive};
use super::serve::{Api, streamed};
use super::wire::{BackupLine, BackupRequest};
use crate::http::Stop;
use crate::limits::FOLLOW_SILENCE_MAX;

pub(super) async fn backup(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Response, Refusal> {
    let (request, admission) = receive::<BackupRequest>(request, &api.budget).await?;
    drop(admission);
    let Some(backups) = &api.backups else {
        return Err(
            Error::Invalid("there is no data directory here that could be backed up".to_owned()).into()
        );
    };
    let news = backups.start(Path::new(&request.target));
    Ok(streamed("application/x-ndjson", lines(news, api.stop.clone())))
}

/// The lines of a backup, and an empty one after some silence. Whoever drops them calls it off.
fn lines(news: Receiver<BackupLine>, stop: Stop) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(Some((news, stop)), |going| async move {
        let (mut news, mut stop) = going?;
        let line = tokio::select! {
            () = stop.requested() => {
                let ended = BackupLine::last(Err(Error::Unavailable("the server is shutting down".to_owned())));
                return Some((text(&ended), None));
            }
            line = tokio::time::timeout(FOLLOW_SILENCE_MAX, news.recv()) => line,
        };
        match line {
            Ok(line) => Some((text(&line?), Some((news, stop)))),
            Err(_) => Some((Bytes::from_static(b"\n"), Some((news, stop)))),
        }
    })
}

fn text(line: &BackupLine) -> Bytes {
    let mut text = serde_json::to_vec(line).expect("wire types have string keys");
    text.push(b'\n');
    Bytes::from(text)
}
