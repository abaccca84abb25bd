//! `table ls`, `table create` and `table rm`.

use std::fmt;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::table::{
    ChangeView, IndexOptions, KeyAttribute, KeyKind, KeySchema, TableOptions, TableSummary,
};
use anabranch_model::{IndexName, TableName};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::{table, table_text};
use crate::quantity::{Size, counted, grouped, rfc3339};

/// Arguments of `table create`.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Its name: 3 to 255 of a-z, A-Z, 0-9, `_`, `-` and `.`
    name: String,
    /// The attribute that items are found by, and its kind: S for text, N for number, B for binary
    #[arg(long, value_name = "NAME:KIND", value_parser = parse_attribute)]
    key: KeyAttribute,
    /// The attribute that orders the items with one key
    #[arg(long, value_name = "NAME:KIND", value_parser = parse_attribute)]
    range: Option<KeyAttribute>,
    /// Another way to find items; may be given several times
    #[arg(long = "index", value_name = "INDEX:NAME:KIND[,NAME:KIND]", value_parser = parse_index)]
    indexes: Vec<IndexOptions>,
    /// Write down each change, with these images of the item
    #[arg(long, value_name = "IMAGES")]
    changes: Option<Images>,
    /// The attribute that says when an item expires, in seconds since 1970
    #[arg(long, value_name = "ATTRIBUTE")]
    ttl: Option<String>,
}

/// What is written down about a change, beside the key.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Images {
    New,
    Old,
    Both,
    Keys,
}

fn parse_attribute(text: &str) -> Result<KeyAttribute, String> {
    let kind = |letter: &str| match letter {
        "S" => Some(KeyKind::Text),
        "N" => Some(KeyKind::Number),
        "B" => Some(KeyKind::Binary),
        _ => None,
    };
    let parts = text.rsplit_once(':').and_then(|(name, letter)| Some((name, kind(letter)?)));
    match parts {
        Some((name, kind)) if !name.is_empty() => Ok(KeyAttribute { name: name.to_owned(), kind }),
        _ => Err("a key attribute is a name and S, N or B, for instance id:S".to_owned()),
    }
}

fn parse_index(text: &str) -> Result<IndexOptions, String> {
    let (name, key) = text
        .split_once(':')
        .ok_or_else(|| "an index is a name and its key, for instance by-colour:colour:S,at:N".to_owned())?;
    let (hash, range) = match key.split_once(',') {
        Some((hash, range)) => (hash, Some(parse_attribute(range)?)),
        None => (key, None),
    };
    let key = KeySchema::new(parse_attribute(hash)?, range);
    Ok(IndexOptions::global(IndexName::new(name).map_err(|error| error.to_string())?, key))
}

pub(super) async fn create(session: &Session<'_>, args: &CreateArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    let options = TableOptions {
        key: KeySchema::new(args.key.clone(), args.range.clone()),
        indexes: args.indexes.clone(),
        time_to_live: args.ttl.clone(),
        changes: args.changes.map(|images| match images {
            Images::New => ChangeView::New,
            Images::Old => ChangeView::Old,
            Images::Both => ChangeView::Both,
            Images::Keys => ChangeView::Keys,
        }),
        keyspace: None,
    };
    let created = Created { created: name.to_string(), key: key_text(&options.key) };
    session.store.create_table(&name, options).await?;
    session.output.print(&created)
}

fn key_text(key: &KeySchema) -> String {
    let letter = |kind| match kind {
        KeyKind::Text => "S",
        KeyKind::Number => "N",
        KeyKind::Binary => "B",
    };
    let attribute = |part: &KeyAttribute| format!("{}:{}", part.name, letter(part.kind));
    key.attributes().map(attribute).collect::<Vec<_>>().join(",")
}

#[derive(Serialize)]
struct Created {
    created: String,
    key: String,
}

impl fmt::Display for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "created table {}: items are found by {}", self.created, self.key)
    }
}

pub(super) async fn ls(session: &Session<'_>) -> Result<(), Failure> {
    let mut tables = Vec::new();
    let mut after: Option<TableName> = None;
    loop {
        let page = session.store.tables(after.as_ref(), PAGE_ENTRIES_MAX).await?;
        for name in &page.entries {
            tables.push(TableReport::from(&session.store.table(name).await?));
        }
        after = page.entries.last().cloned();
        if !page.more || after.is_none() {
            return session.output.print(&TablesReport { tables });
        }
    }
}

#[derive(Serialize)]
struct TablesReport {
    tables: Vec<TableReport>,
}

/// A table as `--json` shows it.
#[derive(Serialize)]
struct TableReport {
    name: String,
    key: String,
    items: u64,
    bytes: u64,
    indexes: Vec<String>,
    changes: Option<String>,
    created_at: String,
}

impl From<&TableSummary> for TableReport {
    fn from(summary: &TableSummary) -> Self {
        TableReport {
            name: summary.name.to_string(),
            key: key_text(&summary.options.key),
            items: summary.items,
            bytes: summary.bytes,
            indexes: summary.indexes.iter().map(|index| index.name.to_string()).collect(),
            changes: summary.changes.as_ref().map(ToString::to_string),
            created_at: rfc3339(summary.created_at),
        }
    }
}

impl fmt::Display for TablesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tables.is_empty() {
            return f.write_str("no tables yet: `anabranch table create NAME --key id:S` makes one");
        }
        let mut text = table(&["TABLE", "KEY", "ITEMS", "SIZE", "INDEXES", "CREATED"], &[2, 3]);
        for found in &self.tables {
            let indexes = if found.indexes.is_empty() { "-".to_owned() } else { found.indexes.join(",") };
            text.add_row([
                found.name.clone(),
                found.key.clone(),
                grouped(found.items),
                Size(found.bytes).to_string(),
                indexes,
                found.created_at.clone(),
            ]);
        }
        f.write_str(&table_text(&text))
    }
}

/// Arguments of `table rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// The table
    name: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn rm(session: &Session<'_>, args: &RmArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    let items = counted(session.store.table(&name).await?.items, "item");
    if !args.yes {
        confirm(&format!("removing table `{name}`"), &format!("Remove table {name} with {items}?")).await?;
    }
    session.store.delete_table(&name).await?;
    session.output.print(&Removed { removed: name.to_string() })
}

#[derive(Serialize)]
struct Removed {
    removed: String,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "removed table {} with all its items", self.removed)
    }
}
