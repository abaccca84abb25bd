//! `blob ls` and `blob create`. Listings go to their last page; blobs are printed page by page, however many there are.

use std::fmt;
use std::io;

use anabranch_model::blob::{BlobSummary, BucketName, BucketSummary, ListOptions};
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use clap::Args;
use serde::Serialize;

use super::Session;
use super::place::Place;
use crate::failure::Failure;
use crate::output::{note, shown, table, table_text, write_out};
use crate::quantity::{Size, rfc3339};

/// Arguments of `blob ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    /// A bucket, and what keys begin with; without it the buckets are listed
    #[arg(value_name = "BUCKET[/PREFIX]")]
    place: Option<String>,
    /// Show every key instead of what lies between slashes
    #[arg(long, short)]
    recursive: bool,
}

pub(super) async fn ls(session: &Session<'_>, args: &LsArgs) -> Result<(), Failure> {
    match &args.place {
        None => ls_buckets(session).await,
        Some(place) => ls_blobs(session, &Place::parse(place)?, args.recursive).await,
    }
}

async fn ls_buckets(session: &Session<'_>) -> Result<(), Failure> {
    let mut buckets: Vec<BucketSummary> = Vec::new();
    loop {
        let after = buckets.last().map(|bucket| bucket.name.clone());
        let page = session.store.buckets(after.as_ref(), PAGE_ENTRIES_MAX).await?;
        let done = !page.more || page.entries.is_empty();
        buckets.extend(page.entries);
        if done {
            break;
        }
    }
    let report = |bucket: &BucketSummary| BucketReport {
        name: bucket.name.to_string(),
        created_at: rfc3339(bucket.created_at),
    };
    session.output.print(&BucketsReport { buckets: buckets.iter().map(report).collect() })
}

#[derive(Debug, Serialize)]
struct BucketReport {
    name: String,
    created_at: String,
}

#[derive(Debug, Serialize)]
struct BucketsReport {
    buckets: Vec<BucketReport>,
}

impl fmt::Display for BucketsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.buckets.is_empty() {
            return f.write_str("no buckets yet: `anabranch blob create BUCKET` makes one");
        }
        let mut table = table(&["BUCKET", "CREATED"], &[]);
        for bucket in &self.buckets {
            table.add_row([&bucket.name, &bucket.created_at]);
        }
        f.write_str(&table_text(&table))
    }
}

async fn ls_blobs(session: &Session<'_>, place: &Place, recursive: bool) -> Result<(), Failure> {
    let mut options = ListOptions {
        prefix: place.rest.clone(),
        delimiter: (!recursive).then(|| "/".to_owned()),
        ..ListOptions::default()
    };
    let mut empty = true;
    loop {
        let page = session.store.list(&place.bucket, options.clone()).await?;
        let mut rows: Vec<Row> = page.prefixes.into_iter().map(Row::Prefix).collect();
        rows.extend(page.entries.iter().map(Row::from));
        rows.sort_by(|left, right| left.name().cmp(right.name()));
        print_rows(&rows, session.output.json, empty)?;
        empty &= rows.is_empty();
        match page.next {
            Some(next) => options.after = Some(next),
            None => break,
        }
    }
    if empty && !session.output.json {
        note(format_args!(
            "no blob of bucket {} begins with `{}`",
            place.bucket,
            shown(place.rest.as_bytes(), true)
        ));
    }
    Ok(())
}

/// One line of a listing.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Row {
    Blob { key: String, size: u64, modified_at: String, etag: String },
    Prefix(String),
}

impl From<&BlobSummary> for Row {
    fn from(blob: &BlobSummary) -> Self {
        Row::Blob {
            key: blob.key.as_str().to_owned(),
            size: blob.size,
            modified_at: rfc3339(blob.modified_at),
            etag: blob.etag.to_string(),
        }
    }
}

impl Row {
    fn name(&self) -> &str {
        match self {
            Row::Blob { key, .. } => key,
            Row::Prefix(prefix) => prefix,
        }
    }
}

/// One JSON object a line, or a table whose headings stand above the first page.
fn print_rows(rows: &[Row], json: bool, first: bool) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    if json {
        let mut lines = Vec::new();
        for row in rows {
            match row {
                Row::Prefix(prefix) => {
                    serde_json::to_writer(&mut lines, &serde_json::json!({ "prefix": prefix }))
                }
                Row::Blob { .. } => serde_json::to_writer(&mut lines, row),
            }
            .map_err(io::Error::from)?;
            lines.push(b'\n');
        }
        return write_out(&lines);
    }
    let mut table = table(&["KEY", "SIZE", "MODIFIED"], &[1]);
    for row in rows {
        // A key may have any character, and a listing is read by people.
        let name = shown(row.name().as_bytes(), true).into_owned();
        match row {
            Row::Blob { size, modified_at, .. } => {
                table.add_row([name, Size(*size).to_string(), modified_at.clone()])
            }
            Row::Prefix(_) => table.add_row([name, "-".to_owned(), "-".to_owned()]),
        };
    }
    let text = table_text(&table);
    let below_headings = if first { 0 } else { text.find('\n').map_or(0, |end| end + 1) };
    write_out(&text.as_bytes()[below_headings..])
}

/// Arguments of `blob create`.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Its name: 3 to 63 of a-z, 0-9, `.` and `-`
    bucket: String,
}

pub(super) async fn create(session: &Session<'_>, args: &CreateArgs) -> Result<(), Failure> {
    let bucket = BucketName::new(&args.bucket)?;
    session.store.create_bucket(&bucket).await?;
    session.output.print(&Created { bucket: bucket.to_string() })
}

#[derive(Serialize)]
struct Created {
    bucket: String,
}

impl fmt::Display for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "created bucket {}", self.bucket)
    }
}
