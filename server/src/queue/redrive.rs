//! `queue redrive`: dead letters go back, and the command waits until they have.

use std::fmt;
use std::time::Duration;

use anabranch_model::queue::{MoveId, MoveStatus, MoveSummary, QueueName};
use clap::Args;
use serde::Serialize;

use super::Session;
use crate::failure::Failure;
use crate::patience::Patience;
use crate::progress::Progress;
use crate::quantity::counted;
use crate::runtime::pause;

/// How long the command waits before it looks again how far the move is.
const LOOK_WAIT: Duration = Duration::from_millis(100);

/// Arguments of `queue redrive`.
#[derive(Debug, Args)]
pub(super) struct RedriveArgs {
    /// The queue with the dead letters
    name: String,
    /// Move all messages to this queue instead of where each came from
    #[arg(long, value_name = "QUEUE")]
    to: Option<String>,
    /// Most messages in a second: up to 500
    #[arg(long, value_name = "COUNT")]
    rate: Option<u32>,
    /// Stop the move that runs
    #[arg(long, conflicts_with_all = ["to", "rate"])]
    cancel: bool,
}

pub(super) async fn redrive(session: &Session<'_>, args: &RedriveArgs) -> Result<(), Failure> {
    let from = QueueName::new(&args.name)?;
    let to = args.to.as_deref().map(QueueName::new).transpose()?;
    if args.cancel {
        return cancel(session, &from).await;
    }
    let id = session.store.start_move(&from, to.as_ref(), args.rate).await?;
    let ended = wait_for_end(session, &from, &id).await?;
    if let MoveStatus::Failed(reason) = &ended.status {
        return Err(Failure::new(
            "move_failed",
            format!("{} moved, then the move ended: {reason}", counted(ended.moved, "message")),
            "name a queue for them with --to QUEUE; what was not moved is where it was",
        ));
    }
    session.output.print(&Moved::from(&ended))
}

/// Watches a move until it does not run any more.
async fn wait_for_end(session: &Session<'_>, from: &QueueName, id: &MoveId) -> Result<MoveSummary, Failure> {
    let mut progress: Option<Progress<'_>> = None;
    let mut patience = Patience::new(session.clock);
    loop {
        let moves = match session.store.moves(from).await {
            Ok(moves) => moves,
            Err(error) => {
                patience.wait(error).await?;
                continue;
            }
        };
        patience.restore();
        let Some(found) = moves.into_iter().find(|found| found.id == *id) else {
            return Err(Failure::new(
                "move_unknown",
                format!("nothing is known of the move of queue {from} any more"),
                "`anabranch queue ls` shows what is where",
            ));
        };
        if found.status != MoveStatus::Running {
            return Ok(found);
        }
        let bar = progress.get_or_insert_with(|| Progress::new(session.clock, Some(found.to_move)));
        bar.show(found.moved, || format!("{} moved", counted(found.moved, "message")));
        pause(LOOK_WAIT).await;
    }
}

async fn cancel(session: &Session<'_>, from: &QueueName) -> Result<(), Failure> {
    let moves = session.store.moves(from).await?;
    let Some(running) = moves.into_iter().find(|found| found.status == MoveStatus::Running) else {
        return Err(Failure::usage(
            format!("no move of queue {from} runs"),
            "`anabranch queue redrive NAME` starts one",
        ));
    };
    let moved = session.store.cancel_move(&running.id).await?;
    session.output.print(&Moved::from(&MoveSummary { moved, status: MoveStatus::Cancelled, ..running }))
}

#[derive(Serialize)]
struct Moved {
    from: String,
    to: Option<String>,
    moved: u64,
    status: &'static str,
}

impl From<&MoveSummary> for Moved {
    fn from(summary: &MoveSummary) -> Self {
        Moved {
            from: summary.from.to_string(),
            to: summary.to.as_ref().map(QueueName::to_string),
            moved: summary.moved,
            status: match summary.status {
                MoveStatus::Running => "running",
                MoveStatus::Completed => "completed",
                MoveStatus::Cancelled => "cancelled",
                MoveStatus::Failed(_) => "failed",
            },
        }
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = counted(self.moved, "message");
        match &self.to {
            Some(to) => write!(f, "moved {messages} from queue {} to queue {to}", self.from)?,
            None => write!(f, "moved {messages} from queue {} back to where they came from", self.from)?,
        }
        if self.status == "completed" { Ok(()) } else { write!(f, " ({})", self.status) }
    }
}
