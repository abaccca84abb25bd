//! `table changes`: what was written down about a table, and what comes.

use std::collections::BTreeMap;
use std::io;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::table::{Change, Event};
use anabranch_model::{Next, Position, ReadLimit, Record, ShardId, TableName};
use clap::Args;
use serde::Serialize;

use super::Session;
use super::plain::{Form, Shown};
use crate::failure::Failure;
use crate::limits::POLL_WAIT;
use crate::output::{note, write_out};
use crate::quantity::rfc3339;
use crate::runtime::pause;

/// Arguments of `table changes`.
#[derive(Debug, Args)]
pub(super) struct ChangesArgs {
    /// The table
    name: String,
    /// Go on as changes come
    #[arg(long)]
    follow: bool,
}

pub(super) async fn changes(session: &Session<'_>, args: &ChangesArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    let Some(stream) = session.store.table(&name).await?.changes else {
        return Err(Failure::usage(
            format!("the changes of table {name} are not written down"),
            "make the table with --changes new, old, both or keys",
        ));
    };
    let source = session.store.changes();
    // Where reading goes on; none for a shard that has ended. A parent is listed before its children.
    let mut places: BTreeMap<ShardId, Option<Position>> = BTreeMap::new();
    loop {
        let mut after: Option<ShardId> = None;
        loop {
            let page = source.shards(&stream, after.as_ref(), PAGE_ENTRIES_MAX).await?;
            after = page.entries.last().map(|shard| shard.id.clone());
            for shard in page.entries {
                places.entry(shard.id).or_insert(Some(Position::TrimHorizon));
            }
            if !page.more || after.is_none() {
                break;
            }
        }
        let mut found = false;
        let mut ended = true;
        for (shard, place) in &mut places {
            while let Some(from) = *place {
                let batch = source.read(&stream, shard, from, ReadLimit::default()).await?;
                found |= !batch.records.is_empty();
                print(session, &batch.records)?;
                let at_end = batch.behind.is_zero() && batch.records.is_empty();
                match batch.next {
                    Next::Ended(_) => *place = None,
                    Next::At(next) => *place = Some(next),
                }
                if at_end {
                    break;
                }
            }
            ended &= place.is_none();
        }
        if !args.follow || ended {
            return Ok(());
        }
        if !session.shared {
            note("no server holds the data directory, so nothing new can come: this is all there is");
            return Ok(());
        }
        if !found {
            pause(POLL_WAIT).await;
        }
    }
}

/// A change as `--json` shows it.
#[derive(Serialize)]
struct ChangeReport {
    event: &'static str,
    at: String,
    keys: Shown,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Shown>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    expired: bool,
}

impl ChangeReport {
    fn new(form: Form, change: &Change) -> Self {
        ChangeReport {
            event: match change.event {
                Event::Insert => "insert",
                Event::Modify => "modify",
                Event::Remove => "remove",
            },
            at: rfc3339(change.at),
            keys: form.shown(&change.keys),
            new: change.new.as_ref().map(|item| form.shown(item)),
            old: change.old.as_ref().map(|item| form.shown(item)),
            expired: change.expired,
        }
    }

    fn text(&self) -> Result<String, io::Error> {
        let mut text = format!("{} {} {}", self.at, self.event, serde_json::to_string(&self.keys)?);
        for (word, image) in [("new", &self.new), ("old", &self.old)] {
            if let Some(image) = image {
                text += &format!(" {word} {}", serde_json::to_string(image)?);
            }
        }
        Ok(if self.expired { text + " expired" } else { text })
    }
}

fn print(session: &Session<'_>, records: &[Record]) -> Result<(), Failure> {
    let mut lines = String::new();
    for record in records {
        let report = ChangeReport::new(session.form, &Change::decode(&record.data)?);
        let line = match session.output.json {
            true => serde_json::to_string(&report).map_err(io::Error::from)?,
            false => report.text()?,
        };
        lines += &line;
        lines.push('\n');
    }
    write_out(lines.as_bytes())
}
