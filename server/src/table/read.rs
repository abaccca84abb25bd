//! `table get`, `table query` and `table scan`.

use std::io;

use anabranch_model::table::{
    Get, Item, ItemPage, KeyCondition, KeySchema, Query, RangeCondition, Reading, Scan, Value,
};
use anabranch_model::{IndexName, TableName};
use clap::Args;

use super::Session;
use super::plain::Plain;
use crate::failure::Failure;
use crate::output::{note, shown, table, table_text, write_out};

/// Arguments of `table get`.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// The table
    name: String,
    /// The key of the item, as in {"id": "a"}
    key: String,
}

pub(super) async fn get(session: &Session<'_>, args: &GetArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    let key = session.store.table(&name).await?.options.key;
    let found = session.store.get(&name, Get::new(session.form.item(&args.key)?).consistent()).await?;
    let Some(item) = found else {
        return Err(Failure::new(
            "item_not_found",
            format!("table {name} has no item with this key"),
            format!("`anabranch table scan {name}` shows its items"),
        ));
    };
    print_items(session, &key, &[item])
}

/// Arguments of `table query`.
#[derive(Debug, Args)]
pub(super) struct QueryArgs {
    /// The table
    name: String,
    /// The hash value, as in '"a"' or 1
    hash: String,
    /// What the range value must be: one of = < <= > >= and a value, as in '>=1'
    #[arg(long, value_name = "OPERATOR JSON", conflicts_with = "prefix")]
    range: Option<String>,
    /// What the range value begins with
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Find them by this index
    #[arg(long)]
    index: Option<String>,
    /// From the largest range value down
    #[arg(long)]
    backward: bool,
    /// Most items
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl QueryArgs {
    fn range(&self, session: &Session<'_>) -> Result<Option<RangeCondition>, Failure> {
        if let Some(prefix) = &self.prefix {
            return Ok(Some(RangeCondition::begins_with(prefix.as_str())));
        }
        let Some(text) = &self.range else { return Ok(None) };
        type Made = fn(Value) -> RangeCondition;
        let operators: [(&str, Made); 5] = [
            (">=", RangeCondition::at_least),
            ("<=", RangeCondition::at_most),
            (">", RangeCondition::above),
            ("<", RangeCondition::below),
            ("=", RangeCondition::equals),
        ];
        for (operator, condition) in operators {
            if let Some(json) = text.strip_prefix(operator) {
                return Ok(Some(condition(session.form.value(json.trim())?)));
            }
        }
        Err(Failure::usage(
            format!("`{text}` does not begin with an operator"),
            "begin with = < <= > or >=, for instance --range '>=1'",
        ))
    }
}

pub(super) async fn query(session: &Session<'_>, args: &QueryArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    let options = session.store.table(&name).await?.options;
    let index = args.index.as_deref().map(IndexName::new).transpose()?;
    let schema = match &index {
        Some(index) => options.index(&name, index)?.key.clone(),
        None => options.key,
    };
    if !schema.hash_rest.is_empty() {
        return Err(Failure::usage(
            "the hash of that index has several attributes",
            "ask a client of DynamoDB, which can name them all",
        ));
    }
    let mut key = KeyCondition::of(&schema.hash.name, session.form.value(&args.hash)?);
    if let Some(condition) = args.range(session)? {
        let Some(range) = &schema.range else {
            return Err(Failure::usage(
                format!("table {name} has no range attribute there"),
                "leave --range and --prefix out",
            ));
        };
        key = key.and(&range.name, condition);
    }
    let query = Query { key, backward: args.backward, reading: Reading { index, ..Reading::default() } };
    let pages = async |reading: Reading| session.store.query(&name, Query { reading, ..query.clone() }).await;
    print_pages(session, &schema, query.reading.clone(), args.limit, pages).await
}

/// Arguments of `table scan`.
#[derive(Debug, Args)]
pub(super) struct ScanArgs {
    /// The table
    name: String,
    /// Most items
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub(super) async fn scan(session: &Session<'_>, args: &ScanArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    let key = session.store.table(&name).await?.options.key;
    let pages = async |reading: Reading| session.store.scan(&name, Scan { segment: None, reading }).await;
    print_pages(session, &key, Reading::default(), args.limit, pages).await
}

/// Reads page by page. Programs get each page at once; people get one table, whose columns fit all items.
async fn print_pages(
    session: &Session<'_>,
    key: &KeySchema,
    mut reading: Reading,
    limit: Option<usize>,
    read: impl AsyncFn(Reading) -> anabranch_model::Result<ItemPage>,
) -> Result<(), Failure> {
    let mut left = limit.unwrap_or(usize::MAX);
    let mut found: Vec<Item> = Vec::new();
    let mut any = false;
    while left > 0 {
        reading.limit = limit.map(|_| left);
        let page = read(reading.clone()).await?;
        left = left.saturating_sub(page.items.len());
        any |= !page.items.is_empty();
        found.extend(page.items);
        if session.output.json {
            print_items(session, key, &std::mem::take(&mut found))?;
        }
        reading.start = page.last;
        if reading.start.is_none() {
            break;
        }
    }
    if !any {
        note("no items");
        return Ok(());
    }
    print_items(session, key, &found)
}

/// Prints items: a table for people, with the key in front, or one line of JSON an item.
pub(super) fn print_items(session: &Session<'_>, key: &KeySchema, items: &[Item]) -> Result<(), Failure> {
    if items.is_empty() {
        return Ok(());
    }
    if session.output.json {
        let mut lines = Vec::new();
        for item in items {
            serde_json::to_writer(&mut lines, &session.form.shown(item)).map_err(io::Error::from)?;
            lines.push(b'\n');
        }
        return write_out(&lines);
    }
    let mut columns: Vec<&str> = key.attributes().map(|part| part.name.as_str()).collect();
    let mut others: Vec<&str> = items.iter().flat_map(Item::iter).map(|(name, _)| name).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|name| !columns.contains(name));
    columns.extend(others);
    let mut text = table(&columns, &[]);
    for item in items {
        text.add_row(columns.iter().map(|name| item.get(name).map_or_else(String::new, cell)));
    }
    write_out(table_text(&text).as_bytes())
}

/// A value in a table: a text as it is, everything else as JSON.
fn cell(value: &Value) -> String {
    match value {
        Value::Text(text) => shown(text.as_bytes(), true).into_owned(),
        other => serde_json::to_string(&Plain(other)).unwrap_or_default(),
    }
}
