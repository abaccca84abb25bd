//! `stream create`, `stream retention` and `stream rm`.

use std::fmt;

use anabranch_model::limits::RETENTION_MIN;
use anabranch_model::{StreamName, StreamOptions};
use clap::Args;
use serde::Serialize;

use super::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::quantity::{Span, counted};

/// Arguments of `stream create`.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Its name: 1 to 128 of a-z, A-Z, 0-9, `_`, `.` and `-`
    name: String,
    /// Shards at the start, each with an equal part of the keys
    #[arg(long, default_value_t = 1)]
    shards: usize,
    /// How long records are kept: 24h to 365d
    #[arg(long, default_value_t = Span(RETENTION_MIN), value_name = "DURATION")]
    retention: Span,
}

pub(super) async fn create(session: &Session<'_>, args: &CreateArgs) -> Result<(), Failure> {
    let name = StreamName::new(&args.name)?;
    let options = StreamOptions { shards: args.shards, retention: args.retention.0 };
    session.store.create_stream(&name, options).await?;
    session.output.print(&Created {
        name: name.to_string(),
        shards: args.shards,
        retention_seconds: args.retention.0.as_secs(),
    })
}

#[derive(Serialize)]
struct Created {
    name: String,
    shards: usize,
    retention_seconds: u64,
}

impl fmt::Display for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retention = Span(std::time::Duration::from_secs(self.retention_seconds));
        let shards = counted(self.shards as u64, "shard");
        write!(f, "created stream {}: {shards}, records are kept for {retention}", self.name)
    }
}

/// Arguments of `stream retention`.
#[derive(Debug, Args)]
pub(super) struct RetentionArgs {
    /// The stream
    name: String,
    /// How long records are kept: 24h to 365d; a shorter time removes what is older
    retention: Span,
}

pub(super) async fn retention(session: &Session<'_>, args: &RetentionArgs) -> Result<(), Failure> {
    let name = StreamName::new(&args.name)?;
    session.store.set_retention(&name, args.retention.0).await?;
    session.output.print(&Retained { name: name.to_string(), retention_seconds: args.retention.0.as_secs() })
}

#[derive(Serialize)]
struct Retained {
    name: String,
    retention_seconds: u64,
}

impl fmt::Display for Retained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retention = Span(std::time::Duration::from_secs(self.retention_seconds));
        write!(f, "records of stream {} are kept for {retention}", self.name)
    }
}

/// Arguments of `stream rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// The stream
    name: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn rm(session: &Session<'_>, args: &RmArgs) -> Result<(), Failure> {
    let name = StreamName::new(&args.name)?;
    // Asked before the person is, so that nobody confirms the removal of nothing.
    session.store.stream(&name).await?;
    if !args.yes {
        confirm(&format!("removing stream `{name}`"), &format!("Remove stream {name} with all its records?"))
            .await?;
    }
    session.store.delete_stream(&name).await?;
    session.output.print(&Removed { removed: name.to_string() })
}

#[derive(Serialize)]
struct Removed {
    removed: String,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "removed stream {} with all its records", self.removed)
    }
}
