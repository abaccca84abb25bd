//! `stream put`: records from the command line, a file or standard input.
//!
//! ```text
//!   input ── chunks ──▶ channel ──▶ sender ──▶ append, again while the store says "later"
//!   (a thread: reading may block)   (one batch in flight, and in it no key twice if the store
//!                                    may refuse single records: those of one key stay in order)
//! ```

mod input;
mod key;
mod sender;

use std::path::PathBuf;

use anabranch_model::StreamName;
use clap::Args;
use tokio::sync::mpsc;

use self::input::{Chunks, Source};
use self::key::Keys;
use self::sender::Sender;
use super::Session;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::quantity::counted;

/// Chunks that are read ahead while one is being stored.
const CHUNKS_AHEAD: usize = 2;

/// Arguments of `stream put`.
#[derive(Debug, Args)]
pub(super) struct PutArgs {
    /// The stream
    name: String,
    /// The payload of one record; without it standard input is read, one record a line
    #[arg(conflicts_with_all = ["file", "lines"])]
    text: Option<String>,
    /// Read from a file, `-` for standard input: all of it as one record, or one record a line with --lines
    #[arg(long)]
    file: Option<PathBuf>,
    /// One record a line
    #[arg(long)]
    lines: bool,
    /// The partition key of all records; records with one key stay in order
    #[arg(long, conflicts_with = "key_field")]
    key: Option<String>,
    /// Each record is a JSON object, and this field of it is its partition key
    #[arg(long, value_name = "FIELD")]
    key_field: Option<String>,
    /// Pack small records into aggregates, as the Kinesis Producer Library does
    #[arg(long)]
    aggregate: bool,
}

pub(super) async fn put(session: &Session<'_>, args: &PutArgs) -> Result<(), Failure> {
    let name = StreamName::new(&args.name)?;
    let source = Source::choose(args.text.as_deref(), args.file.as_deref(), args.lines)?;
    let keys = Keys::choose(args.key.as_deref(), args.key_field.as_deref(), session.clock.now());
    // Asked first, so that nobody types records for a stream that is not there.
    session.store.stream(&name).await?;

    let mut progress = Progress::new(session.clock, source.length_bytes());
    let mut sender = Sender::new(session, &name);
    if args.aggregate {
        sender.aggregate().await?;
    }
    let mut chunks = read_ahead(source.chunks(keys));
    while let Some(chunk) = chunks.recv().await {
        let sent = match chunk {
            Ok(chunk) => sender.send(chunk).await,
            Err(failure) => Err(failure),
        };
        let stored = sender.stored();
        progress.show(stored.bytes, || format!("{} stored", counted(stored.records, "record")));
        sent.map_err(|failure| failure.after_storing(sender.stored().records, "record"))?;
    }
    progress.finish();
    session.output.print(&sender.into_report())
}

/// Reads on a thread of its own: a read of standard input cannot be stopped, and ends with the process.
fn read_ahead(mut chunks: Chunks) -> mpsc::Receiver<input::Item> {
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    std::thread::spawn(move || {
        while let Some(chunk) = chunks.next_chunk() {
            // Nobody listens any more once the command has failed.
            if sender.blocking_send(chunk).is_err() {
                break;
            }
        }
    });
    receiver
}
